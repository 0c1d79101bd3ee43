// test/tools/runtime/handles.h - handles of the C interface that free themselves, and small
// programs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "test/catch.h"
#include "tools/runtime/mlc.h"

namespace mlc::test {

template <auto Free>
struct Freeing {
  template <class T>
  void operator()(T* handle) const {
    Free(handle);
  }
};
using ErrorHandle = std::unique_ptr<mlc_error, Freeing<mlc_error_free>>;
using ContextHandle = std::unique_ptr<mlc_context, Freeing<mlc_context_free>>;
using ModelHandle = std::unique_ptr<mlc_model, Freeing<mlc_model_free>>;
using StateHandle = std::unique_ptr<mlc_state, Freeing<mlc_state_free>>;
using ResultsHandle = std::unique_ptr<mlc_results, Freeing<mlc_results_free>>;
using RequestHandle = std::unique_ptr<mlc_request, Freeing<mlc_request_free>>;
using ProgramHandle = std::unique_ptr<mlc_program, Freeing<mlc_program_free>>;
using OpHandle = std::unique_ptr<mlc_op, Freeing<mlc_op_free>>;

// Calls a function whose last argument is the error; its text, or "" for MLC_OK.
template <class... Parameters, class... Arguments>
std::string ErrorText(int32_t (*function)(Parameters...), Arguments... arguments) {
  mlc_error* error = nullptr;
  const int32_t code = function(arguments..., &error);
  const ErrorHandle freed(error);
  return code == MLC_OK ? "" : mlc_error_text(error);
}
template <class... Parameters, class... Arguments>
void Expect(int32_t (*function)(Parameters...), Arguments... arguments) {
  CHECK(ErrorText(function, arguments...) == "");
}

inline std::string Taken(char* text) {
  const std::string copy = text ? text : "";
  mlc_string_free(text);
  return copy;
}

// The sizes are kept until the process ends.
inline mlc_tensor TensorOf(void* data, int32_t dtype, const std::vector<int64_t>& dims) {
  static std::mutex mutex;
  static std::set<std::vector<int64_t>> kept;
  const std::lock_guard lock(mutex);
  return {sizeof(mlc_tensor),
          data,
          dtype,
          static_cast<int32_t>(dims.size()),
          kept.insert(dims).first->data(),
          nullptr,
          nullptr};
}

// A program with one function, "main".
class Building {
 public:
  explicit Building(const char* options = nullptr) {
    mlc_program* made = nullptr;
    Expect(mlc_program_new, options, &made);
    program.reset(made);
    Expect(mlc_function_add, made, "main", &body);
  }
  mlc_value Input(const char* name, int32_t dtype, const std::vector<int64_t>& dims) {
    mlc_value value = -1;
    Expect(mlc_block_input, body, name, dtype, static_cast<int32_t>(dims.size()), dims.data(),
           &value);
    return value;
  }
  // An operation on x and, unless it is negative, y.
  mlc_value Binary(mlc_block* block, const char* op_name, const char* name, mlc_value x,
                   mlc_value y) {
    mlc_op* op = nullptr;
    mlc_value value = -1;
    Expect(mlc_op_new, block, op_name, name, &op);
    const OpHandle freed(op);
    Expect(mlc_op_arg, op, "x", x);
    if (y >= 0) Expect(mlc_op_arg, op, "y", y);
    Expect(mlc_op_finish, op, 1, &value, static_cast<int32_t*>(nullptr));
    return value;
  }
  void Output(const char* name, mlc_value value) { Expect(mlc_block_output, body, name, value); }
  ModelHandle Load(const char* options = nullptr) const {
    mlc_model* model = nullptr;
    Expect(mlc_program_load, static_cast<mlc_context*>(nullptr), program.get(), options, &model);
    return ModelHandle(model);
  }

  ProgramHandle program;
  mlc_block* body = nullptr;
};

// y = x + x, of [2] fp32.
inline Building Doubling() {
  Building building;
  const mlc_value x = building.Input("x", MLC_FP32, {2});
  building.Output("y", building.Binary(building.body, "add", "y", x, x));
  return building;
}

// Predicts "y" from "x", both fp32 [2].
inline std::string PredictTwo(mlc_model* model, mlc_state* state, float* in, float* out,
                              int64_t timeout_ms = 0) {
  const std::vector<int64_t> dims{2};
  const mlc_tensor x = TensorOf(in, MLC_FP32, dims), y = TensorOf(out, MLC_FP32, dims);
  const mlc_tensor *inputs[] = {&x}, *outputs[] = {&y};
  const char *input_names[] = {"x"}, *output_names[] = {"y"};
  return ErrorText(mlc_predict, model, state, 1, input_names, inputs, 1, output_names, outputs,
                   timeout_ms, static_cast<mlc_results**>(nullptr));
}

}  // namespace mlc::test
