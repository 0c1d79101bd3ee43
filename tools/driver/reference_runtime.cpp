#include "tools/driver/reference_runtime.h"

#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <fstream>

#include "lib/support/milliseconds.h"
#include "tools/driver/frontends.h"
#include "tools/driver/precompile.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/version.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

using Clock = std::chrono::steady_clock;
runtime::Feature FeatureOf(const std::string& name, const Type& type, const Port& port) {
  runtime::Feature feature{.name = name,
                           .dtype = port.dtype == DType::kNone ? type.dtype : port.dtype};
  if (port.feature != Port::Feature::kMultiArray) {
    feature.kind = runtime::Feature::Kind::kImage;
    const bool halves = port.feature == Port::Feature::kImageGray && feature.dtype == DType::kFp16;
    if (!halves) feature.dtype = DType::kUint8;
  }
  if (type.dtype == DType::kString) feature.kind = runtime::Feature::Kind::kString;
  for (const Dim& dim : type.shape) feature.dims.push_back(dim.is_constant() ? dim.constant() : -1);
  return feature;
}

runtime::Schema SchemaOf(const Function& function) {
  runtime::Schema schema;
  for (const auto& [port, value] : InputPorts(function))
    schema.inputs.push_back(FeatureOf(value.name, value.type, port));
  for (size_t k = 0; k < function.outputs.size(); ++k)
    schema.outputs.push_back(
        FeatureOf(function.outputs[k].name, function.body.outputs()[k]->type, function.outputs[k]));
  size_t state = 0;
  for (const auto& input : function.body.inputs)
    if (input->type.kind == Type::Kind::kState) {
      schema.states.push_back(
          FeatureOf(input->name, input->type.elements[0], function.states[state++]));
      schema.states.back().kind = runtime::Feature::Kind::kState;
    }
  return schema;
}

// Returns the value of the first line that begins with `key`, in files such as /proc/cpuinfo and
// /etc/os-release.
std::string ValueIn(const char* file, std::string_view key, char separator) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(separator);
    if (!line.starts_with(key) || at == line.npos) continue;
    const size_t begin = line.find_first_not_of(" \t\"", at + 1);
    const size_t end = line.find_last_not_of(" \t\"");
    return begin == line.npos ? "" : line.substr(begin, end - begin + 1);
  }
  return "";
}

// Fills in the fields that Core ML's runtime reports, as far as this system provides them.
void DescribeMachine(runtime::Capabilities& found) {
  utsname system{};
  uname(&system);
  found.os = ValueIn("/etc/os-release", "PRETTY_NAME", '=');
  if (found.os.empty()) found.os = system.sysname;
  found.os_build = system.release;
  found.chip = ValueIn("/proc/cpuinfo", "model name", ':');
  found.chip += found.chip.empty() ? "" : ", ";
  found.chip += system.machine;
}

class ReferenceState : public runtime::ModelState {
 public:
  ReferenceState(std::shared_ptr<const runtime::Schema> schema, bool exact)
      : schema_(std::move(schema)), exact_(exact) {}
  // Identifies the model that the state belongs to.
  const runtime::Schema* schema() const { return schema_.get(); }
  std::map<std::string, Tensor> Read() const override {
    std::map<std::string, Tensor> all = states;
    for (const runtime::Feature& state : schema_->states)
      if (!all.contains(state.name)) all[state.name] = Tensor::Full(Stored(state), state.dims, 0);
    return all;
  }
  void Write(const std::map<std::string, Tensor>& values) override {
    for (const auto& [name, tensor] : values) {
      auto it = std::ranges::find(schema_->states, name, &runtime::Feature::name);
      if (it == schema_->states.end())
        throw Error("bad-input", "the model has no state \"{}\"", name);
      if ((tensor.dtype() != it->dtype && tensor.dtype() != Stored(*it)) ||
          tensor.dims() != it->dims)
        throw Error("bad-input", "state \"{}\" has type {} [{}]", name, Name(tensor.dtype()),
                    fmt::join(tensor.dims(), ", "))
            .Expected("{} [{}]", Name(it->dtype), fmt::join(it->dims, ", "));
      states[name] = tensor.Cast(Stored(*it));
    }
  }
  engine::States states;

 private:
  // Exact arithmetic keeps fp16 states in fp32.
  DType Stored(const runtime::Feature& state) const {
    return exact_ && state.dtype == DType::kFp16 ? DType::kFp32 : state.dtype;
  }
  std::shared_ptr<const runtime::Schema> schema_;
  bool exact_;
};

class ReferenceModel : public runtime::LoadedModel {
 public:
  ReferenceModel(std::shared_ptr<const Program> program, const Function& function,
                 engine::EngineOptions options,
                 std::function<void(const runtime::LoadOptions::OperationRun&)> observe)
      : program_(std::move(program)),
        function_(function),
        schema_(std::make_shared<const runtime::Schema>(SchemaOf(function))),
        exact_(options.arithmetic == engine::EngineOptions::Arithmetic::kExact),
        observe_(std::move(observe)),
        engine_(function, Observed(std::move(options))) {}

  const runtime::Schema& schema() const override { return *schema_; }

  std::map<std::string, Tensor> Predict(const std::map<std::string, Tensor>& inputs,
                                        runtime::ModelState* state,
                                        runtime::PredictTimings* timings) override {
    const Clock::time_point begin = Clock::now();
    last_ = begin;
    std::map<std::string, Tensor> values;
    auto* own = dynamic_cast<ReferenceState*>(state);
    if (state && (!own || own->schema() != schema_.get()))
      throw Error("bad-input", "the state belongs to another model")
          .Help("create the state with NewState of this model");
    values = own ? engine_.Run(inputs, own->states) : engine_.Run(inputs);
    const Clock::time_point done = Clock::now();
    std::map<std::string, Tensor> outputs;
    for (size_t k = 0; k < function_.outputs.size(); ++k)
      outputs[function_.outputs[k].name] = values.at(function_.body.outputs()[k]->name);
    if (timings) *timings = {0, Milliseconds(begin, done), Milliseconds(done, Clock::now())};
    return outputs;
  }

  std::unique_ptr<runtime::ModelState> NewState() override {
    if (schema_->states.empty()) return nullptr;
    return std::make_unique<ReferenceState>(schema_, exact_);
  }

  std::vector<runtime::OperationPlacement> Placements(std::string*) override {
    std::vector<runtime::OperationPlacement> placements;
    for (Operation* op : function_.body.operations())
      if (!op->val)
        placements.push_back({NameOf(*op),
                              std::string(op->def->name),
                              runtime::Device::kReference,
                              {runtime::Device::kReference},
                              std::nullopt});
    return placements;
  }

 private:
  // Writes of states have no result.
  static const std::string& NameOf(const Operation& op) {
    return op.results.empty() ? op.name : op.result()->name;
  }
  engine::EngineOptions Observed(engine::EngineOptions options) {
    // Operations run sequentially, so each begins when the previous one ends.
    if (observe_)
      options.observe = [this](const Operation& op, std::span<Tensor>) {
        const Clock::time_point now = Clock::now();
        observe_({NameOf(op), op.def->name, last_, now});
        last_ = Clock::now();
      };
    return options;
  }

  std::shared_ptr<const Program> program_;
  const Function& function_;
  const std::shared_ptr<const runtime::Schema> schema_;
  const bool exact_;
  std::function<void(const runtime::LoadOptions::OperationRun&)> observe_;
  // Per thread, because several threads may predict concurrently.
  static thread_local Clock::time_point last_;
  engine::Engine engine_;
};
thread_local Clock::time_point ReferenceModel::last_;

class ReferenceRuntime : public runtime::Runtime {
 public:
  explicit ReferenceRuntime(const ReferenceOptions& options) : options_(options) {}

  runtime::Capabilities capabilities() const override {
    runtime::Capabilities found;
    found.runtime = "mlc's engine";
    found.runtime_version = kVersion;
    found.devices = {runtime::Device::kReference};
    DescribeMachine(found);
    return found;
  }
  bool loads_packages() const override { return true; }

  void Compile(const fs::path& package, const fs::path& bundle) override {
    Diagnostics diagnostics;
    MakeBundle(package, bundle, package, false, {}, diagnostics);
  }

  std::unique_ptr<runtime::LoadedModel> Load(const fs::path& model,
                                             const runtime::LoadOptions& load) override {
    Diagnostics diagnostics;
    auto program =
        std::make_shared<Program>(ImportToRun(model, options_.import, false, diagnostics));
    const Function& function =
        load.function.empty() ? *program->main() : FindFunction(*program, load.function);
    ReferenceOptions options = options_;
    if (!options.arithmetic)
      options.arithmetic = FrontendOf(model).IsSource()
                               ? engine::EngineOptions::Arithmetic::kExact
                               : engine::EngineOptions::Arithmetic::kFaithful;
    return MakeReferenceModel(program, function, options, load);
  }

 private:
  ReferenceOptions options_;
};

}  // namespace

std::unique_ptr<runtime::LoadedModel> MakeReferenceModel(
    std::shared_ptr<const Program> program, const Function& function,
    const ReferenceOptions& options, const runtime::LoadOptions& load,
    std::shared_ptr<engine::PreparedWeights> weights) {
  if (load.units != runtime::Units::kAll && load.units != runtime::Units::kReference)
    throw Error("no-coreml", "--units {} requires Core ML", Name(load.units))
        .Help("use --units reference, mlc's own engine");
  engine::EngineOptions engine;
  engine.arithmetic = options.arithmetic.value_or(engine::EngineOptions::Arithmetic::kFaithful);
  engine.threads = options.threads;
  engine.timeout = options.timeout;
  engine.weights = std::move(weights);
  return std::make_unique<ReferenceModel>(std::move(program), function, std::move(engine),
                                          load.observe);
}

std::unique_ptr<runtime::Runtime> MakeReferenceRuntime(const ReferenceOptions& options) {
  return std::make_unique<ReferenceRuntime>(options);
}

}  // namespace mlc::driver
