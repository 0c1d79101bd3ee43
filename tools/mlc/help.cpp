#include "tools/mlc/help.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace mlc::driver {
namespace {

constexpr size_t kManyOptions = 20;  // --help of a command with more lists the common ones only
constexpr size_t kWidestText = 100;  // on a wider terminal, lines are not longer
constexpr size_t kNarrow = 80;       // below, texts stand under what they describe
constexpr size_t kColumn = 28, kNarrowColumn = 8;  // where the texts begin

// By OptionGroup.
constexpr std::string_view kHeadings[] = {
    "Options",       "Inputs", "Shapes",    "Precision and target",   "Compression",
    "Compute units", "Output", "Measuring", "Comparing and checking", "Language models",
    "Debugging",     "General"};

constexpr Explained kVariables[] = {
    {"MLC_CACHE_DIR", "folder of the cache of compiled models (default: the user's cache folder)"},
    {"MLC_CACHE_LIMIT", "maximum size of that cache, e.g. 500MB (default: 10GB)"},
    {"MLC_CACHE_HEADER",
     "header of requests to the server of mlc build --cache URL, e.g. \"Authorization: Bearer "
     "TOKEN\" (default: none)"},
    {"MLC_CACHE_TIMEOUT", "seconds without a byte after which such a request fails (default: 30)"},
    {"SSL_CERT_FILE",
     "file of the certificates by which https servers are trusted (default: the system's)"},
    {"MLC_CIRCUIT_BREAKER",
     "state of the circuit breaker of mlc run: open, closed or auto (default: auto)"},
    {"MLC_THREADS", "number of threads (default: one per processor)"},
    {"COLUMNS", "number of columns of help texts and tables (default: those of the terminal)"},
    {"NO_COLOR", "if not empty: no colours"},
    {"CLICOLOR_FORCE", "if neither empty nor 0: colours in files and pipes, too"},
};

constexpr Explained kExitCodes[] = {
    {"0", "success"},
    {"1", "the input cannot be compiled or run"},
    {"2", "invalid command line"},
    {"3", "a check failed: an error budget, a difference, a gate"},
    {"4", "a time limit was exceeded"},
    {"70", "a bug in mlc"},
    {"130", "interrupted by Ctrl-C (SIGINT); partial results are removed"},
};

// Breaks a line before the last words that do not fit; `indent` is the indentation of further lines.
std::string Wrapped(std::string_view line, size_t columns, size_t indent) {
  if (columns == 0) return std::string(line) + "\n";
  std::string text;
  size_t used = 0;  // in the current line
  bool begins = true;
  while (!line.empty()) {
    const size_t spaces = std::min(line.find_first_not_of(' '), line.size());
    const size_t end = std::min(line.find(' ', spaces), line.size());
    const size_t width = end - spaces;
    if (!begins && used + spaces + width > columns) {
      text += "\n" + std::string(indent, ' ');
      used = indent;
      line.remove_prefix(spaces);
    } else {
      text += line.substr(0, spaces);
      used += spaces;
      line.remove_prefix(spaces);
    }
    text += line.substr(0, width);
    used += width;
    line.remove_prefix(width);
    begins = false;
  }
  return text + "\n";
}

// "  NAME  text", with the text in its column or below the name.
std::string Row(std::string_view name, std::string_view text, size_t columns) {
  const size_t column = columns > 0 && columns < kNarrow ? kNarrowColumn : kColumn;
  std::string first = fmt::format("  {}", name);
  std::string row;
  if (text.empty()) return first + "\n";
  if (first.size() + 2 > column) {
    row = first + "\n";
    first = "";
  }
  first.resize(column, ' ');
  return row + Wrapped(fmt::format("{}{}", first, text), columns, column);
}

// Paragraphs are wrapped; indented lines are lists ("  name   text"), or commands, which stay whole.
std::string WrappedNotes(std::string_view notes, size_t columns) {
  std::string text;
  while (!notes.empty()) {
    const size_t end = std::min(notes.find('\n'), notes.size());
    const std::string_view line = notes.substr(0, end);
    notes.remove_prefix(std::min(end + 1, notes.size()));
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const size_t gap = line.find("  ", begin);
    if (begin == 0)
      text += Wrapped(line, columns, 0);
    else if (gap != std::string_view::npos)
      text += Row(line.substr(begin, gap - begin),
                  line.substr(std::min(line.find_first_not_of(' ', gap), line.size())), columns);
    else if (line.substr(begin).starts_with("mlc ") || line[begin] == '#')
      text += std::string(line) + "\n";
    else
      text += Wrapped(line, columns, begin);
  }
  return text;
}

size_t TextColumns(size_t columns) { return std::min(columns, kWidestText); }

std::string Flags(const Option& option) {
  return option.value.empty() ? std::string(option.name)
                              : fmt::format("{} {}", option.name, option.value);
}

std::string Usage(const CommandLine& line, const Command& command) {
  std::string usage = line.NameOf(command) + " [OPTIONS]";
  for (const Option& option : command.options) {
    if (option.IsArgument())
      usage +=
          (option.required ? fmt::format(" {}", option.name) : fmt::format(" [{}]", option.name));
    else if (option.required)
      usage += " " + Flags(option);
  }
  return usage;
}

std::string Related(const Command& command, const CommandLine& line) {
  std::vector<std::string> names;
  for (const std::string_view name : command.related)
    names.push_back(line.has_subcommands() ? fmt::format("{} {}", line.program, name)
                                           : fmt::format("mlc {}", name));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string CommandLine::NameOf(const Command& command) const {
  return command.name.empty() ? std::string(program) : fmt::format("{} {}", program, command.name);
}

std::vector<Option> GeneralTable(TerminalSettings& terminal, bool& quiet) {
  using Color = TerminalSettings::Color;
  using Progress = TerminalSettings::Progress;
  return Grouped(
      OptionGroup::kGeneral,
      {Common({"--progress", "auto|plain|none",
               "progress on stderr: auto, a line on a terminal (default); plain, a line for each "
               "report; or none",
               OneOf("--progress", terminal.progress,
                     {{"auto", Progress::kAuto},
                      {"plain", Progress::kPlain},
                      {"none", Progress::kNone}})}),
       Common({"--quiet", "", "print neither progress nor notes (short: -q)",
               [&terminal, &quiet](const std::string&) {
                 quiet = true;
                 terminal.progress = Progress::kNone;
               }}),
       Common(
           {"--color", "auto|always|never",
            "colours: auto, on a terminal (default); always; or never",
            OneOf("--color", terminal.color,
                  {{"auto", Color::kAuto}, {"always", Color::kAlways}, {"never", Color::kNever}})}),
       Common({"--help", "", "print the common options (short: -h)"}),
       Common({"--help-all", "", "print all options"})});
}

std::vector<Option> OptionsOf(const Command& command) {
  std::vector<Option> options;
  for (const Option& option : command.options)
    if (!option.IsArgument()) options.push_back(option);
  TerminalSettings terminal;
  bool quiet = false;
  Append(GeneralTable(terminal, quiet), options);
  return options;
}

std::string TextOf(const Option& option) {
  std::string text(option.help);
  if (option.repeat && !option.IsArgument() && text.find("repeat") == std::string::npos)
    text += "; may be repeated";
  if (option.required && !option.IsArgument()) text += " (required)";
  return text;
}

std::string_view Heading(OptionGroup group) { return kHeadings[static_cast<size_t>(group)]; }

std::span<const Explained> EnvironmentVariables() { return kVariables; }
std::span<const Explained> ExitCodes() { return kExitCodes; }

std::string ProgramHelp(const CommandLine& line, size_t columns) {
  columns = TextColumns(columns);
  std::string text = Wrapped(line.summary, columns, 0);
  text += fmt::format("\nUsage: {} COMMAND [OPTIONS] ...\n\nCommands:\n", line.program);
  for (const Command& command : line.commands) text += Row(command.name, command.summary, columns);
  text += "\nOptions:\n";
  for (const Explained& row :
       {Explained{"-h, --help", "print this help; mlc help COMMAND prints that of a command"},
        {"-V, --version", "print the version; with --json, also those of the libraries"}})
    text += Row(row.name, row.meaning, columns);
  text += "\nEnvironment variables:\n";
  for (const Explained& row : kVariables) text += Row(row.name, row.meaning, columns);
  text += "\nExit codes:\n";
  for (const Explained& row : kExitCodes) text += Row(row.name, row.meaning, columns);
  text += fmt::format("\nExamples:\n  {0} compile model.onnx\n  {0} help compile\n", line.program);
  return text;
}

std::string CommandHelp(const CommandLine& line, const Command& command, bool all, size_t columns) {
  columns = TextColumns(columns);
  std::string text = Wrapped(command.summary, columns, 0);
  text += "\n" + Wrapped("Usage: " + Usage(line, command), columns, 7);
  bool arguments = false;
  for (const Option& option : command.options) {
    if (!option.IsArgument()) continue;
    if (!arguments) text += "\nArguments:\n";
    arguments = true;
    text += Row(option.name, TextOf(option), columns);
  }
  const std::vector<Option> options = OptionsOf(command);
  const bool whole = all || command.options.size() <= kManyOptions;
  size_t shown = 0;
  ForEachGroup(options, whole, [&](std::string_view heading, const auto& rows) {
    text += fmt::format("\n{}:\n", heading);
    for (const Option* option : rows) text += Row(Flags(*option), TextOf(*option), columns);
    shown += rows.size();
  });
  if (shown < options.size()) {
    const size_t more = options.size() - shown;
    text += "\n" + Wrapped(fmt::format("{}: {} --help-all",
                                       Counted(static_cast<int64_t>(more), "more option"),
                                       line.NameOf(command)),
                           columns, 0);
  }
  if (!command.notes.empty()) {
    std::string_view notes = command.notes;
    while (notes.ends_with('\n')) notes.remove_suffix(1);
    text += "\n" + WrappedNotes(notes, columns);
  }
  text += "\nExamples:\n";
  for (const std::string_view example : command.examples) text += fmt::format("  {}\n", example);
  if (!command.related.empty())
    text += "\n" + Wrapped("See also: " + Related(command, line), columns, 0);
  return text;
}

std::vector<std::string_view> WordsOf(const Option& option) {
  std::vector<std::string_view> words;
  for (std::string_view rest = option.value; !rest.empty();) {
    const size_t end = std::min(rest.find('|'), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // Placeholders are in capitals (FILE), lists of examples end in dots (iOS17|macOS14|...).
    const bool is_word = std::ranges::all_of(
        word, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
    if (is_word && option.value.find('|') != std::string_view::npos) words.push_back(word);
  }
  return words;
}

}  // namespace mlc::driver
