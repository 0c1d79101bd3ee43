// tools/driver/options.h - tables of named options, bound to the fields that they set. The command
// line, its help and completions, and the options of recipes are derived from these tables.
#pragma once

#include <fmt/format.h>

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

#include "tools/driver/benchmark.h"
#include "tools/driver/compile.h"
#include "tools/driver/explain.h"
#include "tools/driver/gate.h"
#include "tools/driver/generate.h"
#include "tools/driver/verify.h"

namespace mlc::driver {

// Accessors of the field that an option sets.
struct Field {
  using Values = std::vector<std::string>;
  // Called with each value, or with "" for a switch; may be empty. Error "usage".
  std::function<void(const std::string& text)> set;
  // Returns the values that reproduce the field's state (an empty list for a switch that is set),
  // or nullopt if the field has its default. No function for options that manifests do not store.
  std::function<std::optional<Values>()> get = {};

  Field() = default;
  template <class F>
    requires std::is_invocable_v<F, const std::string&>
  Field(F setter) : set(std::move(setter)) {}  // NOLINT
  Field(std::function<void(const std::string&)> setter,
        std::function<std::optional<Values>()> getter)
      : set(std::move(setter)), get(std::move(getter)) {}
};

// The headings under which help texts and man pages list options, in this order.
enum class OptionGroup {
  kOptions,  // of commands with few options
  kInputs,
  kShapes,
  kPrecision,
  kCompression,
  kUnits,
  kOutput,
  kMeasuring,
  kComparison,
  kLanguage,
  kDebugging,
  kGeneral
};

struct Option {
  std::string_view name;   // "--target" or "-o"; for arguments "MODEL", or "MODEL..." if repeatable
  std::string_view value;  // placeholder of the value; empty: a switch or an argument
  std::string_view help;
  Field field = {};
  bool required = false;
  bool repeat = false;  // may be repeated
  OptionGroup group = OptionGroup::kOptions;
  bool common = false;  // listed by --help of a command with many options, not only by --help-all

  bool IsArgument() const { return name[0] != '-'; }
  bool IsSwitch() const { return value.empty() && !IsArgument(); }
  std::string key() const { return std::string(name.substr(0, name.find("..."))); }
};
// The rows of a table in a group, and a row that --help always lists.
std::vector<Option> Grouped(OptionGroup group, std::vector<Option> rows);
Option Common(Option row);
// Values by key; empty for a switch.
using GivenOptions = std::map<std::string, std::vector<std::string>>;

// Returns the offset of the path in a value of the option, or nothing if the value contains no
// path.
std::optional<size_t> PlaceIn(const Option& option, std::string_view value);

// Sets the given options, in the order of `options`. Given options that are not in `options` are
// ignored.
void Fill(const std::vector<Option>& options, const GivenOptions& given);
// Parses options as written in recipes: {"--precision", "fp32", "--dim=n=1"}. Error "usage".
GivenOptions ParseOptions(const std::vector<Option>& options,
                          const std::vector<std::string>& words);

// The tables, each in the file of its name (run_options.cpp). Each is bound to the record passed to
// it, which must outlive the table.
std::vector<Option> ImportTable(ImportOptions& into);
std::vector<Option> PassTable(PassOptions& into);
std::vector<Option> BundleTable(BundleVersions& into);
// Options that determine the program, and all options of compilation.
std::vector<Option> ProgramTable(CompileOptions& into);
std::vector<Option> CompileTable(CompileOptions& into);
// Returns the options that differ from the defaults, as stored in the manifest. They are normalised
// so that the manifest does not depend on folders: input paths lose their folders, output paths are
// omitted, and constants are replaced by their hashes.
GivenOptions AskedFor(const CompileOptions& options);
// How pictures and sounds get the size of an input.
Option FitOption(media::Fit& into);
std::vector<Option> MadeUpTable(analysis::GeneratedInputOptions& into);
std::vector<Option> RunTable(BenchmarkOptions& into);
// Options for prompts, in addition to RunTable.
std::vector<Option> GenerateTable(GenerateOptions& into);
std::vector<Option> GateTable(GateOptions& into);
std::vector<Option> VerifyTable(VerifyOptions& into);
std::vector<Option> ExplainTable(ExplainOptions& into);
std::vector<Option> OptimizeTable(OptimizeOptions& into);
std::vector<Option> PrecompileTable(PrecompileOptions& into);
// Rules of compression.
Option CompressOption(std::string& into, std::string_view help);
// A number of threads; 0 (the default) is as many as the machine has.
Option ThreadsOption(int& into, std::string_view help);
Option PrecisionOption(passes::PassContext::Precision& into, std::string_view help);
Option OptimizeForOption(std::optional<analysis::Unit>& into);
// The value of --units. Error "usage" for anything but all, cpu, gpu, ane and reference.
runtime::Units UnitsNamed(const std::string& text);
// Error "usage" for anything but ane, gpu and cpu.
analysis::Unit ParseUnit(std::string_view option, const std::string& text);

// Fields of common types, for additional rows: strings, paths, optional strings, lists.
inline std::optional<Field::Values> ValuesOf(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(Field::Values{text});
}
inline std::optional<Field::Values> ValuesOf(const std::filesystem::path& path) {
  return ValuesOf(path.string());
}
inline std::optional<Field::Values> ValuesOf(const std::optional<std::string>& text) {
  return text ? std::optional(Field::Values{*text}) : std::nullopt;
}
inline std::optional<Field::Values> ValuesOf(std::optional<int64_t> number) {
  return number ? std::optional(Field::Values{std::to_string(*number)}) : std::nullopt;
}
template <class T>
Field Into(T& field) {
  return {[&field](const std::string& text) { field = text; },
          [&field] { return ValuesOf(field); }};
}
Field Into(std::vector<std::string>& several);
// A field whose setter checks the text.
template <class T>
Field Into(T& field, std::function<void(const std::string& text)> set) {
  return {std::move(set), [&field] { return ValuesOf(field); }};
}
Field Switch(bool& field, bool to = true);
// Parses an integer. Error "usage", which names the option.
int64_t ParseInt(std::string_view option, std::string_view text);
// Parses a finite number within bounds; `expected` describes them. Error "usage", which names the
// option.
double NumberWithin(std::string_view option, const std::string& text, double low, double high,
                    std::string_view expected);
// Parses 250ms, 90s, 30m or 1h, at least one millisecond. Error "usage", which names the option.
std::chrono::milliseconds ParseDuration(std::string_view option, std::string_view text);
// A field of numbers or milliseconds.
template <class T>
Field Whole(std::string_view option, T& field) {
  return
      [option, &field](const std::string& text) { field = static_cast<T>(ParseInt(option, text)); };
}

// Splits "NAME=rest" at the last '='. Error "usage", which names the option.
std::pair<std::string, std::string> KeyValue(std::string_view option, const std::string& text);
// Parses "1,2,3". Error "usage", which names the option.
std::vector<int64_t> IntList(std::string_view option, const std::string& text);
// Parses the token ids of --tokens. Error "usage".
std::vector<int64_t> ParseTokens(const std::string& text);
// A field set by "A,B", to which a repeated option adds.
Field NamesInto(std::vector<std::string>& names);
// Returns one string for each entry of a container, or nothing if it is empty.
template <class List, class ToText>
std::optional<Field::Values> Each(const List& list, ToText&& to_text) {
  Field::Values values;
  for (const auto& entry : list) values.push_back(to_text(entry));
  return values.empty() ? std::nullopt : std::optional(std::move(values));
}
// Adds an entry to a map. Error "usage" if the name exists.
template <class Map>
void AddOnce(std::string_view option, Map& map, const std::string& name,
             typename Map::mapped_type value) {
  if (!map.emplace(name, std::move(value)).second)
    throw Error("usage", "{}: \"{}\" is given twice", option, name);
}
// A map field set by "NAME=VALUE", with unique names: `parse` converts VALUE to an entry (and
// receives the whole text for errors), `print` converts an entry to VALUE.
template <class Map, class Parse, class Print>
Field Named(std::string_view option, Map& map, Parse parse, Print print) {
  return {[option, parse, &map](const std::string& text) {
            auto [name, value] = KeyValue(option, text);
            AddOnce(option, map, name, parse(value, text));
          },
          [print, &map] {
            return Each(map, [&](const auto& entry) {
              return fmt::format("{}={}", entry.first, print(entry.second));
            });
          }};
}
template <class T>
struct OptionalValue {
  using type = T;
};
template <class T>
struct OptionalValue<std::optional<T>> {
  using type = T;
};
template <class T>
using WordValue = typename OptionalValue<T>::type;
// Error "usage" for a value that is not among the words that an option takes; `expected` lists them
// in another form, if they are many.
Error UnknownWord(std::string_view option, std::string_view text,
                  const std::vector<std::string_view>& words, std::string expected = {});
// A field set by one of several words. Error "usage", which lists them.
template <class T>
Field OneOf(std::string_view option, T& field,
            std::initializer_list<std::pair<std::string_view, WordValue<T>>> words) {
  return [option, &field, words = std::vector(words)](const std::string& text) {
    std::vector<std::string_view> known;
    for (const auto& [word, value] : words) {
      if (text == word) {
        field = value;
        return;
      }
      known.push_back(word);
    }
    throw UnknownWord(option, text, known);
  };
}

// Appends rows to a table.
void Append(std::vector<Option> rows, std::vector<Option>& table);
// Returns the options of a table with these names, or all others.
std::vector<Option> Only(std::vector<Option> table, std::initializer_list<std::string_view> names);
std::vector<Option> Without(std::vector<Option> table,
                            std::initializer_list<std::string_view> names);

}  // namespace mlc::driver
