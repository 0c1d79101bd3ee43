// lib/verify/language_agreement.h - compares the predictions of two language models for the same
// tokens: the most likely next token, and the distance between the distributions.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc::verify {

// Rounding changes the difference of two logits by more than this multiple of the RMS error only
// once in hundreds of cases.
inline constexpr double kErrors = 4;

struct LanguageFigures {
  int64_t tokens = 0;  // length of the prompt
  int64_t equal = 0;   // positions with the same most likely next token
  // A position with a different most likely token. `gap` is the margin, in logits, by which the
  // reference prefers its own token.
  struct Other {
    int64_t position, token, reference;
    double gap;
  };
  std::vector<Other> close;  // gap below kErrors times the error, so that neither is wrong
  std::vector<Other> wrong;
  // The root mean square of the differences of logits. (The largest difference is not a useful
  // bound: no gap can exceed twice its value, so it would excuse every mismatch.)
  double error = 0;
  // The Kullback-Leibler divergence KL(reference || value), in nats.
  double mean_divergence = 0, max_divergence = 0;
};

// Both tensors are logits of the same shape [tokens, vocabulary].
LanguageFigures CompareLogits(const Tensor& value, const Tensor& reference);

}  // namespace mlc::verify
