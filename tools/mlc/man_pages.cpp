// Man pages, in the macros of man(7), which groff and mandoc render.
#include <fmt/ranges.h>

#include "tools/driver/version.h"
#include "tools/mlc/help.h"

namespace mlc::driver {
namespace {

// Text in roff: backslashes, hyphens that are to be copied, and what would be a macro at the
// beginning of a line.
std::string Escaped(std::string_view text) {
  std::string escaped;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
    begins = c == '\n';
  }
  return escaped;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return upper;
}

// "mlc-compile"
std::string PageName(const CommandLine& line, const Command& command) {
  std::string name = line.NameOf(command);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string Title(std::string_view page) {
  return fmt::format(".TH {} 1 \"{}\" \"mlc {}\" \"User Commands\"\n", Escaped(Upper(page)),
                     kVersionDate, kVersion);
}

// A tagged paragraph: a bold name with its placeholder, and the text below.
std::string Tagged(std::string_view name, std::string_view value, std::string_view text) {
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", Escaped(name),
                     value.empty() ? "" : fmt::format(" \\fI{}\\fR", Escaped(value)),
                     Escaped(text));
}

std::string Verbatim(std::string_view lines) {
  return fmt::format(".RS 4\n.nf\n{}\n.fi\n.RE\n", Escaped(lines));
}

// Paragraphs, and blocks of indented lines, as in help texts.
std::string Notes(std::string_view notes) {
  std::string text, block;
  const auto end_block = [&] {
    if (!block.empty()) text += ".PP\n" + Verbatim(block.substr(0, block.size() - 1));
    block.clear();
  };
  while (!notes.empty()) {
    const size_t end = std::min(notes.find('\n'), notes.size());
    const std::string_view row = notes.substr(0, end);
    notes.remove_prefix(std::min(end + 1, notes.size()));
    if (row.starts_with("  ")) {
      block += fmt::format("{}\n", row.substr(2));
      continue;
    }
    end_block();
    if (!row.empty()) text += fmt::format(".PP\n{}\n", Escaped(row));
  }
  end_block();
  return text;
}

std::string Explanations(std::string_view heading, std::span<const Explained> rows) {
  std::string text = fmt::format(".SH {}\n", heading);
  for (const Explained& row : rows) text += Tagged(row.name, "", row.meaning);
  return text;
}

std::string Examples(std::span<const std::string_view> examples) {
  std::string text = ".SH EXAMPLES\n";
  for (const std::string_view example : examples)
    text += (example == examples.front() ? "" : ".PP\n") + Verbatim(example);
  return text;
}

std::string SeeAlso(const std::vector<std::string>& pages) {
  std::string text = ".SH SEE ALSO\n";
  for (size_t i = 0; i < pages.size(); ++i)
    text += fmt::format(".BR {} (1){}\n", Escaped(pages[i]), i + 1 < pages.size() ? "," : "");
  return text;
}

}  // namespace

std::string ProgramPage(const CommandLine& line) {
  std::string text = Title(line.program);
  text += fmt::format(".SH NAME\n{} \\- model compiler for Core ML\n", Escaped(line.program));
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] ...\n",
                      Escaped(line.program));
  text += fmt::format(".SH DESCRIPTION\n{}\n.SH COMMANDS\n", Escaped(line.summary));
  std::vector<std::string> pages;
  for (const Command& command : line.commands) {
    text += Tagged(command.name, "", command.summary);
    pages.push_back(PageName(line, command));
  }
  text += Explanations("ENVIRONMENT", EnvironmentVariables());
  text += Explanations("EXIT STATUS", ExitCodes());
  return text + SeeAlso(pages);
}

std::string CommandPage(const CommandLine& line, const Command& command) {
  const std::string page = PageName(line, command);
  std::string text = Title(page);
  std::string summary(command.summary);
  summary[0] = static_cast<char>(std::tolower(summary[0]));
  text += fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n", Escaped(page), Escaped(summary));
  text += fmt::format("\\fB{}\\fR [\\fIOPTIONS\\fR]", Escaped(line.NameOf(command)));
  std::string arguments;
  for (const Option& option : command.options) {
    if (option.IsArgument()) {
      const std::string name = fmt::format("\\fI{}\\fR", Escaped(option.name));
      text += option.required ? " " + name : fmt::format(" [{}]", name);
      arguments += Tagged(option.name, "", option.help);
    } else if (option.required) {
      text += fmt::format(" \\fB{}\\fR \\fI{}\\fR", Escaped(option.name), Escaped(option.value));
    }
  }
  text += fmt::format("\n.SH DESCRIPTION\n{}.\n", Escaped(command.summary)) + Notes(command.notes);
  if (!arguments.empty()) text += ".SH ARGUMENTS\n" + arguments;
  text += ".SH OPTIONS\n";
  ForEachGroup(OptionsOf(command), true, [&](std::string_view heading, const auto& rows) {
    text += fmt::format(".SS {}\n", Escaped(heading));
    for (const Option* option : rows) text += Tagged(option->name, option->value, TextOf(*option));
  });
  text += Explanations("ENVIRONMENT", EnvironmentVariables());
  text += Explanations("EXIT STATUS", ExitCodes());
  text += Examples(command.examples);
  std::vector<std::string> pages = {"mlc"};
  for (const std::string_view name : command.related) pages.push_back(fmt::format("mlc-{}", name));
  return text + SeeAlso(pages);
}

}  // namespace mlc::driver
