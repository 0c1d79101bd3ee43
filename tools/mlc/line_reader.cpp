#include "tools/mlc/line_reader.h"

#include <histedit.h>
#include <signal.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <iostream>

namespace mlc::driver {

struct LineReader::State {
  EditLine* editor = nullptr;
  History* history = nullptr;
  const char* prompt = "";
  std::optional<std::string> interrupted;  // the line that Ctrl-C ended
};

namespace {

constexpr int kHistory = 1000;  // lines

}  // namespace

LineReader::LineReader() {
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) return;
  // The character set of the terminal. Numbers are those of the C locale, as everywhere.
  if (!std::setlocale(LC_CTYPE, "")) std::setlocale(LC_CTYPE, "C.UTF-8");
  state_ = std::make_unique<State>();
  state_->editor = el_init("mlc", stdin, stdout, stderr);
  state_->history = history_init();
  HistEvent event;
  history(state_->history, &event, H_SETSIZE, kHistory);
  history(state_->history, &event, H_SETUNIQUE, 1);
  EditLine* editor = state_->editor;
  el_set(editor, EL_CLIENTDATA, state_.get());
  el_set(
      editor, EL_PROMPT, +[](EditLine* e) -> char* {
        State* state = nullptr;
        el_get(e, EL_CLIENTDATA, &state);
        return const_cast<char*>(state->prompt);
      });
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_HIST, history, state_->history);
  // While a line is edited, Ctrl-C and Ctrl-Z are keys and not signals.
  el_set(editor, EL_SETTY, "-d", "-isig", nullptr);
  el_set(
      editor, EL_ADDFN, "mlc-interrupt", "End the line", +[](EditLine* e, int) -> unsigned char {
        State* state = nullptr;
        el_get(e, EL_CLIENTDATA, &state);
        const LineInfo* line = el_line(e);
        state->interrupted.emplace(line->buffer, line->lastchar);
        return CC_EOF;
      });
  el_set(
      editor, EL_ADDFN, "mlc-suspend", "Suspend the program",
      +[](EditLine* e, int) -> unsigned char {
        el_set(e, EL_PREP_TERM, 0);
        kill(0, SIGTSTP);
        el_set(e, EL_PREP_TERM, 1);
        return CC_REDISPLAY;
      });
  for (const auto& [key, name] :
       {std::pair{"^C", "mlc-interrupt"}, {"^Z", "mlc-suspend"}, {"^R", "em-inc-search-prev"}})
    el_set(editor, EL_BIND, key, name, nullptr);
  el_source(editor, nullptr);
}

LineReader::~LineReader() {
  if (!state_) return;
  el_end(state_->editor);
  history_end(state_->history);
}

std::optional<LineReader::Line> LineReader::ReadOne(const char* prompt) {
  Line line;
  if (!state_) {
    if (!std::getline(std::cin, line.text)) return std::nullopt;
    if (line.text.ends_with('\r')) line.text.pop_back();
    return line;
  }
  state_->prompt = prompt;
  state_->interrupted.reset();
  int count = 0;
  // Before the prompt invites to type: libedit would wait for the first key, and the terminal would
  // turn a Ctrl-C until then into a signal, and swallow a Ctrl-D.
  el_set(state_->editor, EL_PREP_TERM, 1);
  const char* text = el_gets(state_->editor, &count);
  if (state_->interrupted) {
    std::fputs("^C\n", stdout);
    return Line{std::move(*state_->interrupted), true};
  }
  if (!text || count <= 0) {
    std::fputs("\n", stdout);
    return std::nullopt;
  }
  line.text.assign(text, static_cast<size_t>(count));
  if (line.text.find_first_not_of(" \t\n") != line.text.npos) {
    HistEvent event;
    history(state_->history, &event, H_ENTER, text);
  }
  if (line.text.ends_with('\n')) line.text.pop_back();
  return line;
}

std::optional<LineReader::Line> LineReader::Read() {
  std::optional<Line> line = ReadOne("> ");
  while (line && !line->interrupted && line->text.ends_with('\\')) {
    line->text.back() = '\n';
    std::optional<Line> more = ReadOne(". ");
    if (!more) break;
    line->text += more->text;
    line->interrupted = more->interrupted;
  }
  return line;
}

}  // namespace mlc::driver
