#include "tools/mlc/command.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>

#include "lib/support/interrupt.h"
#include "lib/support/sources.h"
#include "tools/mlc/version.h"

namespace mlc {

std::string Invocation::get(std::string_view flag, std::string_view fallback) const {
  auto it = values_.find(std::string(flag));
  return it == values_.end() || it->second.empty() ? std::string(fallback) : it->second.back();
}

std::vector<std::string> Invocation::all(std::string_view flag) const {
  auto it = values_.find(std::string(flag));
  return it == values_.end() ? std::vector<std::string>{} : it->second;
}

namespace {
int64_t ParseInt(std::string_view flag, std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw Error("usage", fmt::format("{}: \"{}\" is not a whole number", flag, text));
  return value;
}
}  // namespace

int64_t Invocation::Int(std::string_view flag, int64_t fallback) const {
  return has(flag) ? ParseInt(flag, get(flag)) : fallback;
}

std::pair<std::string, std::string> Invocation::KeyValue(std::string_view flag,
                                                         const std::string& text) {
  size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw Error("usage", fmt::format("{}: \"{}\" has no NAME=VALUE form", flag, text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<int64_t> Invocation::IntList(std::string_view flag, const std::string& text) {
  std::vector<int64_t> values;
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    size_t comma = std::min(text.find(',', begin), text.size());
    values.push_back(ParseInt(flag, std::string_view(text).substr(begin, comma - begin)));
    begin = comma + 1;
  }
  return values;
}

namespace {

bool IsPositional(const Flag& flag) { return flag.name[0] != '-'; }
std::string PositionalName(const Flag& flag) {
  std::string name(flag.name);
  if (name.ends_with("...")) name.resize(name.size() - 3);
  return name;
}

// Fills `invocation` from what CLI11 parsed; the strings live in `storage`, one list per flag.
void AddFlags(CLI::App& app, const Command& command,
              std::vector<std::vector<std::string>>& storage) {
  storage.resize(command.flags.size());
  for (size_t i = 0; i < command.flags.size(); ++i) {
    const Flag& flag = command.flags[i];
    if (flag.value.empty() && !IsPositional(flag)) {
      const std::string help(flag.help);
      app.add_flag(std::string(flag.name), help);
      continue;
    }
    std::string name = IsPositional(flag) ? PositionalName(flag) : std::string(flag.name);
    CLI::Option* option = app.add_option(name, storage[i], std::string(flag.help));
    option->allow_extra_args(IsPositional(flag) && flag.name.ends_with("..."));
    option->type_name(IsPositional(flag) ? "" : std::string(flag.value));
    if (IsPositional(flag) && flag.name.ends_with("...")) {
      option->expected(1, -1);
    } else if (flag.repeat) {
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    }
    if (flag.required) option->required();
  }
  if (!command.example.empty())
    app.footer(command.notes + "Example:\n  " + std::string(command.example));
}

void Collect(CLI::App& app, const Command& command,
             const std::vector<std::vector<std::string>>& storage, Invocation& invocation) {
  for (size_t i = 0; i < command.flags.size(); ++i) {
    const Flag& flag = command.flags[i];
    std::string name = IsPositional(flag) ? PositionalName(flag) : std::string(flag.name);
    CLI::Option* option = app.get_option_no_throw(name);
    if (!option || option->count() == 0) continue;
    invocation.values_[name] =
        flag.value.empty() && !IsPositional(flag) ? std::vector<std::string>{} : storage[i];
  }
}

void PrintErrors(const std::vector<Error>& errors, bool json) {
  if (!json) {
    for (const Error& error : errors) fmt::print(stderr, "{}\n", error.Render());
    return;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Error& error : errors)
    list.push_back({{"id", error.id()},
                    {"text", error.text()},
                    {"location", error.location().ToString()},
                    {"notes", error.notes()}});
  // Not by fmt, which throws where stdout is full.
  std::puts(nlohmann::ordered_json{{"errors", list}}
                .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                .c_str());
}

int Execute(const Command& command, const Invocation& invocation) {
  int code = 0;
  Sources sources;
  try {
    code = command.run(invocation);
  } catch (...) {
    std::vector<Error> errors = CurrentErrors();
    PrintErrors(errors, invocation.json());
    for (const Error& error : errors) code = std::max(code, ExitCode(error.id()));
  }
  if (!invocation.json()) {
    for (const Error& warning : invocation.diagnostics.warnings())
      fmt::print(stderr, "{}\n", warning.Render("warning"));
    for (const std::string& note : invocation.diagnostics.notes())
      fmt::print(stderr, "note: {}\n", note);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    PrintErrors({Error("file-io", "cannot write to standard output")}, false);
    code = std::max(code, 1);
  }
  return code;
}

}  // namespace

std::vector<Error> CurrentErrors() {
  try {
    throw;
  } catch (const Errors& errors) {
    return errors.errors();
  } catch (const Error& error) {
    return {error};
  } catch (const std::bad_alloc&) {
    return {Error("resource-limit", "not enough memory for this model")};
  } catch (const std::system_error& error) {  // names that are too long, a full disk, ...
    return {Error("file-io", error.what())};
  } catch (const std::exception& bug) {
    return {Error("internal", bug.what())
                .Help("this is a bug in mlc: please report the model and this text")};
  }
}

void ParseArguments(const Command& command, const std::vector<std::string>& arguments,
                    Invocation& invocation) {
  CLI::App app{std::string(command.summary), std::string(command.name)};
  app.set_help_flag();
  std::vector<std::vector<std::string>> storage;
  AddFlags(app, command, storage);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    throw Error("usage", fmt::format("{}: {}", command.name, error.what()));
  }
  Collect(app, command, storage, invocation);
}

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
    AddFlags(*sub, commands[i], storage[i]);
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
      usage = Error("usage", fmt::format("\"{}\" is no command", argv[1]))
                  .Expected(fmt::format("{}", fmt::join(names, ", ")));
    }
    PrintErrors({usage.Help(fmt::format("{} --help", name))}, json);
    return 2;
  }
  for (size_t i = 0; i < commands.size(); ++i) {
    if (!single && !apps[i]->parsed()) continue;
    Invocation invocation;
    Collect(*apps[i], commands[i], storage[i], invocation);
    return Execute(commands[i], invocation);
  }
  return 2;
}

std::string Completions(std::string_view shell, std::string_view program,
                        std::span<const Command> commands) {
  std::string names, cases;
  for (const Command& command : commands) {
    std::string flags = "--help";
    for (const Flag& flag : command.flags)
      if (!IsPositional(flag)) flags += " " + std::string(flag.name);
    names += (names.empty() ? "" : " ") + std::string(command.name);
    if (shell == "fish") {
      cases += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d '{}'\n", program,
                           command.name, command.summary);
      for (const Flag& flag : command.flags)
        if (flag.name.starts_with("--"))
          cases +=
              fmt::format("complete -c {} -n '__fish_seen_subcommand_from {}' -l {}{}\n", program,
                          command.name, flag.name.substr(2), flag.value.empty() ? "" : " -r");
    } else {
      cases += fmt::format("    {}) words=\"{}\" ;;\n", command.name, flags);
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
  throw Error("usage", fmt::format("no completions for \"{}\"", shell))
      .Expected("bash, zsh or fish");
}

}  // namespace mlc
