#include "lib/runtime/telemetry.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "lib/support/memory_use.h"
#include "test/catch.h"

namespace mlc::runtime {
namespace {

TEST_CASE("telemetry: figures of a histogram", "[telemetry]") {
  LatencyHistogram histogram;
  CHECK(histogram.Summary().count == 0);
  CHECK(histogram.Percentile(99) == 0);
  for (int i = 1; i <= 1000; ++i) histogram.Add(i);
  const LatencySummary summary = histogram.Summary();
  CHECK(summary.count == 1000);
  CHECK(summary.min == 1);
  CHECK(summary.max == 1000);
  CHECK(summary.mean == Approx(500.5));
  CHECK(summary.stddev ==
        Approx(std::sqrt(1000.0 * 1001 / 12)));  // variance of 1..n: n (n + 1) / 12
  CHECK(summary.relative_error == 0.01);
  CHECK(summary.p50 == Approx(500).epsilon(0.01));
  CHECK(summary.p90 == Approx(900).epsilon(0.01));
  CHECK(summary.p95 == Approx(950).epsilon(0.01));
  CHECK(summary.p99 == Approx(990).epsilon(0.01));
  CHECK(histogram.Percentile(100) == 1000);
  CHECK(histogram.Percentile(0) == 1);
}

TEST_CASE("telemetry: percentiles are within the stated relative error", "[telemetry]") {
  LatencyHistogram histogram;
  std::vector<double> samples;
  for (int i = 0; i < 3000; ++i) samples.push_back(0.0011 * std::pow(1.0076, i));  // to 8e6 ms
  for (double sample : samples) histogram.Add(sample);
  for (double percent : {0.5, 1.0, 10.0, 50.0, 77.7, 99.0, 99.9}) {
    const auto rank = static_cast<size_t>(std::ceil(percent / 100 * samples.size()));
    CHECK(std::abs(histogram.Percentile(percent) / samples[rank - 1] - 1) <= 0.0100001);
  }
}

TEST_CASE("telemetry: invalid durations and durations outside the buckets", "[telemetry]") {
  LatencyHistogram histogram;
  histogram.Add(std::nan(""));
  CHECK(histogram.Summary().count == 0);
  for (double ms : {0.0, -1.0, 1e-9, 1e12}) histogram.Add(ms);
  CHECK(histogram.Summary().min == -1);
  CHECK(histogram.Summary().max == 1e12);
  CHECK(histogram.Summary().p50 <= 1e-3);
}

TEST_CASE("telemetry: memory that grows, is released, or jumps once", "[telemetry]") {
  struct Row {
    const char* title;
    std::function<int64_t(int64_t)> bytes;
    double least, most;
  };
  const Row rows[] = {
      {"steady", [](int64_t) { return 50'000'000; }, 0, 0},
      {"100 bytes each time", [](int64_t i) { return 100 * i; }, 99, 101},
      {"the same, in pages", [](int64_t i) { return 100 * i / 4096 * 4096; }, 95, 105},
      {"a saw that comes back", [](int64_t i) { return i % 100 * 100'000; }, -1, 1},
      {"a saw that grows by 10", [](int64_t i) { return 10 * i + i % 100 * 100'000; }, 9, 11},
      {"a jump at the beginning", [](int64_t i) { return i < 800 ? 0 : 9'000'000; }, 0, 0},
      {"a peak", [](int64_t i) { return i > 3000 && i < 3600 ? 9'000'000 : 0; }, 0, 0},
      {"it shrinks", [](int64_t i) { return 1'000'000'000 - 7 * i; }, -7.1, -6.9}};
  for (const Row& row : rows) {
    INFO(row.title);
    MemoryGrowth growth;
    for (int64_t i = 0; i < 10'000; ++i) growth.Add(i, row.bytes(i));
    REQUIRE(growth.Slope());
    CHECK(*growth.Slope() >= row.least);
    CHECK(*growth.Slope() <= row.most);
  }
}

TEST_CASE("telemetry: no growth rate from too few samples", "[telemetry]") {
  MemoryGrowth growth;
  for (int64_t i = 0; i < 19; ++i) growth.Add(i, i);
  CHECK(!growth.Slope());
  growth.Add(19, 19);
  CHECK(growth.Slope() == 1);
  CHECK(growth.high_water() == 19);
}

TEST_CASE("telemetry: counts, kinds of failures, success rate and memory", "[telemetry]") {
  int64_t resident = 1000;
  Telemetry telemetry([&] { return resident += 10; });
  CHECK(!telemetry.snapshot().success_rate);
  for (int i = 0; i < 30; ++i) telemetry.Succeeded({1, 20, 3});
  telemetry.Failed(Failure::kTimeout);
  telemetry.Failed(Failure::kException);
  telemetry.FellBack(70);
  telemetry.Refused();
  telemetry.Loaded(500);
  telemetry.Count(Failure::kParity);
  const Snapshot snapshot = telemetry.snapshot();
  CHECK(snapshot.predictions == 34);
  CHECK(snapshot.succeeded == 30);
  CHECK(snapshot.failed == 2);
  CHECK(snapshot.fallbacks == 1);
  CHECK(snapshot.refused == 1);
  CHECK(snapshot.loads == 1);
  CHECK(snapshot.failures == std::array<int64_t, kFailures>{0, 0, 1, 1, 0, 1, 1});
  CHECK(snapshot.success_rate == Approx(30.0 / 32));
  CHECK(snapshot.predict.max == 20);
  CHECK(snapshot.marshal_in.mean == 1);
  CHECK(snapshot.marshal_out.mean == 3);
  CHECK(snapshot.fallback.max == 70);
  CHECK(snapshot.load.max == 500);
  CHECK(snapshot.resident_bytes == 1340);
  CHECK(snapshot.resident_high_water == 1340);
  CHECK(snapshot.growth_per_100 == Approx(1000));
}

TEST_CASE("telemetry: use from several threads", "[telemetry]") {
  Telemetry telemetry;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) telemetry.Succeeded({0, 1, 0});
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(telemetry.snapshot().succeeded == 2000);
  CHECK(telemetry.snapshot().predict.count == 2000);
}

TEST_CASE("telemetry: resident memory of the process", "[telemetry]") {
  const int64_t before = ResidentBytes();
  CHECK(before > 1'000'000);
  std::vector<char> block(64 << 20, 1);  // 64 MiB, touched
  CHECK(ResidentBytes() - before > 32 << 20);
  CHECK(PeakMemoryBytes() >= static_cast<int64_t>(block.size()));
}

}  // namespace
}  // namespace mlc::runtime
