#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/driver/output_path.h"
#include "tools/mlc/command.h"
#include "tools/mlc/compression_report.h"
#include "tools/mlc/pass_output.h"
#include "tools/mlc/progress_line.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

struct OptArguments {
  fs::path in;
  OptimizeOptions options;
};

int Opt(const OptArguments& given, Session& session) {
  OptimizeResult result;
  {
    ProgressLine line;
    OptimizeOptions options = given.options;
    if (!session.json) options.progress = line.Showing();
    result = Optimize(given.in, options, session.diagnostics);
  }
  const fs::path& output = given.options.output;
  if (session.json) {
    nlohmann::ordered_json answer{{"changed", result.changed},
                                  {"passes", nlohmann::ordered_json::array()}};
    for (const passes::PassRun& run : result.passes)
      answer["passes"].push_back(
          {{"name", run.name}, {"changed", run.changed}, {"ms", run.seconds * 1e3}});
    if (result.compression)
      answer["compression"] =
          nlohmann::ordered_json::parse(compress::CompressionJson(*result.compression));
    if (!output.empty())
      answer["output"] = fs::absolute(output).string();
    else
      answer["text"] = result.text;
    PrintDocument(answer);
    return 0;
  }
  if (output.extension() == ".mlpackage") fmt::print("{}\n", output.string());
  if (result.compression) fmt::print(stderr, "{}", CompressionText(*result.compression));
  if (output.empty()) fmt::print("{}{}", result.text, result.text.ends_with('\n') ? "" : "\n");
  fmt::print(stderr, "changed: {}\n", result.changed ? "yes" : "no");
  return 0;
}

// The help text lists the passes.
std::string PassList() {
  std::string text = "Passes:\n";
  for (const passes::PassDef* pass : passes::AllPasses())
    text += fmt::format("  {:<24} {}\n", pass->name, pass->summary);
  return text + "\n";
}

}  // namespace

Command OptCommand() {
  auto given = std::make_shared<OptArguments>();
  OptimizeOptions& options = given->options;
  ShowPasses(options.pipeline);
  std::vector<Option> table = {
      {"IN", "", "MIL text, package or source model", Into(given->in), true},
      {"-o", "FILE.mil|OUT.mlpackage", "output (default: MIL text on stdout)",
       [&options](const std::string& text) { options.output = WithoutSlash(text); }},
      {"--passes", "LIST", "comma-separated passes, \"\" for none (default: the whole pipeline)",
       [&options](const std::string& text) { options.passes = passes::ParsePasses(text); }},
      PrecisionOption(options.precision,
                      "compute precision of the default pipeline (default fp32)"),
      OptimizeForOption(options.optimize_for),
      {"--compress", "RULE[;RULE]...",
       "compress weights of any package, also of one that is compressed already; runs only the "
       "passes that this needs unless --passes is given. mlc compile --help explains rules",
       Into(options.compress,
            [&options](const std::string& text) {
              options.compress = compress::Text(compress::ParseRules(text));
            })},
      {"--calibrate", "generated:N|FILE|DIR", "inputs to compress for, as in mlc compile",
       Into(options.calibrate)},
      {"--report", "FILE", "write what compression cost, as .html, .svg or .json",
       Into(options.report)},
      {"--resume", "DIR", "keep compressed weights in DIR, as in mlc compile",
       Into(options.resume)},
      {"--decompress", "", "store compressed constants as plain ones", Switch(options.decompress)},
      {"--inline", "", "print small constants where they are used",
       Switch(options.inline_constants)},
      {"--force", "", "replace whatever exists at -o, even on file systems without atomic exchange",
       Switch(options.force)},
  };
  Append(PassTable(options.pipeline), table);
  table.push_back(
      {"--json", "", "print one JSON document to stdout, with the text if there is no -o"});
  return {"opt",
          "Run passes on a model and print it as MIL text",
          "mlc opt model.mil --passes fold-constants,dead-code",
          std::move(table),
          [given](Session& session) { return Opt(*given, session); },
          PassList()};
}

}  // namespace mlc::driver
