// Options of compilation: passes, precision, targets, versions of a bundle.

#include "lib/compress/rules.h"
#include "lib/support/utf8.h"
#include "lib/verify/check_pass.h"
#include "tools/driver/options.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

Field Version(std::string_view option, std::string& field) {
  return Into(field, [option, &field](const std::string& text) {
    if (text.empty() || text.find_first_not_of("0123456789.") != std::string::npos)
      throw Error("usage", "{}: \"{}\" is not a version", option, text)
          .Expected("numbers and dots, e.g. 3500.32.1");
    field = text;
  });
}

constexpr const char* kTargetHelp =
    "iOS15 to iOS18, iOS26; macOS12 to macOS15, macOS26; tvOS15 to tvOS18, tvOS26; watchOS8 to "
    "watchOS11, watchOS26; visionOS1, visionOS2, visionOS26";

// All targets that ParseTarget knows.
std::vector<std::string> TargetNames() {
  constexpr int kNewest = 26;
  std::vector<std::string> names;
  for (const char* system : {"iOS", "macOS", "tvOS", "watchOS", "visionOS"})
    for (int version = 1; version <= kNewest; ++version)
      if (std::string name = fmt::format("{}{}", system, version); ParseTarget(name))
        names.push_back(std::move(name));
  return names;
}

Field Metadata(std::string_view option, std::optional<std::string>& field) {
  return Into(field, [option, &field](const std::string& text) {
    RequireUtf8(text, "usage", std::string(option));
    field = WithoutBom(text);
  });
}

// An output path, which is not stored in the manifest.
Field Destination(fs::path& field) {
  return {Into(field).set,
          [&field] { return field.empty() ? std::nullopt : std::optional(Field::Values{}); }};
}

}  // namespace

std::vector<Option> PassTable(PassOptions& into) {
  return Grouped(
      OptionGroup::kDebugging,
      {{"--print-after", "PASS|all",
        "print the program to stderr after this pass, or after every pass (default: none)",
        Into(into.print_after,
             [&into](const std::string& text) {
               into.print_after = text;
               if (text != "all") passes::ParsePasses(text);
             })},
       {"--verify-each", "", "verify the program after every pass", Switch(into.verify_each)},
       {"--check-each", "SEED",
        "run the program on generated inputs before and after every pass and compare the "
        "results (default: not checked)",
        Field(
            [&into](const std::string& text) {
              uint64_t seed = static_cast<uint64_t>(ParseInt("--check-each", text));
              into.check_each = [seed](const Program& before, const Program& after,
                                       std::string_view pass) {
                verify::CheckSame(before, after, seed, pass);
              };
            },
            [&into] { return into.check_each ? std::optional(Field::Values{}) : std::nullopt; })},
       {"--time-passes", "", "print to stderr how long each pass took", Switch(into.time_passes)}});
}

std::vector<Option> BundleTable(BundleVersions& into) {
  return Grouped(OptionGroup::kOutput,
                 {{"--compiler-version", "V",
                   "Core ML compiler version to record in the output (default: a recent one)",
                   Version("--compiler-version", into.compiler)},
                  {"--mil-version", "V",
                   "MIL component version to record in the output (default: a recent one)",
                   Version("--mil-version", into.mil)}});
}

Option PrecisionOption(passes::PassContext::Precision& into, std::string_view help) {
  auto set = [&into](const std::string& text) {
    std::optional<passes::PassContext::Precision> precision = ParsePrecision(text);
    if (!precision) throw UnknownWord("--precision", text, {"fp16", "fp32", "mixed"});
    into = *precision;
  };
  auto get = [&into] {
    return into == passes::PassContext::Precision::kFp16 ? std::nullopt
                                                         : ValuesOf(std::string(Name(into)));
  };
  return {"--precision", "fp16|fp32|mixed", help, {set, get}};
}

analysis::Unit ParseUnit(std::string_view option, const std::string& text) {
  std::optional<analysis::Unit> unit = analysis::UnitNamed(text);
  if (!unit) throw UnknownWord(option, text, {"ane", "gpu", "cpu"});
  return *unit;
}

Option OptimizeForOption(std::optional<analysis::Unit>& into) {
  return {
      "--optimize-for", "ane|gpu|cpu",
      "rewrite operations into the forms that run best on this compute unit (default: none); ane "
      "needs fixed or listed sizes (--dim), gpu fuses attention from iOS18, cpu changes nothing",
      Field([&into](const std::string& text) { into = ParseUnit("--optimize-for", text); },
            [&into] {
              return into ? ValuesOf(std::string(analysis::ShortName(*into))) : std::nullopt;
            })};
}

std::vector<Option> ProgramTable(CompileOptions& into) {
  std::vector<Option> table = Grouped(
      OptionGroup::kPrecision,
      {Common(
           {"--target", "iOS17|macOS14|...",
            "minimum deployment target (default: iOS16, or later if an operator requires it)",
            Field(
                [&into](const std::string& text) {
                  into.target = ParseTarget(text);
                  if (!into.target) {
                    const std::vector<std::string> names = TargetNames();
                    throw UnknownWord("--target", text, {names.begin(), names.end()}, kTargetHelp);
                  }
                },
                [&into] {
                  return into.target ? ValuesOf(std::string(TargetName(*into.target)))
                                     : std::nullopt;
                })}),
       Common(PrecisionOption(
           into.precision,
           "compute precision: fp16 (default), fp32, or mixed (as little fp32 as meets --budget)")),
       Common(OptimizeForOption(into.optimize_for)),
       Common({"--budget", "fp16|FILE",
               "error budget for --precision mixed, as in mlc verify --help but never raised to "
               "the floor "
               "(default: fp16)",
               Into(into.budget)}),
       Common(
           {"--calibrate", "generated:N|FILE|DIR",
            "inputs to measure fp16 accuracy on and to compress for: DIR/NAME.npy (several samples "
            "in DIR/0, DIR/1, ..., or along the first dimension), a folder of pictures or sounds "
            "for a model with one input, FILE.txt for a language model, or N generated samples; to "
            "compress only, statistics of mlc calibrate or an importance matrix of llama.cpp "
            "(default: generated inputs, only to measure fp16)",
            Field([&into](const std::string& text) { into.calibrate = text; },
                  [&into] {
                    // The manifest does not depend on folders.
                    return into.calibrate.empty()
                               ? std::nullopt
                               : std::optional(Field::Values{
                                     std::filesystem::path(into.calibrate).filename().string()});
                  })}),
       FitOption(into.fit),
       {"--fp16-strict", "", "fail if any operation would stay in fp32",
        Switch(into.fp16_strict, true)},
       {"--no-measure", "", "do not measure fp16 accuracy on generated inputs",
        Switch(into.measure, false)},
       {"--fp32-ops", "A,B",
        "operations (by name or operator) to keep in fp32, whatever mlc would choose",
        NamesInto(into.fp32_ops), false, true},
       {"--fp16-ops", "A,B",
        "operations (by name or operator) to compute in fp16, whatever mlc would choose",
        NamesInto(into.fp16_ops), false, true}});
  Append(ImportTable(into.import), table);
  Append(Grouped(OptionGroup::kInputs,
                 {Common({"--labels", "FILE",
                          "make the model a classifier: FILE has one class label per line, and the "
                          "output with as many elements gives the scores (default: the classes of "
                          "a Hugging Face folder, or no classifier)",
                          Into(into.labels)})}),
         table);
  return table;
}

std::vector<Option> CompileTable(CompileOptions& into) {
  std::vector<Option> table = ProgramTable(into);
  Append(
      Grouped(
          OptionGroup::kOutput,
          {{"--author", "S", "author in the package metadata (default: that of the source)",
            Metadata("--author", into.author)},
           {"--license", "S", "licence in the package metadata (default: that of the source)",
            Metadata("--license", into.license)},
           {"--description", "S",
            "description in the package metadata (default: that of the source)",
            Metadata("--description", into.description)},
           {"--no-manifest", "", "do not write OUT.manifest.json", Switch(into.manifest, false)},
           {"--sha256", "", "record the SHA-256 of the source in the manifest",
            Switch(into.sha256)},
           {"--report", "FILE",
            "write what compression cost as a page (.html), Markdown (.md), .txt or .json, or the "
            "curve of auto as a picture (.svg) (default: none)",
            Destination(into.report)},
           Common({"--force", "",
                   "replace whatever exists at -o, even on file systems without atomic exchange",
                   Switch(into.force)}),
           {"--compiler-version", "V",
            "Core ML compiler version to record in a .mlmodelc (default: a recent one)",
            Version("--compiler-version", into.versions.compiler)},
           {"--mil-version", "V",
            "MIL component version to record in a .mlmodelc (default: a recent one)",
            Version("--mil-version", into.versions.mil)}}),
      table);
  Append(Grouped(
             OptionGroup::kCompression,
             {{"--resume", "DIR",
               "keep each weight that is compressed for --calibrate in DIR, and take those that an "
               "interrupted run left there (default: none)",
               Destination(into.resume)},
              {"--no-training", "",
               "do not train compressed weights on the inputs of --calibrate, which takes longer "
               "than the rest",
               Switch(into.train, false)}}),
         table);
  Append(Grouped(OptionGroup::kDebugging,
                 {{"--stats", "FILE",
                   "write times and peak memory as JSON (the manifest has neither) (default: none)",
                   Destination(into.stats)},
                  Common({"--save-ir", "FILE",
                          "write the optimised program as MIL text, large constants abbreviated "
                          "(default: none)",
                          Destination(into.save_ir)})}),
         table);
  Append(PassTable(into.passes), table);
  return table;
}

std::vector<Option> PrecompileTable(PrecompileOptions& into) {
  std::vector<Option> table = Grouped(
      OptionGroup::kOutput,
      {Common({"--force", "",
               "replace whatever exists at -o, even on file systems without atomic exchange",
               Switch(into.force)}),
       {"--cache", "DIR", "cache of compiled models to read from and add to (default: none)",
        Into(into.cache)}});
  Append(BundleTable(into.versions), table);
  return table;
}

std::vector<Option> OptimizeTable(OptimizeOptions& into) {
  std::vector<Option> table = Grouped(
      OptionGroup::kDebugging,
      {Common({"--passes", "LIST",
               "comma-separated passes, \"\" for none (default: the whole pipeline)",
               [&into](const std::string& text) { into.passes = passes::ParsePasses(text); }})});
  Append(Grouped(OptionGroup::kPrecision,
                 {Common(PrecisionOption(
                      into.precision, "compute precision of the default pipeline (default fp32)")),
                  Common(OptimizeForOption(into.optimize_for)),
                  Common({"--calibrate", "generated:N|FILE|DIR",
                          "inputs to compress for, as in mlc compile (default: generated inputs, "
                          "only to measure fp16)",
                          Into(into.calibrate)}),
                  FitOption(into.fit)}),
         table);
  Append(
      Grouped(
          OptionGroup::kCompression,
          {Common(CompressOption(
               into.compress,
               "compress weights of any package, also of one that is compressed already; runs "
               "only the passes that this needs unless --passes is given. mlc compile --help "
               "explains rules (default: weights are stored as they are)")),
           {"--resume", "DIR", "keep compressed weights in DIR, as in mlc compile (default: none)",
            Into(into.resume)},
           {"--no-training", "", "do not train compressed weights, as in mlc compile",
            Switch(into.train, false)},
           {"--decompress", "", "store compressed constants as plain ones",
            Switch(into.decompress)}}),
      table);
  Append(
      Grouped(
          OptionGroup::kOutput,
          {Common(
               {"--report", "FILE",
                "write what compression cost, as .html, .md, .txt, .svg or .json (default: none)",
                Into(into.report)}),
           {"--inline", "", "print small constants where they are used",
            Switch(into.inline_constants)},
           Common({"--force", "",
                   "replace whatever exists at -o, even on file systems without atomic exchange",
                   Switch(into.force)})}),
      table);
  Append(PassTable(into.pipeline), table);
  return table;
}

GivenOptions AskedFor(const CompileOptions& options) {
  GivenOptions asked;
  CompileOptions copy = options;
  for (const Option& option : CompileTable(copy)) {
    std::optional<Field::Values> values = option.field.get();
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

}  // namespace mlc::driver
