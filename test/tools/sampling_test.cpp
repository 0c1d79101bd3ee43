// Sampling. Expected probabilities are computed by hand for four tokens.
#include "tools/driver/sampling.h"

#include <cmath>

#include "lib/support/error.h"
#include "test/catch.h"
#include "test/expected_error.h"

namespace mlc::test {
using namespace driver;
namespace {

// Logarithms of the probabilities 1/8, 1/2, 1/8 and 1/4, and the same shifted above 0.
const std::vector<float> kLogits = {std::log(0.125f), std::log(0.5f), std::log(0.125f),
                                    std::log(0.25f)};
const std::vector<int32_t> kNothing;

// Renders candidates as "1 0.5, 3 0.25, ...".
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

TEST_CASE("sampling: greedy without a temperature; ties go to the lower token", "[sampling]") {
  CHECK(Chosen({}) == "1 1.0000");
  CHECK(Sample({}, std::vector<float>{2, 3, 3, 1}, kNothing) == 1);
}

TEST_CASE("sampling: temperature divides the logits", "[sampling]") {
  CHECK(Chosen({.temperature = 1}) == "1 0.5000, 3 0.2500, 0 0.1250, 2 0.1250");
  // Squared probabilities: 16 : 4 : 1 : 1 out of 22.
  CHECK(Chosen({.temperature = 0.5}) == "1 0.7273, 3 0.1818, 0 0.0455, 2 0.0455");
}

TEST_CASE("sampling: top-k keeps the k most probable tokens", "[sampling]") {
  CHECK(Chosen({.temperature = 1, .top_k = 2}) == "1 0.6667, 3 0.3333");
  CHECK(Chosen({.temperature = 1, .top_k = 1}) == "1 1.0000");
  CHECK(Chosen({.temperature = 1, .top_k = 9}) == Chosen({.temperature = 1}));
}

TEST_CASE("sampling: top-p keeps the smallest set with total probability p", "[sampling]") {
  CHECK(Chosen({.temperature = 1, .top_p = 0.4}) == "1 1.0000");
  CHECK(Chosen({.temperature = 1, .top_p = 0.7}) == "1 0.6667, 3 0.3333");
  // 1/2 + 1/4 + 1/8 = 0.875
  CHECK(Chosen({.temperature = 1, .top_p = 0.8}) == "1 0.5714, 3 0.2857, 0 0.1429");
}

TEST_CASE("sampling: min-p keeps tokens above a fraction of the highest probability",
          "[sampling]") {
  CHECK(Chosen({.temperature = 1, .min_p = 0.4}) == "1 0.6667, 3 0.3333");
  CHECK(Chosen({.temperature = 1, .min_p = 0.6}) == "1 1.0000");
  CHECK(Chosen({.temperature = 1, .min_p = 0.2}) == Chosen({.temperature = 1}));
}

TEST_CASE(
    "sampling: the repetition penalty lowers the logits of recent tokens, positive or negative",
    "[sampling]") {
  const std::vector<float> logits = {2, 1.5, -1, -1.5};
  CHECK(Sample({.repetition_penalty = 2}, logits, std::vector<int32_t>{0}) == 1);  // 2 / 2
  const std::vector<float> below = {-1, -1.5};
  CHECK(Sample({.repetition_penalty = 2}, below, std::vector<int32_t>{0}) == 1);  // -1 * 2
  CHECK(Sample({.repetition_penalty = 1.4}, below, std::vector<int32_t>{0}) == 0);
  // Tokens more than 64 positions back are not penalized, and a repeated token is penalized once.
  std::vector<int32_t> long_ago(65, 3);
  long_ago[0] = 0;
  CHECK(Sample({.repetition_penalty = 2}, logits, long_ago) == 0);
  CHECK(Shown(Candidates({.temperature = 1, .repetition_penalty = 2}, std::vector<float>{1, 1},
                         std::vector<int32_t>{0, 0})) == "1 0.6225, 0 0.3775");  // e, e^0.5
}

TEST_CASE("sampling: steps are applied in the order penalty, top-k, top-p, min-p, temperature",
          "[sampling]") {
  // If temperature were applied before top-p, the result would have fewer or more tokens.
  CHECK(Chosen({.temperature = 100, .top_p = 0.7}) == "1 0.5017, 3 0.4983");
  CHECK(Chosen({.temperature = 0.1, .min_p = 0.4}) == "1 0.9990, 3 0.0010");
  // top-p applies to the tokens kept by top-k, with probabilities 2/3 and 1/3.
  CHECK(Chosen({.temperature = 1, .top_k = 2, .top_p = 0.6}) == "1 1.0000");
  // After the penalty, token 1 is less probable than token 3: log(1/2) * 3 < log(1/4).
  CHECK(Chosen({.temperature = 1, .top_k = 1, .repetition_penalty = 3}, std::vector<int32_t>{1}) ==
        "3 1.0000");
}

TEST_CASE("sampling: a random number selects a candidate by cumulative probability", "[sampling]") {
  const std::vector<TokenCandidate> candidates = Candidates({.temperature = 1}, kLogits, kNothing);
  for (auto [at, token] :
       {std::pair{0.0, 1}, {0.49, 1}, {0.51, 3}, {0.74, 3}, {0.76, 0}, {0.88, 2}, {0.9999999, 2}})
    CHECK(Draw(candidates, at) == token);
}

TEST_CASE("sampling: equal seeds give equal tokens, different seeds different ones", "[sampling]") {
  const auto drawn = [](uint64_t seed) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < 2000; ++i)
      tokens.push_back(Sample({.temperature = 1, .seed = seed}, kLogits, tokens));
    return tokens;
  };
  const std::vector<int32_t> tokens = drawn(1);
  CHECK(drawn(1) == tokens);
  CHECK(drawn(2) != tokens);
  // 1000 of 2000, within six standard deviations: 6 sqrt(2000 / 4) = 134.
  CHECK(std::abs(std::count(tokens.begin(), tokens.end(), 1) - 1000) < 134);
  CHECK(std::count(tokens.begin(), tokens.end(), 0) > 0);
}

TEST_CASE("sampling: NaN logits are never chosen", "[sampling]") {
  const std::vector<float> some = {NAN, -INFINITY, 1}, none = {NAN, -INFINITY};
  CHECK(Shown(Candidates({.temperature = 1}, some, kNothing)) == "2 1.0000");
  CHECK(RefusalId([&] { Candidates({}, none, kNothing); }) == "runtime-failed");
}

TEST_CASE("sampling: options out of range or without a temperature are refused", "[sampling]") {
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
