// tools/runtime/call.h - what every function of the C interface is made of: a boundary that no
// exception crosses, checks of arguments, and long work with callbacks on the thread of the caller.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "lib/support/error.h"
#include "lib/support/progress.h"
#include "tools/runtime/mlc.h"

namespace mlc::abi {

// Stores a record of the current exception in *error, unless it is null, and returns its class.
int32_t StoreError(mlc_error** error) noexcept;

// A null argument, which Call reports with the name of the function.
struct NullArgument {
  std::string name;
  [[noreturn]] void Refuse(const char* function) const {
    throw Error("usage", "{}: the argument \"{}\" is NULL", function, name);
  }
};

// Runs the body of a function that can fail; `function` is the name of the caller.
template <class Body>
int32_t Call(mlc_error** error, Body&& body, const char* function = __builtin_FUNCTION()) noexcept {
  if (error) *error = nullptr;
  try {
    try {
      body();
    } catch (const NullArgument& null) {
      null.Refuse(function);
    }
    return MLC_OK;
  } catch (...) {
    return StoreError(error);
  }
}

// Runs the body of a function that cannot fail, or returns `otherwise` without an error.
template <class Result, class Body>
Result Answer(Result otherwise, Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return otherwise;
  }
}

// Throws NullArgument for a null argument.
void Require(const void* argument, std::string_view name);
inline std::string_view OrEmpty(const char* text) {
  return text ? std::string_view(text) : std::string_view();
}

// A copy that mlc_string_free frees.
char* CopyText(std::string_view text);
// The text of a result, in which options are named by their fields.
std::string ResultText(const nlohmann::ordered_json& json);
// Stores the text of a result in *result, unless it is null.
void StoreResult(const nlohmann::ordered_json& json, char** result);

// The work of a call that may take long.
struct Job {
  Diagnostics diagnostics;
  Progress progress;  // null if the caller does not ask for it
};
// Runs `work` on a thread of its own, which has a large stack and blocks signals, within the limits
// of the context, which may be null. Meanwhile the calling thread calls the callbacks. Throws the
// exceptions of `work`.
void RunJob(mlc_context* context, const std::function<void(Job&)>& work);

}  // namespace mlc::abi
