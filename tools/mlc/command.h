// tools/mlc/command.h - one record per subcommand and per flag; parsing, help, completions and
// error rendering come from it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/support/error.h"

namespace mlc {

struct Flag {
  std::string_view name;   // "MODEL" (positional), "MODEL..." (several), "-o" or "--target"
  std::string_view value;  // placeholder of the value; empty: a switch
  std::string_view help;
  bool required = false;
  bool repeat = false;  // may be given several times
};

// The parsed command line of one subcommand.
class Invocation {
 public:
  bool has(std::string_view flag) const { return values_.contains(std::string(flag)); }
  std::string get(std::string_view flag, std::string_view fallback = "") const;
  std::vector<std::string> all(std::string_view flag) const;
  // Error "usage" that names the flag when the text is not a number of the asked kind.
  int64_t Int(std::string_view flag, int64_t fallback) const;
  // "INPUT=rest" split at the first '='. Error "usage" when there is none.
  static std::pair<std::string, std::string> KeyValue(std::string_view flag,
                                                      const std::string& text);
  static std::vector<int64_t> IntList(std::string_view flag, const std::string& text);
  bool json() const { return has("--json"); }

  mutable Diagnostics diagnostics;
  std::map<std::string, std::vector<std::string>> values_;
};

struct Command {
  std::string_view name, summary, example;
  std::vector<Flag> flags;
  int (*run)(const Invocation&);
  std::string notes;  // printed below the flags, above the example
};

// In a catch clause: the errors that the exception stands for; what is none of ours is "internal".
std::vector<Error> CurrentErrors();

// Parses and runs; renders every error; returns the exit code. `commands` with one element and an
// empty name: no subcommands.
int RunCommandLine(std::string_view program, std::string_view summary,
                   std::span<const Command> commands, int argc, char** argv);
// Parses the arguments of one command, given as strings. Error "usage" as on the command line.
void ParseArguments(const Command& command, const std::vector<std::string>& arguments,
                    Invocation& invocation);
// Completion script for "bash", "zsh" or "fish".
std::string Completions(std::string_view shell, std::string_view program,
                        std::span<const Command> commands);

// The commands, one file each.
Command BuildCommand();
Command CompileCommand();
Command DiffCommand();
Command InspectCommand();
Command OpsCommand();
Command OptCommand();
Command PrecompileCommand();
Command RunCommand();
Command VerifyCommand();

}  // namespace mlc
