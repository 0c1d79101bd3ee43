#include "tools/driver/compile.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "backends/coreml/classifier.h"
#include "backends/coreml/lower.h"
#include "backends/coreml/manifest.h"
#include "backends/coreml/write_mlmodelc.h"
#include "backends/coreml/write_package.h"
#include "lib/analysis/fp16_share.h"
#include "lib/coreml/package_layout.h"
#include "lib/ir/text.h"
#include "lib/support/atomic_install.h"
#include "lib/support/hash.h"
#include "lib/support/mapped_file.h"
#include "lib/support/memory_use.h"
#include "lib/support/regular_file.h"
#include "tools/driver/calibration.h"
#include "tools/driver/compression.h"
#include "tools/driver/compression_page.h"
#include "tools/driver/errors.h"
#include "tools/driver/frontends.h"
#include "tools/driver/options.h"
#include "tools/driver/output_path.h"
#include "tools/driver/source_hashes.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/tokenizer.h"
#include "tools/driver/version.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

std::string HashOf(std::string_view bytes) {
  Xxh3 hash;
  hash.Update(bytes);
  return hash.Hex();
}

// Returns the manifest's description of the source.
coreml::Manifest::Source DescribeSource(const fs::path& model, const SourceFacts& facts,
                                        const std::vector<SourceFile>& files) {
  coreml::Manifest::Source source;
  source.name = (model.has_filename() ? model : model.parent_path()).filename().string();
  source.format = std::string(FrontendOf(model).name);
  source.facts = facts.metadata;
  source.xxh3_128 = CombinedXxh3(files);
  source.sha256 = CombinedSha256(files);
  if (files.size() > 1)
    for (const SourceFile& file : files)
      source.files.push_back({file.name, file.bytes, file.xxh3_128, file.sha256});
  return source;
}

// Work limits for --precision mixed, which measures larger programs than other precisions do.
constexpr double kMixedWork = 4e10;
constexpr uint64_t kMixedWeights = 400'000'000;

// Converts names of the source to those of the program.
std::vector<std::string> AsImported(std::vector<std::string> names) {
  for (std::string& name : names)
    if (!IsLegalName(name)) name = LegalName(name);
  return names;
}

// Implements --fp16-strict: throws if any operation stays in fp32.
void RefuseFp32(const Diagnostics& diagnostics) {
  constexpr size_t kNamed = 8;
  std::vector<std::string> named;
  size_t count = 0;
  for (const Decision& decision : diagnostics.decisions())
    if (decision.kind == "fp32" && ++count <= kNamed)
      named.push_back(fmt::format("{}, {}", decision.subject, decision.reason));
  if (count == 0) return;
  Error error("check-failed", "--fp16-strict: {} would stay in fp32",
              count == 1 ? std::string("1 operation") : fmt::format("{} operations", count));
  for (const std::string& one : named) error.Note(one);
  if (count > kNamed) error.Note("and {} more", count - kNamed);
  throw error.Help(
      "without --fp16-strict they stay in fp32; --fp16-ops forces operations to compute in fp16");
}

// Warns of deviations that the default precision does not avoid.
void WarnOfRounding(const precision::Measurement& measurement, Diagnostics& diagnostics) {
  if (!measurement.beyond.empty()) {
    std::vector<std::string> outputs;
    for (const precision::Measurement::Figure& figure : measurement.beyond)
      outputs.push_back(fmt::format("output \"{}\" has {} of {:.2g} (limit {:.2g})", figure.output,
                                    Name(figure.kind), figure.value, figure.allowed));
    Error warning("fp16-error", "fp16 exceeds its budget on {}: {}", measurement.inputs,
                  fmt::join(outputs, ", "));
    warning.Help(
        measurement.mixed_share
            ? fmt::format("--precision mixed meets the budget with at most {:.0f} % of the "
                          "work in fp32; --calibrate DIR measures on your own inputs",
                          std::max(1.0, 100 * *measurement.mixed_share))
            : "--precision mixed meets the budget with as little in fp32 as possible; "
              "--calibrate DIR measures on your own inputs");
    diagnostics.Warn(std::move(warning));
  }
  if (!measurement.other_range.empty())
    diagnostics.Warn(Error("fp16-range", measurement.other_range)
                         .Help("use inputs in the range that the model was trained on; "
                               "--calibrate DIR measures on your own inputs"));
}

// A source model after the passes.
struct Optimized {
  Program program;
  Opset target = Opset::kIos16;
  std::optional<precision::Measurement> measurement;
  std::vector<passes::PassRun> passes;
  std::optional<compress::Compression> compression;
};

// Callbacks for the end of each step of a compilation.
struct Steps {
  std::function<void(SourceFacts&)> imported = [](SourceFacts&) {};
  std::function<void(std::string phase)> finished = [](const std::string&) {};
};

// Throws Error "usage" for options that contradict each other.
void CheckOptions(const CompileOptions& options) {
  if (options.budget && options.precision != passes::PassContext::Precision::kMixed)
    throw Error("usage", "--budget requires --precision mixed")
        .Help("mlc verify --budget judges an fp16 package");
  // Inputs for compression only are no contradiction.
  const bool measures_on = !options.calibrate.empty() && CompressionRules(options.import).empty();
  if (measures_on && HoldsStatistics(options.calibrate))
    throw Error("usage", "--calibrate: statistics require --compress")
        .Help("give the inputs themselves to measure fp16 accuracy on");
  if (!options.measure && (options.budget || measures_on))
    throw Error("usage", "--no-measure cannot be combined with --calibrate or --budget");
  if (options.precision == passes::PassContext::Precision::kFp32 &&
      (!options.fp16_ops.empty() || !options.fp32_ops.empty() || measures_on ||
       options.fp16_strict))
    throw Error("usage",
                "--precision fp32 cannot be combined with --calibrate, --fp16-ops, --fp32-ops or "
                "--fp16-strict");
  for (const std::string& name : options.fp16_ops)
    if (std::ranges::count(options.fp32_ops, name) > 0)
      throw Error("usage", "--fp32-ops and --fp16-ops both name \"{}\"", name);
}

// Makes the program to compile. `model` is empty if no file contains it.
struct Source {
  fs::path model;
  std::function<Program(const ImportOptions&, Diagnostics&, SourceFacts*)> read;
  bool has_tokenizer = true;  // whether the tokenizer of the model goes with the package
};
Source FileSource(const fs::path& model) {
  return {model,
          [model](const ImportOptions& options, Diagnostics& diagnostics, SourceFacts* facts) {
            return ImportUncompressed(model, options, diagnostics, facts);
          }};
}

// Imports the model and runs the passes, or those before `until`.
Optimized OptimizeSource(const Source& source, const CompileOptions& options,
                         Diagnostics& diagnostics, const Steps& steps,
                         const passes::PassDef* until = nullptr) {
  const fs::path& model = source.model;
  const auto progress = [&](double share) {
    if (options.progress) options.progress({.name = "importing", .share = share});
  };
  progress(0);
  const verify::Budgets least = verify::ParseBudgets(options.budget.value_or("fp16"));
  ImportOptions import = options.import;
  import.target = options.target;
  // iOS15 does not support fp16 inputs and outputs.
  if (import.io == DType::kNone && options.target == Opset::kIos15) import.io = DType::kFp32;

  std::vector<compress::Rule> rules = CompressionRules(options.import);
  if (options.target) compress::CheckTarget(rules, *options.target);
  SourceFacts facts;
  auto make = [&](Diagnostics& into) {
    Program made = source.read(import, into, &facts);
    if (!options.labels.empty())
      coreml::MakeClassifier(made, coreml::ReadLabels(options.labels), into);
    else if (!facts.class_labels.empty())
      coreml::MakeClassifier(made, facts.class_labels, into);
    return made;
  };
  auto again = [&] {
    Diagnostics ignored;
    return make(ignored);
  };
  Optimized optimized{.program = make(diagnostics)};
  Program& program = optimized.program;
  progress(1);
  steps.imported(facts);
  Interface& interface = program.interface;
  if (options.author) interface.author = *options.author;
  if (options.license) interface.license = *options.license;
  if (options.description) interface.short_description = *options.description;
  program.build_info = {{std::string(coreml::kMlcVersionKey), kVersion}};
  Verify(program);
  std::vector<const passes::PassDef*> passes = passes::DefaultPipeline();
  const Opset target =
      options.target
          ? *options.target
          : RaisedFor(rules, coreml::LowestTarget(program, passes, options.precision, diagnostics),
                      diagnostics);
  passes::PassContext context{diagnostics, options.precision, target, options.optimize_for};
  if (!rules.empty()) {
    optimized.compression.emplace(compress::Compression{.rules = std::move(rules)});
    optimized.compression->progress = options.progress;
    optimized.compression->stored = StoredIn(options.resume);
    context.compression = &*optimized.compression;
  }
  context.fp32_ops = AsImported(options.fp32_ops);
  context.fp16_ops = AsImported(options.fp16_ops);
  const std::unique_ptr<Measuring> measuring =
      MeasuringFor(optimized.compression, options.calibrate, model, program, options.fit);
  if (measuring && optimized.compression)
    measuring->Prepare(program, *optimized.compression, !options.calibrate.empty(), options.train);
  precision::MeasureInputs inputs;
  if (options.measure && options.precision != passes::PassContext::Precision::kFp32) {
    inputs = !options.calibrate.empty() && measuring->samples()
                 ? ForMeasuring(*measuring->samples(), program)
             : options.precision == passes::PassContext::Precision::kMixed
                 ? precision::MakeUpLeastInputs(program, kMixedWork, kMixedWeights)
                 : precision::MakeUpMeasureInputs(program);
    // Measures the whole program before it is lowered to fp16.
    context.measure = [&](const Program& wide, passes::PassContext& into) {
      steps.finished("passes before measuring");
      const bool mixed = options.precision == passes::PassContext::Precision::kMixed;
      optimized.measurement = precision::MeasureFp16(
          wide, into,
          {.passes = {std::ranges::find(passes, &passes::kFp16Precision), passes.end()},
           .inputs = std::move(inputs),
           // The errors of compressed weights are those of compression, and are not measured.
           .source = optimized.compression ? [&wide] { return Clone(wide); }
                                           : std::function<Program()>(again),
           .floor = !mixed,
           .budgets = least,
           .least = mixed,
           .progress = options.progress});
      if (options.budget && !optimized.measurement->not_measured.empty())
        diagnostics.Warn(Error("check-failed",
                               "--budget was not checked: " + optimized.measurement->not_measured));
      steps.finished("measuring");
    };
  }
  passes.erase(std::ranges::find(passes, until), passes.end());
  optimized.passes = RunPipeline(program, again, passes, context, options.passes);
  if (measuring) measuring->RequireUsed();
  if (optimized.compression) {
    // What they refer to ends with this function.
    NoteUnits(program, *optimized.compression);
    if (measuring) measuring->MeasureAgain(program, *optimized.compression);
    optimized.compression->ReleaseFunctions();
  }
  if (optimized.measurement && !optimized.measurement->broken.empty())
    throw Error("check-failed",
                "output \"{}\" would be NaN or infinite on {} inputs, where the source "
                "computes finite values",
                optimized.measurement->broken,
                optimized.measurement->generated ? "generated" : "the given")
        .Help("--precision fp32 keeps everything in fp32; --no-measure skips this check");
  if (options.fp16_strict) RefuseFp32(diagnostics);
  if (optimized.measurement) WarnOfRounding(*optimized.measurement, diagnostics);
  steps.finished("passes");
  optimized.target = target;
  return optimized;
}

}  // namespace

Program CompileProgram(const fs::path& model, const CompileOptions& options,
                       Diagnostics& diagnostics, const passes::PassDef* until) {
  CheckOptions(options);
  return OptimizeSource(FileSource(model), options, diagnostics, {}, until).program;
}

namespace {

CompileResult CompileSource(const Source& source, const fs::path& given,
                            const CompileOptions& options, Diagnostics& diagnostics,
                            const std::vector<SourceFile>* known) {
  const fs::path& model = source.model;
  const fs::path output = WithoutSlash(given);
  if (output.extension() != ".mlpackage" && output.extension() != ".mlmodelc")
    throw Error("usage", "-o: \"{}\" does not end in .mlpackage or .mlmodelc", output.string());
  CheckOptions(options);
  if (!options.report.empty()) {
    CheckCompressionReport(options.report);
    if (CompressionRules(options.import).empty())
      throw Error("usage", "--report requires --compress");
  }
  RequireCalibration(options.resume, !CompressionRules(options.import).empty(), options.calibrate);
  if (output.extension() == ".mlpackage" && options.versions != BundleVersions())
    throw Error("usage", "--compiler-version and --mil-version require a compiled bundle as output")
        .Help("an output that ends in .mlmodelc is one");
  CompileResult result;
  auto start = std::chrono::steady_clock::now();
  auto phase = [&](std::string name) {
    auto now = std::chrono::steady_clock::now();
    result.phases.emplace_back(std::move(name), std::chrono::duration<double>(now - start).count());
    start = now;
  };
  const bool bundle = output.extension() == ".mlmodelc";
  SourceFacts facts;
  TokenizerFiles tokenizer_files;
  std::optional<TokenizerInstallation> tokenizer;
  std::optional<SourceHashes> hashes;
  Steps steps;
  steps.finished = phase;
  steps.imported = [&](SourceFacts& read) {
    std::vector<fs::path> tokenizer_parts;
    if (!model.empty() && source.has_tokenizer)
      tokenizer_files = TokenizerFilesOf(model, tokenizer_parts, diagnostics);
    for (const fs::path& file : tokenizer_parts) read.Add(model, file);
    facts = read;
    phase("import");
    // Output conflicts are checked once all input files are known, and before anything is written.
    bundle ? coreml::CheckBundleTarget(output, options.force)
           : coreml::CheckPackageTarget(output, options.force);
    tokenizer.emplace(output, tokenizer_files, options.tokenizer_place, options.force);
    if (options.manifest) coreml::CheckManifestTarget(output, options.force);
    for (const fs::path* file : {&options.save_ir, &options.stats, &options.report})
      if (!file->empty()) Staging(*file, Staging::kFile);
    std::vector<SourceFile> files;
    if (options.manifest && !known) files = SourceFiles(model, facts);
    hashes.emplace(std::move(files), options.sha256);
  };
  Optimized optimized = OptimizeSource(source, options, diagnostics, steps);
  Program& program = optimized.program;
  const Opset target = optimized.target;
  result.measurement = std::move(optimized.measurement);
  result.compression = std::move(optimized.compression);
  result.passes = std::move(optimized.passes);
  const analysis::Fp16Share share = analysis::Fp16ShareOf(program);
  result.fp16_share = share.share();
  result.fp16_segments = share.segments;
  result.no_fp16_form_share = analysis::NoFp16FormShare(program, target);
  for (const Decision& decision : diagnostics.decisions())
    if (const size_t at = decision.reason.find(passes::kFp32Before); at != std::string::npos)
      if (std::string newer = decision.reason.substr(at + passes::kFp32Before.size());
          result.fp16_target.empty() || newer < result.fp16_target)
        result.fp16_target = std::move(newer);
  if (!options.report.empty())
    WriteCompressionReport(options.report, model.filename().string(), *result.compression);
  if (!options.save_ir.empty())
    WriteFile(options.save_ir, PrintText(program, {.inline_limit = 8, .max_elements = 32}) + "\n");
  // A bundle is made from a temporary package.
  std::optional<Staging> hidden;
  Diagnostics bundling;  // not part of the manifest
  if (bundle) hidden.emplace(output, Staging::kFolder, options.force);
  fs::path written = bundle ? hidden->path().parent_path() / "hidden.mlpackage" : output;
  coreml::PackageResult package = coreml::WritePackage(
      program, written,
      {.target = target,
       .force = options.force,
       .passed = [&](const MappedFile& file, uint64_t end) { hashes->Pass(file, end); },
       .progress = options.progress},
      diagnostics);
  if (bundle) {
    MakeBundle(written, output, output, true, {options.versions, options.force}, bundling);
    package.content_hash = coreml::PackageHash(output);
  }
  tokenizer->Commit();
  result.tokenizer = tokenizer->folder();
  phase("write");
  if (options.manifest) {
    coreml::Manifest manifest;
    manifest.mlc_version = kVersion;
    manifest.source = DescribeSource(model, facts, known ? *known : hashes->Finish());
    manifest.precision = std::string(Name(options.precision));
    manifest.fp16_share = result.fp16_share;
    manifest.fp16_segments = result.fp16_segments;
    manifest.no_fp16_form_share = result.no_fp16_form_share;
    if (result.measurement && result.measurement->not_measured.empty()) {
      manifest.measured_on = result.measurement->inputs;
      for (const precision::Measurement::Figure& figure : result.measurement->beyond)
        manifest.exceeded.push_back({figure.output, figure.value, figure.allowed});
      manifest.mixed_share = result.measurement->mixed_share.value_or(0);
    }
    for (auto& [name, values] : AskedFor(options)) manifest.options.emplace_back(name, values);
    manifest.package = package;
    if (!result.tokenizer.empty())
      manifest.tokenizer = {"json", tokenizer_files.tokenizer.size(),
                            HashOf(tokenizer_files.tokenizer)};
    manifest.passes = result.passes;
    manifest.compression = result.compression ? &*result.compression : nullptr;
    manifest.text = WithFlags;
    coreml::WriteManifest(output, manifest, program, diagnostics);
    result.manifest = coreml::ManifestPath(output);
    phase("manifest");
  }
  diagnostics.Append(std::move(bundling));
  result.peak_memory_bytes = PeakMemoryBytes();
  result.package = output;
  result.target = target;
  result.precision = std::string(Name(options.precision));
  result.operators = package.operators;
  for (const auto& [name, count] : result.operators) result.operations += count;
  result.weight_bytes = package.weight_bytes;
  result.content_hash = package.content_hash;
  result.program = std::make_shared<Program>(std::move(program));
  return result;
}

// Leaves one function of a program, as its main function.
Program OnlyFunction(Program program, const std::string& name) {
  std::erase_if(program.functions, [&](const auto& function) { return function->name != name; });
  MLC_CHECK(program.functions.size() == 1, "no function {}", name);
  program.functions[0]->name = program.interface.default_function = "main";
  return program;
}

// Writes a folder with a package for each function, and the files of the model that WhisperKit reads
// beside them; the folder is installed as a whole.
CompileResult CompileWhisperKit(const fs::path& model, const fs::path& given,
                                const CompileOptions& options, Diagnostics& diagnostics) {
  constexpr const char* kFunctions[] = {"MelSpectrogram", "AudioEncoder", "TextDecoder"};
  constexpr const char* kBeside[] = {"config.json", "generation_config.json", "tokenizer.json",
                                     "tokenizer_config.json", "preprocessor_config.json"};
  const fs::path output = WithoutSlash(given);
  if (output.extension() == ".mlpackage" || output.extension() == ".mlmodelc")
    throw Error("usage", "-o: \"{}\" is a single model, but --runtime whisperkit makes three",
                output.string())
        .Expected("a folder for them");
  CompileOptions one = options;
  // WhisperKit's own models are those of macOS 14.
  if (!one.target) one.target = Opset::kIos17;
  Staging staging(output, Staging::kFolder, options.force);
  std::error_code error;
  fs::create_directories(staging.path(), error);
  CompileResult all;
  for (const char* name : kFunctions) {
    const Source source{model,
                        [&](const ImportOptions& import, Diagnostics& into, SourceFacts* facts) {
                          return OnlyFunction(ImportUncompressed(model, import, into, facts), name);
                        },
                        false};
    CompileResult result = CompileSource(
        source, staging.path() / (std::string(name) + ".mlpackage"), one, diagnostics, nullptr);
    for (const auto& [operation, count] : result.operators) all.operators[operation] += count;
    result.operations += all.operations;
    result.weight_bytes += all.weight_bytes;
    result.phases.insert(result.phases.begin(), all.phases.begin(), all.phases.end());
    result.operators = all.operators;
    all = std::move(result);
  }
  for (const char* name : kBeside)
    if (const fs::path file = model / name; fs::exists(file, error))
      WriteFile(staging.path() / name, std::string(AsText(MappedFile::Open(file)->bytes())));
  staging.Commit();
  all.package = output;
  if (!all.manifest.empty()) all.manifest = output / all.manifest.filename();
  return all;
}

}  // namespace

CompileResult Compile(const fs::path& model, const fs::path& output, const CompileOptions& options,
                      Diagnostics& diagnostics, const std::vector<SourceFile>* known) {
  if (options.import.runtime == kWhisperKit)
    return CompileWhisperKit(model, output, options, diagnostics);
  return CompileSource(FileSource(model), output, options, diagnostics, known);
}

CompileResult Compile(const Program& program, const fs::path& output, const CompileOptions& given,
                      Diagnostics& diagnostics) {
  CompileOptions options = given;
  options.manifest = false;
  const auto copy = [&](const ImportOptions&, Diagnostics&, SourceFacts*) {
    return Clone(program);
  };
  return CompileSource({{}, copy}, output, options, diagnostics, nullptr);
}

}  // namespace mlc::driver
