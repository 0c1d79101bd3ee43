// tools/driver/sampling.h - chooses the next token from a language model's logits.
//
// The parameters and their order are llama.cpp's (src/llama-sampler.cpp and the default chain of
// its tools): repetition penalty, top-k, top-p, min-p, temperature, then one token is drawn.
// Parameters that are not given have no effect; without a temperature the most likely token is
// chosen.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mlc::driver {

struct SamplingOptions {
  double temperature = 0;  // divides the logits; 0: greedy
  int64_t top_k = 0;       // keeps the k most likely tokens; 0: all
  // Keeps the smallest set of the most likely tokens with this total probability; 1: all.
  double top_p = 1;
  double min_p = 0;  // keeps tokens with at least this fraction of the highest probability
  // For tokens among the last kLastTokens: divides positive logits, multiplies others.
  double repetition_penalty = 1;
  uint64_t seed = 0;
};
// The default of llama.cpp's tools.
inline constexpr size_t kLastTokens = 64;

// Error "usage" for parameters that are out of range, or that have no effect because the
// temperature is 0.
void CheckSampling(const SamplingOptions& options);

struct TokenCandidate {
  int32_t token;
  double probability;
};
// Returns the tokens that may be drawn, by descending probability and then ascending token. The
// probabilities sum to 1. `before`: all preceding tokens including the prompt. NaN logits have
// probability 0. Error "runtime-failed" if all logits are NaN.
std::vector<TokenCandidate> Candidates(const SamplingOptions& options,
                                       std::span<const float> logits,
                                       std::span<const int32_t> before);
// Returns the candidate whose part of [0, 1) contains `at`; the parts are in the order of the
// candidates.
int32_t Draw(std::span<const TokenCandidate> candidates, double at);
// Draws from Candidates() with the number that Philox4x32-10 generates for the seed and the
// position, so that the result depends only on the options, the logits and the tokens.
int32_t Sample(const SamplingOptions& options, std::span<const float> logits,
               std::span<const int32_t> before);

}  // namespace mlc::driver
