#include "backends/apple/states.h"

#include <algorithm>

#include "backends/apple/arrays.h"
#include "backends/apple/coreml_errors.h"

namespace mlc::apple {
namespace {

// Calls fn(array) with the array of the state itself, not a copy.
API_AVAILABLE(macos(15.0))
void WithArray(MLState* state, const std::string& name,
               const std::function<void(MLMultiArray*)>& fn) {
  const std::function<void(MLMultiArray*)>* work = &fn;
  __block std::exception_ptr failure;
  __block bool called = false;
  [state getMultiArrayForStateNamed:[NSString stringWithUTF8String:name.c_str()]
                            handler:^(MLMultiArray* array) {
                              called = true;
                              failure =
                                  CaptureException("accessing a state", [&] { (*work)(array); });
                            }];
  if (failure) std::rethrow_exception(failure);
  if (!called) throw Error("schema-mismatch", "Core ML returned no array for state \"{}\"", name);
}

}  // namespace

CoreMlState::CoreMlState(MLState* state, std::shared_ptr<const Description> description)
    : state_(state), description_(std::move(description)) {}

std::unique_lock<std::mutex> CoreMlState::Use() const {
  std::unique_lock lock(in_use_, std::try_to_lock);
  if (!lock)
    throw Error("bad-input", "the state is in use by another prediction")
        .Help("use a separate state for each concurrent prediction");
  return lock;
}

std::map<std::string, Tensor> CoreMlState::Read() const {
  return Enter("reading states", [&] {
    auto lock = Use();
    std::map<std::string, Tensor> all;
    for (const runtime::Feature& feature : description_->schema.states)
      WithArray(get(), feature.name,
                [&](MLMultiArray* array) { all[feature.name] = ToTensor(array); });
    return all;
  });
}

void CoreMlState::Write(const std::map<std::string, Tensor>& values) {
  Enter("writing states", [&] {
    const std::vector<runtime::Feature>& states = description_->schema.states;
    for (const auto& [name, tensor] : values) {
      auto it = std::find_if(states.begin(), states.end(),
                             [&](const runtime::Feature& state) { return state.name == name; });
      if (it == states.end()) throw Error("bad-input", "the model has no state \"{}\"", name);
      if (tensor.dtype() != it->dtype || tensor.dims() != it->dims)
        throw Error("bad-input", "state \"{}\" has type {}", name,
                    TypeText(tensor.dtype(), tensor.dims()))
            .Expected(TypeText(it->dtype, it->dims));
    }
    auto lock = Use();
    for (const auto& [name, tensor] : values)
      WithArray(get(), name, [&](MLMultiArray* array) {
        if (ToDims([array shape]) != tensor.dims() || ToDType([array dataType]) != tensor.dtype())
          throw Error("schema-mismatch", "state \"{}\" does not match its description", name);
        Fill(array, tensor);
      });
  });
}

}  // namespace mlc::apple
