// tools/driver/options.h - options by name: what users write, bound to the fields that it fills. The command line, its help
// and its completions, and the options of recipes are read by these tables.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/driver/compile.h"
#include "tools/driver/run.h"
#include "tools/driver/verify.h"

namespace mlc {

struct Option {
  std::string_view name;   // "--target" or "-o"; of an argument "MODEL", or "MODEL..." for several
  std::string_view value;  // placeholder of the value; empty: a switch, or an argument
  std::string_view help;
  // Called with each value, of a switch with ""; may be empty. Error "usage".
  std::function<void(const std::string& text)> set = {};
  bool required = false;
  bool repeat = false;  // may be given several times

  bool IsArgument() const { return name[0] != '-'; }
  bool IsSwitch() const { return value.empty() && !IsArgument(); }
  std::string key() const { return std::string(name.substr(0, name.find("..."))); }
};
// By key; a switch has no values.
using GivenOptions = std::map<std::string, std::vector<std::string>>;

// Where in a value of the option a path begins; nothing where it names none.
std::optional<size_t> PlaceIn(const Option& option, std::string_view value);

// Sets what is given, in the order of `options`, which may be fewer.
void Fill(const std::vector<Option>& options, const GivenOptions& given);
// Options as a recipe has them: {"--precision", "fp32", "--dim=n=1"}. Error "usage".
GivenOptions ParseOptions(const std::vector<Option>& options,
                          const std::vector<std::string>& words);

// The tables. Each is bound to the record it is made for, which must outlive it.
std::vector<Option> ImportTable(ImportOptions& into);
std::vector<Option> PassTable(PassOptions& into);
std::vector<Option> BundleTable(BundleVersions& into);
std::vector<Option> CompileTable(CompileOptions& into);
std::vector<Option> MadeUpTable(MadeUpOptions& into);
std::vector<Option> RunTable(RunOptions& into);
std::vector<Option> VerifyTable(VerifyOptions& into);
Option PrecisionOption(PassContext::Precision& into, std::string_view help);

// Setters for further rows. Texts, paths and optional ones of these:
template <class Field>
std::function<void(const std::string&)> Into(Field& field) {
  return [&field](const std::string& text) { field = text; };
}
std::function<void(const std::string&)> Into(std::vector<std::string>& several);
std::function<void(const std::string&)> Switch(bool& field);
// Error "usage", which names the option, for anything but a whole number.
int64_t ParseInt(std::string_view option, std::string_view text);
template <class Field>
std::function<void(const std::string&)> Whole(std::string_view option, Field& field) {
  return [option, &field](const std::string& text) {
    field = static_cast<Field>(ParseInt(option, text));
  };
}

}  // namespace mlc
