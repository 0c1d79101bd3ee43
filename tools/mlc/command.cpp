#include "tools/mlc/command.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lib/report/render.h"
#include "lib/support/atomic_install.h"
#include "lib/support/edit_distance.h"
#include "lib/support/input_registry.h"
#include "lib/support/interrupt.h"
#include "lib/support/json_text.h"
#include "tools/driver/allocator.h"
#include "tools/driver/errors.h"
#include "tools/driver/json_results.h"
#include "tools/driver/reports.h"
#include "tools/driver/version.h"
#include "tools/mlc/help.h"
#include "tools/mlc/terminal.h"

namespace mlc::driver {

Option JsonOption() {
  Option option = Common({"--json", "", "print one JSON document to stdout"});
  option.group = OptionGroup::kOutput;
  return option;
}

Option OutputOption(Option row) {
  row.group = OptionGroup::kOutput;
  return Common(std::move(row));
}

Option ReportOption(std::vector<std::filesystem::path>& files, bool checks) {
  return {.name = "--report",
          .value = "FILE",
          .help = checks ? "write a report: a page (.html), Markdown (.md), JUnit (.xml), .json or "
                           ".txt; may be repeated"
                         : "write a report: a page (.html), Markdown (.md), .json or .txt; may be "
                           "repeated",
          .field =
              [&files, checks](const std::string& file) {
                report::CheckForm(file, checks);
                Staging(file, Staging::kFile);
                files.push_back(file);
              },
          .repeat = true,
          .group = OptionGroup::kOutput};
}

void WriteReports(const report::Document& document,
                  const std::vector<std::filesystem::path>& files) {
  for (const std::filesystem::path& file : files) report::Write(document, file);
}

void PrintDocument(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", WithFlags(JsonText(json, 2, BadUtf8::kReplace)));
}

void Refuse(OptionNames options, std::string_view why, const Session& session) {
  for (const std::string_view option : options)
    if (session.given.contains(std::string(option)))
      throw Error("usage", "{}; remove {}", why, option);
}

void RefuseAllBut(OptionNames options, std::string_view why, const Session& session) {
  for (const auto& [option, values] : session.given)
    if (std::ranges::find(options, option) == options.end())
      throw Error("usage", "{}; remove {}", why, option);
}

namespace {

// CLI11 stores parsed values in `storage`, one list per option.
void AddOptions(CLI::App& app, std::span<const Option> options,
                std::vector<std::vector<std::string>>& storage) {
  storage.resize(options.size());
  for (size_t i = 0; i < options.size(); ++i) {
    const Option& row = options[i];
    if (row.IsSwitch()) {
      const std::string short_name = row.name == "--quiet" ? "-q," : "";
      app.add_flag(short_name + row.key());
      continue;
    }
    CLI::Option* option = app.add_option(row.key(), storage[i]);
    const bool several = row.name.ends_with("...");
    // "--similarity TEXT TEXT" takes two values.
    const auto values = static_cast<int>(1 + std::ranges::count(row.value, ' '));
    option->allow_extra_args(several);
    option->type_name(row.IsArgument() ? "" : std::string(row.value));
    if (several) {
      option->expected(1, -1);
    } else if (row.repeat) {
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
      option->expected(values)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    }
    if (row.required) option->required();
  }
}

// Shells append a slash when they complete a folder. Of -o, it says that a folder is meant.
bool NamesPath(const Option& option) {
  constexpr std::string_view kPaths[] = {"FILE", "DIR", "MODEL", "PATH", "STATS", "RESULT"};
  return option.IsArgument() || (option.name != "-o" && std::ranges::any_of(kPaths, [&](auto name) {
                                   return option.value.ends_with(name);
                                 }));
}

GivenOptions Collect(CLI::App& app, std::span<const Option> options,
                     const std::vector<std::vector<std::string>>& storage) {
  GivenOptions given;
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string key = options[i].key();
    if (CLI::Option* option = app.get_option_no_throw(key); option && option->count() > 0)
      given[key] = storage[i];
    if (given.contains(key) && NamesPath(options[i]))
      for (std::string& value : given[key])
        while (value.size() > 1 && value.ends_with('/')) value.pop_back();
  }
  return given;
}

void PrintErrors(const std::vector<Error>& errors, bool json) {
  if (!json) {
    for (const Error& error : errors) PrintColored(stderr, WithFlags(error.Render()) + "\n");
    return;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Error& error : errors) list.push_back(ErrorJson(error));
  // std::puts instead of fmt, which throws if stdout is full.
  std::puts(
      WithFlags(JsonText(nlohmann::ordered_json{{"errors", list}}, 2, BadUtf8::kReplace)).c_str());
}

void PrintDiagnostics(const Session& session) {
  if (session.json) return;
  for (const Error& warning : session.diagnostics.warnings())
    PrintColored(stderr, WithFlags(warning.Render("warning")) + "\n");
  if (session.quiet) return;
  for (const std::string& note : session.diagnostics.notes())
    PrintColored(stderr, fmt::format("note: {}\n", WithFlags(note)));
}

// Writes the reports of a command that ends with errors. What cannot be written, or has a form
// that reports of errors do not have, is left out: the error itself is printed anyway.
void ReportErrors(std::string_view command, const std::string& subject,
                  const std::vector<std::string>& files, const std::vector<Error>& errors) {
  for (const std::string& file : files) try {
      report::CheckForm(file, true);
      report::Write(ErrorReport(command, subject, errors), file);
    } catch (const std::exception&) {
    }
}

// The files of --report on a command line that cannot be parsed.
std::vector<std::string> ReportsAmong(const std::vector<std::string>& words) {
  constexpr std::string_view kReport = "--report";
  std::vector<std::string> reports;
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] == kReport && i + 1 < words.size())
      reports.push_back(words[i + 1]);
    else if (words[i].starts_with(std::string(kReport) + "="))
      reports.push_back(words[i].substr(kReport.size() + 1));
  return reports;
}

// The name of the model that a command works on: its last argument.
std::string SubjectOf(const Command& command, const GivenOptions& given) {
  std::string subject;
  for (const Option& option : command.options)
    if (const auto at = given.find(option.key());
        option.IsArgument() && at != given.end() && !at->second.empty())
      subject = std::filesystem::path(at->second.back()).filename().string();
  return subject.empty() ? std::string(command.name) : subject;
}

int Execute(const Command& command, const GivenOptions& given, bool quiet) {
  int code = 0;
  Session session;
  session.quiet = quiet;
  session.json = given.contains("--json");
  session.given = given;
  InputRegistry sources;
  try {
    Fill(command.options, given);
    code = command.run(session);
  } catch (...) {
    std::vector<Error> errors = CurrentErrors();
    PrintErrors(errors, session.json);
    if (const auto files = given.find("--report"); files != given.end())
      ReportErrors(command.name, SubjectOf(command, given), files->second, errors);
    for (const Error& error : errors) code = std::max(code, ExitCode(error.id()));
  }
  PrintDiagnostics(session);
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    PrintErrors({Error("file-io", "cannot write to standard output")}, false);
    code = std::max(code, 1);
  }
  return code;
}

// Prints a text to stdout and returns the exit code.
int PrintAndEnd(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0
             ? 0
             : 1;
}

int PrintVersion(std::string_view program, bool json) {
  if (!json) return PrintAndEnd(fmt::format("{} {}\n", program, kVersion));
  nlohmann::ordered_json version = VersionJson();
  version["libraries"].push_back({{"name", "CLI11"}, {"built", CLI11_VERSION}});
  PrintDocument(version);
  return 0;
}

Error UnknownOption(std::string_view word, const std::vector<std::string>& names) {
  const std::string_view name = word.substr(0, word.find('='));
  return Error("usage", "unknown option \"{}\"{}", name, DidYouMean(names, name));
}

Error UnknownCommand(std::string_view word, const CommandLine& line) {
  std::vector<std::string> names;
  for (const Command& command : line.commands) names.emplace_back(command.name);
  return Error("usage", "unknown command \"{}\"{}", word, DidYouMean(names, word))
      .Expected("{}", fmt::join(names, ", "));
}

const Command* FindCommand(std::string_view name, const CommandLine& line) {
  const auto found = std::ranges::find(line.commands, name, &Command::name);
  return found == line.commands.end() ? nullptr : &*found;
}

// What CLI11 says of the command line of a command, or better: it reports a mistyped option as a
// missing or superfluous argument.
Error UsageError(const CLI::ParseError& error, const CLI::App& app,
                 std::span<const Option> options) {
  const std::vector<std::string> rest = app.remaining();
  for (const std::string& word : rest) {
    if (word.size() < 2 || word[0] != '-') continue;
    std::vector<std::string> names;
    for (const Option& option : options)
      if (!option.IsArgument()) names.push_back(option.key());
    return UnknownOption(word, names);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) && !rest.empty())
    return Error("usage", "unexpected argument \"{}\"", rest[0]);
  return Error("usage", error.what());
}

// Options of all commands, and --json, may precede the command, as in "mlc --quiet compile": the
// command is moved before them.
void PutCommandFirst(std::vector<std::string>& words, const CommandLine& line) {
  TerminalSettings settings;
  bool quiet = false;
  std::vector<Option> options = GeneralTable(settings, quiet);
  options.push_back(JsonOption());
  size_t at = 0;
  while (at < words.size() && words[at].starts_with('-')) {
    const size_t equals = words[at].find('=');
    const std::string name = words[at] == "-q" ? "--quiet" : words[at].substr(0, equals);
    const auto option = std::ranges::find(options, name, &Option::key);
    if (option == options.end()) return;
    at += option->IsSwitch() || equals != std::string::npos ? 1 : 2;
  }
  if (at > 0 && at < words.size() && FindCommand(words[at], line))
    std::rotate(words.begin(), words.begin() + static_cast<ptrdiff_t>(at),
                words.begin() + static_cast<ptrdiff_t>(at) + 1);
}

// Settings that also concern errors of the command line itself.
void SetTerminalEarly(const std::vector<std::string>& words) {
  TerminalSettings settings;
  bool quiet = false;
  for (const Option& option : GeneralTable(settings, quiet))
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string prefix = option.key() + "=";
      try {
        if (words[i].starts_with(prefix))
          option.field.set(words[i].substr(prefix.size()));
        else if (option.field.set && words[i] == option.name && i + 1 < words.size())
          option.field.set(words[i + 1]);
      } catch (const Error&) {
        continue;  // reported when the command line is parsed
      }
    }
  SetTerminal(settings);
}

}  // namespace

int RunEach(const std::vector<std::string>& models, Session& session, const RunOne& run) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  int worst = 0;
  for (size_t i = 0; i < models.size(); ++i) {
    nlohmann::ordered_json document;
    if (models.size() == 1) {
      const int code = run(models[i], session, document);
      if (!document.is_null()) PrintDocument(document);
      return code;
    }
    if (i > 0 && !session.json) fmt::print("\n");
    Session own;
    own.json = session.json;
    own.quiet = session.quiet;
    own.given = session.given;
    nlohmann::ordered_json entry{{"model", models[i]}};
    try {
      worst = std::max(worst, run(models[i], own, document));
      entry["result"] = document;
    } catch (...) {
      const std::vector<Error> errors = CurrentErrors();
      for (const Error& error : errors) {
        worst = std::max(worst, ExitCode(error.id()));
        entry["errors"].push_back(ErrorJson(error));
      }
      std::fflush(stdout);
      if (!session.json) PrintErrors(errors, false);
    }
    std::fflush(stdout);
    PrintDiagnostics(own);
    list.push_back(std::move(entry));
  }
  if (session.json) PrintDocument({{"models", list}});
  return worst;
}

int RunCommandLine(std::string_view program, std::string_view summary,
                   std::span<const Command> commands, int argc, char** argv) {
  AllocateLittleAhead();
  const CommandLine line{program, summary, commands};
  const std::vector<std::string> given_words(argv + std::min(argc, 1), argv + argc);
  std::vector<std::string> words = given_words;
  if (line.has_subcommands()) PutCommandFirst(words, line);
  const bool json = std::ranges::find(words, "--json") != words.end();
  SetTerminalEarly(words);
  HandleSignals([json](const Error& error) {
    PrintErrors({error}, json);
    std::fflush(stdout);
  });
  const auto refuse = [&](Error error, const std::string& name) {
    PrintErrors({error.Help("{} --help", name)}, json);
    const std::string subject =
        line.has_subcommands() && !given_words.empty() ? given_words[0] : "";
    ReportErrors(subject, subject, ReportsAmong(given_words), {error});
    return ExitCode("usage");
  };
  const size_t columns = Columns(stdout);
  const std::string first = words.empty() ? "" : words[0];
  if (first == "--version" || first == "-V") return PrintVersion(program, json);
  const Command* command = line.has_subcommands() ? FindCommand(first, line) : &commands[0];
  if (line.has_subcommands()) {
    if (words.empty() || first == "--help" || first == "-h" || first == "--help-all" ||
        (first == "help" && words.size() == 1))
      return PrintAndEnd(ProgramHelp(line, columns));
    if (first == "help") {
      const bool all = std::ranges::find(words, "--help-all") != words.end();
      const Command* asked = FindCommand(words[1], line);
      if (!asked) return refuse(UnknownCommand(words[1], line), std::string(program));
      return PrintAndEnd(CommandHelp(line, *asked, all, columns));
    }
    if (!command)
      return refuse(first[0] == '-' ? UnknownOption(first, {"--help", "--version"})
                                    : UnknownCommand(first, line),
                    std::string(program));
    words.erase(words.begin());
  }
  CLI::App app;
  app.set_help_flag("-h,--help");
  app.set_help_all_flag("--help-all");
  TerminalSettings terminal;
  bool quiet = false;
  std::vector<Option> options = command->options;
  Append(GeneralTable(terminal, quiet), options);
  std::erase_if(options, [](const Option& option) { return option.name.starts_with("--help"); });
  std::vector<std::vector<std::string>> storage;
  AddOptions(app, options, storage);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    const GivenOptions all = Collect(app, options, storage);
    Fill(GeneralTable(terminal, quiet), all);
    SetTerminal(terminal);
    GivenOptions given = all;
    for (const Option& option : GeneralTable(terminal, quiet)) given.erase(option.key());
    return Execute(*command, given, quiet);
  } catch (const CLI::CallForHelp&) {
    return PrintAndEnd(CommandHelp(line, *command, false, columns));
  } catch (const CLI::CallForAllHelp&) {
    return PrintAndEnd(CommandHelp(line, *command, true, columns));
  } catch (const CLI::ParseError& error) {
    return refuse(UsageError(error, app, options), line.NameOf(*command));
  } catch (const Error& error) {  // an option of all commands
    return refuse(error, line.NameOf(*command));
  }
}

}  // namespace mlc::driver
