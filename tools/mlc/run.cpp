#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/driver/parity.h"
#include "tools/mlc/command.h"
#include "tools/mlc/interface.h"
#include "tools/mlc/made_up.h"
#include "tools/mlc/parity.h"

namespace fs = std::filesystem;

namespace mlc {
namespace {

nlohmann::ordered_json ToJson(const Percentiles& of) {
  return {{"p50", of.p50}, {"p95", of.p95}, {"p99", of.p99}};
}

struct RunArguments {
  fs::path model;
  RunOptions options;
  std::optional<fs::path> bundle, result;
};

void PrintJson(const RunResult& result, const MadeUpOptions& make_up) {
  const std::string mode(Name(result.arithmetic));
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [port, tensor, name, file] : result.outputs) {
    nlohmann::ordered_json entry{{"name", name}, {"mil_name", port->name}};
    if (!file.empty()) entry["file"] = fs::absolute(file).string();
    entry["dtype"] = Name(tensor.dtype());
    entry["shape"] = tensor.dims();
    entry["mode"] = mode;
    if (tensor.dtype() == DType::kString) entry["values"] = tensor.strings();
    list.push_back(std::move(entry));
  }
  nlohmann::ordered_json json{{"units", "reference"},
                              {"arithmetic", mode},
                              {"function", result.function->name},
                              {"outputs", list},
                              {"load_ms", result.load_ms},
                              {"iterations", result.predict_ms.size()},
                              {"timings_ms",
                               {{"marshal_in", ToJson(PercentilesOf(result.marshal_in_ms))},
                                {"predict", ToJson(PercentilesOf(result.predict_ms))},
                                {"marshal_out", ToJson(PercentilesOf(result.marshal_out_ms))}}}};
  for (const auto& [token, probability] : result.next)
    json["next"].push_back({{"token", token}, {"probability", probability}});
  if (!result.token_ms.empty())
    json["timings_ms"]["token"] = ToJson(PercentilesOf(result.token_ms));
  if (!result.made_up.empty())
    json["made_up"] =
        nlohmann::ordered_json::parse(MadeUpJson(*result.function, result.made_up, make_up, 1));
  PrintDocument(json);
}

void Print(const RunResult& result, const MadeUpOptions& make_up) {
  fmt::print("{}", MadeUpText(*result.function, result.made_up, make_up, 1));
  for (const auto& [port, tensor, name, file] : result.outputs)
    fmt::print("{}  {} [{}]{}\n", name == UserName(*port) ? ShownName(*port) : name,
               Name(tensor.dtype()), fmt::join(tensor.dims(), ","),
               file.empty() ? "" : "  " + fs::absolute(file).string());
  for (const auto& [port, tensor, name, file] : result.outputs) {
    if (tensor.dtype() == DType::kString && tensor.size() == 1)
      fmt::print("  {}: {}\n", port->name, tensor.strings()[0]);
    if (!file.empty() || tensor.size() == 0 || tensor.dtype() == DType::kString) continue;
    std::string values;
    for (int64_t i = 0; i < std::min<int64_t>(tensor.size(), 8); ++i)
      values += fmt::format(" {:.6g}", tensor.Double(i));
    fmt::print("  {}:{}{}\n", port->name, values, tensor.size() > 8 ? " ..." : "");
  }
  if (!result.next.empty()) {
    std::string next;
    for (const auto& [token, probability] : result.next)
      next += fmt::format("{}{} ({:.1f} %)", next.empty() ? "" : ", ", token, 100 * probability);
    fmt::print("next: {}\n", next);
  }
  const Percentiles predict = PercentilesOf(result.predict_ms);
  fmt::print("mlc's engine ({}): predict p50 {:.2f} ms, p95 {:.2f} ms over {} runs\n",
             Name(result.arithmetic), predict.p50, predict.p95, result.predict_ms.size());
  if (!result.token_ms.empty()) {
    const Percentiles token = PercentilesOf(result.token_ms);
    fmt::print("each token: p50 {:.2f} ms, p95 {:.2f} ms\n", token.p50, token.p95);
  }
}

int RunModel(const RunArguments& given, Session& session) {
  const RunOptions& options = given.options;
  if (given.bundle) {
    for (auto [name, has] : {std::pair{"MODEL", !given.model.empty()},
                             {"--input", !options.input_files.empty()},
                             {"--output-dir", !options.output_folder.empty()}})
      if (has)
        throw Error("usage", fmt::format("--bundle brings model and inputs; {} is too much", name));
    fs::path written = given.result.value_or(*given.bundle / kParityResult);
    return ShowParity(RunParity(*given.bundle, written, options.bundles_only, session.diagnostics),
                      session, written);
  }
  if (given.result) throw Error("usage", "--result is of a parity bundle: it needs --bundle DIR");
  if (given.model.empty())
    throw Error("usage", "MODEL is required").Help("--help shows an example");
  RunResult result = Run(given.model, options, session.diagnostics);
  session.json ? PrintJson(result, options.make_up) : Print(result, options.make_up);
  return 0;
}

}  // namespace

Command RunCommand() {
  auto given = std::make_shared<RunArguments>();
  RunOptions& options = given->options;
  std::vector<Option> table = {
      {"MODEL", "", "a source model, package, bundle or MIL text", Into(given->model)}};
  Append(RunTable(options), table);
  Append({{"--bundle", "DIR",
           "instead: check a parity bundle of `mlc verify --bundle` and write its result.json",
           Into(given->bundle)},
          {"--result", "FILE",
           "where the bundle's result goes, with its outputs beside it; nothing is "
           "written into the bundle",
           Into(given->result)},
          {"--no-compile", "", "refuse anything but a compiled bundle (.mlmodelc)",
           Switch(options.bundles_only)}},
         table);
  Append(ImportTable(options.import), table);
  table.push_back(JsonOption());
  return {"run", "Execute a model or package and print or save its outputs",
          "mlc run model.mlpackage --input image=digit.npy --output-dir out", std::move(table),
          [given](Session& session) { return RunModel(*given, session); }};
}

}  // namespace mlc
