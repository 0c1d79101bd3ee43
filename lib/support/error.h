// lib/support/error.h - exceptions and diagnostics: what went wrong, where, what was expected, and
// how to fix it.
//
// Code that rejects input throws Error or adds one to a Diagnostics; libraries do not print. Ids
// are stable: they are the rows of kErrorIds in error.cpp. An unknown id is an internal error.
#pragma once

#include <fmt/format.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlc {

// A location in the user's input, as short texts ready to print: "model.onnx", "node
// \"up2/Resize_47\" (output \"up2_out\")", "tensor \"w\"", "offset 4096", "line 3:17". Empty parts
// are omitted.
struct Location {
  std::string file;
  std::string where;
  std::string ToString() const;  // "model.onnx, node ..."
  bool empty() const { return file.empty() && where.empty(); }
};

// A text with {} for each of the arguments that follow it. Functions that take a text take a format
// and arguments, too; a text without arguments is not a format.
template <class... Args>
using TextFormat = fmt::format_string<Args...>;

class Error : public std::runtime_error {
 public:
  Error(std::string_view id, std::string text);
  template <class First, class... Rest>
  Error(std::string_view id, TextFormat<First, Rest...> format, First&& first, Rest&&... rest)
      : Error(id, fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...)) {}

  // Chained: throw Error("bad-x", "...").At(loc).Expected("...").Help("...").
  Error& At(Location location);
  Error& Expected(std::string text);
  Error& Help(std::string text);
  Error& Note(std::string text);
  template <class First, class... Rest>
  Error& Expected(TextFormat<First, Rest...> format, First&& first, Rest&&... rest) {
    return Expected(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
  }
  template <class First, class... Rest>
  Error& Help(TextFormat<First, Rest...> format, First&& first, Rest&&... rest) {
    return Help(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
  }
  template <class First, class... Rest>
  Error& Note(TextFormat<First, Rest...> format, First&& first, Rest&&... rest) {
    return Note(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
  }

  const std::string& id() const { return id_; }
  const std::string& text() const { return text_; }
  const Location& location() const { return location_; }
  const std::vector<std::string>& notes() const {
    return notes_;
  }  // "expected: ...", "help: ...", plain notes
  const char* what() const noexcept override { return rendered_.c_str(); }
  // The text for users, on several lines: error[id]: text / at ... / expected: ... / help: ...
  std::string Render(std::string_view severity = "error") const;
  // Callers add a location only if there is none yet.
  bool has_location() const { return !location_.empty(); }

 private:
  void Update();
  std::string id_, text_, rendered_;
  Location location_;
  std::vector<std::string> notes_;
};

// The exit code of an error id: 1 input, 2 command line, 3 check, 4 timeout, 70 internal error.
int ExitCode(std::string_view error_id);

// A decision that affects the output and is reported in the manifest ("kept in fp32",
// "decomposed").
struct Decision {
  std::string kind;     // "fp32", "decomposition", "target", ...
  std::string subject;  // operation or node
  std::string reason;
  std::string id = {};  // id of the reason, if reasons are enumerated: "overflow"
};

// Collects the messages of a compilation. Adding is thread-safe; reading requires that all work is
// done.
class Diagnostics {
 public:
  void Add(Error error);
  void Warn(Error warning);     // same parts as an error, but the work continues
  void Note(std::string text);  // unless it was given before
  template <class First, class... Rest>
  void Note(TextFormat<First, Rest...> format, First&& first, Rest&&... rest) {
    Note(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
  }
  void Decide(std::string kind, std::string subject, std::string reason, std::string id = {});
  // Moves the messages of another collection behind those of this one.
  void Append(Diagnostics&& other);

  bool ok() const { return errors_.empty(); }
  const std::vector<Error>& errors() const { return errors_; }
  const std::vector<Error>& warnings() const { return warnings_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const std::vector<Decision>& decisions() const { return decisions_; }
  // Throws Errors if there is at least one error.
  void ThrowIfErrors() const;

 private:
  std::mutex mutex_;
  std::vector<Error> errors_, warnings_;
  std::vector<std::string> notes_;
  std::vector<Decision> decisions_;
};

// Several errors of one run, thrown together at the end.
class Errors : public std::runtime_error {
 public:
  explicit Errors(std::vector<Error> errors);
  const std::vector<Error>& errors() const { return errors_; }

 private:
  std::vector<Error> errors_;
};

// A violated invariant (exit code 70). The message names the source location.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& text);
#define MLC_CHECK(condition, ...)                                                     \
  do {                                                                                \
    if (!(condition))                                                                 \
      ::mlc::CheckFailed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (0)

}  // namespace mlc
