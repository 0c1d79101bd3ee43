#include "tools/driver/compare_operations.h"

#include "backends/coreml/lower.h"
#include "backends/coreml/write_package.h"
#include "lib/support/temporary_folder.h"
#include "tools/driver/reference_runtime.h"

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

verify::Layers CompareOperations(const std::shared_ptr<runtime::Runtime>& runtime,
                                 const Program& program, const Function& function,
                                 const std::map<std::string, Tensor>& inputs,
                                 const runtime::LoadOptions& load, const TimeLimits& limits,
                                 const verify::Budget& budget, Diagnostics& diagnostics) {
  auto shown = std::make_shared<Program>(Clone(program));
  Function& twin = *const_cast<Function*>(verify::FunctionNamed(*shown, function.name));
  const std::map<std::string, std::string> operators = ShowResults(twin);
  const auto folder = std::make_shared<const TemporaryFolder>();
  const std::filesystem::path package = folder->path / "operations.mlpackage";
  const Opset target =
      coreml::LowestTarget(*shown, {}, passes::PassContext::Precision::kFp32, diagnostics);
  coreml::WritePackage(*shown, package, {.target = target}, diagnostics);
  // An abandoned call may still use the package, so the last owner removes the folder.
  const CompiledModel compiled =
      runtime::Worker().Run([runtime, package, folder,
                             units = load.units] { return CompiledFor(*runtime, package, units); },
                            limits.load);
  runtime::GuardedModel model(
      {.load = [runtime, compiled, folder, load] { return runtime->Load(compiled.path, load); },
       .timeout = limits.predict,
       .load_timeout = limits.load});
  const std::map<std::string, Tensor> found = model.Run(inputs).outputs,
                                      expected =
                                          MakeReferenceModel(shown, twin, {},
                                                             {.units = runtime::Units::kReference})
                                              ->Predict(inputs, nullptr, nullptr);
  verify::Layers layers;
  for (const Port& port : twin.outputs)
    if (const auto op = operators.find(port.name); op != operators.end())
      layers.layers.push_back(
          {op->second, verify::CompareTensor(function.name, port.name, false, 0,
                                             found.at(port.name), expected.at(port.name), budget)});
  return layers;
}

}  // namespace mlc::driver
