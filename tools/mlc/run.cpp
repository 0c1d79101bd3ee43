#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "lib/support/atomic_install.h"
#include "lib/support/json_text.h"
#include "tools/driver/errors.h"
#include "tools/driver/json_results.h"
#include "tools/driver/parity.h"
#include "tools/driver/reports.h"
#include "tools/driver/sequence_generator.h"
#include "tools/driver/text_outputs.h"
#include "tools/mlc/command.h"
#include "tools/mlc/generated_inputs_report.h"
#include "tools/mlc/interface_report.h"
#include "tools/mlc/parity_report.h"
#include "tools/mlc/progress_line.h"
#include "tools/mlc/run_timings.h"
#include "tools/mlc/terminal.h"
#include "tools/mlc/text_modes.h"

namespace fs = std::filesystem;

namespace mlc::driver {

using Json = nlohmann::ordered_json;

namespace {

// Two models are compared with more runs than one is measured with by default.
constexpr int64_t kPairIterations = 20, kPairWarmup = 2;

struct RunArguments {
  std::vector<std::string> models;
  fs::path model;  // the first one
  BenchmarkOptions options;
  TextArguments text;
  std::vector<std::string> bundles;
  std::optional<fs::path> result;
  fs::path trace, baseline, history;
  int64_t tolerance = 5;  // %
  bool force_baseline = false;
  std::vector<fs::path> reports;
};

Json ResultJson(const BenchmarkResult& result, const analysis::GeneratedInputOptions& make_up,
                const fs::path& model) {
  const std::string mode(Name(result.arithmetic));
  Json list = Json::array();
  for (const auto& [port, tensor, name, file] : result.outputs) {
    Json entry{{"name", name}, {"mil_name", port->name}};
    if (!file.empty()) entry["file"] = fs::absolute(file).string();
    entry["dtype"] = Name(tensor.dtype());
    entry["shape"] = tensor.dims();
    entry["mode"] = mode;
    entry["runtime"] = result.of_fallback ? "mlc's engine" : result.machine.runtime;
    if (tensor.dtype() == DType::kString) entry["values"] = tensor.strings();
    list.push_back(std::move(entry));
  }
  Json json = ParseJson(RunJson(result));
  json["outputs"] = list;
  if (result.units == runtime::Units::kReference) json["computes"] = Describe(result.arithmetic);
  if (result.text) {
    json["text"] = EncodedTextJson(*result.text);
    for (const auto& [label, probability] : LabelsOf(model, result.outputs))
      json["labels"].push_back({{"label", label}, {"probability", probability}});
  }
  for (const auto& [token, probability] : result.next)
    json["next"].push_back({{"token", token}, {"probability", probability}});
  if (!result.generated.empty())
    json["made_up"] =
        ParseJson(GeneratedInputsJson(*result.function, result.generated, make_up, 1));
  return json;
}

// "label: positive (98.2 %), negative (1.8 %)", or the five likeliest.
std::string LabelsText(const std::vector<LabelProbability>& labels) {
  constexpr size_t kMostLabels = 5;
  std::string text;
  for (size_t i = 0; i < std::min(labels.size(), kMostLabels); ++i)
    text += fmt::format("{}{} ({:.1f} %)", i == 0 ? "label: " : ", ", labels[i].label,
                        100 * labels[i].probability);
  return text.empty() ? "" : text + "\n";
}

void Print(const BenchmarkResult& result, const analysis::GeneratedInputOptions& make_up,
           const fs::path& model) {
  if (result.text) fmt::print("{}", EncodedTextText(*result.text));
  fmt::print("{}", GeneratedInputsText(*result.function, result.generated, make_up, 1));
  for (const auto& [port, tensor, name, file] : result.outputs)
    fmt::print("{}  {} [{}]{}\n", name == verify::UserName(*port) ? ShownName(*port) : name,
               Name(tensor.dtype()), fmt::join(tensor.dims(), ","),
               file.empty() ? "" : "  " + fs::absolute(file).string());
  for (const auto& [port, tensor, name, file] : result.outputs) {
    if (tensor.dtype() == DType::kString && tensor.size() == 1)
      fmt::print("  {}: {}\n", port->name, tensor.strings()[0]);
    if (!file.empty() || tensor.size() == 0 || tensor.dtype() == DType::kString) continue;
    std::string values;
    for (int64_t i = 0; i < std::min<int64_t>(tensor.size(), 8); ++i)
      values += fmt::format(" {:.6g}", tensor.Double(i));
    fmt::print("  {}:{}{}\n", port->name, values, tensor.size() > 8 ? " ..." : "");
  }
  if (result.text) fmt::print("{}", LabelsText(LabelsOf(model, result.outputs)));
  if (!result.next.empty()) {
    std::string next;
    for (const auto& [token, probability] : result.next)
      next += fmt::format("{}{} ({:.1f} %)", next.empty() ? "" : ", ", token, 100 * probability);
    fmt::print("next: {}\n", next);
  }
  const Statistics predict = result.predict.statistics();
  const std::string what =
      result.units == runtime::Units::kReference
          ? fmt::format("mlc's engine ({})", Describe(result.arithmetic))
          : fmt::format("{}, --units {}", result.machine.runtime, Name(result.units));
  if (result.of_fallback) fmt::print("the outputs are those of mlc's engine, as a fallback\n");
  fmt::print("{}: predict p50 {:.2f} ms, p95 {:.2f} ms over {}\n", what, predict.p50, predict.p95,
             Counted(predict.count, "run"));
}

// Returns the exit code for the most important failure: timeouts first, then errors, then failed
// checks.
int CodeOf(const BenchmarkResult& result, const BenchmarkOptions& options) {
  bool check = (!options.compare.empty() && Judge(result.compared) != verify::Verdict::kPassed) ||
               (options.require_units && (result.placements.empty() || !Elsewhere(result).empty()));
  // An opened breaker is a failed check: too slow, too much memory, or too many errors.
  check = check || !result.breaker_changes.empty();
  for (const verify::Layer& layer :
       result.operations ? result.operations->layers : std::vector<verify::Layer>{})
    check = check || (layer.compared.tells && !layer.compared.within);
  bool run = result.telemetry.refused > 0;
  for (const BenchmarkResult::Failed& failed : result.failures) {
    const int code = ExitCode(failed.error.id());
    if (code == ExitCode("timeout")) return code;
    (code == ExitCode("check-failed") ? check : run) = true;
  }
  return run ? ExitCode("runtime-failed") : check ? ExitCode("check-failed") : 0;
}

Json BaselineJson(const BaselineCheck& check) {
  Json rows = Json::array();
  for (const BaselineCheck::Row& row : check.rows)
    rows.push_back({{"name", row.name},
                    {"before", row.before},
                    {"now", row.now},
                    {"judged", row.judged},
                    {"within", row.within}});
  return {{"within", check.within}, {"rows", rows}, {"notes", check.notes}};
}

int RunSweep(const RunArguments& given, const BenchmarkOptions& options, Session& session) {
  for (const char* option :
       {"--trace", "--baseline", "--history (default: none)", "--profile", "--report"})
    if (session.given.contains(option))
      throw Error("usage", "--units sweep cannot be combined with {}", option)
          .Help("run again with the recommended units");
  const SweepResult sweep = Sweep(given.model, options, session.diagnostics);
  if (session.json) {
    Json rows = Json::array();
    for (const SweepRow& row : sweep.rows)
      rows.push_back(row.result
                         ? ResultJson(*row.result, options.make_up, given.model)
                         : Json{{"units", Name(row.units)}, {"error", ErrorJson(*row.error)}});
    Json json{{"sweep", rows}, {"why", sweep.why}};
    if (sweep.recommended) json["recommended"] = Name(*sweep.recommended);
    PrintDocument(json);
  } else {
    fmt::print("{}", SweepText(sweep));
  }
  if (sweep.recommended) return 0;
  int code = 0;
  for (const SweepRow& row : sweep.rows)
    code = std::max(code, row.error ? ExitCode(row.error->id()) : CodeOf(*row.result, options));
  return code;
}

// "1.24 +/- 0.03 times faster than B", of the model with the smaller mean.
std::string RatioText(const std::array<BenchmarkResult, 2>& results,
                      const std::vector<std::string>& models) {
  const Statistics times[] = {results[0].predict.statistics(), results[1].predict.statistics()};
  const size_t fast = times[1].mean < times[0].mean ? 1 : 0;
  const TimeRatio ratio = RatioOf(times[1 - fast], times[fast]);
  std::string text = fmt::format("{} is {:.2f} +/- {:.2f} times faster than {}\n", models[fast],
                                 ratio.mean, ratio.deviation, models[1 - fast]);
  if (ratio.mean - 1 < 2 * ratio.deviation)
    text += fmt::format("the difference is within two standard deviations; try --iterations {}\n",
                        4 * times[0].count);
  return text;
}

int RunPair(const RunArguments& given, BenchmarkOptions options, Session& session) {
  if (given.models.size() > 2)
    throw Error("usage", "{} models are given", given.models.size())
        .Expected("one model, or two to compare");
  Refuse({"--compare", "--operations", "--soak", "--jobs", "--warm-load", "--profile", "--trace",
          "--baseline", "--history", "--report", "--output-dir"},
         "two models are only timed", session);
  if (options.sweep) throw Error("usage", "--units sweep requires a single model");
  if (!session.given.contains("--iterations")) options.iterations = kPairIterations;
  if (!session.given.contains("--warmup")) options.warmup = kPairWarmup;
  std::array<BenchmarkResult, 2> results;
  {
    ProgressLine line(session);
    if (line.shown())
      options.progress = [&line](int64_t done, int64_t of, double) {
        line.Show([&] { return fmt::format("{} of {} predictions of each model", done, of); });
      };
    results = BenchmarkPair(given.models[0], given.models[1], options, session.diagnostics);
  }
  const int code = std::max(CodeOf(results[0], options), CodeOf(results[1], options));
  if (session.json) {
    Json list = Json::array();
    for (size_t i = 0; i < 2; ++i) {
      Json entry = ResultJson(results[i], options.make_up, given.models[i]);
      entry["model"] = given.models[i];
      list.push_back(std::move(entry));
    }
    const TimeRatio ratio =
        RatioOf(results[1].predict.statistics(), results[0].predict.statistics());
    PrintDocument({{"models", list},
                   {"ratio", {{"mean", ratio.mean}, {"deviation", ratio.deviation}}},
                   {"exit_code", code}});
    return code;
  }
  fmt::print("{}",
             GeneratedInputsText(*results[0].function, results[0].generated, options.make_up, 1));
  for (size_t i = 0; i < 2; ++i) {
    const Statistics times = results[i].predict.statistics();
    fmt::print("{}\n  {:.3f} ms +/- {:.3f} ms, from {:.3f} to {:.3f} ms, over {}\n",
               given.models[i], times.mean, times.stddev, times.min, times.max,
               Counted(times.count, "run"));
    for (const std::string& doubt : Doubts(results[i].predict.times, options.warmup))
      fmt::print("  {}\n", doubt);
  }
  fmt::print("{}", RatioText(results, given.models));
  return code;
}

// The name of a folder, which may be given as "." or with a slash at its end.
std::string NameOfFolder(const fs::path& folder) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(folder, error);
  return error ? folder.string() : path.filename().string();
}

// Runs every bundle, even if others fail.
int RunBundles(const RunArguments& given, Session& session) {
  const BenchmarkOptions& options = given.options;
  RefuseAllBut({"--bundle", "--result", "--units", "--timeout", "--load-timeout", "--no-compile",
                "--report", "--json"},
               "--bundle already supplies the model and inputs", session);
  if (options.sweep) throw Error("usage", "--bundle cannot be combined with --units sweep");
  const bool several = given.bundles.size() > 1;
  if (several && given.result)
    throw Error("usage", "--result requires a single bundle")
        .Help("omit it: each bundle gets its own result.json");
  const auto run = [&](const fs::path& folder, const fs::path& written) {
    return RunParity(folder, written, options, options.breaker.override, session.diagnostics);
  };
  if (!several) {
    const fs::path folder = given.bundles[0],
                   written = given.result.value_or(folder / verify::kParityResult);
    return ShowParity(run(folder, written), NameOfFolder(folder), session, given.reports, written);
  }
  int code = 0;
  Json list = Json::array();
  std::vector<CheckedBundle> bundles;
  for (const std::string& bundle : given.bundles) {
    const fs::path written = fs::path(bundle) / verify::kParityResult;
    CheckedBundle& checked = bundles.emplace_back(CheckedBundle{NameOfFolder(bundle)});
    try {
      const verify::ParityResult& result = checked.result = run(bundle, written);
      const bool ok = Judge(result.outputs) == verify::Verdict::kPassed;
      if (!ok) code = std::max(code, ExitCode("check-failed"));
      if (session.json)
        list.push_back({{"bundle", bundle}, {"result", ParseJson(ParityJson(result))}});
      else
        PrintColored(stdout, fmt::format("{:<40} {} in {:.2f} ms\n", bundle,
                                         VerdictText(result.outputs), result.milliseconds));
    } catch (const std::exception&) {
      checked.errors = CurrentErrors();
      for (const Error& error : checked.errors) {
        code = std::max(code, ExitCode(error.id()));
        if (session.json)
          list.push_back({{"bundle", bundle}, {"error", ErrorJson(error)}});
        else
          fmt::print("{:<40} {}\n", bundle, WithFlags(error.Render()));
      }
    }
  }
  if (session.json) PrintDocument({{"ok", code == 0}, {"bundles", list}});
  if (!given.reports.empty()) WriteReports(ParityReport("run", bundles), given.reports);
  return code;
}

int RunModel(RunArguments& given, Session& session) {
  CheckText(given.text, session);
  if (const char* text = std::getenv("MLC_CIRCUIT_BREAKER"))
    given.options.breaker.override = runtime::ParseBreakerOverride(text);
  if (!given.bundles.empty()) return RunBundles(given, session);
  if (given.result) throw Error("usage", "--result requires --bundle");
  if (given.models.empty())
    throw Error("usage", "MODEL is required").Help("--help shows an example");
  given.model = given.models[0];
  BenchmarkOptions options = given.options;
  options.text.tokenizer = given.text.generate.tokenizer;
  for (const char* option : {"--tolerance", "--force-baseline"})
    if (given.baseline.empty() && session.given.contains(option))
      throw Error("usage", "{} requires --baseline", option);
  if (options.by_tokens())
    Refuse({"--seed", "--input-range"},
           fmt::format("{} replaces inputs", options.text.given() ? "--text" : "--tokens"),
           session);
  if (given.tolerance < 0 || given.tolerance > 1000)
    throw Error("usage", "--tolerance: expected a percentage from 0 to 1000");
  if (given.text.given()) {
    if (given.models.size() > 1)
      throw Error("usage", "--prompt, --perplexity and --similarity require a single model");
    return RunText(given.model, options, given.text, given.reports, session);
  }
  const bool continues = !options.tokens.empty() && session.given.contains("--generate");
  if (given.models.size() == 1 && !options.function && options.input_files.empty() &&
      (!options.tokens.empty() || !options.picture.empty()) &&
      (continues || IsEncoderDecoder(given.model, options.import)))
    return RunSequence(given.model, options, given.text, given.reports, session);
  for (const char* option : {"--generate", "--beams", "--stop", "--temperature", "--top-k",
                             "--top-p", "--min-p", "--repetition-penalty", "--chat", "--system"})
    if (session.given.contains(option))
      throw Error("usage", "{} requires --prompt or --prompt-file", option);
  if (given.models.size() > 1) return RunPair(given, options, session);
  if (options.sweep) return RunSweep(given, options, session);
  options.trace = std::make_shared<Trace>(ProcessTime());
  options.trace_predictions = !given.trace.empty();
  // Unreadable baselines and unwritable files are reported before the run, which may take an hour.
  std::vector<Baseline> baselines;
  Trace::Span looking(*options.trace, "look", Trace::kPhase);
  if (!given.baseline.empty()) baselines = ReadBaselines(given.baseline);
  for (const fs::path& file : {given.trace, given.history})
    if (!file.empty()) Staging(file, Staging::kFile);
  looking.End();
  BenchmarkResult result;
  {
    ProgressLine line(session);
    if (line.shown())
      options.progress = [&line](int64_t done, int64_t of, double p50_ms) {
        line.Show([&] {
          return fmt::format("{}{} predictions{}", done, of > 0 ? fmt::format(" of {}", of) : "",
                             p50_ms > 0 ? fmt::format(", p50 {:.2f} ms", p50_ms) : "");
        });
      };
    result = Benchmark(given.model, options, session.diagnostics);
  }
  int code = CodeOf(result, options);
  std::optional<BaselineCheck> check;
  const double tolerance = static_cast<double>(given.tolerance) / 100;
  if (!given.baseline.empty()) {
    check = CheckBaseline(baselines, given.model, result, tolerance, given.force_baseline);
    if (!check->within && code == 0) code = ExitCode("check-failed");
  }
  if (session.json) {
    Json json = ResultJson(result, options.make_up, given.model);
    if (const std::string hash = HashOf(given.model); !hash.empty()) json["model_hash"] = hash;
    if (check) json["baseline"] = BaselineJson(*check);
    json["exit_code"] = code;
    PrintDocument(json);
  } else {
    Print(result, options.make_up, given.model);
    if (options.profile)
      fmt::print("{}",
                 ProfileText(*options.trace, result.predict.statistics().count + options.warmup));
    PrintColored(stdout, MeasuredText(result, options));
    if (check) PrintColored(stdout, BaselineText(*check, tolerance));
  }
  if (!given.history.empty()) AppendHistory(given.history, given.model, result);
  if (!given.trace.empty()) options.trace->Write(given.trace);
  if (!given.reports.empty())
    WriteReports(RunReport(given.model, result, options, check ? &*check : nullptr), given.reports);
  return code;
}

}  // namespace

Command RunCommand() {
  auto given = std::make_shared<RunArguments>();
  BenchmarkOptions& options = given->options;
  std::vector<Option> table = {{"MODEL...", "",
                                "source model, package, compiled bundle or MIL text; two models "
                                "are timed in turn on the same "
                                "inputs and compared",
                                Into(given->models)}};
  Append(RunTable(options), table);
  Append(TextTable(given->text), table);
  Append(
      Grouped(
          OptionGroup::kComparison,
          {Common({"--bundle", "DIR",
                   "instead of running MODEL, check a bundle written by `mlc verify --bundle` and "
                   "write result.json into it; may be repeated, with one line of output per bundle",
                   Into(given->bundles), false, true}),
           {"--result", "FILE",
            "with --bundle: write the result to FILE and the outputs beside it, and leave "
            "the bundle unchanged (default: result.json in the bundle)",
            Into(given->result)}}),
      table);
  Append(Grouped(OptionGroup::kMeasuring,
                 {{"--trace", "FILE",
                   "write phases, predictions and, with --profile, operations as Chrome trace "
                   "events (default: none)",
                   Into(given->trace)},
                  {"--baseline", "FILE",
                   "fail (exit code 3) if the median time is higher than in FILE, an earlier "
                   "output of --json or --history, or if FILE is from another package or machine "
                   "(default: none)",
                   Into(given->baseline)},
                  {"--tolerance", "PCT", "slowdown that --baseline allows, in percent (default 5)",
                   Whole("--tolerance", given->tolerance)},
                  {"--force-baseline", "",
                   "compare even with a baseline from another package or machine",
                   Switch(given->force_baseline)},
                  {"--history", "FILE",
                   "append the measurements to a file, as one line of JSON (default: none)",
                   Into(given->history)}}),
         table);
  Append(
      Grouped(OptionGroup::kUnits, {{"--no-compile", "", "accept only compiled bundles (.mlmodelc)",
                                     Switch(options.bundles_only)}}),
      table);
  Append(Grouped(OptionGroup::kOutput, {ReportOption(given->reports, true)}), table);
  Append(ImportTable(options.import), table);
  table.push_back(JsonOption());
  return {
      "run",
      "Run a model or package and print, save or measure its outputs",
      {"mlc run model.mlpackage --input image=digit.npy --output-dir out",
       "mlc run model.mlpackage --iterations 100 --warmup 10", "mlc run a.mlpackage b.mlpackage"},
      std::move(table),
      [given](Session& session) { return RunModel(*given, session); },
      TextNotes(),
      {"verify", "gate", "cache"}};
}

Command RunnerCommand() {
  Command command = RunCommand();
  command.name = "";
  command.summary = "Run and measure models and Core ML packages";
  command.examples = {"mlc-run model.mlpackage --input image=digit.npy --output-dir out",
                      "mlc-run model.mlpackage --iterations 100 --warmup 10"};
  return command;
}

}  // namespace mlc::driver
