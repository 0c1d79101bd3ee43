// Sampling: each figure by hand calculation, on four tokens of which two, one, half and half an eighth... as below.
#include "tools/driver/sampling.h"

#include <cmath>

#include "lib/support/error.h"
#include "test/catch.h"
#include "test/refusal.h"

namespace mlc::test {
namespace {

// Probabilities 1/8, 1/2, 1/8, 1/4: their logarithms, and the same above 0.
const std::vector<float> kLogits = {std::log(0.125f), std::log(0.5f), std::log(0.125f),
                                    std::log(0.25f)};
const std::vector<int32_t> kNothing;

// "1 0.5, 3 0.25, ..."
std::string Shown(const std::vector<TokenCandidate>& candidates) {
  std::string text;
  for (const TokenCandidate& one : candidates)
    text += fmt::format("{}{} {:.4f}", text.empty() ? "" : ", ", one.token, one.probability);
  return text;
}

std::string Chosen(const SamplingOptions& options, std::span<const int32_t> before = kNothing) {
  return Shown(Candidates(options, kLogits, before));
}

}  // namespace

TEST_CASE("sampling: without a temperature the likeliest, of equals the lower token",
          "[sampling]") {
  CHECK(Chosen({}) == "1 1.0000");
  CHECK(Sample({}, std::vector<float>{2, 3, 3, 1}, kNothing) == 1);
}

TEST_CASE("sampling: temperature divides the logits", "[sampling]") {
  CHECK(Chosen({.temperature = 1}) == "1 0.5000, 3 0.2500, 0 0.1250, 2 0.1250");
  // Probabilities squared, 16 : 4 : 1 : 1, of 22.
  CHECK(Chosen({.temperature = 0.5}) == "1 0.7273, 3 0.1818, 0 0.0455, 2 0.0455");
}

TEST_CASE("sampling: top-k keeps the likeliest", "[sampling]") {
  CHECK(Chosen({.temperature = 1, .top_k = 2}) == "1 0.6667, 3 0.3333");
  CHECK(Chosen({.temperature = 1, .top_k = 1}) == "1 1.0000");
  CHECK(Chosen({.temperature = 1, .top_k = 9}) == Chosen({.temperature = 1}));
}

TEST_CASE("sampling: top-p keeps the least of the likeliest that have the share", "[sampling]") {
  CHECK(Chosen({.temperature = 1, .top_p = 0.4}) == "1 1.0000");
  CHECK(Chosen({.temperature = 1, .top_p = 0.7}) == "1 0.6667, 3 0.3333");
  // 1/2 + 1/4 + 1/8 = 0.875
  CHECK(Chosen({.temperature = 1, .top_p = 0.8}) == "1 0.5714, 3 0.2857, 0 0.1429");
}

TEST_CASE("sampling: min-p keeps what has a share of the likeliest's probability", "[sampling]") {
  CHECK(Chosen({.temperature = 1, .min_p = 0.4}) == "1 0.6667, 3 0.3333");
  CHECK(Chosen({.temperature = 1, .min_p = 0.6}) == "1 1.0000");
  CHECK(Chosen({.temperature = 1, .min_p = 0.2}) == Chosen({.temperature = 1}));
}

TEST_CASE("sampling: the repetition penalty lowers what was there, whatever its sign",
          "[sampling]") {
  const std::vector<float> logits = {2, 1.5, -1, -1.5};
  CHECK(Sample({.repetition_penalty = 2}, logits, std::vector<int32_t>{0}) == 1);  // 2 / 2
  const std::vector<float> below = {-1, -1.5};
  CHECK(Sample({.repetition_penalty = 2}, below, std::vector<int32_t>{0}) == 1);  // -1 * 2
  CHECK(Sample({.repetition_penalty = 1.4}, below, std::vector<int32_t>{0}) == 0);
  // What is longer ago than 64 tokens does not count, and twice counts once.
  std::vector<int32_t> long_ago(65, 3);
  long_ago[0] = 0;
  CHECK(Sample({.repetition_penalty = 2}, logits, long_ago) == 0);
  CHECK(Shown(Candidates({.temperature = 1, .repetition_penalty = 2}, std::vector<float>{1, 1},
                         std::vector<int32_t>{0, 0})) == "1 0.6225, 0 0.3775");  // e, e^0.5
}

TEST_CASE("sampling: the order is penalty, top-k, top-p, min-p, temperature", "[sampling]") {
  // A temperature before top-p would leave one, or more.
  CHECK(Chosen({.temperature = 100, .top_p = 0.7}) == "1 0.5017, 3 0.4983");
  CHECK(Chosen({.temperature = 0.1, .min_p = 0.4}) == "1 0.9990, 3 0.0010");
  // Top-p is of what top-k left: 2/3 and 1/3.
  CHECK(Chosen({.temperature = 1, .top_k = 2, .top_p = 0.6}) == "1 1.0000");
  // Token 1 is no likelier than 3 once it is punished: log(1/2) * 3 < log(1/4).
  CHECK(Chosen({.temperature = 1, .top_k = 1, .repetition_penalty = 3}, std::vector<int32_t>{1}) ==
        "3 1.0000");
}

TEST_CASE("sampling: a draw falls into the candidates' parts in their order", "[sampling]") {
  const std::vector<TokenCandidate> candidates = Candidates({.temperature = 1}, kLogits, kNothing);
  for (auto [at, token] :
       {std::pair{0.0, 1}, {0.49, 1}, {0.51, 3}, {0.74, 3}, {0.76, 0}, {0.88, 2}, {0.9999999, 2}})
    CHECK(Draw(candidates, at) == token);
}

TEST_CASE("sampling: a seed draws the same again, another seed something else", "[sampling]") {
  const auto drawn = [](uint64_t seed) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < 2000; ++i)
      tokens.push_back(Sample({.temperature = 1, .seed = seed}, kLogits, tokens));
    return tokens;
  };
  const std::vector<int32_t> tokens = drawn(1);
  CHECK(drawn(1) == tokens);
  CHECK(drawn(2) != tokens);
  // 1000 of 2000, six standard deviations: 6 sqrt(2000 / 4) = 134.
  CHECK(std::abs(std::count(tokens.begin(), tokens.end(), 1) - 1000) < 134);
  CHECK(std::count(tokens.begin(), tokens.end(), 0) > 0);
}

TEST_CASE("sampling: what is no number is never chosen", "[sampling]") {
  const std::vector<float> some = {NAN, -INFINITY, 1}, none = {NAN, -INFINITY};
  CHECK(Shown(Candidates({.temperature = 1}, some, kNothing)) == "2 1.0000");
  CHECK(RefusalId([&] { Candidates({}, none, kNothing); }) == "runtime-failed");
}

TEST_CASE("sampling: figures out of range, or without a temperature, are refused", "[sampling]") {
  for (const SamplingOptions& options :
       std::vector<SamplingOptions>{{.temperature = -1},
                                    {.temperature = 1, .top_k = -1},
                                    {.temperature = 1, .top_p = 0},
                                    {.temperature = 1, .top_p = 1.1},
                                    {.temperature = 1, .min_p = 2},
                                    {.repetition_penalty = 0},
                                    {.top_k = 5},
                                    {.top_p = 0.5},
                                    {.min_p = 0.5}})
    CHECK(RefusalId([&] { CheckSampling(options); }) == "usage");
  CheckSampling(
      {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05, .repetition_penalty = 1.1});
}

}  // namespace mlc::test
