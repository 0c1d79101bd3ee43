#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/support/atomic_install.h"
#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "lib/support/temporary_folder.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/frontends.h"
#include "tools/driver/json_results.h"
#include "tools/driver/output_path.h"
#include "tools/mlc/command.h"
#include "tools/mlc/compression_report.h"
#include "tools/mlc/interface_report.h"
#include "tools/mlc/pass_output.h"
#include "tools/mlc/progress_line.h"
#include "tools/mlc/terminal.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

fs::path DefaultOutput(const fs::path& model) {
  const fs::path whole = fs::absolute(model).lexically_normal();
  fs::path name = whole.has_filename() ? whole.filename() : whole.parent_path().filename();
  // For folders other than packages, the part after a dot belongs to the name: Llama-3.2-1B.
  std::error_code ignored;
  const fs::path ending = name.extension();
  if (ending != ".mlpackage" && ending != ".mlmodelc" && fs::is_directory(model, ignored))
    return name += ".mlpackage";
  return name.replace_extension(".mlpackage");
}

// "fp32", "fp16", "fp16 (3 % of the work fp32, not measured)".
std::string PrecisionText(const CompileResult& result) {
  if (result.precision == "fp32") return result.precision;
  std::vector<std::string> more;
  double percent = 100 * (1 - result.fp16_share);
  if (percent >= 0.5)
    more.push_back(fmt::format("{:.0f} % of the work in fp32", percent));
  else if (percent > 0)
    more.push_back("below 1 % of the work in fp32");
  if (!result.fp16_target.empty() && percent >= 0.5)
    more.push_back(fmt::format("less with --target {}", result.fp16_target));
  if (result.measurement && !result.measurement->beyond.empty()) {
    const precision::Measurement::Figure& worst =
        *std::ranges::max_element(result.measurement->beyond,
                                  [](const auto& a, const auto& b) { return a.Part() < b.Part(); });
    more.push_back(fmt::format("{}: {:.2g} % {}", worst.output, 100 * worst.value,
                               worst.kind == precision::Measurement::Figure::Kind::kError
                                   ? "error"
                                   : "of elements differ"));
  }
  if (!result.measurement || !result.measurement->not_measured.empty())
    more.push_back(result.measurement && result.measurement->ranges ? "only ranges measured"
                                                                    : "not measured");
  return result.precision + (more.empty() ? "" : fmt::format(" ({})", fmt::join(more, ", ")));
}

// Returns the lines below the headline: why nothing was measured, and the trade-off of --precision
// mixed.
std::string MeasurementText(const CompileResult& result) {
  if (!result.measurement) return "";
  const precision::Measurement& measurement = *result.measurement;
  if (!measurement.not_measured.empty())
    return fmt::format(
        "  fp16 {} not measured: {}{}\n", measurement.ranges ? "errors" : "accuracy",
        measurement.not_measured,
        measurement.generated ? "; --calibrate DIR measures on your own inputs" : "");
  if (measurement.curve.size() < 2) return "";
  std::string text = "  work in fp16   worst      allowed    metric     output\n";
  for (const auto& [share, worst] : measurement.curve)
    text += fmt::format("  {:>10.1f} %   {:<8.2g}   {:<8.2g}   {:<8}   {}{}\n", 100 * share,
                        worst.value, worst.allowed, precision::Word(worst.kind), worst.output,
                        worst.fits ? "" : "  over budget");
  return text;
}

struct CompileArguments {
  fs::path model, output;
  CompileOptions options;
};

int RunCompile(const CompileArguments& given, Session& session) {
  CompileOptions options = given.options;
  if (!options.manifest)
    Refuse({"--sha256"}, "--no-manifest writes no manifest to record it in", session);
  const fs::path usual = DefaultOutput(given.model);
  const fs::path output = given.output.empty() ? usual : OutputPath(given.output, usual);
  // A folder that is named with a slash is the model's own.
  if (!given.output.empty() && output != WithoutSlash(given.output))
    options.tokenizer_place = TokenizerPlace::kFolder;
  // "-" is the standard output for texts; the summary then goes to stderr.
  std::optional<TemporaryFolder> texts;
  std::FILE* const summary = options.save_ir == "-" || options.stats == "-" ? stderr : stdout;
  if (options.save_ir == "-") {
    Refuse({"--json"}, "--save-ir - writes to standard output", session);
    options.save_ir = texts.emplace().path / "program.mil";
  }
  if (options.stats == "-") Refuse({"--json"}, "--stats - writes to standard output", session);
  // Leaked on purpose: the process is about to exit, and freeing the program would only take time.
  static const CompileResult& result = *new CompileResult([&] {
    ProgressLine line(session);
    options.progress = line.Showing();
    return Compile(given.model, output, options, session.diagnostics);
  }());
  if (given.options.save_ir == "-")
    fmt::print("{}", AsText(MappedFile::Open(options.save_ir)->bytes()));
  if (const std::string stats = JsonText(StatsJson(result), 2) + "\n"; options.stats == "-")
    fmt::print("{}", stats);
  else if (!options.stats.empty())
    WriteFile(options.stats, stats);
  if (session.json) {
    PrintDocument(CompileJson(result, session.diagnostics));
    return 0;
  }
  double seconds = 0;
  for (const auto& [name, time] : result.phases) seconds += time;
  int64_t wide = 0;
  for (const Decision& decision : session.diagnostics.decisions()) wide += decision.kind == "fp32";
  const Function& function = *result.program->main();
  std::string open = OpenSizesText(function);
  fmt::print(summary, "{}  {}, {}, {}, {} of weights{}, {:.2f} s\n", result.package.string(),
             TargetName(result.target), PrecisionText(result),
             Counted(result.operations, "operation"), BytesText(result.weight_bytes),
             open.empty() ? "" : ", " + open, seconds);
  if (result.compression) fmt::print(summary, "{}", CompressionText(*result.compression));
  constexpr size_t kPorts = 12;
  fmt::print(summary, "{}", InterfaceText(function, kPorts));
  if (output.extension() == ".mlmodelc") fmt::print(summary, "  {}\n", kExperimental);
  if (options.tokenizer_place == TokenizerPlace::kFolder && !result.tokenizer.empty())
    fmt::print(summary,
               "  with the files of the tokenizer, for AutoTokenizer.from(modelFolder:)\n");
  fmt::print(summary, "{}", MeasurementText(result));
  if (wide > 0)
    fmt::print(
        summary, "  {} in fp32{}\n",
        wide == 1 ? "1 operation stays" : fmt::format("{} operations stay", wide),
        result.manifest.empty() ? "" : "; reasons in " + result.manifest.filename().string());
  return 0;
}

}  // namespace

Command CompileCommand() {
  auto given = std::make_shared<CompileArguments>();
  ShowPasses(given->options.passes);
  static const std::string sources =
      FormatsText([](const Frontend& frontend) { return frontend.IsSource(); });
  std::vector<Option> table = {
      {"MODEL", "", sources, Into(given->model), true},
      OutputOption({"-o", "OUT.mlpackage|OUT.mlmodelc",
                    "output (default: the model's name with .mlpackage); .mlmodelc is experimental",
                    Into(given->output)})};
  Append(CompileTable(given->options), table);
  table.push_back(JsonOption());
  return {"compile",
          "Compile a model into a Core ML package",
          {"mlc compile model.onnx -o model.mlpackage --target iOS17",
           "mlc compile model.onnx --compress int8 -o small.mlpackage"},
          std::move(table),
          [given](Session& session) { return RunCompile(*given, session); },
          CompressionHelp(),
          {"verify", "run", "explain", "build"}};
}

}  // namespace mlc::driver
