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
  // Text goes to stdout by default, so that "-" says nothing else.
  fs::path output = given.options.output;
  if (output == "-") output.clear();
  if (!output.empty())
    output = OutputPath(output, fs::path(given.in).replace_extension(
                                    given.in.extension() == ".mil" ? ".mil" : ".mlpackage"));
  OptimizeResult result;
  {
    ProgressLine line(session);
    OptimizeOptions options = given.options;
    options.output = output;
    options.progress = line.Showing();
    result = Optimize(given.in, options, session.diagnostics);
  }
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
      OutputOption({"-o", "FILE.mil|OUT.mlpackage", "output (default: MIL text on stdout)",
                    Into(options.output)}),
  };
  Append(OptimizeTable(options), table);
  table.push_back(
      {"--json", "", "print one JSON document to stdout, with the text if there is no -o"});
  return {"opt",
          "Run passes on a model and print it as MIL text",
          {"mlc opt model.mil --passes fold-constants,dead-code",
           "mlc opt model.mlpackage --compress int8 -o small.mlpackage"},
          std::move(table),
          [given](Session& session) { return Opt(*given, session); },
          PassList(),
          {"compile", "inspect"}};
}

}  // namespace mlc::driver
