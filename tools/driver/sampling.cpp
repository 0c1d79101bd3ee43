#include "tools/driver/sampling.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "lib/support/error.h"
#include "lib/support/philox.h"

namespace mlc::driver {

namespace {

struct Scored {
  int32_t token;
  double logit;
};
bool Before(const Scored& a, const Scored& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

void Penalise(double penalty, std::span<const int32_t> before, std::vector<Scored>& all) {
  const std::span<const int32_t> last = before.last(std::min(before.size(), kLastTokens));
  const std::unordered_set<int32_t> seen(last.begin(), last.end());
  for (Scored& one : all)
    if (seen.contains(one.token))
      one.logit = one.logit > 0 ? one.logit / penalty : one.logit * penalty;
}

// Returns the probabilities of the remaining candidates, in the same order.
std::vector<TokenCandidate> Softmax(const std::vector<Scored>& sorted) {
  std::vector<TokenCandidate> made;
  double sum = 0;
  for (const Scored& one : sorted) {
    made.push_back({one.token, std::exp(one.logit - sorted[0].logit)});
    sum += made.back().probability;
  }
  for (TokenCandidate& one : made) one.probability /= sum;
  return made;
}

size_t TopP(double share, const std::vector<Scored>& sorted) {
  double sum = 0;
  size_t count = 0;
  for (const TokenCandidate& one : Softmax(sorted)) {
    ++count;
    sum += one.probability;
    if (sum >= share) break;
  }
  return count;
}

}  // namespace

void CheckSampling(const SamplingOptions& options) {
  const auto check = [](bool right, const char* name, double value, const char* expected) {
    if (!right) throw Error("usage", "{}: {} is out of range", name, value).Expected(expected);
  };
  check(options.temperature >= 0 && options.temperature <= 1e6, "--temperature",
        options.temperature, "0 to 1e6");
  check(options.top_k >= 0, "--top-k", static_cast<double>(options.top_k), "0 (all) or more");
  check(options.top_p > 0 && options.top_p <= 1, "--top-p", options.top_p, "above 0, up to 1");
  check(options.min_p >= 0 && options.min_p <= 1, "--min-p", options.min_p, "0 to 1");
  check(options.repetition_penalty > 0 && options.repetition_penalty <= 1e6, "--repetition-penalty",
        options.repetition_penalty, "above 0, up to 1e6 (1: no penalty)");
  if (options.temperature > 0) return;
  for (auto [name, given] : {std::pair{"--top-k", options.top_k != 0},
                             {"--top-p", options.top_p != 1},
                             {"--min-p", options.min_p != 0}})
    if (given)
      throw Error("usage", "{} requires --temperature; without it, decoding is greedy", name)
          .Help("--temperature 1 samples from the model's probabilities");
}

std::vector<TokenCandidate> Candidates(const SamplingOptions& options,
                                       std::span<const float> logits,
                                       std::span<const int32_t> before) {
  std::vector<Scored> all;
  all.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i)
    if (!std::isnan(logits[i]) && logits[i] > -INFINITY)
      all.push_back({static_cast<int32_t>(i), logits[i]});
  if (all.empty())
    throw Error("runtime-failed",
                "all logits of the model are NaN or -infinity: no token can be chosen");
  if (options.repetition_penalty != 1) Penalise(options.repetition_penalty, before, all);
  if (options.temperature <= 0) return {{std::ranges::min_element(all, Before)->token, 1.0}};
  // The full vocabulary is sorted only if its tail may be drawn.
  const double most = std::ranges::min_element(all, Before)->logit;
  if (options.top_p >= 1 && options.top_k <= 0 && options.min_p > 0)
    std::erase_if(all,
                  [&](const Scored& one) { return one.logit < most + std::log(options.min_p); });
  if (options.top_k > 0 && static_cast<size_t>(options.top_k) < all.size()) {
    std::partial_sort(all.begin(), all.begin() + options.top_k, all.end(), Before);
    all.resize(static_cast<size_t>(options.top_k));
  } else {
    std::ranges::sort(all, Before);
  }
  if (options.top_p < 1) all.resize(TopP(options.top_p, all));
  if (options.min_p > 0)
    std::erase_if(all,
                  [&](const Scored& one) { return one.logit < most + std::log(options.min_p); });
  for (Scored& one : all) one.logit /= options.temperature;
  return Softmax(all);
}

int32_t Draw(std::span<const TokenCandidate> candidates, double at) {
  double end = 0;
  for (const TokenCandidate& one : candidates) {
    end += one.probability;
    if (at < end) return one.token;
  }
  return candidates.back().token;  // rounding: the probabilities sum to slightly less than 1
}

int32_t Sample(const SamplingOptions& options, std::span<const float> logits,
               std::span<const int32_t> before) {
  const PhiloxCounter words = Philox(options.seed, 0, before.size());
  const uint64_t bits = uint64_t{words[1]} << 32 | words[0];
  return Draw(Candidates(options, logits, before), static_cast<double>(bits >> 11) * 0x1p-53);
}

}  // namespace mlc::driver
