#include "tools/driver/build.h"

#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "lib/support/child_process.h"
#include "tools/driver/build_emit.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/errors.h"
#include "tools/driver/output_path.h"
#include "tools/driver/reports.h"
#include "tools/driver/write_recipe.h"
#include "tools/mlc/command.h"
#include "tools/mlc/pass_output.h"
#include "tools/mlc/progress_line.h"
#include "tools/mlc/terminal.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

struct BuildArguments {
  std::vector<std::string> recipes;
  std::string one, emit, init;
  bool update = false;
  BuildOptions options;
  fs::path history;
  std::vector<fs::path> reports;
};

void PrintChecks(const BuildRecord& record) {
  for (const BuildCheck& check : record.checks) {
    PrintColored(stdout, fmt::format("  {:<4} {}\n",
                                     !check.judged ? "--"
                                     : check.ok    ? "ok"
                                                   : "FAIL",
                                     Describe(check)));
    if (!check.note.empty()) fmt::print("       {}\n", check.note);
  }
}

void Print(const BuildRecord& record, bool dry_run) {
  switch (record.status) {
    case BuildRecord::Status::kUpToDate:
      fmt::print("{}.mlpackage  up to date\n", record.name);
      break;
    case BuildRecord::Status::kNotBuilt:
      if (dry_run && record.errors.empty())
        fmt::print("{}  to build: {}\n", record.name, fmt::join(record.why, ", "));
      else
        fmt::print("{}  not built{}\n", record.name,
                   record.errors.empty() ? "" : ": " + WithFlags(record.errors[0].text()));
      break;
    case BuildRecord::Status::kPassed:
    case BuildRecord::Status::kFailed:
      fmt::print("{}{}  {}, {}, {}, {} of weights{}\n", record.name,
                 record.ok() ? ".mlpackage" : "  failed", record.target, record.precision,
                 Counted(record.operations, "operation"), BytesText(record.weight_bytes),
                 record.ok() && record.made.empty() ? ", from the cache" : "");
      PrintChecks(record);
  }
  std::fflush(stdout);
}

// Variants that fail for the same reason are listed once.
void PrintGroup(const MessageGroup& group, std::string_view severity) {
  constexpr size_t kMostNames = 5;
  const std::vector<std::string>& names = group.variants;
  std::string who = fmt::format(
      "{}",
      fmt::join(names.begin(),
                names.begin() + static_cast<ptrdiff_t>(std::min(names.size(), kMostNames)), ", "));
  if (names.size() > kMostNames) who += fmt::format(" and {} more", names.size() - kMostNames);
  fmt::print(stderr, "{}: {}\n", who, WithFlags(group.first.Render(severity)));
}

int Update(const std::vector<std::string>& recipes, const Session& session) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::string& recipe : recipes) {
    const UpdatedRecipe updated = UpdateRecipe(recipe);
    list.push_back({{"recipe", recipe}, {"before", updated.before}, {"after", updated.after}});
    if (session.json) continue;
    fmt::print("{}  {}\n", recipe,
               updated.before == updated.after ? "unchanged" : "now " + updated.after);
  }
  if (session.json) PrintDocument({{"recipes", list}});
  return 0;
}

// The path for commands that run later.
std::string ProgramPath() {
  std::error_code error;
  const fs::path path = fs::canonical(ThisExecutable(), error);
  return error ? "mlc" : path.string();
}

// Writes the reports, and adds the build to the history.
void WriteFleetReports(const BuildArguments& given, const BuildReport& build, Session& session) {
  if (given.reports.empty() && given.history.empty()) return;
  std::map<std::string, VariantFigures> figures;
  for (const BuildReport::Recipe& recipe : build.recipes)
    for (const BuildRecord& record : recipe.variants) figures[record.name] = FiguresOf(record);
  if (!given.reports.empty()) {
    std::vector<PastBuild> history;
    if (!given.history.empty()) history = ReadHistory(given.history, session.diagnostics);
    WriteReports(FleetReport(build, figures, history), given.reports);
  }
  if (!given.history.empty() && !build.dry_run) AddToHistory(given.history, figures);
}

int RunBuild(const BuildArguments& given, Session& session) {
  if (!given.one.empty()) {
    EndWithParent();
    const BuildRecord record = BuildOne(given.recipes.at(0), given.one, given.options);
    PrintDocument(BuildRecordJson(record));
    return record.exit_code();
  }
  if (!given.init.empty()) {
    RefuseAllBut({"--init", "-o", "--json (default: none)"},
                 "--init writes a recipe and builds nothing", session);
    const fs::path recipe = InitRecipe(given.init, given.options.output, session.diagnostics);
    if (session.json)
      PrintDocument({{"recipe", fs::absolute(recipe).string()}});
    else
      fmt::print("{}\n", recipe.string());
    return 0;
  }
  if (given.recipes.empty()) throw Error("usage", "RECIPE is missing").Help("mlc build --help");
  const std::vector<std::string> recipes = FindRecipes(given.recipes);
  if (given.update) {
    RefuseAllBut({"RECIPE|DIR", "--update", "--json"},
                 "--update changes recipes and builds nothing", session);
    return Update(recipes, session);
  }
  if (!given.emit.empty()) {
    Refuse({"--dry-run", "--force", "--timeout", "--test", "--record-baselines", "--report",
            "--history", "--json"},
           "--emit builds nothing", session);
    fmt::print("{}", EmitBuild(recipes, given.options, given.emit, ProgramPath()));
    return 0;
  }
  if (given.options.test)
    Refuse({"-j", "--cache", "--read-only-cache", "--dry-run", "--force"},
           "--test builds nothing and runs one package at a time", session);
  auto command = [&](const std::string& recipe, const std::string& variant, bool cache) {
    std::vector<std::string> words{"build", recipe, "--one",
                                   variant, "-o",   given.options.output.string()};
    if (cache && !given.options.cache.place.empty()) {
      words.insert(words.end(), {"--cache", given.options.cache.place});
      if (given.options.cache.read_only) words.push_back("--read-only-cache");
    }
    const LatencyOptions& latency = given.options.latency;
    if (!latency.baselines.empty())
      words.insert(words.end(), {"--baselines", latency.baselines.string()});
    if (latency.units) words.insert(words.end(), {"--units", std::string(Name(*latency.units))});
    if (latency.record) words.push_back("--record-baselines");
    if (given.options.test) words.push_back("--test");
    if (given.options.base.force) words.push_back("--force");
    return words;
  };
  const bool dry_run = given.options.dry_run;
  ProgressLine line(session);
  uint64_t done = 0;
  const auto show = [&](const std::string& last) {
    line.Show([&] {
      return fmt::format("building: {} done{}", Counted(static_cast<int64_t>(done), "variant"),
                         last.empty() ? "" : fmt::format(", the last one {}", last));
    });
  };
  show("");
  const BuildReport report = Build(recipes, given.options, command, [&](const BuildRecord& record) {
    line.Erase();
    if (!session.json) Print(record, dry_run);
    ++done;
    show(record.name);
  });
  line.Erase();
  const int code = report.exit_code();
  if (session.json) {
    WriteFleetReports(given, report, session);
    PrintDocument(BuildReportJson(report));
    return code;
  }
  for (const BuildReport::Recipe& recipe : report.recipes)
    for (const BuildRecord& record : recipe.variants) {
      if (record.status == BuildRecord::Status::kUpToDate) continue;
      for (const std::string& note : record.notes)
        session.diagnostics.Note(record.name + ": " + note);
    }
  for (const Error& warning : report.warnings) session.diagnostics.Warn(warning);
  for (const MessageGroup& group : GroupWarnings(report)) PrintGroup(group, "warning");
  for (const MessageGroup& group : GroupErrors(report)) PrintGroup(group, "error");
  using Status = BuildRecord::Status;
  if (dry_run)
    fmt::print("{} to build, {} up to date\n", report.Count(Status::kNotBuilt),
               report.Count(Status::kUpToDate));
  else
    PrintColored(stdout, fmt::format("{}: {} passed, {} failed, {} not built, {} up to date\n",
                                     code == 0 ? "PASSED" : "FAILED", report.Count(Status::kPassed),
                                     report.Count(Status::kFailed), report.Count(Status::kNotBuilt),
                                     report.Count(Status::kUpToDate)));
  WriteFleetReports(given, report, session);
  return code;
}

int ParseJobs(const std::string& text) {
  constexpr int64_t kMost = 1024;
  const int64_t jobs = ParseInt("-j", text);
  if (jobs < 0 || jobs > kMost)
    throw Error("usage", "-j: \"{}\"", text).Expected("a number from 0 to 1024");
  return jobs > 0 ? static_cast<int>(jobs)
                  : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

Command BuildCommand() {
  auto given = std::make_shared<BuildArguments>();
  BuildOptions& options = given->options;
  ShowPasses(options.base.passes);
  return {
      "build",
      "Compile and check the packages of recipes",
      {"mlc build manifests/digits.json",
       "mlc build manifests -o packages --cache cache --report fleet.html"},
      {{"RECIPE|DIR...", "", "JSON recipes (manifests/README.md), or folders of them",
        Into(given->recipes)},
       OutputOption({"-o", "DIR", "output folder (default: the working directory)",
                     [&options](const std::string& text) { options.output = WithoutSlash(text); }}),
       {"-j", "N",
        "variants to build at the same time, which share the processors (default 1; 0: one per "
        "processor)",
        [&options](const std::string& text) { options.jobs = ParseJobs(text); }},
       {"--only", "GLOB", "build only variants with such names: 'digits-*'", Into(options.only),
        false, true},
       {"--timeout", "TIME", "time limit of a variant: 90s, 30m, 1h (default: none)",
        [&options](const std::string& text) {
          options.timeout = ParseDuration("--timeout", text);
        }},
       {"--memory-limit", "BYTES",
        "memory of all variants together, e.g. 8GB (default: 80 % of the machine's)",
        [&options](const std::string& text) {
          options.memory_limit = ParseBytes("--memory-limit", text);
        }},
       {"--cache", "DIR|URL",
        "cache of results to read from and add to: a folder, or http(s)://HOST/PREFIX (default: "
        "none)",
        Into(options.cache.place)},
       {"--read-only-cache", "", "do not add to the cache", Switch(options.cache.read_only)},
       {"--test", "",
        "build nothing, and check the packages in the output folder, which another machine may "
        "have "
        "built, on --units",
        Switch(options.test)},
       {"--baselines", "DIR",
        "folder of the baselines for limits of latency (default: baselines in the output folder)",
        Into(options.latency.baselines)},
       {"--record-baselines", "",
        "measure the latency of all variants that limit it, and replace their baselines",
        Switch(options.latency.record)},
       {"--units", "all|cpu|gpu|ane|reference",
        "what runs packages for --test and to measure latency (default: as mlc run)",
        [&options](const std::string& text) { options.latency.units = UnitsNamed(text); }},
       {"--dry-run", "", "print what is not up to date, and why", Switch(options.dry_run)},
       {"--force", "",
        "replace whatever exists at the packages' paths, even on file systems without "
        "atomic exchange",
        Switch(options.base.force)},
       {"--emit", "list|ninja|bazel",
        "print the variants for another engine instead: commands, or a build file (default: "
        "variants are built)",
        Into(given->emit)},
       {"--init", "MODEL",
        "write a recipe for a model, with generated samples, to DIR (default: none)",
        Into(given->init)},
       {"--update", "", "update the hashes of sources in recipes", Switch(given->update)},
       {"--one", "VARIANT",
        "build one variant of a recipe in this process, and print its record (default: all "
        "variants)",
        Into(given->one)},
       {"--history", "DIR",
        "folder of the figures of each build; reports compare with the last one (default: none)",
        Into(given->history)},
       ReportOption(given->reports, true),
       JsonOption()},
      [given](Session& session) { return RunBuild(*given, session); },
      "A variant is up to date if neither its files, options and checks nor mlc and its outputs "
      "have "
      "changed since it passed. DIR/.mlc-build records that.\n\n",
      {"compile", "verify"}};
}

}  // namespace mlc::driver
