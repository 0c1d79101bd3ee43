#include "lib/support/error.h"

#include <algorithm>

namespace mlc {

namespace {
struct ErrorId {
  std::string_view id;
  int exit_code;
  std::string_view meaning;
};
// Sorted by exit code, then by id.
const std::vector<ErrorId> kErrorIds = {
    {"bad-attribute", 1, "an attribute has a value that the operator does not allow"},
    {"bad-constant", 1, "a constant does not match its declared type or shape"},
    {"bad-file", 1, "a file is damaged or has an unexpected format"},
    {"bad-graph", 1, "the graph is not well formed: cycle, missing input, duplicate name"},
    {"bad-input", 1, "a run-time input does not have the type or shape that the model declares"},
    {"bad-name", 1, "a name is unknown"},
    {"bad-operand", 1, "an operand has a type or shape that the operator does not allow"},
    {"bad-recipe", 1, "a build recipe does not match its schema or its files"},
    {"bad-tensor", 1, "a weight of the source has a shape or type that does not match the network"},
    {"bad-text", 1, "MIL text has a syntax or type error"},
    {"cancelled", 1, "another thread cancelled the work"},
    {"chat-template", 1,
     "a chat template has an error, rejects the conversation or uses what is not supported"},
    {"circuit-open", 1, "the circuit breaker is open and there is no fallback"},
    {"constant-range", 1, "a constant does not fit the narrower type that Core ML supports"},
    {"dynamic-shape", 1,
     "a shape is unbounded or depends on data, but Core ML requires it to be known"},
    {"empty-tensor", 1, "a tensor has no elements, which Core ML does not support"},
    {"external-data", 1,
     "external data is missing, truncated, from another model, or outside the model's folder"},
    {"file-exists", 1,
     "the output exists and was not made by mlc, or cannot be replaced atomically"},
    {"file-io", 1, "the operating system refused to read or write"},
    {"input-shape", 1, "the shape of an input is not specified well enough to compile"},
    {"missing-tensor", 1, "the source lacks a weight that the network needs"},
    {"needs-constant", 1,
     "Core ML requires a constant operand, but the model computes it at run time"},
    {"needs-system", 1, "this system, or its version, does not support the request"},
    {"no-coreml", 1, "Core ML is not available on this system"},
    {"not-interesting", 1, "the test script of a reduction rejects the model"},
    {"open-shape", 1,
     "a size is a range, which the compute unit to optimise for does not run (a warning)"},
    {"overwrites-input", 1, "an output would overwrite an input of this run"},
    {"rank-limit", 1, "a tensor has more than the five dimensions that Core ML supports"},
    {"remote-cache", 1, "the cache of builds cannot be used (a warning)"},
    {"resource-limit", 1, "the input exceeds a limit on memory, depth or number of elements"},
    {"runtime-failed", 1, "Core ML, or another runtime, failed"},
    {"schema-mismatch", 1, "a runtime's outputs do not match the model's declaration"},
    {"target-too-old", 1, "the requested target lacks a feature that the model needs"},
    {"too-large", 1, "the program exceeds the size limit of a protobuf"},
    {"unknown-format", 1, "unrecognised file format"},
    {"unread-key", 1, "unknown metadata in the source"},
    {"unsupported-architecture", 1, "unsupported network architecture"},
    {"unsupported-attribute", 1, "an attribute value that MIL does not support"},
    {"unsupported-dtype", 1, "a data type that Core ML does not support"},
    {"unsupported-field", 1, "an unknown protobuf field or version"},
    {"unsupported-operator", 1, "operator not supported"},
    {"unsupported-tokenizer", 1, "unsupported tokenizer or tokenizer component"},
    {"unused-tensor", 1, "a weight of the source is unused"},
    {"usage", 2, "invalid command line"},
    {"fp16-error", 3, "rounding to fp16 makes an output exceed its error budget (a warning)"},
    {"fp16-range", 3, "inputs in another common range overflow in fp16 (a warning)"},
    {"check-failed", 3, "a parity, budget or accuracy check failed"},
    {"timeout", 4, "the time limit was exceeded"},
    {"workers-hang", 4, "too many abandoned predictions are still running"},
    {"internal", 70, "a bug in mlc"},
    {"not-stable", 70, "rewriting a program does not terminate (a warning)"},
};
}  // namespace

int ExitCode(std::string_view error_id) {
  for (const ErrorId& row : kErrorIds)
    if (row.id == error_id) return row.exit_code;
  return 70;
}

std::string Location::ToString() const {
  if (file.empty()) return where;
  if (where.empty()) return file;
  return file + ", " + where;
}

Error::Error(std::string_view id, std::string text)
    : std::runtime_error(""), id_(id), text_(std::move(text)) {
  Update();
}
Error& Error::At(Location location) {
  location_ = std::move(location);
  Update();
  return *this;
}
Error& Error::Expected(std::string text) { return Note("expected: " + text); }
Error& Error::Help(std::string text) { return Note("help: " + text); }
Error& Error::Note(std::string text) {
  notes_.push_back(std::move(text));
  Update();
  return *this;
}
void Error::Update() { rendered_ = Render(); }

std::string Error::Render(std::string_view severity) const {
  std::string out = fmt::format("{}[{}]: {}", severity, id_, text_);
  if (!location_.empty()) out += "\n  at " + location_.ToString();
  for (const std::string& note : notes_) out += "\n  " + note;
  return out;
}

void Diagnostics::Add(Error error) {
  std::lock_guard lock(mutex_);
  errors_.push_back(std::move(error));
}
void Diagnostics::Warn(Error warning) {
  std::lock_guard lock(mutex_);
  warnings_.push_back(std::move(warning));
}
void Diagnostics::Note(std::string text) {
  std::lock_guard lock(mutex_);
  if (std::ranges::find(notes_, text) == notes_.end()) notes_.push_back(std::move(text));
}
void Diagnostics::Decide(std::string kind, std::string subject, std::string reason,
                         std::string id) {
  std::lock_guard lock(mutex_);
  decisions_.push_back({std::move(kind), std::move(subject), std::move(reason), std::move(id)});
}
void Diagnostics::Append(Diagnostics&& other) {
  std::scoped_lock lock(mutex_, other.mutex_);
  auto move = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    from.clear();
  };
  move(other.errors_, errors_);
  move(other.warnings_, warnings_);
  move(other.notes_, notes_);
  move(other.decisions_, decisions_);
}
void Diagnostics::ThrowIfErrors() const {
  if (!errors_.empty()) throw Errors(errors_);
}

namespace {
std::string RenderAll(const std::vector<Error>& errors) {
  std::string out;
  for (const Error& error : errors) out.append(out.empty() ? "" : "\n").append(error.Render());
  return out;
}
}  // namespace

Errors::Errors(std::vector<Error> errors)
    : std::runtime_error(RenderAll(errors)), errors_(std::move(errors)) {}

void CheckFailed(const char* file, int line, const char* condition, const std::string& text) {
  throw InternalError(fmt::format("{}:{}: {} ({})", file, line, text, condition));
}

}  // namespace mlc
