// tools/mlc/terminal.h - what the user's terminal shows: colours, progress and the width of lines.
//
// The settings are process-wide. Before they are set, they are those of an environment without
// options. Text that goes to a file or a pipe has no control characters.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "lib/support/counted.h"

namespace mlc::driver {

struct TerminalSettings {
  enum class Color { kAuto, kAlways, kNever };
  enum class Progress { kAuto, kPlain, kNone };
  Color color = Color::kAuto;
  Progress progress = Progress::kAuto;
};
void SetTerminal(const TerminalSettings& settings);

// How progress is shown on stderr: as a line that is overwritten, as a line for each report, or not.
enum class ProgressForm { kLine, kLines, kNone };
ProgressForm FormOfProgress();

// Returns the number of columns of lines in `stream`: that of COLUMNS, or of the terminal; 0 if it
// is neither set nor a terminal, so that lines have any length.
size_t Columns(std::FILE* stream);

// Returns whether text in `stream` is coloured: by --color, NO_COLOR and CLICOLOR_FORCE, or if it is
// a terminal. https://no-color.org, https://bixense.com/clicolors.
bool HasColor(std::FILE* stream);
// The lines of a table, cut at the width of the stream's terminal.
std::string CutLines(std::string_view text, std::FILE* stream);
// The column of a name in a table whose other columns have `others` characters: 40 characters or more,
// or what a narrower terminal has room for. There, the middle of a longer name is replaced by an
// ellipsis, because its ends tell names apart.
std::string NameColumn(std::string_view name, size_t others, std::FILE* stream);
// Prints text in which verdicts and severities ("FAILED" and "error[" at the beginning of a line, or
// "ok" before two spaces) are coloured, if the stream has colours. The only place that writes them.
void PrintColored(std::FILE* stream, std::string_view text);

}  // namespace mlc::driver
