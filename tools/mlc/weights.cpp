#include "tools/driver/weights.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "tools/driver/output_path.h"
#include "tools/mlc/command.h"
#include "tools/mlc/terminal.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

struct ExportArguments {
  fs::path model;
  ExportWeightsOptions options;
};

int RunExport(const ExportArguments& given, Session& session) {
  const std::vector<ExportedWeight> weights =
      ExportWeights(given.model, given.options, session.diagnostics);
  if (session.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ExportedWeight& weight : weights) {
      list.push_back({{"name", weight.name},
                      {"dtype", Name(weight.dtype)},
                      {"shape", weight.dims},
                      {"file", fs::absolute(weight.file).string()},
                      {"settable", weight.why_fixed.empty()}});
      if (!weight.source.empty()) list.back()["source"] = weight.source;
      if (!weight.why_fixed.empty()) list.back()["why"] = weight.why_fixed;
    }
    PrintDocument({{"weights", list}});
    return 0;
  }
  for (const ExportedWeight& weight : weights)
    fmt::print("{:<40} {:<6} [{}]{}\n", weight.name, Name(weight.dtype),
               fmt::join(weight.dims, ", "),
               weight.why_fixed.empty() ? "" : "  cannot be replaced: " + weight.why_fixed);
  return 0;
}

struct SetArguments {
  fs::path model;
  SetWeightsOptions options;
};

int RunSet(const SetArguments& given, Session& session) {
  SetWeightsOptions options = given.options;
  options.output =
      OutputPath(options.output, given.model.filename().replace_extension(
                                     given.model.extension() == ".mil" ? ".mil" : ".mlpackage"));
  const std::vector<std::string> names = SetWeights(given.model, options, session.diagnostics);
  if (session.json)
    PrintDocument({{"output", fs::absolute(options.output).string()}, {"weights", names}});
  else
    fmt::print("{}  {} replaced\n", options.output.string(), Counted(std::ssize(names), "weight"));
  return 0;
}

}  // namespace

Command ExportWeightsCommand() {
  auto given = std::make_shared<ExportArguments>();
  ExportWeightsOptions& options = given->options;
  return {
      "export-weights",
      "Write the weights of a model as .npy files",
      {"mlc export-weights model.mlpackage -o weights",
       "mlc export-weights model.onnx -o weights --json"},
      {{"MODEL", "", "package, bundle, MIL text or source model", Into(given->model), true},
       OutputOption({"-o", "DIR", "folder for NAME.npy, created if necessary",
                     [&options](const std::string& text) { options.output = WithoutSlash(text); },
                     true}),
       {"--names", "A,B", "only these weights (default: all)", NamesInto(options.names), false,
        true},
       JsonOption()},
      [given](Session& session) { return RunExport(*given, session); },
      {},
      {"set-weights"}};
}

Command SetWeightsCommand() {
  auto given = std::make_shared<SetArguments>();
  SetWeightsOptions& options = given->options;
  return {"set-weights",
          "Replace weights of a package",
          {"mlc set-weights model.mlpackage --weights weights -o tuned.mlpackage",
           "mlc set-weights model.mlpackage --weights weights -o tuned.mil"},
          {{"MODEL", "", "package, bundle or MIL text", Into(given->model), true},
           {"--weights", "DIR", "folder of NAME.npy, as mlc export-weights writes them",
            Into(options.weights), true},
           OutputOption({"-o", "OUT.mlpackage|OUT.mil", "output", Into(options.output), true}),
           {"--force", "",
            "replace whatever exists at -o, even on file systems without atomic exchange",
            Switch(options.force)},
           JsonOption()},
          [given](Session& session) { return RunSet(*given, session); },
          {},
          {"export-weights"}};
}

}  // namespace mlc::driver
