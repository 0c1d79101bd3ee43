#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "tools/driver/errors.h"
#include "tools/driver/json_results.h"
#include "tools/runtime/call.h"

struct mlc_error {
  int32_t code = MLC_ERROR_INTERNAL;
  std::string id, message, location, hint, text, json;
  std::vector<std::unique_ptr<mlc_error>> each;  // if there are several errors
};

namespace mlc::abi {

namespace {

// Classes of ids whose exit code does not determine them.
constexpr std::pair<std::string_view, int32_t> kClasses[] = {
    {"cancelled", MLC_ERROR_CANCELLED},
    {"circuit-open", MLC_ERROR_RUNTIME},
    {"dynamic-shape", MLC_ERROR_UNSUPPORTED},
    {"empty-tensor", MLC_ERROR_UNSUPPORTED},
    {"file-exists", MLC_ERROR_FILE},
    {"file-io", MLC_ERROR_FILE},
    {"needs-constant", MLC_ERROR_UNSUPPORTED},
    {"needs-system", MLC_ERROR_UNSUPPORTED},
    {"no-coreml", MLC_ERROR_UNSUPPORTED},
    {"overwrites-input", MLC_ERROR_FILE},
    {"rank-limit", MLC_ERROR_UNSUPPORTED},
    {"resource-limit", MLC_ERROR_LIMIT},
    {"runtime-failed", MLC_ERROR_RUNTIME},
    {"schema-mismatch", MLC_ERROR_RUNTIME},
    {"target-too-old", MLC_ERROR_UNSUPPORTED},
    {"too-large", MLC_ERROR_LIMIT},
    {"unsupported-architecture", MLC_ERROR_UNSUPPORTED},
    {"unsupported-attribute", MLC_ERROR_UNSUPPORTED},
    {"unsupported-dtype", MLC_ERROR_UNSUPPORTED},
    {"unsupported-field", MLC_ERROR_UNSUPPORTED},
    {"unsupported-operator", MLC_ERROR_UNSUPPORTED},
    {"unsupported-tokenizer", MLC_ERROR_UNSUPPORTED},
};

int32_t ClassOf(std::string_view id) {
  const auto row = std::ranges::find(kClasses, id, &std::pair<std::string_view, int32_t>::first);
  if (row != std::end(kClasses)) return row->second;
  switch (ExitCode(id)) {
    case 2:
      return MLC_ERROR_USAGE;
    case 3:
      return MLC_ERROR_CHECK;
    case 4:
      return MLC_ERROR_TIMEOUT;
    case 70:
      return MLC_ERROR_INTERNAL;
    default:
      return MLC_ERROR_INPUT;
  }
}

void Describe(const Error& error, mlc_error& record) {
  record.code = ClassOf(error.id());
  record.id = error.id();
  record.message = driver::WithFields(error.text());
  record.location = error.location().ToString();
  for (const std::string& note : error.notes())
    record.hint += (record.hint.empty() ? "" : "\n") + driver::WithFields(note);
}

// The record for when there is no memory for another one. It is never freed.
mlc_error& NoMemory() {
  static mlc_error record;
  return record;
}

}  // namespace

int32_t StoreError(mlc_error** error) noexcept {
  try {
    std::vector<Error> errors;
    try {
      throw;
    } catch (const std::exception&) {
      errors = driver::CurrentErrors();
    } catch (...) {
      errors = {Error("internal", "an exception of an unknown type")};
    }
    if (errors.empty()) errors = {Error("internal", "a failure without an error")};
    const int32_t code = ClassOf(errors[0].id());
    if (!error) return code;
    auto record = std::make_unique<mlc_error>();
    Describe(errors[0], *record);
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Error& one : errors) {
      list.push_back(driver::ErrorJson(one));
      record->text += (record->text.empty() ? "" : "\n") + driver::WithFields(one.Render());
    }
    record->json = ResultText({{"errors", list}});
    if (errors.size() > 1)
      for (const Error& one : errors) {
        record->each.push_back(std::make_unique<mlc_error>());
        Describe(one, *record->each.back());
        record->each.back()->text = driver::WithFields(one.Render());
        record->each.back()->json = ResultText({{"errors", {driver::ErrorJson(one)}}});
      }
    *error = record.release();
    return code;
  } catch (...) {
    NoMemory().code = MLC_ERROR_LIMIT;
    if (error) *error = &NoMemory();
    return MLC_ERROR_LIMIT;
  }
}

void Require(const void* argument, std::string_view name) {
  if (!argument) throw NullArgument{std::string(name)};
}

char* CopyText(std::string_view text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) throw std::bad_alloc();
  if (!text.empty()) std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

std::string ResultText(const nlohmann::ordered_json& json) {
  return driver::WithFields(JsonText(json, -1, BadUtf8::kReplace));
}

void StoreResult(const nlohmann::ordered_json& json, char** result) {
  if (result) *result = CopyText(ResultText(json));
}

}  // namespace mlc::abi

using mlc::abi::NoMemory;

namespace {
constexpr const char* kNoMemory = "not enough memory to describe the error";
const char* TextOf(const mlc_error* error, std::string mlc_error::*field) {
  return !error ? "" : error == &NoMemory() ? kNoMemory : (error->*field).c_str();
}
}  // namespace

int32_t mlc_error_code(const mlc_error* error) { return error ? error->code : MLC_OK; }
const char* mlc_error_id(const mlc_error* error) {
  return error == &NoMemory() ? "resource-limit" : TextOf(error, &mlc_error::id);
}
const char* mlc_error_message(const mlc_error* error) { return TextOf(error, &mlc_error::message); }
const char* mlc_error_location(const mlc_error* error) {
  return error == &NoMemory() ? "" : TextOf(error, &mlc_error::location);
}
const char* mlc_error_hint(const mlc_error* error) {
  return error == &NoMemory() ? "" : TextOf(error, &mlc_error::hint);
}
const char* mlc_error_text(const mlc_error* error) { return TextOf(error, &mlc_error::text); }
const char* mlc_error_json(const mlc_error* error) {
  return error == &NoMemory() ? R"({"errors": [{"id": "resource-limit"}]})"
                              : TextOf(error, &mlc_error::json);
}
int32_t mlc_error_count(const mlc_error* error) {
  return !error ? 0 : error->each.empty() ? 1 : static_cast<int32_t>(error->each.size());
}
const mlc_error* mlc_error_at(const mlc_error* error, int32_t index) {
  if (index < 0 || index >= mlc_error_count(error)) return nullptr;
  return error->each.empty() ? error : error->each[static_cast<size_t>(index)].get();
}
void mlc_error_free(mlc_error* error) {
  if (error != &NoMemory()) delete error;
}
void mlc_string_free(char* text) { std::free(text); }
