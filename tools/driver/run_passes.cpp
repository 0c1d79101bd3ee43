#include "tools/driver/run_passes.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "backends/coreml/lower.h"
#include "backends/coreml/write_package.h"
#include "lib/ir/text.h"
#include "lib/support/atomic_install.h"
#include "lib/support/temporary_folder.h"
#include "tools/driver/calibration.h"
#include "tools/driver/compression.h"
#include "tools/driver/compression_page.h"
#include "tools/driver/import.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

constexpr std::pair<std::string_view, passes::PassContext::Precision> kPrecisions[] = {
    {"fp16", passes::PassContext::Precision::kFp16},
    {"fp32", passes::PassContext::Precision::kFp32},
    {"mixed", passes::PassContext::Precision::kMixed},
};

// Size limit in bytes on constants in the MIL text of a reproducer.
constexpr uint64_t kMostConstants = 64 << 20;

// Writes a new file in the temporary folder and returns its path: PREFIX, a dash, six random
// characters, ".mil".
std::string WriteTemporary(std::string_view prefix, const std::string& text) {
  std::string file_name = fmt::format("{}-{}.mil", prefix, std::string(6, 'X'));
  std::string path = (TemporaryRoot() / file_name).string();
  int file = mkstemps(path.data(), 4);
  std::FILE* stream = file < 0 ? nullptr : fdopen(file, "w");
  bool written = stream && std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  if (stream) written = std::fclose(stream) == 0 && written;
  if (!written) throw Error("file-io", "cannot write \"{}\"", path);
  return path;
}

}  // namespace

std::vector<passes::PassRun> RunPipeline(Program& program, const std::function<Program()>& again,
                                         const std::vector<const passes::PassDef*>& passes,
                                         passes::PassContext& context, const PassOptions& options) {
  try {
    std::vector<passes::PassRun> runs = passes::RunPasses(program, passes, context, options);
    if (options.time_passes && options.timed) options.timed(runs);
    return runs;
  } catch (const passes::PassFailure& failure) {
    std::string help;
    try {
      Program before = again();
      Diagnostics ignored;
      std::optional<compress::Compression> compression;
      if (context.compression)
        compression.emplace(compress::Compression{.rules = context.compression->rules,
                                                  .decompress = context.compression->decompress});
      passes::PassContext same{.diagnostics = ignored,
                               .precision = context.precision,
                               .target = context.target,
                               .optimize_for = context.optimize_for,
                               .fp32_ops = context.fp32_ops,
                               .fp16_ops = context.fp16_ops,
                               .measured = context.measured,
                               .reached = context.reached,
                               .judged = context.judged,
                               .compression = compression ? &*compression : nullptr};
      passes::RunPasses(before, passes, same, {.at_most = failure.completed});
      // The text states the target, so that rerunning it uses the same one.
      for (const auto& function : before.functions)
        function->opset = std::max(function->opset, context.target);
      uint64_t bytes = 0;
      for (const auto& function : before.functions)
        ForEachOperation(*function,
                         [&](Operation* op) { bytes += op->val ? op->val.byte_size() : 0; });
      bool whole = bytes <= kMostConstants;
      std::string path = WriteTemporary(
          fmt::format("mlc-before-{}", failure.pass),
          PrintText(before, {.inline_limit = 8, .max_elements = whole ? 0 : 32}) + "\n");
      help = fmt::format(
          "\n  the program before it: {}{}\n  to rerun: mlc opt {} --passes {} "
          "--precision {}{} --verify-each",
          path, whole ? "" : " (without its constants, which are too large)",
          whole ? path : "MODEL", failure.pass, Name(context.precision),
          context.optimize_for
              ? fmt::format(" --optimize-for {}", analysis::ShortName(*context.optimize_for))
              : "");
    } catch (const std::exception& error) {
      help = fmt::format("\n  the program before it could not be saved: {}", error.what());
    }
    throw InternalError(failure.what() + help);
  }
}

std::string_view Name(passes::PassContext::Precision precision) {
  for (const auto& [name, other] : kPrecisions)
    if (other == precision) return name;
  return "";
}

std::optional<passes::PassContext::Precision> ParsePrecision(std::string_view name) {
  for (const auto& [known, precision] : kPrecisions)
    if (known == name) return precision;
  return std::nullopt;
}

void WriteProgram(Program& program, const fs::path& output, bool force, Diagnostics& diagnostics) {
  if (output.extension() == ".mil") {
    WriteFile(output, PrintText(program));
    return;
  }
  const std::vector<const passes::PassDef*> passes = {&passes::kNewerForms};
  const auto precision = passes::PassContext::Precision::kFp32;
  const Opset target = coreml::LowestTarget(program, passes, precision, diagnostics);
  passes::PassContext context{diagnostics, precision, target};
  passes::RunPasses(program, passes, context, {});
  coreml::WritePackage(program, output, {.target = target, .force = force}, diagnostics);
}

namespace {

// Throws Error "usage" for options that contradict each other.
void CheckOptions(const OptimizeOptions& options) {
  if (!options.compress.empty() && options.decompress)
    throw Error("usage", "--compress cannot be combined with --decompress");
  if (options.compress.empty() && (!options.calibrate.empty() || !options.report.empty()))
    throw Error("usage", "{} requires --compress",
                options.calibrate.empty() ? "--report" : "--calibrate");
  if (!options.report.empty()) CheckCompressionReport(options.report);
  RequireCalibration(options.resume, !options.compress.empty(), options.calibrate);
}

struct OptimizedFor {
  OptimizeResult result;
  Opset target = Opset::kIos16;
};

// Runs the passes on `program`, which `again` makes once more. `model` is empty if no file contains
// it. `package`: the program is written for a target.
OptimizedFor RunOn(Program& program, const fs::path& model, const std::function<Program()>& again,
                   bool package, const OptimizeOptions& options, Diagnostics& diagnostics) {
  OptimizedFor optimized;
  OptimizeResult& result = optimized.result;
  const bool compresses = !options.compress.empty() || options.decompress;
  if (compresses)
    result.compression.emplace(
        compress::Compression{.rules = options.decompress ? std::vector<compress::Rule>()
                                                          : compress::ParseRules(options.compress),
                              .decompress = options.decompress});
  // A package requires the operator forms of its target, regardless of the requested passes.
  std::vector<const passes::PassDef*> passes = options.passes ? *options.passes
                                               : compresses ? std::vector<const passes::PassDef*>()
                                                            : passes::DefaultPipeline();
  if (compresses)
    for (const passes::PassDef* needed : {&passes::kCompress, &passes::kEncodedConstants})
      if (std::ranges::find(passes, needed) == passes.end()) passes.push_back(needed);
  if (package && std::ranges::find(passes, &passes::kNewerForms) == passes.end())
    passes.push_back(&passes::kNewerForms);
  Diagnostics unsaid;  // text has no target, so its notes are dropped
  Opset& target = optimized.target;
  target = coreml::LowestTarget(program, passes, options.precision, package ? diagnostics : unsaid);
  passes::PassContext context{diagnostics, options.precision, target, options.optimize_for};
  if (compresses) {
    context.target = target = RaisedFor(result.compression->rules, target, diagnostics);
    result.compression->progress = options.progress;
    result.compression->stored = StoredIn(options.resume);
    context.compression = &*result.compression;
  }
  const std::unique_ptr<Measuring> measuring =
      MeasuringFor(result.compression, options.calibrate, model, program, options.fit);
  if (measuring)
    measuring->Prepare(program, *result.compression, !options.calibrate.empty(), options.train);
  result.passes = RunPipeline(program, again, passes, context, options.pipeline);
  if (measuring) measuring->RequireUsed();
  if (result.compression) {
    // What they refer to ends with this function.
    if (compresses && !options.decompress) NoteUnits(program, *result.compression);
    if (measuring) measuring->MeasureAgain(program, *result.compression);
    result.compression->ReleaseFunctions();
    if (!options.report.empty())
      WriteCompressionReport(options.report, model.filename().string(), *result.compression);
  }
  for (const passes::PassRun& run : result.passes) result.changed = result.changed || run.changed;
  return optimized;
}

}  // namespace

OptimizeResult OptimizeProgram(Program& program, const OptimizeOptions& options,
                               Diagnostics& diagnostics) {
  CheckOptions(options);
  Verify(program);
  const Program before = Clone(program);
  const auto again = [&] { return Clone(before); };
  return RunOn(program, {}, again, true, options, diagnostics).result;
}

OptimizeResult Optimize(const fs::path& model, const OptimizeOptions& options,
                        Diagnostics& diagnostics) {
  const fs::path& output = options.output;
  bool package = output.extension() == ".mlpackage";
  if (!output.empty() && !package && output.extension() != ".mil")
    throw Error("usage", "-o: \"{}\" ends neither in .mil nor in .mlpackage", output.string())
        .Help("for a .mlmodelc, write a package and run mlc precompile");
  CheckOptions(options);
  Program program = Import(model, {}, diagnostics);
  Verify(program);
  if (package)
    coreml::CheckPackageTarget(output, options.force);
  else if (!output.empty())
    Staging(output, Staging::kFile);  // reports conflicts early
  auto again = [&] {
    Diagnostics ignored;
    return Import(model, {}, ignored);
  };
  auto [result, target] = RunOn(program, model, again, package, options, diagnostics);
  if (package) {
    coreml::WritePackage(program, output,
                         {.target = target, .force = options.force, .progress = options.progress},
                         diagnostics);
    return std::move(result);
  }
  result.text = PrintText(program, {.inline_limit = options.inline_constants ? 64 : 0});
  if (!output.empty()) WriteFile(output, std::exchange(result.text, ""));
  return std::move(result);
}

}  // namespace mlc::driver
