// States of models.
#include "tools/runtime/model.h"
#include "tools/runtime/tensor.h"

using namespace mlc;
using namespace mlc::abi;

namespace {

std::unique_ptr<runtime::ModelState> NewState(const LoadedFunction& function) {
  std::unique_ptr<runtime::ModelState> state = function.instance->NewState();
  if (!state) throw Error("usage", "function \"{}\" has no states", function.function.name);
  return state;
}

const runtime::Feature& FeatureNamed(const LoadedFunction& function, const char* name) {
  Require(name, "name");
  const int32_t index = function.states.Find(name);
  if (index < 0) throw Error("bad-input", "the model has no state \"{}\"", name);
  return function.states.features[static_cast<size_t>(index)];
}

}  // namespace

int32_t mlc_state_new(mlc_model* model, mlc_state** state, mlc_error** error) {
  return Call(error, [&] {
    Require(model, "model");
    Require(state, "state");
    *state = new mlc_state{model->function, std::make_shared<std::unique_ptr<runtime::ModelState>>(
                                                NewState(*model->function))};
  });
}

int32_t mlc_state_read(mlc_state* state, const char* name, const mlc_tensor* tensor,
                       mlc_error** error) {
  return Call(error, [&] {
    Require(state, "state");
    const runtime::Feature& feature = FeatureNamed(*state->function, name);
    const std::map<std::string, Tensor> values = (*state->slot)->Read();
    CopyTo(tensor, values.at(feature.name), feature.dtype, fmt::format("state \"{}\"", name));
  });
}

int32_t mlc_state_write(mlc_state* state, const char* name, const mlc_tensor* tensor,
                        mlc_error** error) {
  return Call(error, [&] {
    Require(state, "state");
    const runtime::Feature& feature = FeatureNamed(*state->function, name);
    (*state->slot)->Write({{feature.name, Copied(tensor, fmt::format("state \"{}\"", name))}});
  });
}

int32_t mlc_state_reset(mlc_state* state, mlc_error** error) {
  return Call(error, [&] {
    Require(state, "state");
    *state->slot = NewState(*state->function);
  });
}

int32_t mlc_state_copy(mlc_state* state, mlc_state** copy, mlc_error** error) {
  return Call(error, [&] {
    Require(state, "state");
    Require(copy, "copy");
    auto made = std::make_unique<mlc_state>();
    made->function = state->function;
    made->slot = std::make_shared<std::unique_ptr<runtime::ModelState>>(NewState(*state->function));
    (*made->slot)->Write((*state->slot)->Read());
    *copy = made.release();
  });
}

void mlc_state_free(mlc_state* state) { delete state; }
