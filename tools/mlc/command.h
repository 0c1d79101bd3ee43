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
  bool quiet = false;       // --quiet: notes are not printed
  GivenOptions given;       // options on the command line
  Diagnostics diagnostics;  // printed when the command ends, except with --json
};

struct Command {
  std::string_view name, summary;
  std::vector<std::string_view> examples;
  std::vector<Option> options;  // bound to a record owned by `run`
  std::function<int(Session&)> run;
  std::string notes = {};                      // printed below the options, above the examples
  std::vector<std::string_view> related = {};  // names of commands, for "See also"
};

Option JsonOption();
Option OutputOption(Option row);  // a row for -o: listed under "Output"
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

// Runs a command on one model: prints text, or sets the document of --json; returns the exit code.
using RunOne = std::function<int(const std::filesystem::path& model, Session& session,
                                 nlohmann::ordered_json& document)>;
// Runs a command on each model, even if others fail, and returns the worst exit code. With --json, a
// single model prints its document, and several print {"models": [{"model": PATH, "result":
// document} or {"model": PATH, "errors": [...]}]}.
int RunEach(const std::vector<std::string>& models, Session& session, const RunOne& run);

// Parses the command line, runs the command, renders all errors and returns the exit code. A single
// command with an empty name means that there are no subcommands.
int RunCommandLine(std::string_view program, std::string_view summary,
                   std::span<const Command> commands, int argc, char** argv);

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
Command RunnerCommand();  // RunCommand as the only command of mlc-run
Command SetWeightsCommand();
Command SweepCommand();
Command TokenizeCommand();
Command VerifyCommand();

}  // namespace mlc::driver
