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
#include "tools/driver/errors.h"
#include "tools/driver/json_results.h"
#include "tools/driver/reports.h"
#include "tools/driver/version.h"

namespace mlc::driver {

Option JsonOption() { return {"--json", "", "print one JSON document to stdout"}; }

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
          .repeat = true};
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
void AddOptions(CLI::App& app, const Command& command,
                std::vector<std::vector<std::string>>& storage) {
  storage.resize(command.options.size());
  for (size_t i = 0; i < command.options.size(); ++i) {
    const Option& row = command.options[i];
    if (row.IsSwitch()) {
      const std::string help(row.help);
      app.add_flag(row.key(), help);
      continue;
    }
    CLI::Option* option = app.add_option(row.key(), storage[i], std::string(row.help));
    const bool several = row.name.ends_with("...");
    option->allow_extra_args(several);
    option->type_name(row.IsArgument() ? "" : std::string(row.value));
    if (several) {
      option->expected(1, -1);
    } else if (row.repeat) {
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    }
    if (row.required) option->required();
  }
  if (!command.example.empty())
    app.footer(command.notes + "Example:\n  " + std::string(command.example));
}

GivenOptions Collect(CLI::App& app, const Command& command,
                     const std::vector<std::vector<std::string>>& storage) {
  GivenOptions given;
  for (size_t i = 0; i < command.options.size(); ++i) {
    const std::string key = command.options[i].key();
    if (CLI::Option* option = app.get_option_no_throw(key); option && option->count() > 0)
      given[key] = storage[i];
  }
  return given;
}

void PrintErrors(const std::vector<Error>& errors, bool json) {
  if (!json) {
    for (const Error& error : errors) fmt::print(stderr, "{}\n", WithFlags(error.Render()));
    return;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Error& error : errors) list.push_back(ErrorJson(error));
  // std::puts instead of fmt, which throws if stdout is full.
  std::puts(
      WithFlags(JsonText(nlohmann::ordered_json{{"errors", list}}, 2, BadUtf8::kReplace)).c_str());
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

// The name of the model that a command works on: its last argument.
std::string SubjectOf(const Command& command, const GivenOptions& given) {
  std::string subject;
  for (const Option& option : command.options)
    if (const auto at = given.find(option.key());
        option.IsArgument() && at != given.end() && !at->second.empty())
      subject = std::filesystem::path(at->second.back()).filename().string();
  return subject.empty() ? std::string(command.name) : subject;
}

int Execute(const Command& command, const GivenOptions& given) {
  int code = 0;
  Session session;
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
  if (!session.json) {
    for (const Error& warning : session.diagnostics.warnings())
      fmt::print(stderr, "{}\n", WithFlags(warning.Render("warning")));
    for (const std::string& note : session.diagnostics.notes())
      fmt::print(stderr, "note: {}\n", WithFlags(note));
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    PrintErrors({Error("file-io", "cannot write to standard output")}, false);
    code = std::max(code, 1);
  }
  return code;
}

}  // namespace

int RunCommandLine(std::string_view program, std::string_view summary,
                   std::span<const Command> commands, int argc, char** argv) {
  CLI::App app{std::string(summary), std::string(program)};
  app.set_version_flag("--version", fmt::format("{} {}", program, kVersion));
  bool single = commands.size() == 1 && commands[0].name.empty();
  std::vector<std::vector<std::vector<std::string>>> storage(commands.size());
  std::vector<CLI::App*> apps;
  for (size_t i = 0; i < commands.size(); ++i) {
    CLI::App* sub = single ? &app
                           : app.add_subcommand(std::string(commands[i].name),
                                                std::string(commands[i].summary));
    AddOptions(*sub, commands[i], storage[i]);
    apps.push_back(sub);
  }
  if (!single) app.require_subcommand(1);
  bool json = false;
  for (int i = 1; i < argc; ++i) json = json || std::string_view(argv[i]) == "--json";
  HandleSignals([json](const Error& error) {
    PrintErrors({error}, json);
    std::fflush(stdout);
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {  // --help, --version
    return app.exit(help) == 0 ? 0 : 2;
  } catch (const CLI::ParseError& error) {
    std::string name(program);
    for (CLI::App* sub : apps)
      if (!single && sub->parsed()) name += " " + sub->get_name();
    Error usage("usage", error.what());
    if (!single && name == program && argc > 1 && argv[1][0] != '-') {
      std::vector<std::string> names;
      for (CLI::App* sub : apps) names.push_back(sub->get_name());
      const std::string meant = MeantName({names.begin(), names.end()}, argv[1]);
      usage = Error("usage", "unknown command \"{}\"{}", argv[1],
                    meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", meant))
                  .Expected("{}", fmt::join(names, ", "));
    }
    PrintErrors({usage.Help("{} --help", name)}, json);
    const std::string_view command = argc > 1 ? argv[1] : "";
    std::vector<std::string> reports;
    constexpr std::string_view kReport = "--report";
    for (int i = 1; i < argc; ++i) {
      const std::string_view word = argv[i];
      if (word == kReport && i + 1 < argc)
        reports.emplace_back(argv[i + 1]);
      else if (word.starts_with(kReport) && word.substr(kReport.size()).starts_with('='))
        reports.emplace_back(word.substr(kReport.size() + 1));
    }
    ReportErrors(command, std::string(command), reports, {usage});
    return 2;
  }
  for (size_t i = 0; i < commands.size(); ++i) {
    if (!single && !apps[i]->parsed()) continue;
    return Execute(commands[i], Collect(*apps[i], commands[i], storage[i]));
  }
  return 2;
}

std::string Completions(std::string_view shell, std::string_view program,
                        std::span<const Command> commands) {
  std::string names, cases;
  for (const Command& command : commands) {
    std::string words = "--help";
    for (const Option& option : command.options)
      if (!option.IsArgument()) words += " " + option.key();
    names += (names.empty() ? "" : " ") + std::string(command.name);
    if (shell == "fish") {
      cases += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d '{}'\n", program,
                           command.name, command.summary);
      for (const Option& option : command.options)
        if (option.name.starts_with("--"))
          cases +=
              fmt::format("complete -c {} -n '__fish_seen_subcommand_from {}' -l {}{}\n", program,
                          command.name, option.name.substr(2), option.value.empty() ? "" : " -r");
    } else {
      cases += fmt::format("    {}) words=\"{}\" ;;\n", command.name, words);
    }
  }
  if (shell == "fish") return cases;
  std::string function = fmt::format(
      "_{0}() {{\n  local words=\"{1}\"\n  case \"${{COMP_WORDS[1]}}\" in\n{2}  esac\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\"\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  [[ $current == -* ]] || COMPREPLY+=($(compgen -f -- \"$current\"))\n}}\ncomplete -o "
      "filenames -F _{0} {0}\n",
      program, names, cases);
  if (shell == "bash") return function;
  if (shell == "zsh") return "autoload -U +X bashcompinit && bashcompinit\n" + function;
  throw Error("usage", "no completions for \"{}\"", shell).Expected("bash, zsh or fish");
}

}  // namespace mlc::driver
