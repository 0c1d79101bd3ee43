// Predictions, their results, and requests.
#include "tools/runtime/predict.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "tools/driver/supplied_tensors.h"
#include "tools/runtime/tensor.h"

using namespace mlc;
using namespace mlc::abi;

namespace {

std::string Quoted(std::string_view kind, std::string_view name) {
  return fmt::format("{} \"{}\"", kind, name);
}

// Names of ports, for errors.
std::string Names(const Ports& ports) {
  std::string names;
  for (const std::string& name : ports.source_names) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

size_t FindPort(const Ports& ports, std::string_view kind, const char* name) {
  Require(name, kind);
  const int32_t index = ports.Find(name);
  if (index < 0)
    throw Error("bad-input", "the model has no {} \"{}\"", kind, name).Expected(Names(ports));
  return static_cast<size_t>(index);
}

// Adds an input in the type of the model, unless the function lacks it because its value is known.
void AddInput(const LoadedFunction& function, const char* name, const Tensor& given,
              std::map<std::string, Tensor>& inputs) {
  if (name && function.inputs.Find(name) < 0 && driver::IsAbsent(function.function, name, given))
    return;
  const size_t index = FindPort(function.inputs, "input", name);
  const Value& value = *function.input_values[index];
  const auto port = std::ranges::find(function.function.inputs, value.name, &Port::name);
  Tensor converted = driver::ToInputType(given, value, *port);
  driver::CheckListedShape(*port, converted.dims());
  if (!inputs.emplace(value.name, std::move(converted)).second)
    throw Error("bad-input", "input \"{}\" is given twice", name);
}

runtime::Prediction Run(const LoadedFunction& function, const std::map<std::string, Tensor>& inputs,
                        runtime::ModelState* state, int64_t timeout_ms) {
  return timeout_ms == 0 ? function.instance->Run(inputs, state)
                         : function.instance->Run(inputs, state, TimeoutFrom(timeout_ms));
}

// The elements of an output in the type that the schema states: exact arithmetic computes in fp32.
Tensor AsDeclared(const Tensor& tensor, const runtime::Feature& feature) {
  return tensor.dtype() == feature.dtype || tensor.dtype() == DType::kString
             ? tensor
             : tensor.Cast(feature.dtype);
}

const Tensor* TensorAt(const mlc_results* results, int32_t index) {
  return results && index >= 0 && static_cast<size_t>(index) < results->tensors.size()
             ? &results->tensors[static_cast<size_t>(index)]
             : nullptr;
}

}  // namespace

namespace mlc::abi {

void Complete(const LoadedFunction& function, std::map<std::string, Tensor>& inputs) {
  if (inputs.size() == function.input_values.size()) return;
  std::string missing;
  for (size_t i = 0; i < function.input_values.size(); ++i) {
    const Value& value = *function.input_values[i];
    if (inputs.contains(value.name)) continue;
    const auto port = std::ranges::find(function.function.inputs, value.name, &Port::name);
    if (port->optional && IsStatic(value.type.shape))
      inputs[value.name] = Tensor::Full(value.type.dtype, StaticDims(value.type.shape),
                                        port->default_value.value_or(0));
    else
      missing += (missing.empty() ? "" : ", ") + function.inputs.source_names[i];
  }
  if (!missing.empty()) throw Error("bad-input", "inputs are missing: {}", missing);
}

runtime::Worker::Timeout TimeoutFrom(int64_t ms) {
  constexpr int64_t kMost = int64_t{365} * 24 * 3'600'000;
  if (ms < 0) throw Error("usage", "the time limit is {} ms", ms).Expected("at least 0");
  return std::chrono::milliseconds(std::min(ms, kMost));
}

std::unique_ptr<mlc_results> ResultsOf(const std::shared_ptr<LoadedFunction>& function,
                                       const runtime::Prediction& prediction) {
  auto results = std::make_unique<mlc_results>();
  results->function = function;
  for (const runtime::Feature& feature : function->outputs.features) {
    Tensor tensor = AsDeclared(prediction.outputs.at(feature.name), feature).InMemory();
    results->pinned.push_back(tensor.dtype() == DType::kString ? Pin<std::byte>() : tensor.bytes());
    results->tensors.push_back(std::move(tensor));
  }
  results->timings = ResultText({{"marshal_in_ms", prediction.timings.marshal_in_ms},
                                 {"predict_ms", prediction.timings.predict_ms},
                                 {"marshal_out_ms", prediction.timings.marshal_out_ms},
                                 {"fallback", prediction.fallback}});
  return results;
}

}  // namespace mlc::abi

int32_t mlc_predict(mlc_model* model, mlc_state* state, int32_t input_count,
                    const char* const* input_names, const mlc_tensor* const* inputs,
                    int32_t output_count, const char* const* output_names,
                    const mlc_tensor* const* outputs, int64_t timeout_ms, mlc_results** results,
                    mlc_error** error) {
  return Call(error, [&] {
    Require(model, "model");
    if (input_count < 0 || output_count < 0)
      throw Error("usage", "the number of tensors is negative");
    if (input_count > 0) Require(input_names, "input_names"), Require(inputs, "inputs");
    if (output_count > 0) Require(output_names, "output_names"), Require(outputs, "outputs");
    const LoadedFunction& function = *model->function;
    if (state && state->function != model->function)
      throw Error("bad-input", "the state belongs to another model");
    // States and results may share the elements of inputs, and outlive the call.
    const bool copy = state || results;
    std::map<std::string, Tensor> given;
    for (int32_t i = 0; i < input_count; ++i) {
      const std::string what = input_names[i] ? Quoted("input", input_names[i]) : "an input";
      AddInput(function, input_names[i], copy ? Copied(inputs[i], what) : Borrowed(inputs[i], what),
               given);
    }
    Complete(function, given);
    std::vector<size_t> places;
    for (int32_t i = 0; i < output_count; ++i)
      places.push_back(FindPort(function.outputs, "output", output_names[i]));
    const runtime::Prediction prediction =
        Run(function, given, state ? state->slot->get() : nullptr, timeout_ms);
    for (int32_t i = 0; i < output_count; ++i) {
      const runtime::Feature& feature = function.outputs.features[places[static_cast<size_t>(i)]];
      CopyTo(outputs[i], prediction.outputs.at(feature.name), feature.dtype,
             Quoted("output", output_names[i]));
    }
    if (results) *results = ResultsOf(model->function, prediction).release();
  });
}

int32_t mlc_results_count(const mlc_results* results) {
  return results ? static_cast<int32_t>(results->tensors.size()) : 0;
}
const char* mlc_results_name(const mlc_results* results, int32_t index) {
  return TensorAt(results, index)
             ? results->function->outputs.features[static_cast<size_t>(index)].name.c_str()
             : nullptr;
}
int32_t mlc_results_find(const mlc_results* results, const char* name) {
  return results && name ? results->function->outputs.Find(name) : -1;
}
int32_t mlc_results_tensor(const mlc_results* results, int32_t index, mlc_tensor* tensor,
                           mlc_error** error) {
  return Call(error, [&] {
    Require(results, "results");
    Require(tensor, "tensor");
    const Tensor* found = TensorAt(results, index);
    if (!found)
      throw Error("usage", "there is no output {}", index)
          .Expected("0 to {}", static_cast<int64_t>(results->tensors.size()) - 1);
    if (tensor->struct_size < offsetof(mlc_tensor, reserved))
      throw Error("usage", "struct_size is {}", tensor->struct_size).Expected("sizeof(mlc_tensor)");
    tensor->data = const_cast<std::byte*>(results->pinned[static_cast<size_t>(index)].data());
    tensor->dtype = NumberOf(found->dtype());
    tensor->rank = found->rank();
    tensor->dims = found->dims().data();
    tensor->strides = nullptr;
  });
}
const char* mlc_results_string(const mlc_results* results, int32_t index, int64_t element) {
  const Tensor* found = TensorAt(results, index);
  if (!found || found->dtype() != DType::kString || element < 0 || element >= found->size())
    return nullptr;
  return found->strings()[static_cast<size_t>(element)].c_str();
}
const char* mlc_results_timings(const mlc_results* results) {
  return results ? results->timings.c_str() : nullptr;
}
void mlc_results_free(mlc_results* results) { delete results; }

int32_t mlc_request_new(mlc_model* model, mlc_request** request, mlc_error** error) {
  return Call(error, [&] {
    Require(model, "model");
    Require(request, "request");
    *request = new mlc_request{.function = model->function, .inputs = {}, .state = {}};
  });
}
int32_t mlc_request_set_input(mlc_request* request, const char* name, const mlc_tensor* tensor,
                              mlc_error** error) {
  return Call(error, [&] {
    Require(request, "request");
    const LoadedFunction& function = *request->function;
    if (!tensor) {
      const size_t index = FindPort(function.inputs, "input", name);
      request->inputs.erase(function.input_values[index]->name);
      return;
    }
    std::map<std::string, Tensor> one;
    AddInput(function, name, Copied(tensor, name ? Quoted("input", name) : "an input"), one);
    for (auto& [mil_name, value] : one) request->inputs[mil_name] = value.InMemory();
  });
}
int32_t mlc_request_set_state(mlc_request* request, mlc_state* state, mlc_error** error) {
  return Call(error, [&] {
    Require(request, "request");
    if (state && state->function != request->function)
      throw Error("bad-input", "the state belongs to another model");
    request->state = state ? state->slot : nullptr;
  });
}
int32_t mlc_request_run(mlc_request* request, int64_t timeout_ms, mlc_results** results,
                        mlc_error** error) {
  return Call(error, [&] {
    Require(request, "request");
    Require(results, "results");
    std::map<std::string, Tensor> inputs = request->inputs;
    Complete(*request->function, inputs);
    const runtime::Prediction prediction = Run(
        *request->function, inputs, request->state ? request->state->get() : nullptr, timeout_ms);
    *results = ResultsOf(request->function, prediction).release();
  });
}
void mlc_request_free(mlc_request* request) { delete request; }
