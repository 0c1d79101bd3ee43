#include "tools/driver/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "lib/support/float_text.h"
#include "lib/support/utf8.h"
#include "lib/verify/check_pass.h"
#include "tools/driver/image_inputs.h"
#include "tools/driver/supplied_tensors.h"

namespace fs = std::filesystem;

namespace mlc::driver {

void Fill(const std::vector<Option>& options, const GivenOptions& given) {
  for (const Option& option : options) {
    auto it = given.find(option.key());
    if (it == given.end() || !option.field.set) continue;
    if (option.IsSwitch()) option.field.set("");
    for (const std::string& value : it->second) option.field.set(value);
  }
}

GivenOptions ParseOptions(const std::vector<Option>& options,
                          const std::vector<std::string>& words) {
  GivenOptions given;
  std::vector<std::string> unknown;
  for (size_t i = 0; i < words.size(); ++i) {
    size_t equals = words[i].starts_with("--") ? words[i].find('=') : std::string::npos;
    std::string name = words[i].substr(0, equals);
    auto option = std::find_if(options.begin(), options.end(),
                               [&](const Option& row) { return row.name == name; });
    if (option == options.end() || (option->IsSwitch() && equals != std::string::npos)) {
      unknown.push_back(words[i]);
      continue;
    }
    std::vector<std::string>& values = given[name];
    if (option->IsSwitch()) continue;
    std::string value = equals != std::string::npos ? words[i].substr(equals + 1)
                        : ++i < words.size()        ? words[i]
                                                    : "";
    if (value.empty())
      throw Error("usage", fmt::format("options: {}: 1 required {} missing", name, option->value));
    values.push_back(std::move(value));
    if (values.size() > 1 && !option->repeat)
      throw Error("usage", fmt::format("options: {}: At Most 1 required but received 2", name));
  }
  if (!unknown.empty())
    throw Error("usage", fmt::format("options: The following {} not expected: {}",
                                     unknown.size() == 1 ? "argument was" : "arguments were",
                                     fmt::join(unknown, " ")));
  return given;
}

Field Into(std::vector<std::string>& several) {
  return [&several](const std::string& text) { several.push_back(text); };
}

Field Switch(bool& field, bool to) {
  return {[&field, to](const std::string&) { field = to; },
          [&field, to] { return field == to ? std::optional(Field::Values{}) : std::nullopt; }};
}

int64_t ParseInt(std::string_view option, std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw Error("usage", fmt::format("{}: \"{}\" is not a whole number", option, text));
  return value;
}

std::chrono::milliseconds ParseDuration(std::string_view option, std::string_view text) {
  struct Unit {
    std::string_view name;
    int64_t milliseconds;
  };
  constexpr Unit kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  constexpr int64_t kMost = 1'000'000'000'000;  // 31 years
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    int64_t count = 0;
    const char* last = text.data() + text.size() - unit.name.size();
    auto [end, error] = std::from_chars(text.data(), last, count);
    if (error == std::errc() && end == last && count > 0 && count <= kMost / unit.milliseconds)
      return std::chrono::milliseconds(count * unit.milliseconds);
  }
  throw Error("usage", fmt::format("{}: \"{}\" is not a duration", option, text))
      .Expected("a whole number with a unit: 250ms, 90s, 30m or 1h");
}

namespace {

using Values = Field::Values;

// Returns one string for each entry of a container, or nothing if it is empty.
template <class List, class ToText>
std::optional<Values> Each(const List& list, ToText&& to_text) {
  Values values;
  for (const auto& entry : list) values.push_back(to_text(entry));
  return values.empty() ? std::nullopt : std::optional(std::move(values));
}

// Splits "NAME=rest" at the last '='.
std::pair<std::string, std::string> KeyValue(std::string_view option, const std::string& text) {
  size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw Error("usage", fmt::format("{}: \"{}\" is not of the form NAME=VALUE", option, text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<int64_t> IntList(std::string_view option, const std::string& text) {
  std::vector<int64_t> values;
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    size_t comma = std::min(text.find(',', begin), text.size());
    values.push_back(ParseInt(option, std::string_view(text).substr(begin, comma - begin)));
    begin = comma + 1;
  }
  return values;
}

std::vector<int64_t> ParseTokens(const std::string& text) {
  if (text.empty()) throw Error("usage", "--tokens requires at least one token");
  return IntList("--tokens", text);
}

template <class Map>
void AddOnce(std::string_view option, Map& map, const std::string& name,
             typename Map::mapped_type value) {
  if (!map.emplace(name, std::move(value)).second)
    throw Error("usage", fmt::format("{}: \"{}\" is given twice", option, name));
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

Symbol ParseSizes(const std::string& value, const std::string& text) {
  Symbol symbol;
  if (size_t dots = value.find(".."); dots != std::string::npos) {
    std::vector<int64_t> low = IntList("--dim", value.substr(0, dots)),
                         high = IntList("--dim", value.substr(dots + 2));
    if (low.size() != 1 || high.size() != 1)
      throw Error("usage", fmt::format("--dim: \"{}\" lacks a bound", text))
          .Expected("SYMBOL=LOW..HIGH, e.g. N=1..8");
    symbol.low = low[0];
    symbol.high = high[0];
  } else {
    symbol.enumerated = IntList("--dim", value);
    if (symbol.enumerated.empty())
      throw Error("usage", fmt::format("--dim: \"{}\" has no value", text));
    std::sort(symbol.enumerated.begin(), symbol.enumerated.end());
    symbol.low = symbol.enumerated.front();
    symbol.high = symbol.enumerated.back();
    if (symbol.enumerated.size() == 1) symbol.enumerated.clear();
  }
  if (symbol.low < 1 || symbol.high < symbol.low || symbol.high > INT32_MAX)
    throw Error("usage", fmt::format("--dim: \"{}\" is not a range of sizes", text))
        .Expected(fmt::format("sizes from 1 to {}, in order", INT32_MAX));
  return symbol;
}

std::string SizesText(const Symbol& sizes) {
  if (!sizes.enumerated.empty()) return fmt::format("{}", fmt::join(sizes.enumerated, ","));
  return sizes.low == sizes.high ? fmt::format("{}", sizes.low)
                                 : fmt::format("{}..{}", sizes.low, sizes.high);
}

// Accepts "A,B".
Field NamesInto(std::vector<std::string>& names) {
  auto set = [&names](const std::string& text) {
    for (size_t begin = 0; begin < text.size();) {
      size_t comma = std::min(text.find(',', begin), text.size());
      names.push_back(text.substr(begin, comma - begin));
      begin = comma + 1;
    }
  };
  return {set, [&names] { return ValuesOf(fmt::format("{}", fmt::join(names, ","))); }};
}

ImportOptions::Replacement ParseReplacement(const std::string& text) {
  auto [key, value] = KeyValue("--replace", text);
  size_t dot = key.rfind('.');
  if (dot == std::string::npos)
    throw Error("usage", fmt::format("--replace: \"{}\" is not of the form OP.ATTR=V", text));
  return {key.substr(0, dot), key.substr(dot + 1), value};
}

}  // namespace

std::vector<Option> ImportTable(ImportOptions& into) {
  return {
      {"--shape", "INPUT=1,3,224,224", "fix the shape of an input",
       Named(
           "--shape", into.shapes,
           [](const std::string& dims, const std::string&) { return IntList("--shape", dims); },
           [](const Dims& dims) { return fmt::format("{}", fmt::join(dims, ",")); }),
       false, true},
      {"--dim", "SYMBOL=4|1..8|1,2,4", "fix, bound or enumerate a dynamic dimension",
       Named("--dim", into.dims, ParseSizes, SizesText), false, true},
      {"--const", "INPUT=FILE", "replace an input with the constant in a .npy or .pb file",
       Named(
           "--const", into.constants,
           [](const std::string& file, const std::string&) { return ReadTensor(file); },
           [](const Tensor& tensor) { return "xxh3:" + tensor.hash(); }),
       false, true},
      {"--outputs", "A,B", "make these values the outputs and drop everything else",
       NamesInto(into.outputs)},
      {"--replace",
       "OP.ATTR=V",
       "override an attribute on every node with this operator (changes results)",
       {[&into](const std::string& text) { into.replacements.push_back(ParseReplacement(text)); },
        [&into] {
          return Each(into.replacements, [](const ImportOptions::Replacement& replacement) {
            return fmt::format("{}.{}={}", replacement.op, replacement.attribute,
                               replacement.value);
          });
        }},
       false,
       true},
      {"--image",
       "INPUT=rgb,SCALE,BIAS",
       "make an input an image (rgb, bgr or gray): the model receives pixel * SCALE + "
       "BIAS. SCALE and BIAS are one number, or one per channel; 1/255 is allowed. With "
       "INPUT=rgb,mean=M,std=S it receives (pixel / 255 - M) / S, or (pixel - M) / S if "
       "M or S is above 1",
       {[&into](const std::string& text) {
          auto [name, image] = ParseImageOption(text);
          AddOnce("--image", into.images, name, std::move(image));
        },
        [&into] {
          return Each(into.images,
                      [](const auto& image) { return ImageOption(image.first, image.second); });
        }},
       false,
       true},
      {"--runtime",
       "swift",
       "library with which an app runs the language model: swift (swift-transformers; "
       "the default and the only one)",
       {[&into](const std::string& text) {
          if (text != "swift")
            throw Error("usage", fmt::format("--runtime: \"{}\" is unknown", text))
                .Expected("swift");
          into.runtime = text;
        },
        [] { return std::nullopt; }}},
      {"--context",
       "N",
       "maximum context length of a language model, in tokens (default: 2048, or the "
       "model's own limit if lower)",
       {[&into](const std::string& text) { into.context = ParseInt("--context", text); },
        [&into] { return into.context ? ValuesOf(std::to_string(*into.context)) : std::nullopt; }}},
      {"--requant",
       "int8|int4|lut4|fp16",
       "requantise the matrices of a language model or encoder: int8 (one scale per "
       "row), int4 (one scale per 32 elements), lut4 (a table of 16 values per 32 "
       "rows), or fp16, dequantised (default: keep the source's encoding)",
       {[&into](const std::string& text) {
          if (text.empty()) throw Error("usage", "--requant requires a scheme");
          into.requant = text;
        },
        [&into] { return ValuesOf(into.requant); }}},
      {"--data-root",
       "DIR",
       "additional folder that may contain external data files, or the targets of "
       "symbolic links to them (default: only the model's folder)",
       {[&into](const std::string& text) {
          into.data_root = text;
          if (!fs::is_directory(into.data_root))
            throw Error("usage", fmt::format("--data-root: \"{}\" is not a folder", text));
        },
        [&into] { return ValuesOf(into.data_root); }}},
  };
}

std::vector<Option> PassTable(PassOptions& into) {
  return {
      {"--print-after",
       "PASS|all",
       "print the program to stderr after this pass, or after every pass",
       {[&into](const std::string& text) {
          into.print_after = text;
          if (text != "all") passes::ParsePasses(text);
        },
        [&into] { return ValuesOf(into.print_after); }}},
      {"--verify-each", "", "verify the program after every pass", Switch(into.verify_each)},
      {"--check-each",
       "SEED",
       "run the program on generated inputs before and after every pass and compare the "
       "results",
       {[&into](const std::string& text) {
          uint64_t seed = static_cast<uint64_t>(ParseInt("--check-each", text));
          into.check_each = [seed](const Program& before, const Program& after,
                                   std::string_view pass) {
            verify::CheckSame(before, after, seed, pass);
          };
        },
        [&into] { return into.check_each ? std::optional(Values{}) : std::nullopt; }}},
      {"--time-passes", "", "print to stderr how long each pass took", Switch(into.time_passes)},
  };
}

namespace {
Field Version(std::string_view option, std::string& field) {
  auto set = [option, &field](const std::string& text) {
    if (text.empty() || text.find_first_not_of("0123456789.") != std::string::npos)
      throw Error("usage", fmt::format("{}: \"{}\" is not a version", option, text))
          .Expected("numbers and dots, e.g. 3500.32.1");
    field = text;
  };
  return {set, [&field] { return ValuesOf(field); }};
}
}  // namespace

std::vector<Option> BundleTable(BundleVersions& into) {
  return {
      {"--compiler-version", "V", "Core ML compiler version to state in the text",
       Version("--compiler-version", into.compiler)},
      {"--mil-version", "V", "MIL component version to state in the text",
       Version("--mil-version", into.mil)},
  };
}

Option PrecisionOption(passes::PassContext::Precision& into, std::string_view help) {
  auto set = [&into](const std::string& text) {
    std::optional<passes::PassContext::Precision> precision = ParsePrecision(text);
    if (!precision)
      throw Error("usage", fmt::format("--precision: \"{}\" is unknown", text))
          .Expected("fp16, fp32 or mixed");
    into = *precision;
  };
  auto get = [&into] {
    return into == passes::PassContext::Precision::kFp16 ? std::nullopt
                                                         : ValuesOf(std::string(Name(into)));
  };
  return {"--precision", "fp16|fp32|mixed", help, {set, get}};
}

namespace {

constexpr const char* kTargetHelp =
    "iOS15 to iOS18, iOS26; macOS12 to macOS15, macOS26; tvOS15 to tvOS18, tvOS26; watchOS8 to "
    "watchOS11, watchOS26; visionOS1, visionOS2, visionOS26";

Field Metadata(std::string_view option, std::optional<std::string>& field) {
  auto set = [option, &field](const std::string& text) {
    RequireUtf8(text, "usage", std::string(option));
    field = WithoutBom(text);
  };
  return {set, [&field] { return ValuesOf(field); }};
}

// An output path, which is not stored in the manifest.
Field Destination(fs::path& field) {
  return {Into(field).set,
          [&field] { return field.empty() ? std::nullopt : std::optional(Values{}); }};
}

}  // namespace

std::optional<size_t> PlaceIn(const Option& option, std::string_view value) {
  if (!option.value.ends_with("FILE") && !option.value.ends_with("DIR")) return std::nullopt;
  if (option.value.ends_with("=FILE")) return value.rfind('=') + 1;
  // "fp16|FILE": values listed before FILE are keywords, not paths.
  for (std::string_view rest = option.value; rest.find('|') != rest.npos;) {
    const size_t end = rest.find('|');
    if (rest.substr(0, end) == value) return std::nullopt;
    rest.remove_prefix(end + 1);
  }
  return 0;
}

std::vector<Option> CompileTable(CompileOptions& into) {
  std::vector<Option> table = {
      {"--target",
       "iOS17|macOS14|...",
       "minimum deployment target (default: iOS16, or later if an operator requires it)",
       {[&into](const std::string& text) {
          into.target = ParseTarget(text);
          if (!into.target)
            throw Error("usage", fmt::format("--target: \"{}\" is unknown", text))
                .Expected(kTargetHelp);
        },
        [&into] {
          return into.target ? ValuesOf(std::string(TargetName(*into.target))) : std::nullopt;
        }}},
      PrecisionOption(
          into.precision,
          "compute precision: fp16 (default), fp32, or mixed (as little fp32 as meets --budget)"),
      {"--budget", "fp16|FILE",
       "error budget for --precision mixed, as in mlc verify (default: fp16, "
       "without the floor that mlc verify allows)",
       Into(into.budget)},
      {"--calibrate", "DIR",
       "measure fp16 accuracy on your own inputs (DIR/NAME.npy; several samples in DIR/0, "
       "DIR/1, ...)",
       Into(into.calibrate)},
      {"--fp16-strict", "", "fail if any operation would stay in fp32",
       Switch(into.fp16_strict, true)},
      {"--no-measure", "", "do not measure fp16 accuracy on generated inputs",
       Switch(into.measure, false)},
      {"--fp32-ops", "A,B",
       "operations (by name or operator) to keep in fp32, whatever mlc would choose",
       NamesInto(into.fp32_ops), false, true},
      {"--fp16-ops", "A,B",
       "operations (by name or operator) to compute in fp16, whatever mlc would choose",
       NamesInto(into.fp16_ops), false, true},
  };
  auto append = [&](std::vector<Option> rows) {
    table.insert(table.end(), rows.begin(), rows.end());
  };
  append(ImportTable(into.import));
  append({
      {"--io",
       "source|fp16",
       "type of float inputs and outputs: as in the source (default), or fp16 (requires "
       "iOS16)",
       {[&into](const std::string& text) {
          if (text != "fp16" && text != "source")
            throw Error("usage", fmt::format("--io: \"{}\" is unknown", text))
                .Expected("source or fp16");
          into.import.io = text == "fp16" ? DType::kFp16 : DType::kNone;
        },
        [&into] {
          return into.import.io == DType::kFp16 ? ValuesOf(std::string("fp16")) : std::nullopt;
        }}},
      {"--labels", "FILE",
       "make the model a classifier: FILE has one class label per line, and the "
       "output with as many elements gives the scores",
       Into(into.labels)},
      {"--author", "S", "author in the package metadata", Metadata("--author", into.author)},
      {"--license", "S", "licence in the package metadata", Metadata("--license", into.license)},
      {"--description", "S", "description in the package metadata",
       Metadata("--description", into.description)},
      {"--no-manifest", "", "do not write OUT.manifest.json", Switch(into.manifest, false)},
      {"--sha256", "", "record the SHA-256 of the source in the manifest", Switch(into.sha256)},
      {"--stats", "FILE", "write times and peak memory as JSON (the manifest has neither)",
       Destination(into.stats)},
      {"--force", "", "replace whatever exists at -o, even on file systems without atomic exchange",
       Switch(into.force)},
      {"--compiler-version", "V", "Core ML compiler version to record in a .mlmodelc",
       Version("--compiler-version", into.versions.compiler)},
      {"--mil-version", "V", "MIL component version to record in a .mlmodelc",
       Version("--mil-version", into.versions.mil)},
      {"--save-ir", "FILE", "write the optimised program as MIL text, large constants abbreviated",
       Destination(into.save_ir)},
  });
  append(PassTable(into.passes));
  return table;
}

GivenOptions AskedFor(const CompileOptions& options) {
  GivenOptions asked;
  CompileOptions copy = options;
  for (const Option& option : CompileTable(copy)) {
    std::optional<Values> values = option.field.get();
    if (!values) continue;
    for (std::string& value : *values)
      if (std::optional<size_t> place = PlaceIn(option, value)) {
        fs::path path = fs::path(value.substr(*place)).lexically_normal();
        if (!path.has_filename()) path = path.parent_path();
        value = value.substr(0, *place) + path.filename().string();
      }
    asked[option.key()] = std::move(*values);
  }
  return asked;
}

namespace {
// Names may contain '=', ranges do not.
std::pair<std::string, std::pair<double, double>> ParseRange(const std::string& text) {
  size_t equals = text.rfind('='), dots = text.rfind("..");
  double low = 0, high = 0;
  auto number = [&](size_t begin, size_t end, double& value) {
    auto [stop, error] = FloatFromChars(text.data() + begin, text.data() + end, value);
    return error == std::errc() && stop == text.data() + end && std::isfinite(value);
  };
  if (equals == std::string::npos || dots == std::string::npos || dots < equals ||
      !number(equals + 1, dots, low) || !number(dots + 2, text.size(), high))
    throw Error("usage", fmt::format("--input-range: \"{}\" is not of the form NAME=LO..HI", text));
  if (low > high)
    throw Error(
        "usage",
        fmt::format("--input-range: \"{}\": the lower bound is above the upper bound", text));
  return {text.substr(0, equals), {low, high}};
}
}  // namespace

std::vector<Option> MadeUpTable(analysis::GeneratedInputOptions& into) {
  return {
      {"--seed", "N", "seed for generated inputs (default 0)", Whole("--seed", into.seed)},
      {"--input-range", "NAME=LO..HI",
       "value range of a generated input (default: inferred from its use)",
       [&into](const std::string& text) {
         auto [name, range] = ParseRange(text);
         AddOnce("--input-range", into.ranges, name, range);
       },
       false, true},
  };
}

namespace {

template <class T>
T OneOf(std::string_view option, const std::string& text,
        std::initializer_list<std::pair<std::string_view, T>> words) {
  std::string expected;
  for (const auto& [word, value] : words) {
    if (text == word) return value;
    expected += fmt::format("{}{}", expected.empty() ? "" : " or ", word);
  }
  throw Error("usage", fmt::format("{}: \"{}\" is unknown", option, text)).Expected(expected);
}

engine::EngineOptions::Arithmetic ParseArithmetic(const std::string& text) {
  return OneOf<engine::EngineOptions::Arithmetic>(
      "--arithmetic", text,
      {{"faithful", engine::EngineOptions::Arithmetic::kFaithful},
       {"exact", engine::EngineOptions::Arithmetic::kExact}});
}

}  // namespace

std::vector<Option> GateTable(GateOptions& into) {
  const auto at_least_one = [](std::string_view option, int64_t& field) -> Field {
    return [option, &field](const std::string& text) {
      field = ParseInt(option, text);
      if (field < 1) throw Error("usage", fmt::format("{} {}", option, text)).Expected("1 or more");
    };
  };
  const auto number = [](std::string_view option, const std::string& text, double least,
                         double most, const char* expected) {
    double value = 0;
    const auto [end, error] = FloatFromChars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() ||
        !(value >= least && value <= most))
      throw Error("usage", fmt::format("{}: \"{}\"", option, text)).Expected(expected);
    return value;
  };
  std::vector<Option> table = {
      {"--units", "all|cpu|gpu|ane|reference",
       "compute units: Core ML's all (default where Core ML is available), cpu, gpu or "
       "ane; or reference, mlc's own CPU engine",
       [&into](const std::string& text) {
         const std::optional<runtime::Units> units = runtime::ParseUnits(text);
         if (!units)
           throw Error("usage", fmt::format("--units: \"{}\" is unknown", text))
               .Expected("all, cpu, gpu, ane or reference");
         into.units = *units;
       }},
      {"--function", "NAME", "function to judge (default: the model's default function)",
       Into(into.function)},
      {"--timeout", "MS",
       "fail a prediction that takes longer than MS milliseconds (default 60000)",
       [&into, at_least_one](const std::string& text) {
         int64_t ms = 0;
         at_least_one("--timeout", ms).set(text);
         into.timeout = std::chrono::milliseconds(ms);
       }},
      {"--load-timeout", "MS",
       "fail a compilation or load that takes longer than MS milliseconds (default 600000)",
       [&into, at_least_one](const std::string& text) {
         int64_t ms = 0;
         at_least_one("--load-timeout", ms).set(text);
         into.load_timeout = std::chrono::milliseconds(ms);
       }},
      {"--cycles", "N", "a: number of compile/load cycles (default 10000)",
       at_least_one("--cycles", into.cycles)},
      {"--iterations", "N", "b, c: number of timed predictions (default 100)",
       at_least_one("--iterations", into.iterations)},
      {"--p99-ms", "MS", "b: budget for the p99 latency (required)",
       [&into, number](const std::string& text) {
         into.p99_ms =
             number("--p99-ms", text, std::numeric_limits<double>::min(),
                    std::numeric_limits<double>::max(), "a number of milliseconds above 0");
       }},
      {"--source", "MODEL", "b: source model of the package, to compare with", Into(into.source)},
      {"--coverage", "PCT", "c: minimum share of operations on the requested units (default 90)",
       [&into, number](const std::string& text) {
         into.coverage_percent = number("--coverage", text, 0, 100, "0 to 100");
       }},
      {"--duration", "DURATION", "d: length of the soak, e.g. 90s or 30m (default 1h)",
       [&into](const std::string& text) { into.duration = ParseDuration("--duration", text); }},
  };
  for (Option& option : ImportTable(into.import)) table.push_back(std::move(option));
  return table;
}

std::vector<Option> RunTable(RunOptions& into) {
  std::vector<Option> table = {
      {"--input", "NAME=FILE",
       "input tensor from .npy or .pb, or image from .ppm or .pgm; inputs not given are "
       "generated",
       Into(into.input_files), false, true},
      {"--function", "NAME", "function to run (default: the model's default function)",
       Into(into.function)},
      {"--tokens", "5,17,100",
       "run on these token ids instead of input tensors. Outputs: logits [tokens, "
       "vocabulary] for a language model; hidden [tokens, width] and pooled [width], "
       "or the outputs of its head, for an encoder",
       [&into](const std::string& text) { into.tokens = ParseTokens(text); }},
      {"--step", "",
       "feed --tokens one at a time, keeping the context in the model's states, and "
       "report the time of each",
       Switch(into.step)},
      {"--output-dir", "DIR",
       "write each output to DIR/NAME.npy, where NAME is its name in the model",
       Into(into.output_folder)},
      {"--units", "all|cpu|gpu|ane|reference|sweep",
       "compute units: Core ML's all (default where Core ML is available), cpu, gpu or "
       "ane; reference, mlc's own CPU engine; or sweep, which measures each and recommends one",
       [&into](const std::string& text) {
         into.sweep = text == "sweep";
         into.units = runtime::ParseUnits(text);
         if (!into.units && !into.sweep)
           throw Error("usage", fmt::format("--units: \"{}\" is unknown", text))
               .Expected("all, cpu, gpu, ane, reference or sweep");
       }},
      {"--require-units", "",
       "fail (exit code 3) if an operation is planned for a unit other than the "
       "requested one, or its unit is unknown",
       Switch(into.require_units)},
      {"--low-precision", "",
       "allow the GPU to accumulate in fp16 (Core ML's low precision accumulation)",
       Switch(into.hints.low_precision_accumulation)},
      {"--reshapes", "frequent|infrequent", "Core ML hint: how often input shapes change",
       [&into](const std::string& text) {
         into.hints.reshapes = OneOf<runtime::LoadOptions::Reshapes>(
             "--reshapes", text,
             {{"frequent", runtime::LoadOptions::Reshapes::kFrequent},
              {"infrequent", runtime::LoadOptions::Reshapes::kInfrequent}});
       }},
      {"--specialization", "default|fast-prediction",
       "Core ML hint: fast-prediction accepts a longer load for faster predictions",
       [&into](const std::string& text) {
         into.hints.specialization = OneOf<runtime::LoadOptions::Specialization>(
             "--specialization", text,
             {{"default", runtime::LoadOptions::Specialization::kDefault},
              {"fast-prediction", runtime::LoadOptions::Specialization::kFastPrediction}});
       }},
      {"--arithmetic", "faithful|exact",
       "arithmetic of the reference engine: faithful rounds fp16 results to fp16, as Core ML "
       "does (default for packages); exact computes in fp32 (default for source models)",
       [&into](const std::string& text) { into.arithmetic = ParseArithmetic(text); }},
      {"--iterations", "N", "number of measured runs (default 1)",
       Whole("--iterations", into.iterations)},
      {"--warmup", "N", "number of runs before the measured ones (default 0)",
       Whole("--warmup", into.warmup)},
      {"--timeout", "MS",
       "abort a prediction after MS milliseconds and reload the model (exit code 4)",
       [&into](const std::string& text) {
         into.timeout = std::chrono::milliseconds(ParseInt("--timeout", text));
       }},
      {"--load-timeout", "MS",
       "abort a compilation or load by Core ML after MS milliseconds (default 600000)",
       [&into](const std::string& text) {
         into.load_timeout = std::chrono::milliseconds(ParseInt("--load-timeout", text));
       }},
      {"--jobs", "N",
       "number of concurrent predictions, each on its own instance of the model (default "
       "1)",
       Whole("--jobs", into.jobs)},
      {"--soak", "DURATION",
       "predict for this long (90s, 30m, 1h) instead of --iterations, and report memory "
       "growth",
       [&into](const std::string& text) { into.soak = ParseDuration("--soak", text); }},
      {"--warm-load", "", "load a second time and report how long that takes",
       Switch(into.warm_load)},
      {"--p99-budget", "MS",
       "open the circuit breaker, which stops calling the model for a while, when 3 "
       "of the last 100 predictions take longer than MS milliseconds",
       [&into](const std::string& text) {
         into.breaker.p99_budget_ms = static_cast<double>(ParseInt("--p99-budget", text));
       }},
      {"--memory-mark", "MB",
       "open the circuit breaker when the process uses more than MB megabytes",
       [&into](const std::string& text) {
         constexpr int64_t kMegabyte = 1'000'000;
         const int64_t mark = ParseInt("--memory-mark", text);
         into.breaker.memory_limit = mark > INT64_MAX / kMegabyte ? INT64_MAX : mark * kMegabyte;
       }},
      {"--compare", "reference|MODEL",
       "compare outputs with the reference engine, or with another model on the same "
       "units (exit code 3 outside the budget)",
       Into(into.compare)},
      {"--operations", "",
       "with --compare reference: also compare intermediate results, from a copy of the "
       "package that outputs them",
       Switch(into.operations)},
      {"--budget", "fp32|fp16|int8|FILE",
       "error budget for --compare (default: that of the model's precision)", Into(into.budget)},
      {"--profile", "", "report the time of each operator (reference engine only)",
       Switch(into.profile)},
  };
  std::vector<Option> generated = MadeUpTable(into.make_up);
  table.insert(table.begin() + 2, generated.begin(), generated.end());
  return table;
}

namespace {
Field NotNegative(std::string_view option, std::optional<double>& field) {
  return [option, &field](const std::string& text) {
    double number = 0;
    auto [end, error] = FloatFromChars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || !(number >= 0) ||
        number > std::numeric_limits<double>::max())
      throw Error("usage", fmt::format("{}: \"{}\" is not a number of at least 0", option, text));
    field = number;
  };
}
}  // namespace

std::vector<Option> VerifyTable(VerifyOptions& into) {
  std::vector<Option> table = {
      {"--function", "NAME",
       "compare only this function (default: all; both models must have the same "
       "functions)",
       Into(into.function)},
      {"--inputs", "DIR",
       "input tensors: NAME.npy, in_NAME.npy or input_<k>.pb; in DIR/FUNCTION for several "
       "functions, in subfolders 0, 1, ... for several samples",
       Into(into.inputs)},
      {"--tokens", "5,17,100",
       "token ids: the prompt of a language model, run as a whole and token by token, "
       "or the input of an encoder (default: generated)",
       [&into](const std::string& text) { into.tokens = ParseTokens(text); }},
      {"--samples", "N",
       "number of runs of each function; states carry over from one to the next. "
       "Generated inputs differ from run to run: the first has dynamic dimensions at "
       "their lower bounds, the second at the largest sizes that run quickly, and the "
       "others in between (default: the number of samples in --inputs; 3 for models "
       "with states; 16 for generated inputs, fewer for large models)",
       Whole("--samples", into.samples)},
      {"--reference", "DIR|NPZ",
       "outputs computed elsewhere, laid out like --inputs, with states in a subfolder "
       "states (default: mlc's own import of the source)",
       Into(into.reference)},
      {"--budget", "fp32|fp16|int8|FILE",
       "error budget (default: that of the package's precision); see below", Into(into.budget)},
      {"--per-axis", "N", "compare each slice along axis N relative to its own range",
       Whole("--per-axis", into.per_axis)},
      {"--atol", "X", "judge each element: |difference| <= atol + rtol * |reference|",
       NotNegative("--atol", into.atol)},
      {"--rtol", "X", "see --atol; if only one of the two is given, the other is 0",
       NotNegative("--rtol", into.rtol)},
      {"--layers", "", "also compare intermediate values and name the first outside the budget",
       Switch(into.layers)},
  };
  std::vector<Option> generated = MadeUpTable(into.make_up);
  table.insert(table.begin() + 2, generated.begin(), generated.end());
  return table;
}

}  // namespace mlc::driver
