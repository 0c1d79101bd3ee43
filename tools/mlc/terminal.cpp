#include "tools/mlc/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace mlc::driver {
namespace {

TerminalSettings settings;

bool IsSet(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text;
}

bool IsTerminal(std::FILE* stream) { return isatty(fileno(stream)) != 0; }

// Words at the beginning of a line, behind its indentation, and the colour of each (SGR parameters
// of ECMA-48).
struct Word {
  std::string_view text;
  std::string_view next;  // what follows the word: one of these characters, or the end of the line
  std::string_view color;
};
constexpr std::string_view kRed = "1;31", kYellow = "1;33", kGreen = "1;32", kBlue = "1;34";
constexpr Word kWords[] = {
    {"error", "[", kRed},
    {"warning", "[", kYellow},
    {"note", ":", kBlue},
    {"help", ":", kBlue},
    {"FAILED", ":., ", kRed},
    {"FAIL", " ", kRed},
    {"SLOWER", " ", kRed},
    {"PASSED", ":., ", kGreen},
    {"ok", " ", kGreen},
    {"different", "", kRed},
    {"identical", "", kGreen},
    {"no slower", "", kGreen},
    {"inconclusive", ": ", kYellow},
};

const Word* WordAt(std::string_view text) {
  for (const Word& word : kWords) {
    if (!text.starts_with(word.text)) continue;
    const std::string_view rest = text.substr(word.text.size());
    if (rest.empty() || rest[0] == '\n' || word.next.find(rest[0]) != std::string_view::npos)
      return &word;
  }
  return nullptr;
}

}  // namespace

void SetTerminal(const TerminalSettings& chosen) { settings = chosen; }

ProgressForm FormOfProgress() {
  switch (settings.progress) {
    case TerminalSettings::Progress::kPlain:
      return ProgressForm::kLines;
    case TerminalSettings::Progress::kNone:
      return ProgressForm::kNone;
    default:
      return IsTerminal(stderr) ? ProgressForm::kLine : ProgressForm::kNone;
  }
}

size_t Columns(std::FILE* stream) {
  if (IsSet("COLUMNS")) {
    const std::string_view text = std::getenv("COLUMNS");
    size_t columns = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (error == std::errc() && end == text.data() + text.size() && columns > 0) return columns;
  }
  winsize size = {};
  if (!IsTerminal(stream) || ioctl(fileno(stream), TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

bool HasColor(std::FILE* stream) {
  if (settings.color != TerminalSettings::Color::kAuto)
    return settings.color == TerminalSettings::Color::kAlways;
  if (IsSet("NO_COLOR")) return false;
  if (IsSet("CLICOLOR_FORCE") && std::string_view(std::getenv("CLICOLOR_FORCE")) != "0")
    return true;
  const bool dumb = IsSet("TERM") && std::string_view(std::getenv("TERM")) == "dumb";
  return IsTerminal(stream) && !dumb;
}

std::string CutLines(std::string_view text, std::FILE* stream) {
  const size_t columns = Columns(stream);
  if (columns < 2) return std::string(text);
  std::string cut;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    // Characters of UTF-8 begin with a byte that continues none.
    size_t characters = 0, at = 0, last = 0;
    for (; at < line.size() && characters <= columns; ++at)
      if ((line[at] & 0xC0) != 0x80 && ++characters == columns) last = at;
    cut += characters > columns ? fmt::format("{}…\n", line.substr(0, last))
                                : fmt::format("{}\n", line);
  }
  return cut;
}

std::string NameColumn(std::string_view name, size_t others, std::FILE* stream) {
  constexpr size_t kLeast = 16, kUsual = 40;
  const size_t columns = Columns(stream);
  const size_t width =
      columns > 1 ? std::max(columns > others ? columns - others : 0, kLeast) : std::string::npos;
  if (name.size() <= width) return fmt::format("{:<{}}", name, std::min(width, kUsual));
  size_t begin = width / 2, end = name.size() - (width - 1 - begin);
  // Not within a character of UTF-8.
  while (begin > 0 && (name[begin] & 0xC0) == 0x80) --begin;
  while (end < name.size() && (name[end] & 0xC0) == 0x80) ++end;
  return fmt::format("{}…{}", name.substr(0, begin), name.substr(end));
}

void PrintColored(std::FILE* stream, std::string_view text) {
  if (!HasColor(stream)) {
    fmt::print(stream, "{}", text);
    return;
  }
  std::string colored;
  while (!text.empty()) {
    const size_t indentation = std::min(text.find_first_not_of(' '), text.size());
    colored += text.substr(0, indentation);
    text.remove_prefix(indentation);
    if (const Word* word = WordAt(text)) {
      colored += fmt::format("\033[{}m{}\033[0m", word->color, word->text);
      text.remove_prefix(word->text.size());
    }
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    colored += text.substr(0, text.empty() ? 0 : end);
    text.remove_prefix(text.empty() ? 0 : end);
  }
  fmt::print(stream, "{}", colored);
}

}  // namespace mlc::driver
