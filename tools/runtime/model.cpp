#include "tools/runtime/model.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "lib/support/memory_use.h"
#include "tools/driver/json_results.h"
#include "tools/driver/options_json.h"
#include "tools/driver/run_passes.h"
#include "tools/driver/runtimes.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/runtime/function_options.h"
#include "tools/runtime/tensor.h"

using Json = nlohmann::ordered_json;

namespace mlc::abi {

namespace {

Ports PortsFrom(const std::vector<runtime::Feature>& features, const std::vector<Port>& ports) {
  Ports found{.features = features, .source_names = {}, .by_name = {}};
  // The probabilities of a classifier are a dictionary of numbers, of which the values are delivered.
  for (runtime::Feature& feature : found.features)
    if (feature.kind == runtime::Feature::Kind::kTensor && feature.dtype == DType::kNone) {
      feature.dtype = DType::kFp64;
      feature.dims = {-1};
    }
  for (const runtime::Feature& feature : features) {
    const auto port = std::ranges::find(ports, feature.name, &Port::name);
    found.source_names.push_back(
        port == ports.end() || port->source_name.empty() ? feature.name : port->source_name);
  }
  // The name in the package takes precedence.
  for (size_t i = 0; i < features.size(); ++i) found.by_name.emplace(found.features[i].name, i);
  for (size_t i = 0; i < features.size(); ++i) found.by_name.emplace(found.source_names[i], i);
  return found;
}

constexpr std::chrono::milliseconds kSampling(100);

// Reading the memory of the process takes longer than a small prediction.
std::function<int64_t()> SampledResidentBytes() {
  using Clock = std::chrono::steady_clock;
  return [next = Clock::time_point(), bytes = int64_t{0}]() mutable {
    if (const Clock::time_point now = Clock::now(); now >= next) {
      next = now + kSampling;
      bytes = ResidentBytes();
    }
    return bytes;
  };
}

}  // namespace

int32_t Ports::Find(std::string_view name) const {
  const auto found = by_name.find(name);
  return found == by_name.end() ? -1 : static_cast<int32_t>(found->second);
}

LoadedFunction::LoadedFunction(std::shared_ptr<LoadedModel> owner, const Function& loaded)
    : model(std::move(owner)),
      function(loaded),
      telemetry(std::make_shared<runtime::Telemetry>(SampledResidentBytes())),
      breaker(std::make_shared<runtime::CircuitBreaker>(model->breaker)),
      instance(model->model->Load(function, Guard())),
      inputs(PortsFrom(instance->schema().inputs, function.inputs)),
      outputs(PortsFrom(instance->schema().outputs, function.outputs)),
      states(PortsFrom(instance->schema().states, function.states)),
      schema(ResultText(driver::InterfaceJson(function))) {
  // In the order of the runtime's inputs.
  for (const runtime::Feature& feature : inputs.features)
    for (const Value* value : driver::InputValues(function))
      if (value->name == feature.name) input_values.push_back(value);
  MLC_CHECK(input_values.size() == inputs.features.size(),
            "the runtime has inputs that the program lacks");
}

runtime::GuardOptions LoadedFunction::Guard() const {
  runtime::GuardOptions guard{.telemetry = telemetry, .breaker = breaker};
  if (model->trace)
    guard.observe = [trace = model->trace](auto begin, auto end) {
      trace->Add("predict", driver::Trace::kPrediction, begin, end);
    };
  return guard;
}

const Ports* LoadedFunction::PortsOf(int32_t kind) const {
  switch (kind) {
    case MLC_PORT_INPUT:
      return &inputs;
    case MLC_PORT_OUTPUT:
      return &outputs;
    case MLC_PORT_STATE:
      return &states;
    default:
      return nullptr;
  }
}

mlc_model* LoadModel(const LoadOptions& options,
                     const std::function<std::unique_ptr<driver::Model>(
                         const driver::ModelOptions& options, Diagnostics& diagnostics)>& make) {
  if (options.run.sweep)
    throw Error("usage", "--units: \"sweep\" is unknown")
        .Expected("all, cpu, gpu, ane or reference");
  driver::ModelOptions given = options.run;
  given.threads = options.threads;
  auto model = std::make_shared<LoadedModel>();
  if (options.trace) {
    model->trace = std::make_shared<driver::Trace>();
    given.hints.observe = [trace = model->trace](const runtime::LoadOptions::OperationRun& run) {
      trace->Add(std::string(run.name), driver::Trace::kOperation, run.begin, run.end,
                 std::string(run.op));
    };
  }
  model->model = make(given, model->diagnostics);
  model->units_requested = given.units;
  model->breaker = options.run.breaker;
  // The host decides what to do about failures, unless it asks for more.
  const bool asked = options.breaker || model->breaker.p99_budget_ms || model->breaker.memory_limit;
  if (!asked) model->breaker.override = runtime::BreakerOptions::Override::kClosed;
  return new mlc_model{std::make_shared<LoadedFunction>(model, model->model->function())};
}

}  // namespace mlc::abi

using namespace mlc;
using namespace mlc::abi;

namespace {

const runtime::Feature* FeatureOf(const mlc_model* model, int32_t kind, int32_t index) {
  const Ports* ports = model ? model->function->PortsOf(kind) : nullptr;
  return ports && index >= 0 && static_cast<size_t>(index) < ports->features.size()
             ? &ports->features[static_cast<size_t>(index)]
             : nullptr;
}

}  // namespace

int32_t mlc_model_load(mlc_context* context, const char* path, const char* options,
                       mlc_model** model, mlc_error** error) {
  return Call(error, [&] {
    Require(path, "path");
    Require(model, "model");
    mlc_model* made = nullptr;
    RunJob(context, [&](Job& job) {
      LoadOptions given;
      driver::FillFromJson(LoadFileTable(given), OrEmpty(options));
      made = LoadModel(given, [&](const driver::ModelOptions& load, Diagnostics& diagnostics) {
        auto loaded = std::make_unique<driver::Model>(path, load, diagnostics);
        for (const Error& warning : diagnostics.warnings()) job.diagnostics.Warn(warning);
        for (const std::string& note : diagnostics.notes()) job.diagnostics.Note(note);
        return loaded;
      });
    });
    *model = made;
  });
}

int32_t mlc_model_load_function(mlc_model* model, const char* function, mlc_model** other,
                                mlc_error** error) {
  return Call(error, [&] {
    Require(model, "model");
    Require(function, "function");
    Require(other, "other");
    mlc_model* made = nullptr;
    RunJob(nullptr, [&](Job&) {
      const std::shared_ptr<LoadedModel>& owner = model->function->model;
      std::lock_guard lock(owner->mutex);
      made = new mlc_model{std::make_shared<LoadedFunction>(
          owner, driver::FindFunction(*owner->model->program(), function))};
    });
    *other = made;
  });
}

int32_t mlc_model_function_count(const mlc_model* model) {
  return model ? static_cast<int32_t>(model->function->model->model->program()->functions.size())
               : 0;
}

const char* mlc_model_function_name(const mlc_model* model, int32_t index) {
  if (index < 0 || index >= mlc_model_function_count(model)) return nullptr;
  const auto& functions = model->function->model->model->program()->functions;
  return functions[static_cast<size_t>(index)]->name.c_str();
}

const char* mlc_model_schema(const mlc_model* model) {
  return model ? model->function->schema.c_str() : nullptr;
}

int32_t mlc_model_port_count(const mlc_model* model, int32_t kind) {
  const Ports* ports = model ? model->function->PortsOf(kind) : nullptr;
  return ports ? static_cast<int32_t>(ports->features.size()) : -1;
}
const char* mlc_model_port_name(const mlc_model* model, int32_t kind, int32_t index) {
  const runtime::Feature* feature = FeatureOf(model, kind, index);
  return feature ? feature->name.c_str() : nullptr;
}
int32_t mlc_model_port_dtype(const mlc_model* model, int32_t kind, int32_t index) {
  const runtime::Feature* feature = FeatureOf(model, kind, index);
  return feature ? NumberOf(feature->dtype) : 0;
}
int32_t mlc_model_port_rank(const mlc_model* model, int32_t kind, int32_t index) {
  const runtime::Feature* feature = FeatureOf(model, kind, index);
  return feature ? static_cast<int32_t>(feature->dims.size()) : -1;
}
const int64_t* mlc_model_port_dims(const mlc_model* model, int32_t kind, int32_t index) {
  const runtime::Feature* feature = FeatureOf(model, kind, index);
  return feature ? feature->dims.data() : nullptr;
}

int32_t mlc_model_capabilities(mlc_model* model, char** result, mlc_error** error) {
  return Call(error, [&] {
    Require(model, "model");
    const LoadedFunction& function = *model->function;
    const driver::Model& loaded = *function.model->model;
    const runtime::Capabilities machine = loaded.capabilities();
    Json json{{"runtime", machine.runtime},
              {"runtime_version", machine.runtime_version},
              {"chip", machine.chip},
              {"os", machine.os},
              {"devices", Json::array()},
              {"units_requested", nullptr},
              {"units_actual", Name(loaded.units())},
              {"ane_available", false},
              {"dtypes", Json::array()},
              {"missing", Json::array()}};
    if (function.model->units_requested)
      json["units_requested"] = Name(*function.model->units_requested);
    for (const runtime::Device device : machine.devices) {
      json["devices"].push_back(Name(device));
      if (device == runtime::Device::kAne) json["ane_available"] = true;
    }
    for (int32_t number = MLC_BOOL; number <= MLC_UINT16; ++number)
      json["dtypes"].push_back(Name(DTypeFrom(number, "an element type")));
    for (const runtime::Capabilities::Missing& missing : machine.missing)
      json["missing"].push_back({{"feature", missing.feature}, {"why", missing.why}});
    if (loaded.units() == runtime::Units::kReference)
      json["arithmetic"] = driver::Name(loaded.arithmetic());
    StoreResult(json, result);
  });
}

int32_t mlc_model_placements(mlc_model* model, char** result, mlc_error** error) {
  return Call(error, [&] {
    Require(model, "model");
    std::string why;
    Json list = Json::array();
    for (const runtime::OperationPlacement& placement :
         model->function->instance->Placements(&why)) {
      Json row{{"name", placement.name},
               {"op", placement.op},
               {"device", Name(placement.preferred)},
               {"supported", Json::array()}};
      for (const runtime::Device device : placement.supported)
        row["supported"].push_back(Name(device));
      if (placement.cost) row["cost"] = *placement.cost;
      list.push_back(std::move(row));
    }
    Json json{{"operations", list}};
    if (!why.empty()) json["why_not"] = why;
    StoreResult(json, result);
  });
}

int32_t mlc_model_telemetry(mlc_model* model, char** result, mlc_error** error) {
  return Call(error, [&] {
    Require(model, "model");
    const runtime::Snapshot snapshot = model->function->telemetry->snapshot();
    Json json = driver::TelemetryJson(snapshot);
    for (auto [name, summary] : {std::pair{"predict_ms", &snapshot.predict},
                                 {"marshal_in_ms", &snapshot.marshal_in},
                                 {"marshal_out_ms", &snapshot.marshal_out},
                                 {"load_ms", &snapshot.load}})
      json[name] = {{"count", summary->count}, {"mean", summary->mean}, {"p50", summary->p50},
                    {"p95", summary->p95},     {"p99", summary->p99},   {"max", summary->max}};
    json["breaker"] = {{"state", Name(model->function->breaker->state())},
                       {"opened", model->function->breaker->opened()}};
    StoreResult(json, result);
  });
}

int32_t mlc_model_trace(mlc_model* model, const char* path, mlc_error** error) {
  return Call(error, [&] {
    Require(model, "model");
    Require(path, "path");
    const std::shared_ptr<driver::Trace>& trace = model->function->model->trace;
    if (!trace)
      throw Error("usage", "the model records no trace").Help("load it with the option 'trace'");
    trace->Write(path);
  });
}

void mlc_model_free(mlc_model* model) { delete model; }
