// tools/driver/sampling.h - chooses the next token from a language model's logits.
//
// What each figure means, and their order, is llama.cpp's (its src/llama-sampler.cpp and the default
// chain of its tools): repetition penalty, top-k, top-p, min-p, temperature, then one token is drawn.
// A figure that is not given takes no part; without a temperature the likeliest token is taken.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mlc {

struct SamplingOptions {
  double temperature = 0;  // divides the logits; 0: the likeliest token
  int64_t top_k = 0;       // so many of the likeliest; 0: all
  double top_p = 1;        // the likeliest that have this share together; 1: all
  double min_p = 0;        // those that have at least this share of the likeliest's
  // Divides the logits above 0, and multiplies others, of tokens among the last kLastTokens.
  double repetition_penalty = 1;
  uint64_t seed = 0;
};
// As llama.cpp's tools look back.
inline constexpr size_t kLastTokens = 64;

// Error "usage" for what is out of range, and for figures that choose among tokens where a
// temperature of 0 takes the likeliest.
void CheckSampling(const SamplingOptions& options);

struct TokenCandidate {
  int32_t token;
  double probability;
};
// What may be drawn, the likeliest first, of equals the lower token; together they have probability
// 1. `before`: all tokens so far, the prompt's too. A logit that is no number has no chance. Error
// "runtime-failed" where none is one.
std::vector<TokenCandidate> Candidates(const SamplingOptions& options,
                                       std::span<const float> logits,
                                       std::span<const int32_t> before);
// The candidate in whose part of [0, 1) `at` lies, the parts in the candidates' order.
int32_t Draw(std::span<const TokenCandidate> candidates, double at);
// Both, with the number that Philox4x32-10 has for the seed and the position: what is drawn depends
// on the options, the logits and the tokens alone.
int32_t Sample(const SamplingOptions& options, std::span<const float> logits,
               std::span<const int32_t> before);

}  // namespace mlc
