// tools/mlc/command.h - one record per subcommand, with a table of its options, from which parsing,
// help, completions and error rendering are derived.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/report/document.h"
#include "tools/driver/options.h"

namespace mlc::driver {

// State of a command besides its own options.
struct Session {
  bool json = false;        // --json: stdout is one JSON document
  GivenOptions given;       // options on the command line
  Diagnostics diagnostics;  // printed when the command ends, except with --json
};

struct Command {
  std::string_view name, summary, example;
  std::vector<Option> options;  // bound to a record owned by `run`
  std::function<int(Session&)> run;
  std::string notes = {};  // printed below the options, above the example
};

Option JsonOption();
void PrintDocument(const nlohmann::ordered_json& json);
// --report FILE, which may be repeated. `checks`: the report lists checks, so that it may be a JUnit
// file. The option refuses files that cannot be written, before the command does its work.
Option ReportOption(std::vector<std::filesystem::path>& files, bool checks);
// A command that ends with an error writes a report of the error instead, so reports come last.
void WriteReports(const report::Document& document,
                  const std::vector<std::filesystem::path>& files);

// Rejects options that have no effect: Error "usage" for the first of `options` that was given.
using OptionNames = std::initializer_list<std::string_view>;
void Refuse(OptionNames options, std::string_view why, const Session& session);
// Error "usage" for the first given option that is not among `options`.
void RefuseAllBut(OptionNames options, std::string_view why, const Session& session);

// Parses the command line, runs the command, renders all errors and returns the exit code. A single
// command with an empty name means that there are no subcommands.
int RunCommandLine(std::string_view program, std::string_view summary,
                   std::span<const Command> commands, int argc, char** argv);
// Returns the completion script for "bash", "zsh" or "fish".
std::string Completions(std::string_view shell, std::string_view program,
                        std::span<const Command> commands);

// The commands, one file each.
Command BuildCommand();
Command CacheCommand();
Command CalibrateCommand();
Command CompileCommand();
Command DiffCommand();
Command DoctorCommand();
Command ExplainCommand();
Command ExportWeightsCommand();
Command ExtractCommand();
Command GateCommand();
Command InspectCommand();
Command ManifestCommand();
Command OpsCommand();
Command OptCommand();
Command PrecompileCommand();
Command ReduceCommand();
Command RunCommand();
Command SetWeightsCommand();
Command TokenizeCommand();
Command VerifyCommand();

}  // namespace mlc::driver
