#include "test/backends/apple/stub/engine.h"

#include <cstdlib>

#include "test/backends/apple/stub/switches.h"
#include "tools/driver/import.h"
#include "tools/driver/precompile.h"
#include "tools/driver/reference_runtime.h"
#include "tools/driver/supplied_tensors.h"

namespace fs = std::filesystem;

MLStubModel::MLStubModel() { ++mlc::stub::Counted().models; }
MLStubModel::~MLStubModel() { --mlc::stub::Counted().models; }

namespace mlc::stub {
namespace {

bool Try(std::string& words, const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const std::exception& exception) {
    words = exception.what();
  }
  return false;
}

void Describe(MLStubModel& model) {
  const runtime::Schema& schema = model.loaded->schema();
  const Function& function = *model.function;
  const std::vector<const Value*> inputs = driver::InputValues(function);
  for (size_t i = 0; i < inputs.size(); ++i) {
    model.inputs.push_back({schema.inputs[i], function.inputs[i]});
    if (schema.inputs[i].kind == runtime::Feature::Kind::kImage)
      model.inputs.back().feature.dtype = inputs[i]->type.dtype;
  }
  for (size_t k = 0; k < function.outputs.size(); ++k) {
    const Value& value = *function.body.outputs()[k];
    model.outputs.push_back({schema.outputs[k], function.outputs[k], false, true});
    if (value.type.is_tensor()) continue;
    model.outputs.back().dictionary = true;
    const Tensor classes = value.def->constant("classes");
    model.numbered_labels = classes.dtype() != DType::kString;
    if (model.numbered_labels)
      for (int64_t label : classes.Ints()) model.labels.push_back(std::to_string(label));
    else
      model.labels.assign(classes.strings().begin(), classes.strings().end());
  }
  for (size_t s = 0; s < function.states.size(); ++s)
    model.states.push_back({schema.states[s], function.states[s]});
}

std::shared_ptr<Program> Read(const fs::path& bundle) {
  // Like Core ML, loads only compiled models.
  if (!fs::exists(bundle / "coremldata.bin"))
    throw Error("bad-file", bundle.string() + " is no compiled model");
  Diagnostics diagnostics;
  return std::make_shared<Program>(driver::ImportToRun(bundle, {}, false, diagnostics));
}

}  // namespace

bool MakeCompiled(const fs::path& package, const fs::path& bundle, std::string& words) {
  return Try(words, [&] { driver::MakeReferenceRuntime({})->Compile(package, bundle); });
}

std::vector<std::string> FunctionNames(const fs::path& bundle, std::string& words) {
  std::vector<std::string> names;
  Try(words, [&] {
    const std::shared_ptr<Program> program = Read(bundle);
    for (const auto& function : program->functions) names.push_back(function->name);
  });
  if (Is("missing-function") && !names.empty()) names = {"main"};
  return names;
}

std::shared_ptr<MLStubModel> Open(const fs::path& bundle, const std::string& function,
                                  std::string& words) {
  auto model = std::make_shared<MLStubModel>();
  const bool opened = Try(words, [&] {
    if (Is("missing-function") && !function.empty() && function != "main")
      throw Error("bad-name", "there is no function " + function);
    model->program = Read(bundle);
    model->function = function.empty() ? model->program->main()
                                       : &driver::FindFunction(*model->program, function);
    model->loaded = driver::MakeReferenceModel(model->program, *model->function, {}, {});
    Describe(*model);
  });
  return opened ? model : nullptr;
}

std::unique_ptr<runtime::ModelState> MakeState(MLStubModel& model, std::string& words) {
  std::unique_ptr<runtime::ModelState> state;
  Try(words, [&] { state = model.loaded->NewState(); });
  return state;
}

bool Compute(MLStubModel& model, const std::map<std::string, Tensor>& inputs,
             runtime::ModelState* state, std::map<std::string, Tensor>& outputs,
             std::string& words) {
  return Try(words, [&] {
    outputs = model.loaded->Predict(inputs, state, nullptr);
    // The types of the package: for an fp16 model, the engine returns outputs in the types of the
    // program.
    for (const MLStubFeature& output : model.outputs) {
      Tensor& tensor = outputs.at(output.feature.name);
      if (output.feature.kind == runtime::Feature::Kind::kTensor && !output.dictionary &&
          tensor.dtype() != output.feature.dtype)
        tensor = tensor.Cast(output.feature.dtype);
      if (Is("wrong-numbers") && IsFloat(tensor.dtype())) {
        std::vector<double> values = tensor.Doubles();
        for (double& value : values) value = -value;
        tensor = Tensor::Of(tensor.dims(), values).Cast(tensor.dtype());
      }
    }
  });
}

fs::path TemporaryFolder() {
  std::string name = fs::temp_directory_path() / "mlc-stub-XXXXXX";
  if (!mkdtemp(name.data())) std::abort();
  return name;
}

void RemoveFolder(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

}  // namespace mlc::stub
