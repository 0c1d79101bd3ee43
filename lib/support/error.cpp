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
    {"bad-constant", 1, "a constant does not fit the type or shape that it declares"},
    {"bad-file", 1, "a file is damaged or is not what its name says"},
    {"bad-graph", 1, "the graph is not well formed: cycle, missing input, duplicate name"},
    {"bad-input", 1, "a run-time input does not have the type or shape that the model declares"},
    {"bad-name", 1, "a name is not known"},
    {"bad-operand", 1, "an operand has a type or shape that the operator does not allow"},
    {"bad-recipe", 1, "a build recipe does not match its schema or its files"},
    {"bad-tensor", 1, "a weight of the source has a shape or type that the network does not want"},
    {"bad-text", 1, "MIL text that does not parse"},
    {"circuit-open", 1,
     "the circuit breaker lets no prediction through, and nothing takes its place"},
    {"constant-range", 1, "a constant does not fit the narrower type in which Core ML takes it"},
    {"dynamic-shape", 1, "a shape depends on data or is unbounded where Core ML needs to know it"},
    {"empty-tensor", 1, "a tensor has no elements; Core ML cannot hold one"},
    {"external-data", 1,
     "external data is missing, too short, not the model's, or outside its folder"},
    {"file-exists", 1, "the output exists and is not mlc's, or cannot be exchanged atomically"},
    {"file-io", 1, "the operating system refused to read or write"},
    {"input-shape", 1, "an input's shape is not known well enough to compile"},
    {"missing-tensor", 1, "the source lacks a weight that the network needs"},
    {"needs-constant", 1,
     "Core ML wants an operand as a constant that the model feeds at run time"},
    {"needs-system", 1, "this system, or its version, lacks what was asked for"},
    {"no-coreml", 1, "Core ML was asked for where there is none"},
    {"overwrites-input", 1, "an output would replace something that this run reads"},
    {"rank-limit", 1, "a tensor has more than the five dimensions that Core ML takes"},
    {"resource-limit", 1, "the input asks for more memory, depth or elements than is sensible"},
    {"runtime-failed", 1, "Core ML, or another runtime, refused or threw"},
    {"schema-mismatch", 1, "a runtime's outputs are not what the model declares"},
    {"target-too-old", 1, "the explicit target lacks something that the model needs"},
    {"too-large", 1, "the program is larger than a protobuf can hold"},
    {"unknown-format", 1, "the file is of no format that mlc reads"},
    {"unread-key", 1, "metadata of the source that mlc does not know"},
    {"unsupported-architecture", 1, "a network that no row describes"},
    {"unsupported-attribute", 1, "an attribute value that MIL cannot express"},
    {"unsupported-dtype", 1, "a data type that Core ML cannot compute with"},
    {"unsupported-field", 1, "a protobuf field or version that mlc does not know"},
    {"unsupported-operator", 1, "an operator that mlc cannot lower"},
    {"unsupported-tokenizer", 1, "a tokenizer, or a part of one, that mlc does not know"},
    {"unused-tensor", 1, "a weight of the source takes no part in what is computed"},
    {"usage", 2, "the command line is wrong"},
    {"fp16-error", 3, "rounding to fp16 takes an output out of its budget (a warning)"},
    {"fp16-range", 3, "inputs of another usual range become infinite in fp16 (a warning)"},
    {"check-failed", 3, "a parity, budget or accuracy check failed"},
    {"timeout", 4, "the time limit ran out"},
    {"workers-hang", 4, "as many predictions that were given up as may be are still running"},
    {"internal", 70, "a bug in mlc"},
    {"not-stable", 70, "rewriting a program does not come to an end (a warning)"},
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
  notes_.push_back(std::move(text));
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
  for (const Error& error : errors) out += (out.empty() ? "" : "\n") + error.Render();
  return out;
}
}  // namespace

Errors::Errors(std::vector<Error> errors)
    : std::runtime_error(RenderAll(errors)), errors_(std::move(errors)) {}

void CheckFailed(const char* file, int line, const char* condition, const std::string& text) {
  throw InternalError(fmt::format("{}:{}: {} ({})", file, line, text, condition));
}

}  // namespace mlc
