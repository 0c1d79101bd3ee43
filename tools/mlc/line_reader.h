// tools/mlc/line_reader.h - reads lines of a person or of a pipe.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace mlc::driver {

class LineReader {
 public:
  // On a terminal, lines are edited with libedit: its key bindings, those of ~/.editrc, and a history
  // of this session. At most one instance at a time.
  LineReader();
  ~LineReader();
  LineReader(const LineReader&) = delete;
  // Whether standard input and output are a terminal.
  bool terminal() const { return state_ != nullptr; }

  struct Line {
    std::string text;  // without the newline; a backslash at its end continues it with the next one
    bool interrupted = false;  // Ctrl-C; the text is what was typed before it
  };
  // Nothing at the end of the input: Ctrl-D.
  std::optional<Line> Read();

 private:
  struct State;
  std::optional<Line> ReadOne(const char* prompt);
  std::unique_ptr<State> state_;
};

}  // namespace mlc::driver
