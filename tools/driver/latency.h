// tools/driver/latency.h - the median time of a prediction, and baselines of it for each machine.
//
// FOLDER/MACHINE/VARIANT.json is a baseline: {machine, median_ms, low_ms, high_ms, package_hash, mlc,
// time}. Nothing replaces one unless it is asked to.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/ir/tensor.h"
#include "lib/runtime/runtime.h"

namespace mlc::driver {

// What decides how fast predictions are. Another system on the same machine is compared with the
// same baseline.
struct LatencyMachine {
  std::string chip, runtime, units;
  int processors = 0;
  bool operator==(const LatencyMachine&) const = default;
};
// "Apple M2, 8 processors, Core ML, units all".
std::string Describe(const LatencyMachine& machine);

// The median over rounds of predictions, and the bounds of their medians without those of the
// fastest and the slowest round.
struct Latency {
  double median_ms = 0, low_ms = 0, high_ms = 0;
};
inline constexpr int kLatencyRounds = 5;
// `medians`: at least three.
Latency LatencyOf(std::vector<double> medians);

enum class LatencyVerdict { kWithin, kExceeded, kUnclear };
// kUnclear if some of the bounds are within the limit and others are not.
LatencyVerdict Judge(const Latency& latency, double limit_ms);

struct LatencyBaseline {
  LatencyMachine machine;
  Latency latency;
};

struct LatencyOptions {
  std::filesystem::path baselines;      // folder
  std::optional<runtime::Units> units;  // absent: DefaultUnits()
  bool record = false;                  // replace baselines by new measurements
};

// Thread-safe.
class LatencyMeter {
 public:
  explicit LatencyMeter(LatencyOptions options) : options_(std::move(options)) {}

  bool records() const { return options_.record; }
  // Examined at the first call.
  const LatencyMachine& machine();
  const std::string& system();  // "macOS 15.1 (24B83)"
  // Measures a package with warm-up on all processors. Rounds are repeated a few times until the
  // result is `clear`. Throws the errors of Model and of predictions.
  Latency Measure(const std::filesystem::path& package, const std::map<std::string, Tensor>& inputs,
                  const std::function<bool(const Latency&)>& clear);

  // The file of a baseline of this machine.
  std::filesystem::path FileOf(const std::string& variant);
  // Error "bad-file" if the file is damaged or from another machine.
  std::optional<LatencyBaseline> Read(const std::string& variant);
  // Error "file-io".
  void Write(const std::string& variant, const Latency& latency, const std::string& package_hash);

 private:
  void Examine();
  LatencyOptions options_;
  std::once_flag examined_;
  LatencyMachine machine_;
  std::string system_;
};

}  // namespace mlc::driver
