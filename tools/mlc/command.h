// tools/mlc/command.h - one record per subcommand, with a table of its options; parsing, help, completions and error
// rendering come from it.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/driver/options.h"

namespace mlc {

// What a command has besides its own options.
struct Session {
  bool json = false;        // --json: stdout is one JSON document
  GivenOptions given;       // what the command line has
  Diagnostics diagnostics;  // shown when the command is done, but under --json
};

struct Command {
  std::string_view name, summary, example;
  std::vector<Option> options;  // bound to a record that `run` owns
  std::function<int(Session&)> run;
  std::string notes = {};  // printed below the options, above the example
};

Option JsonOption();
void PrintDocument(const nlohmann::ordered_json& json);
nlohmann::ordered_json ErrorJson(const Error& error);  // {id, text, location, notes}
void Append(std::vector<Option> rows, std::vector<Option>& table);

// An option that has no effect is an error. Error "usage" for the first of `options` that was given,
using OptionNames = std::initializer_list<std::string_view>;
void Refuse(OptionNames options, std::string_view why, const Session& session);
// and for the first that is none of `options`.
void RefuseAllBut(OptionNames options, std::string_view why, const Session& session);

// Parses and runs; renders every error; returns the exit code. `commands` with one element and an
// empty name: no subcommands.
int RunCommandLine(std::string_view program, std::string_view summary,
                   std::span<const Command> commands, int argc, char** argv);
// Completion script for "bash", "zsh" or "fish".
std::string Completions(std::string_view shell, std::string_view program,
                        std::span<const Command> commands);

// The commands, one file each.
Command BuildCommand();
Command CacheCommand();
Command CompileCommand();
Command DiffCommand();
Command DoctorCommand();
Command GateCommand();
Command InspectCommand();
Command ManifestCommand();
Command OpsCommand();
Command OptCommand();
Command PrecompileCommand();
Command RunCommand();
Command TokenizeCommand();
Command VerifyCommand();

}  // namespace mlc
