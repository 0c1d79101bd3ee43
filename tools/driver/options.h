// tools/driver/options.h - options by name: what users write, bound to the fields that it fills. The command line, its help
// and its completions, and the options of recipes are read by these tables.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tools/driver/compile.h"
#include "tools/driver/gate.h"
#include "tools/driver/generate.h"
#include "tools/driver/run.h"
#include "tools/driver/verify.h"

namespace mlc {

// What an option fills in.
struct Field {
  using Values = std::vector<std::string>;
  // Called with each value, of a switch with ""; may be empty. Error "usage".
  std::function<void(const std::string& text)> set;
  // Values that make the field what it is, of a switch none; nothing where it is what it is without
  // the option. Empty for options that no manifest has.
  std::function<std::optional<Values>()> get = {};

  Field() = default;
  template <class F>
    requires std::is_invocable_v<F, const std::string&>
  Field(F setter) : set(std::move(setter)) {}  // NOLINT
  Field(std::function<void(const std::string&)> setter,
        std::function<std::optional<Values>()> getter)
      : set(std::move(setter)), get(std::move(getter)) {}
};

struct Option {
  std::string_view name;   // "--target" or "-o"; of an argument "MODEL", or "MODEL..." for several
  std::string_view value;  // placeholder of the value; empty: a switch, or an argument
  std::string_view help;
  Field field = {};
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
// What was asked for, as the manifest has it: in one way of writing, places without their folders and
// those of results without their names, so that the bytes are the same in every folder; of a constant
// its hash.
GivenOptions AskedFor(const CompileOptions& options);
std::vector<Option> MadeUpTable(GeneratedInputOptions& into);
std::vector<Option> RunTable(RunOptions& into);
// Of a prompt, beside those of RunTable; language_options.cpp has it.
std::vector<Option> GenerateTable(GenerateOptions& into);
std::vector<Option> GateTable(GateOptions& into);
std::vector<Option> VerifyTable(VerifyOptions& into);
Option PrecisionOption(PassContext::Precision& into, std::string_view help);

// Fields for further rows. Texts, paths and optional ones of these:
inline std::optional<Field::Values> ValuesOf(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(Field::Values{text});
}
inline std::optional<Field::Values> ValuesOf(const std::filesystem::path& path) {
  return ValuesOf(path.string());
}
inline std::optional<Field::Values> ValuesOf(const std::optional<std::string>& text) {
  return text ? std::optional(Field::Values{*text}) : std::nullopt;
}
template <class T>
Field Into(T& field) {
  return {[&field](const std::string& text) { field = text; },
          [&field] { return ValuesOf(field); }};
}
Field Into(std::vector<std::string>& several);
Field Switch(bool& field, bool to = true);
// Error "usage", which names the option, for anything but a whole number.
int64_t ParseInt(std::string_view option, std::string_view text);
// 250ms, 90s, 30m or 1h; at least a millisecond. Error "usage", which names the option.
std::chrono::milliseconds ParseDuration(std::string_view option, std::string_view text);
template <class T>
Field Whole(std::string_view option, T& field) {
  return
      [option, &field](const std::string& text) { field = static_cast<T>(ParseInt(option, text)); };
}

}  // namespace mlc
