// tools/mlc/help.h - help texts, man pages and completions, all of them from the table of commands.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tools/mlc/command.h"
#include "tools/mlc/terminal.h"

namespace mlc::driver {

// A program with its commands. A single command with an empty name means that there are no
// subcommands.
struct CommandLine {
  std::string_view program, summary;
  std::span<const Command> commands;

  bool has_subcommands() const { return commands.size() != 1 || !commands[0].name.empty(); }
  // "mlc compile", or "mlc-run".
  std::string NameOf(const Command& command) const;
};

// The options that every command has.
std::vector<Option> GeneralTable(TerminalSettings& terminal, bool& quiet);

// Variables of the environment that mlc reads, and exit codes.
struct Explained {
  std::string_view name, meaning;
};
std::span<const Explained> EnvironmentVariables();
std::span<const Explained> ExitCodes();

// The options of a command, without its arguments and with those of all commands.
std::vector<Option> OptionsOf(const Command& command);
// The help of an option, with what follows from its other fields.
std::string TextOf(const Option& option);
std::string_view Heading(OptionGroup group);
// Calls show(heading, options) for each group of options, in order; unless `all`, with the common
// options only.
template <class Show>
void ForEachGroup(const std::vector<Option>& options, bool all, Show&& show) {
  for (int i = 0; i <= static_cast<int>(OptionGroup::kGeneral); ++i) {
    std::vector<const Option*> shown;
    for (const Option& option : options)
      if (static_cast<int>(option.group) == i && (all || option.common)) shown.push_back(&option);
    if (!shown.empty()) show(Heading(static_cast<OptionGroup>(i)), shown);
  }
}

// The help of a program, which lists its commands. Lines have at most `columns` characters; 0: any
// number.
std::string ProgramHelp(const CommandLine& line, size_t columns);
// The help of a command. Unless `all`, the help of a command with many options lists the common ones.
std::string CommandHelp(const CommandLine& line, const Command& command, bool all, size_t columns);

// Man pages in roff: of a program, and of a command.
std::string ProgramPage(const CommandLine& line);
std::string CommandPage(const CommandLine& line, const Command& command);

// The completion script for "bash", "zsh" or "fish". Error "usage" for another shell.
std::string Completions(std::string_view shell, const CommandLine& line);
// The words among which the value of an option is chosen; empty: any value.
std::vector<std::string_view> WordsOf(const Option& option);

}  // namespace mlc::driver
