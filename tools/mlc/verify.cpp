#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/coreml/package.h"
#include "lib/engine/engine.h"
#include "lib/engine/random.h"
#include "lib/verify/parity.h"
#include "tools/mlc/model.h"
#include "tools/mlc/parity.h"

namespace fs = std::filesystem;

namespace mlc {
namespace {

using Json = nlohmann::ordered_json;

std::map<int, Tensor> RunOutputs(const Program& program,
                                 const std::map<std::string, Tensor>& inputs,
                                 EngineOptions options) {
  std::map<std::string, Tensor> results = Execute(program, inputs, options);
  const Function& main = *program.main();
  std::map<int, Tensor> outputs;
  for (size_t i = 0; i < main.outputs.size(); ++i)
    outputs[static_cast<int>(i)] =
        ToSourceType(results.at(main.body.outputs()[i]->name), main.outputs[i]);
  return outputs;
}

// The port of `program` that the source calls `name`; -1 when there is none.
int FindOutput(const Program& program, const Port& port) {
  const std::vector<Port>& ports = program.main()->outputs;
  for (size_t i = 0; i < ports.size(); ++i)
    if (ports[i].source_name == port.source_name || ports[i].name == port.name)
      return static_cast<int>(i);
  return -1;
}

// Random tensors for inputs of the source that are not given, in shapes that the package takes,
// which may have been made for one of many.
void AddInputs(const Program& source, const Program& package, uint64_t seed,
               std::map<std::string, Tensor>& given) {
  std::vector<const Value*> own = InputValues(*source.main()), taken = InputValues(*package.main());
  std::map<std::string, int64_t> symbols;
  for (const auto& [name, symbol] : package.symbols)
    symbols[name] = std::max<int64_t>(symbol.low, 1);
  for (size_t i = 0; i < own.size(); ++i) {
    const Port& port = source.main()->inputs[i];
    if (given.contains(port.source_name) || given.contains(port.name)) continue;
    for (size_t k = 0; k < taken.size(); ++k) {
      const Shape &free = own[i]->type.shape, &fixed = taken[k]->type.shape;
      const Port& other = package.main()->inputs[k];
      if (other.source_name != port.source_name || free.size() != fixed.size() ||
          other.feature != Port::Feature::kMultiArray || IsStatic(free))
        continue;
      Dims dims;
      for (size_t d = 0; d < free.size(); ++d) {
        std::optional<int64_t> size = fixed[d].Evaluate(symbols);
        if (size && (!free[d].is_constant() || free[d] == Dim(*size))) dims.push_back(*size);
      }
      if (dims.size() == free.size())
        given[port.source_name] =
            RandomTensor(port.source_dtype == DType::kNone ? own[i]->type.dtype : port.source_dtype,
                         dims, seed, i);
    }
  }
}

struct Layer {
  std::string op, name;
  Comparison comparison;
};

// Every value that both programs have under one name, in the package's order. Source values are
// kept in memory.
std::vector<Layer> CompareLayers(const Program& source, const Program& package,
                                 const std::map<std::string, Tensor>& source_inputs,
                                 const std::map<std::string, Tensor>& package_inputs,
                                 EngineOptions exact, EngineOptions faithful) {
  std::map<std::string, Tensor> reference;
  exact.observe = [&](const Operation& op, std::span<const Tensor> results) {
    for (size_t i = 0; i < results.size(); ++i)
      reference[op.result(static_cast<int>(i))->name] = results[i];
  };
  Execute(source, source_inputs, exact);
  std::vector<Layer> layers;
  faithful.observe = [&](const Operation& op, std::span<const Tensor> results) {
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string& name = op.result(static_cast<int>(i))->name;
      auto it = reference.find(name);
      if (it == reference.end() || it->second.size() != results[i].size() ||
          IsFloat(it->second.dtype()) != IsFloat(results[i].dtype()))
        continue;
      layers.push_back({std::string(op.def->name), name,
                        Compare(results[i].Reshaped(it->second.dims()), it->second)});
    }
  };
  Execute(package, package_inputs, faithful);
  return layers;
}

Json ToJson(const Comparison& c, bool within) {
  Json json{{"max_error", std::isfinite(c.max_error) ? Json(c.max_error) : Json("inf")},
            {"rmse", std::isfinite(c.rmse) ? Json(c.rmse) : Json("inf")},
            {"discriminating", c.discriminating},
            {"within", within}};
  if (c.exact) json["equal_fraction"] = c.equal_fraction;
  if (!c.mismatch.empty()) json["mismatch"] = c.mismatch;
  if (c.worst_index >= 0)
    json["worst"] = {
        {"index", c.worst_index}, {"value", c.worst_value}, {"reference", c.worst_reference}};
  return json;
}

std::string DefaultBudget(const Program& package) {
  bool half = false;
  for (const auto& function : package.functions)
    ForEachOperation(*function, [&](Operation* op) {
      for (const auto& result : op->results)
        half = half || (result->type.is_tensor() && result->type.dtype == DType::kFp16);
    });
  return half ? "fp16" : "fp32";
}

int VerifyCommandRun(const Invocation& invocation) {
  if (invocation.has("--result")) return CheckResult(invocation);
  for (std::string_view name : {"SOURCE", "PACKAGE"})
    if (!invocation.has(name))
      throw Error("usage", fmt::format("{} is required", name)).Help("mlc verify --help");
  Program source =
      ImportModel(invocation.get("SOURCE"), ImportOptions(invocation), invocation.diagnostics);
  Program package = ImportModel(invocation.get("PACKAGE"), {}, invocation.diagnostics);
  std::string budget_name = invocation.get("--budget", DefaultBudget(package));
  Budget budget = ParseBudgets(budget_name).all;
  uint64_t seed = static_cast<uint64_t>(invocation.Int("--seed", 0));
  std::map<std::string, Tensor> given;
  if (invocation.has("--inputs"))
    given = ReadInputFolder(*source.main(), invocation.get("--inputs"));
  AddInputs(source, package, seed, given);
  std::map<std::string, Tensor> source_inputs = MakeInputs(*source.main(), given, seed);
  // The package gets the very same tensors, by source name.
  std::map<std::string, Tensor> shared = given;
  std::vector<const Value*> source_values = InputValues(*source.main());
  for (size_t i = 0; i < source.main()->inputs.size(); ++i)
    shared[source.main()->inputs[i].source_name] = source_inputs.at(source_values[i]->name);
  std::vector<Port>& wanted = package.main()->inputs;
  for (const Port& port : source.main()->inputs)
    for (Port& own : wanted) {
      if (own.source_name != port.source_name) continue;
      if (own.feature != port.feature)
        throw Error("usage", fmt::format("input \"{}\" is an image in the package, and as such "
                                         "another in the source",
                                         port.source_name))
            .Help(fmt::format("pass the --image {}=... of the compilation", port.source_name));
      // What others wrote does not say which type the source declares.
      if (own.source_dtype == DType::kNone) own.source_dtype = port.source_dtype;
    }
  std::erase_if(shared, [&](const auto& entry) {
    return std::none_of(wanted.begin(), wanted.end(), [&](const Port& port) {
      return port.source_name == entry.first || port.name == entry.first;
    });
  });
  std::map<std::string, Tensor> package_inputs = MakeInputs(*package.main(), shared, seed);

  EngineOptions exact, faithful;
  exact.arithmetic = EngineOptions::Arithmetic::kExact;
  faithful.arithmetic = EngineOptions::Arithmetic::kFaithful;
  std::string reference_name = "mlc import";
  std::map<int, Tensor> references;
  if (invocation.has("--reference")) {
    reference_name = invocation.get("--reference");
    references = ReadReferences(*source.main(), reference_name);
  } else {
    references = RunOutputs(source, source_inputs, exact);
  }
  std::map<int, Tensor> outputs = RunOutputs(package, package_inputs, faithful);

  std::string text;
  if (invocation.has("--bundle")) {
    Parity parity;
    parity.reference = reference_name;
    parity.budget = budget;
    parity.package_hash = PackageHash(invocation.get("PACKAGE"));
    NamedTensors inputs, expected;
    for (const Port& port : package.main()->inputs)
      if (auto it = shared.find(port.source_name); it != shared.end())
        inputs.emplace_back(port.source_name, it->second);
    for (const auto& [index, reference] : references)
      expected.emplace_back(source.main()->outputs[index].source_name, reference);
    WriteParity(invocation.get("--bundle"), invocation.get("PACKAGE"), std::move(parity), inputs,
                expected);
    text = fmt::format("bundle: {0}, to be checked on another machine: mlc-run --bundle {0}\n",
                       invocation.get("--bundle"));
  }

  bool ok = true;
  int compared = 0;
  Json list = Json::array();
  for (const auto& [index, reference] : references) {
    const Port& port = source.main()->outputs[index];
    int own = FindOutput(package, port);
    if (own < 0)
      throw Error("bad-input", fmt::format("the package has no output \"{}\"", port.source_name));
    Comparison c = Compare(outputs.at(own), reference);
    bool within = c.Within(budget);
    ok = ok && (within || !c.discriminating);
    if (c.discriminating) ++compared;
    Json json{{"name", port.source_name}};
    json.update(ToJson(c, within));
    list.push_back(std::move(json));
    text +=
        fmt::format("{:<4} {:<32} {}{}\n",
                    !c.discriminating ? "-"
                    : within          ? "ok"
                                      : "FAIL",
                    port.source_name, Describe(c),
                    c.discriminating ? "" : "  (not discriminating: the reference is constant)");
    if (!c.discriminating && !within)
      invocation.diagnostics.Warn(
          Error("check-failed",
                fmt::format("output \"{}\" is not what its constant reference says: {}",
                            port.source_name, Describe(c)))
              .Help("verify with inputs for which outputs differ"));
  }
  Json unread = Json::array();
  for (size_t i = 0; i < source.main()->outputs.size(); ++i) {
    if (references.contains(static_cast<int>(i))) continue;
    unread.push_back(source.main()->outputs[i].source_name);
    text += fmt::format("-    {:<32} not compared: {} does not have it\n",
                        source.main()->outputs[i].source_name, reference_name);
  }
  Json layers_json = Json::array();
  if (invocation.has("--layers")) {
    std::vector<Layer> layers =
        CompareLayers(source, package, source_inputs, package_inputs, exact, faithful);
    bool named = false;
    text += fmt::format("layers: {} values have the same name in both\n", layers.size());
    for (const Layer& layer : layers) {
      bool within = layer.comparison.Within(budget) || !layer.comparison.discriminating;
      Json json{{"operator", layer.op}, {"name", layer.name}};
      json.update(ToJson(layer.comparison, within));
      layers_json.push_back(std::move(json));
      if (within || named) continue;
      named = true;
      text += fmt::format("first outside the budget: {} \"{}\": {}\n", layer.op, layer.name,
                          Describe(layer.comparison));
    }
    if (!named) text += "every one of them is within the budget\n";
  }
  if (invocation.json()) {
    Json json{
        {"reference", reference_name},
        {"budget", {{"name", budget_name}, {"max_error", budget.max_error}, {"rmse", budget.rmse}}},
        {"ok", ok},
        {"outputs", list}};
    if (!unread.empty()) json["not_compared"] = unread;
    if (invocation.has("--layers")) json["layers"] = layers_json;
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("reference: {}\nbudget: {} (max error {:g}, RMSE {:g})\n{}{}\n", reference_name,
               budget_name, budget.max_error, budget.rmse, text,
               !ok            ? "FAILED"
               : compared > 0 ? "PASSED"
                              : "PASSED, but no output tells anything: try other inputs");
  }
  return ok ? 0 : 3;
}

}  // namespace

Command VerifyCommand() {
  std::vector<Flag> flags = {
      {"SOURCE", "", "the source model"},
      {"PACKAGE", "", "what was made of it"},
      {"--inputs", "DIR", "tensors to run both on: NAME.npy, in_NAME.npy or input_<k>.pb"},
      {"--seed", "N", "of random inputs where none are given (default 0)"},
      {"--reference", "DIR|NPZ",
       "outputs computed elsewhere (default: mlc's own reading of the source)"},
      {"--budget", "fp32|fp16|int8|FILE",
       "error that is allowed (default: by the package's precision)"},
      {"--layers", "", "compare inner values too and name the first that is outside the budget"},
      {"--bundle", "DIR",
       "write package, inputs and reference outputs into a folder that `mlc-run --bundle DIR` "
       "checks "
       "on another machine"},
      {"--result", "FILE",
       "instead: check and show the result.json that such a run wrote; it must be of PACKAGE, if "
       "one is given as the only argument, and of the bundle in its folder or in --bundle DIR"},
  };
  flags.insert(flags.end(), ImportFlags().begin(), ImportFlags().end());
  flags.push_back({"--json", "", "one JSON document on stdout"});
  return {"verify", "Compare what a package computes with its source or with given outputs",
          "mlc verify model.onnx model.mlpackage --inputs samples --reference samples", flags,
          VerifyCommandRun};
}

}  // namespace mlc
