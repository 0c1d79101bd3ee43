// Completion scripts for shells.
#include <fmt/ranges.h>

#include "tools/mlc/help.h"

namespace mlc::driver {
namespace {

// The options of a command for users who complete them: with those of all commands.
std::string OptionWords(const Command& command) {
  std::vector<std::string> words;
  for (const Option& option : OptionsOf(command)) words.push_back(option.key());
  return fmt::format("{}", fmt::join(words, " "));
}

// Whether the value may also be a file: "fp16|FILE".
bool MayBePath(const Option& option) {
  return option.value.ends_with("FILE") || option.value.ends_with("DIR") ||
         option.value.ends_with("MODEL");
}

// The words of an argument, whose text lists them: "ls|gc|clear" as the placeholder of its value.
std::vector<std::string_view> ArgumentWords(const Command& command) {
  for (const Option& option : command.options)
    if (option.IsArgument()) return WordsOf(option);
  return {};
}

std::string Bash(const CommandLine& line) {
  std::string names, options, values;
  for (const Command& command : line.commands) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", command.name);
    const std::string pattern = command.name.empty() ? "*" : std::string(command.name);
    options += fmt::format("    {}) words=\"{} {}\" ;;\n", pattern, OptionWords(command),
                           fmt::join(ArgumentWords(command), " "));
    for (const Option& option : OptionsOf(command))
      if (const auto words = WordsOf(option); !words.empty())
        values += fmt::format("    \"{} {}\") words=\"{}\"; files={} ;;\n", command.name,
                              option.key(), fmt::join(words, " "), MayBePath(option) ? 1 : 0);
  }
  std::string function(line.program);
  std::ranges::replace(function, '-', '_');
  const bool several = line.has_subcommands();
  return fmt::format(
      "# Completions of {1} for bash.\n"
      "_{0}() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" previous=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
      "  local command=\"{2}\" words=\"\" files=1\n"
      "  case \"$command\" in\n{3}  esac\n"
      "  case \"$command $previous\" in\n{4}  esac\n"
      "{5}"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  [[ $files == 0 || $current == -* ]] || COMPREPLY+=($(compgen -f -- \"$current\"))\n"
      "}}\n"
      "complete -o filenames -F _{0} {1}\n",
      function, line.program, several ? "${COMP_WORDS[1]}" : "", options, values,
      several ? fmt::format("  if [[ $COMP_CWORD == 1 ]]; then words=\"{} help --help --version\"; "
                            "files=0; fi\n",
                            names)
              : "");
}

// Text within single quotes.
std::string Quoted(std::string_view text) {
  std::string quoted;
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted;
}

// A text in a specification of zsh's _arguments or _describe.
std::string InSpecification(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return Quoted(escaped);
}

std::string ZshArguments(const Command& command) {
  std::string text = "_arguments -S";
  for (const Option& option : OptionsOf(command)) {
    const auto words = WordsOf(option);
    text += fmt::format(" \\\n      '{}{}[{}]", option.repeat ? "*" : "", option.name,
                        InSpecification(option.help));
    if (option.IsSwitch()) {
      text += "'";
      continue;
    }
    text += fmt::format(
        ":{}:{}'", InSpecification(option.value),
        words.empty() ? std::string("_files") : fmt::format("({})", fmt::join(words, " ")));
  }
  const auto words = ArgumentWords(command);
  if (!words.empty()) text += fmt::format(" \\\n      '1: :({})'", fmt::join(words, " "));
  return text + " \\\n      '*:file:_files'";
}

std::string Zsh(const CommandLine& line) {
  std::string function(line.program), body;
  std::ranges::replace(function, '-', '_');
  if (line.has_subcommands()) {
    std::string names, cases;
    for (const Command& command : line.commands) {
      names += fmt::format("    '{}:{}'\n", command.name, InSpecification(command.summary));
      cases += fmt::format("    {}) {} ;;\n", command.name, ZshArguments(command));
    }
    body = fmt::format(
        "  local -a commands=(\n{}  )\n"
        "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
        "  local command=$words[2]\n"
        "  shift words; (( CURRENT-- ))\n"
        "  case $command in\n{}  esac\n",
        names, cases);
  } else {
    body = fmt::format("  {}\n", ZshArguments(line.commands[0]));
  }
  // The file is a function of $fpath, or is read by a shell: then it registers the function.
  return fmt::format(
      "#compdef {0}\n_{1}() {{\n{2}}}\n"
      "if [[ ${{funcstack[1]}} == _{1} ]]; then _{1} \"$@\"; else compdef _{1} {0}; fi\n",
      line.program, function, body);
}

std::string Fish(const CommandLine& line) {
  std::string text = fmt::format("# Completions of {} for fish.\n", line.program);
  for (const Command& command : line.commands) {
    std::string condition;
    if (line.has_subcommands()) {
      text += fmt::format("complete -c {} -f -n __fish_use_subcommand -a {} -d '{}'\n",
                          line.program, command.name, Quoted(command.summary));
      condition = fmt::format(" -n '__fish_seen_subcommand_from {}'", command.name);
    }
    if (const auto words = ArgumentWords(command); !words.empty())
      text += fmt::format("complete -c {}{} -f -a '{}'\n", line.program, condition,
                          fmt::join(words, " "));
    for (const Option& option : OptionsOf(command)) {
      const auto words = WordsOf(option);
      text += fmt::format("complete -c {}{} -{} {}{}{} -d '{}'\n", line.program, condition,
                          option.name.starts_with("--") ? "l" : "s",
                          option.name.substr(option.name.starts_with("--") ? 2 : 1),
                          option.IsSwitch()                    ? ""
                          : words.empty() || MayBePath(option) ? " -r"
                                                               : " -x",
                          words.empty() ? "" : fmt::format(" -a '{}'", fmt::join(words, " ")),
                          Quoted(option.help));
    }
  }
  return text;
}

}  // namespace

std::string Completions(std::string_view shell, const CommandLine& line) {
  if (shell == "bash") return Bash(line);
  if (shell == "zsh") return Zsh(line);
  if (shell == "fish") return Fish(line);
  throw UnknownWord("SHELL", shell, {"bash", "zsh", "fish"});
}

}  // namespace mlc::driver
