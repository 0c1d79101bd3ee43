#include "tools/driver/compare_operations.h"

#include "backends/coreml/lower.h"
#include "backends/coreml/write_package.h"

namespace mlc::driver {

namespace {

// Core ML's arrays have one of these types, and at least one dimension.
bool MayBeOutput(const Value& value) {
  const DType dtype = value.type.dtype;
  return value.type.is_tensor() && value.type.rank() > 0 &&
         (dtype == DType::kFp32 || dtype == DType::kFp16 || dtype == DType::kInt32);
}

// Makes outputs of all results that may be outputs. Returns their operators by name.
std::map<std::string, std::string> ShowResults(Function& function) {
  std::map<std::string, std::string> operators;
  std::vector<Value*> outputs = function.body.outputs();
  for (Operation* op : function.body.operations()) {
    for (const auto& result : op->results) {
      if (op->val || !MayBeOutput(*result)) continue;
      operators[result->name] = op->def->name;
      if (result->is_output()) continue;
      outputs.push_back(result.get());
      Port port;
      port.name = port.source_name = result->name;
      port.dtype = port.source_dtype = result->type.dtype;
      port.source_shape = result->type.shape;
      function.outputs.push_back(std::move(port));
    }
  }
  function.body.SetOutputs(std::move(outputs));
  return operators;
}

}  // namespace

verify::Layers CompareOperations(const Model& model, const ModelOptions& load,
                                 const std::map<std::string, Tensor>& inputs,
                                 const verify::Budget& budget, Diagnostics& diagnostics) {
  Program shown = Clone(*model.program());
  const std::string& name = model.function().name;
  const std::map<std::string, std::string> operators =
      ShowResults(*const_cast<Function*>(verify::FunctionNamed(shown, name)));
  ModelOptions options;
  options.function = name;
  options.units = model.units();
  options.timeout = load.timeout;
  options.load_timeout = load.load_timeout;
  options.hints = load.hints;
  options.temporary = std::make_shared<const TemporaryFolder>();
  const std::filesystem::path package = options.temporary->path / "operations.mlpackage";
  const Opset target =
      coreml::LowestTarget(shown, {}, passes::PassContext::Precision::kFp32, diagnostics);
  coreml::WritePackage(shown, package, {.target = target}, diagnostics);
  Model twin(package, options, diagnostics);
  const std::map<std::string, Tensor> found = twin.Load()->Run(inputs).outputs,
                                      expected = twin.LoadReference(twin.function())
                                                     ->Predict(inputs, nullptr, nullptr);
  verify::Layers layers;
  for (const Port& port : twin.function().outputs)
    if (const auto op = operators.find(port.name); op != operators.end())
      layers.layers.push_back(
          {op->second, verify::CompareTensor(name, port.name, false, 0, found.at(port.name),
                                             expected.at(port.name), budget)});
  return layers;
}

}  // namespace mlc::driver
