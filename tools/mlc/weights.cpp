#include "tools/driver/weights.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "tools/driver/output_path.h"
#include "tools/mlc/command.h"

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
  const std::vector<std::string> names =
      SetWeights(given.model, given.options, session.diagnostics);
  if (session.json)
    PrintDocument({{"output", fs::absolute(given.options.output).string()}, {"weights", names}});
  else
    fmt::print("{}  {} weight{} replaced\n", given.options.output.string(), names.size(),
               names.size() == 1 ? "" : "s");
  return 0;
}

}  // namespace

Command ExportWeightsCommand() {
  auto given = std::make_shared<ExportArguments>();
  ExportWeightsOptions& options = given->options;
  return {"export-weights",
          "Write the weights of a model as .npy files",
          "mlc export-weights model.mlpackage -o weights",
          {{"MODEL", "", "package, bundle, MIL text or source model", Into(given->model), true},
           {"-o", "DIR", "folder for NAME.npy, created if necessary",
            [&options](const std::string& text) { options.output = WithoutSlash(text); }, true},
           {"--names", "A,B", "only these weights (default: all)", NamesInto(options.names), false,
            true},
           JsonOption()},
          [given](Session& session) { return RunExport(*given, session); }};
}

Command SetWeightsCommand() {
  auto given = std::make_shared<SetArguments>();
  SetWeightsOptions& options = given->options;
  return {"set-weights",
          "Replace weights of a package",
          "mlc set-weights model.mlpackage --weights weights -o tuned.mlpackage",
          {{"MODEL", "", "package, bundle or MIL text", Into(given->model), true},
           {"--weights", "DIR", "folder of NAME.npy, as mlc export-weights writes them",
            Into(options.weights), true},
           {"-o", "OUT.mlpackage|OUT.mil", "output",
            [&options](const std::string& text) { options.output = WithoutSlash(text); }, true},
           {"--force", "",
            "replace whatever exists at -o, even on file systems without atomic exchange",
            Switch(options.force)},
           JsonOption()},
          [given](Session& session) { return RunSet(*given, session); }};
}

}  // namespace mlc::driver
