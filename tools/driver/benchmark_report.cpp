#include "tools/driver/benchmark_report.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/coreml/package_layout.h"
#include "lib/support/json_text.h"
#include "lib/support/utc_time.h"
#include "tools/driver/errors.h"
#include "tools/driver/frontends.h"
#include "tools/driver/json_results.h"
#include "tools/driver/version.h"

namespace fs = std::filesystem;

namespace mlc::driver {

using Json = nlohmann::ordered_json;

namespace {

Json ToJson(const Statistics& statistics) {
  Json json{{"count", statistics.count}};
  for (const StatisticsField& field : kStatisticsFields) json[field.name] = statistics.*field.value;
  return json;
}

Json PlacementJson(const BenchmarkResult& result) {
  Json json{{"asked", Name(result.units)}};
  if (result.placements.empty()) {
    json["unknown_because"] = result.no_placements;
    return json;
  }
  Json counts = Json::object(), costs = Json::object(), elsewhere = Json::array(), all = elsewhere;
  for (const runtime::OperationPlacement& placement : result.placements) {
    const std::string device(Name(placement.preferred));
    counts[device] = counts.value(device, 0) + 1;
    if (placement.cost) costs[device] = costs.value(device, 0.0) + *placement.cost;
    Json& entry =
        all.emplace_back(Json{{"name", placement.name}, {"op", placement.op}, {"device", device}});
    for (runtime::Device supported : placement.supported)
      entry["supported"].push_back(Name(supported));
  }
  for (const runtime::OperationPlacement* placement : Elsewhere(result))
    elsewhere.push_back(
        {{"name", placement->name}, {"op", placement->op}, {"device", Name(placement->preferred)}});
  json["operations"] = counts;
  if (!costs.empty()) json["cost"] = costs;
  json["elsewhere"] = elsewhere;
  json["by_operation"] = all;
  return json;
}

Json MachineJson(const runtime::Capabilities& machine) {
  Json json{{"runtime", machine.runtime}};
  for (auto [name, text] : {std::pair{"runtime_version", &machine.runtime_version},
                            {"os", &machine.os},
                            {"os_build", &machine.os_build},
                            {"chip", &machine.chip}})
    if (!text->empty()) json[name] = *text;
  return json;
}

std::string MachineText(const Json& machine) {
  std::string text;
  for (const char* name : {"chip", "os", "os_build"})
    if (machine.contains(name))
      text += (text.empty() ? "" : ", ") + machine[name].get<std::string>();
  return text.empty() ? "unknown" : text;
}

Json ToJson(const BenchmarkResult& result) {
  Json times = Json::object();
  for (auto [name, part] : {std::pair{"marshal_in", &result.marshal_in},
                            {"predict", &result.predict},
                            {"marshal_out", &result.marshal_out},
                            {"overhead", &result.overhead}})
    times[name] = ToJson(part->statistics());
  if (!result.token_ms.empty()) times["token"] = ToJson(StatisticsOf(result.token_ms));
  Json json{{"units", Name(result.units)},        {"arithmetic", Name(result.arithmetic)},
            {"function", result.function->name},  {"machine", MachineJson(result.machine)},
            {"placement", PlacementJson(result)}, {"read_ms", result.read_ms},
            {"load_ms", result.load_ms}};
  if (result.compile_ms) json["compile_ms"] = *result.compile_ms;
  if (result.warm_load_ms) json["warm_load_ms"] = *result.warm_load_ms;
  json["measures"] = result.measures;
  json["jobs"] = result.jobs;
  json["iterations"] = result.predict.statistics().count;
  json["timings_ms"] = times;
  if (const std::optional<double> rate = PredictionsPerSecond(result))
    json["predictions_per_second"] = *rate;
  json["doubts"] = Doubts(result.predict.times, result.warmup);
  Json phases = Json::object();
  for (const auto& [name, ms] : result.phases) phases[name] = ms;
  json["phases_ms"] = phases;
  json["whole_ms"] = result.whole_ms;
  json["telemetry"] = TelemetryJson(result.telemetry);
  Json changes = Json::array(), failed = Json::array();
  for (const runtime::CircuitBreaker::Change& change : result.breaker_changes)
    changes.push_back(
        {{"from", Name(change.from)}, {"to", Name(change.to)}, {"reason", change.reason}});
  json["breaker"] = {{"state", Name(result.breaker)}, {"changes", changes}};
  for (const BenchmarkResult::Failed& failure : result.failures)
    failed.push_back({{"prediction", failure.prediction},
                      {"failure", Name(runtime::FailureOf(failure.error.id()))},
                      {"id", failure.error.id()},
                      {"text", WithFlags(failure.error.text())}});
  json["failures"] = failed;
  if (result.queue)
    json["queue"] = {{"submitted", result.queue->submitted},
                     {"high_water", result.queue->queue_high_water},
                     {"blocked", result.queue->blocked},
                     {"rejected", result.queue->rejected},
                     {"waited_ms", ToJson(result.queue->waited)}};
  if (!result.compared.empty())
    json["compared"] = {{"with", result.compared_with},
                        {"verdict", VerdictText(result.compared)},
                        {"outputs", ParseJson(verify::ReportJson(result.compared))}};
  if (result.operations)
    json["compared"]["operations"] = ParseJson(verify::LayersJson(*result.operations));
  return json;
}

// Returns the offset for the next line of a history of `size` bytes: after the last line (size + 1
// if it lacks its newline), or at the begin of a last line that is truncated because its writer was
// interrupted.
off_t EndOfLines(int descriptor, off_t size) {
  constexpr off_t kMost = 1 << 20;  // maximum length of a line
  const off_t from = std::max<off_t>(0, size - kMost);
  std::string tail(static_cast<size_t>(size - from), '\0');
  if (pread(descriptor, tail.data(), tail.size(), from) != static_cast<ssize_t>(tail.size()))
    return size;
  const size_t end = tail.rfind('\n') + 1;  // 0 if there is no newline
  if (end == tail.size()) return size;
  // Only the begin of a line written by AppendHistory may be overwritten.
  if ((end == 0 && from > 0) || !tail.substr(end).starts_with("{\"")) return size + 1;
  return Json::accept(tail.begin() + static_cast<off_t>(end), tail.end())
             ? size + 1
             : from + static_cast<off_t>(end);
}

Baseline BaselineOf(const Json& json) {
  Baseline found{.measures = json.value("measures", "predictions"),
                 .jobs = json.value("jobs", int64_t{1}),
                 .model_hash = json.value("model_hash", ""),
                 .machine = MachineText(json.value("machine", Json::object())),
                 .units = json.at("units"),
                 .function = json.at("function")};
  const Json& predict = json.at("timings_ms").at("predict");
  if (json.contains("time")) CheckResultTime(json.at("time").get<std::string>());
  found.predict.count = predict.value("count", int64_t{0});
  for (const StatisticsField& field : kStatisticsFields)
    found.predict.*field.value = predict.at(field.name);
  return found;
}

}  // namespace

std::string HashOf(const fs::path& model) {
  const Format format = FrontendOf(model).format;
  return format == Format::kPackage || format == Format::kBundle ? coreml::PackageHash(model) : "";
}

void CheckResultTime(std::string_view text) {
  constexpr std::time_t kSkew = 600;  // clock skew between machines, in seconds
  const std::optional<std::time_t> time = ParseUtc(text);
  if (time && *time <= std::time(nullptr) + kSkew) return;
  throw Error("bad-file", "\"time\" is \"{}\", {}", text,
              time ? "which is in the future" : "and not a time such as 2026-01-31T23:59:59Z");
}

std::optional<double> PredictionsPerSecond(const BenchmarkResult& result) {
  const runtime::Snapshot& telemetry = result.telemetry;
  if (result.wall_ms <= 0 || telemetry.fallbacks + telemetry.failed + telemetry.refused > 0)
    return std::nullopt;
  return 1000 * static_cast<double>(result.predict.statistics().count) / result.wall_ms;
}

std::string RunJson(const BenchmarkResult& result) { return JsonText(ToJson(result)); }

void AppendHistory(const fs::path& file, const fs::path& model, const BenchmarkResult& result) {
  Json line{{"time", UtcText(std::time(nullptr))},
            {"mlc", kVersion},
            {"model", fs::absolute(model).filename().string()}};
  if (const std::string hash = HashOf(model); !hash.empty()) line["model_hash"] = hash;
  line.update(ToJson(result));
  std::string bytes = JsonText(line, -1, BadUtf8::kReplace) + "\n";
  const int descriptor = open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  bool ok = descriptor >= 0 && flock(descriptor, LOCK_EX) == 0;
  const off_t size = ok ? lseek(descriptor, 0, SEEK_END) : 0;
  const off_t whole = ok ? EndOfLines(descriptor, size) : 0;
  if (whole > size)
    bytes.insert(0, "\n");
  else if (whole < size)
    ok = ftruncate(descriptor, whole) == 0;
  ok = ok && write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  const int error = errno;
  if (!ok && whole > 0) static_cast<void>(ftruncate(descriptor, whole) == 0);
  if (descriptor >= 0) ok = close(descriptor) == 0 && ok;
  if (!ok) throw Error("file-io", "cannot write \"{}\": {}", file.string(), strerror(error));
}

std::vector<Baseline> ReadBaselines(const fs::path& file) {
  std::ifstream in(file);
  if (!in) throw Error("file-io", "cannot read \"{}\": {}", file.string(), strerror(errno));
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::pair<Json, Location>> documents;
  const std::string expected = "the output of `mlc run --json` or --history";
  if (Json whole = ParseJsonIfValid(text); whole.is_object()) {
    documents.push_back({std::move(whole), {file.string(), ""}});
  } else {
    for (size_t begin = 0, line = 1; begin < text.size(); ++line) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const Location where{file.string(), fmt::format("line {}", line)};
      Json document = end > begin
                          ? ParseJsonIfValid(std::string_view(text).substr(begin, end - begin))
                          : Json();
      // The last line of a history may be truncated because its writer was interrupted.
      const bool cut = end == text.size() && !documents.empty();
      if (document.is_object())
        documents.push_back({std::move(document), where});
      else if (end > begin && !cut)
        throw Error("bad-file", "the baseline is not JSON").At(where).Expected(expected);
      begin = end + 1;
    }
  }
  std::vector<Baseline> found;
  for (const auto& [document, where] : documents) {
    std::string why;
    try {
      if (Baseline baseline = BaselineOf(document); baseline.predict.count > 0)
        found.push_back(std::move(baseline));
      continue;
    } catch (const Json::exception& error) {
      why = JsonFault(error.what());
    } catch (const Error& error) {
      why = error.text();
    }
    throw Error("bad-file", "the baseline is not a report of mlc run: {}", why)
        .At(where)
        .Expected(expected);
  }
  return found;
}

BaselineCheck CheckBaseline(const std::vector<Baseline>& all, const fs::path& model,
                            const BenchmarkResult& result, double tolerance, bool force) {
  const std::string hash = HashOf(model), machine = MachineText(MachineJson(result.machine));
  const auto likeness = [&](const Baseline& baseline) {
    return 2 * (baseline.model_hash == hash) + (baseline.machine == machine);
  };
  const Baseline* found = nullptr;
  for (const Baseline& baseline : all)
    if (baseline.units == Name(result.units) && baseline.function == result.function->name &&
        baseline.measures == result.measures && baseline.jobs == result.jobs &&
        (!found || likeness(baseline) >= likeness(*found)))
      found = &baseline;
  if (!found)
    throw Error("bad-file",
                "the baseline has no run of function \"{}\" with --units {} that "
                "measured {}, {} at a time",
                result.function->name, Name(result.units), result.measures, result.jobs);
  const Baseline& before = *found;
  BaselineCheck check;
  const Statistics now = result.predict.statistics();
  for (const StatisticsField& field : kStatisticsFields) {
    BaselineCheck::Row row{field.name, before.predict.*field.value, now.*field.value};
    row.judged = row.name == std::string_view("p50");
    if (row.judged) row.within = row.now <= row.before * (1 + tolerance);
    check.within = check.within && row.within;
    check.rows.push_back(row);
  }
  const auto differs = [&](std::string note) {
    check.within = check.within && force;
    if (!force) note += "; --force-baseline compares anyway";
    check.notes.push_back(std::move(note));
  };
  if (before.model_hash.empty() && !hash.empty())
    check.notes.push_back("the baseline does not identify its package");
  else if (before.model_hash != hash)
    differs("the baseline is from another package");
  if (before.machine != machine)
    differs(fmt::format("the baseline is from another machine: {}; this is {}", before.machine,
                        machine));
  if (now.count == 0) {
    check.within = false;
    check.notes.push_back("nothing was measured: the model made no prediction itself");
  } else if (before.predict.count < 2 || now.count < 2)
    check.notes.push_back("one run is not a measurement; use --iterations 20 or more");
  return check;
}

}  // namespace mlc::driver
