#include <nlohmann/json.hpp>

#include "lib/report/render.h"
#include "tools/driver/compression_sweep.h"
#include "tools/driver/errors.h"
#include "tools/driver/json_results.h"
#include "tools/mlc/command.h"
#include "tools/mlc/compression_report.h"
#include "tools/mlc/progress_line.h"
#include "tools/mlc/terminal.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

struct SweepArguments {
  fs::path model;
  std::vector<std::string> compress;
  CompressionSweepOptions options;
  std::vector<fs::path> reports;
};

int RunSweep(const SweepArguments& given, Session& session) {
  CompressionSweepOptions options = given.options;
  options.schemes = SchemesOf(given.compress);
  options.verify.fit = options.compile.fit;
  if (options.compile.precision == passes::PassContext::Precision::kMixed)
    options.compile.budget = options.verify.budget;
  if (!options.text.text.empty()) {
    Refuse({"--inputs", "--samples", "--seed", "--input-range"}, "--text replaces inputs", session);
    options.text.context = options.compile.import.context;
  } else if (!options.text.tokenizer.empty()) {
    throw Error("usage", "--tokenizer requires --text");
  }
  if (!options.verify.inputs.empty())
    Refuse({"--input-range"}, "--inputs replaces generated inputs", session);
  CompressionSweepResult result;
  {
    ProgressLine line(session);
    const Progress show = line.Showing();
    if (show) {
      // Progress of a step follows the scheme: "int4: running samples".
      auto scheme = std::make_shared<std::string>(), text = std::make_shared<std::string>();
      const Progress within = [=](const ProgressStep& step) {
        *text = fmt::format("{}: {}", *scheme, step.name);
        ProgressStep shown = step;
        shown.name = *text;
        show(shown);
      };
      options.compile.progress = options.verify.progress = within;
      options.step = [=](const std::string& name, const std::string& step) {
        *scheme = name;
        within({.name = step, .share = kUnknownShare});
      };
      options.text.progress = [=](int64_t done, int64_t of, double) {
        within(StepOf("comparing on the text", static_cast<uint64_t>(done),
                      static_cast<uint64_t>(of), "tokens"));
      };
    }
    result = SweepCompression(given.model, options, session.diagnostics);
  }
  const report::Document document = CompressionSweepReport(given.model, result);
  if (session.json) {
    PrintDocument(CompressionSweepJson(given.model, result));
  } else {
    for (const report::Fact& fact : document.facts)
      fmt::print("{}: {}\n", fact.name, report::Text(fact.cell, fact.unit));
    fmt::print("{}", CutLines(report::TerminalText(CompressionSweepTable(result)), stdout));
    for (const CompressionSweepRow& row : result.rows) {
      if (!row.within) PrintColored(stdout, fmt::format("FAIL {}: over the budget\n", row.scheme));
      for (const Error& error : row.errors)
        PrintColored(stdout, fmt::format("FAIL {}: error[{}]: {}\n", row.scheme, error.id(),
                                         WithFlags(error.text())));
    }
  }
  WriteReports(document, given.reports);
  return result.exit_code;
}

}  // namespace

Command SweepCommand() {
  auto given = std::make_shared<SweepArguments>();
  CompressionSweepOptions& options = given->options;
  std::vector<Option> table = {{"MODEL", "", "source model", Into(given->model), true}};
  Append(Grouped(OptionGroup::kCompression,
                 {Common({"--compress", "SCHEME,...",
                          "compression schemes to compare; fp16 is without compression. A value "
                          "with a semicolon, or @FILE, is one scheme of several rules",
                          Into(given->compress), true, true})}),
         table);
  Append(Only(VerifyTable(options.verify),
              {"--inputs", "--samples", "--seed", "--input-range", "--budget"}),
         table);
  for (Option& option : table)
    if (option.name == "--budget")
      option.help = "error budget that every scheme must meet (default: nothing is judged)";
  Append(Grouped(OptionGroup::kLanguage,
                 {Common({"--text", "FILE",
                          "measure perplexity and divergence of a language model on this text, in "
                          "chunks of --context tokens (default 512), instead of errors of outputs",
                          Into(options.text.text)}),
                  {"--tokenizer", "PATH",
                   "GGUF file, Hugging Face folder or tokenizer.json to take the tokenizer for "
                   "--text from (default: MODEL)",
                   Into(options.text.tokenizer)}}),
         table);
  Append(Grouped(OptionGroup::kMeasuring,
                 {Common({"--iterations", "N", "number of timed predictions (default 10)",
                          Whole("--iterations", options.iterations)}),
                  Common({"--warmup", "N", "predictions before them that do not count (default 2)",
                          Whole("--warmup", options.warmup)})}),
         table);
  Append(Grouped(OptionGroup::kUnits,
                 {Common({"--units", "all|cpu|gpu|ane|reference",
                          "compute units of the timed predictions: Core ML's all (default where "
                          "Core ML is available), cpu, gpu or ane, or reference, mlc's own CPU "
                          "engine",
                          [given](const std::string& text) {
                            given->options.units = UnitsNamed(text);
                          }})}),
         table);
  table.push_back(OutputOption(
      {"-o", "DIR", "keep the packages, as DIR/MODEL-SCHEME.mlpackage (default: they are removed)",
       Into(options.folder)}));
  Append(Without(ProgramTable(options.compile), {"--budget", "--compress", "--requant"}), table);
  table.push_back(ReportOption(given->reports, true));
  table.push_back(JsonOption());
  return {
      "sweep",
      "Compare compression schemes by size, error and time",
      {"mlc sweep model.onnx --compress fp16,int8,int4,pal4",
       "mlc sweep model.gguf --compress int8,int4:block=32 --text sample.txt --report sweep.html"},
      std::move(table),
      [given](Session& session) { return RunSweep(*given, session); },
      CompressionHelp(),
      {"compile", "verify", "run"}};
}

}  // namespace mlc::driver
