#include "tools/driver/latency.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>

#include "lib/support/atomic_install.h"
#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "lib/support/utc_time.h"
#include "tools/driver/run.h"
#include "tools/driver/runtimes.h"
#include "tools/driver/version.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double Median(std::vector<double>& values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

Json ToJson(const LatencyMachine& machine) {
  return {{"chip", machine.chip},
          {"processors", machine.processors},
          {"runtime", machine.runtime},
          {"units", machine.units}};
}

// Lower case letters and digits with a "-" for anything between them.
std::string FolderName(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if ((lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9'))
      name += lower;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  constexpr size_t kMost = 200;
  return name.substr(0, kMost);
}

LatencyBaseline BaselineFrom(const Json& json) {
  const Json& machine = json.at("machine");
  const auto milliseconds = [&](const char* name) {
    const auto ms = json.at(name).get<double>();
    if (!(ms > 0) || !std::isfinite(ms))
      throw Error("bad-file", "\"{}\" is {}", name, ms).Expected("milliseconds above 0");
    return ms;
  };
  return {
      {machine.at("chip"), machine.at("runtime"), machine.at("units"), machine.at("processors")},
      {milliseconds("median_ms"), milliseconds("low_ms"), milliseconds("high_ms")}};
}

}  // namespace

std::string Describe(const LatencyMachine& machine) {
  return fmt::format("{}, {} processors, {}, units {}", machine.chip, machine.processors,
                     machine.runtime, machine.units);
}

Latency LatencyOf(std::vector<double> medians) {
  MLC_CHECK(medians.size() > 2, "{} rounds", medians.size());
  std::ranges::sort(medians);
  return {medians[medians.size() / 2], medians[1], medians[medians.size() - 2]};
}

LatencyVerdict Judge(const Latency& latency, double limit_ms) {
  if (latency.high_ms <= limit_ms) return LatencyVerdict::kWithin;
  return latency.low_ms > limit_ms ? LatencyVerdict::kExceeded : LatencyVerdict::kUnclear;
}

void LatencyMeter::Examine() {
  std::call_once(examined_, [&] {
    const runtime::Units units = options_.units.value_or(DefaultUnits());
    const runtime::Capabilities found = MakeRuntime(units, {})->capabilities();
    machine_ = {found.chip, found.runtime, std::string(Name(units)),
                std::max(1, static_cast<int>(std::thread::hardware_concurrency()))};
    system_ = fmt::format("{} ({})", found.os, found.os_build);
  });
}

const LatencyMachine& LatencyMeter::machine() {
  Examine();
  return machine_;
}

const std::string& LatencyMeter::system() {
  Examine();
  return system_;
}

Latency LatencyMeter::Measure(const fs::path& package, const std::map<std::string, Tensor>& inputs,
                              const std::function<bool(const Latency&)>& clear) {
  // Enough for the resolution of clocks and for the frequency of a processor to rise.
  constexpr auto kLeastTime = std::chrono::milliseconds(60);
  constexpr int kLeastPredictions = 3, kMostAttempts = 4;
  RunOptions options;
  options.inputs = inputs;
  options.units = options_.units;
  // Independent of the share of processors that other variants leave.
  options.threads = machine().processors;
  Diagnostics said;
  Model model(package, options, said);
  const RunTensors tensors(model, options);
  const std::unique_ptr<runtime::GuardedModel> loaded = model.Load();
  const auto round = [&] {
    std::vector<double> times;
    for (const Clock::time_point begin = Clock::now();
         std::ssize(times) < kLeastPredictions || Clock::now() - begin < kLeastTime;)
      times.push_back(tensors.Predict(*loaded).timings.predict_ms);
    return Median(times);
  };
  round();  // warm-up
  Latency latency;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    std::vector<double> medians;
    for (int i = 0; i < kLatencyRounds; ++i) medians.push_back(round());
    latency = LatencyOf(std::move(medians));
    if (clear(latency)) break;
  }
  return latency;
}

fs::path LatencyMeter::FileOf(const std::string& variant) {
  const LatencyMachine& own = machine();
  return options_.baselines /
         FolderName(fmt::format("{} {} processors {}", own.chip, own.processors, own.units)) /
         (variant + ".json");
}

std::optional<LatencyBaseline> LatencyMeter::Read(const std::string& variant) {
  const fs::path file = FileOf(variant);
  std::error_code error;
  if (!fs::exists(file, error)) return std::nullopt;
  const auto bad = [&](const std::string& why) {
    return Error("bad-file", "not a baseline of this machine: {}", why)
        .At({file.string(), ""})
        .Help("option 'record-baselines' replaces it by a new measurement");
  };
  const auto contents = MappedFile::Open(file);
  try {
    LatencyBaseline baseline = BaselineFrom(ParseJson(AsText(contents->bytes())));
    if (baseline.machine == machine()) return baseline;
    throw bad(
        fmt::format("it is of {}; this is {}", Describe(baseline.machine), Describe(machine())));
  } catch (const Json::exception& problem) {
    throw bad(JsonFault(problem.what()));
  }
}

void LatencyMeter::Write(const std::string& variant, const Latency& latency,
                         const std::string& package_hash) {
  const fs::path file = FileOf(variant);
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error)
    throw Error("file-io", "cannot create the folder \"{}\": {}", file.parent_path().string(),
                error.message())
        .Help("choose a writable folder with option 'baselines'");
  WriteFile(file, JsonText(Json{{"machine", ToJson(machine())},
                                {"median_ms", latency.median_ms},
                                {"low_ms", latency.low_ms},
                                {"high_ms", latency.high_ms},
                                {"package_hash", package_hash},
                                {"mlc", kVersion},
                                {"time", UtcText(std::time(nullptr))}},
                           2) +
                      "\n");
}

}  // namespace mlc::driver
