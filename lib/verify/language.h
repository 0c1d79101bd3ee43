// lib/verify/language.h - what two language models make of the same tokens: the token that each thinks
// most likely to follow, and how far their predictions are apart.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

// Rounding moves two logits apart by more than that only once in hundreds of times.
inline constexpr double kErrors = 4;

struct LanguageFigures {
  int64_t tokens = 0;  // of the prompt
  int64_t equal = 0;   // for so many of them the most likely next one is the same
  // Another token is most likely. `gap`: how much likelier the reference has its own, in logits.
  struct Other {
    int64_t position, token, reference;
    double gap;
  };
  std::vector<Other> close;  // gaps below kErrors times the error: neither is wrong
  std::vector<Other> wrong;
  // Root mean square of the differences of logits. (No other token is likelier by more than twice the
  // largest of them, so that one would excuse all.)
  double error = 0;
  // Kullback-Leibler divergence of the reference's distribution from the value's, in nats.
  double mean_divergence = 0, max_divergence = 0;
};

// Logits [tokens, vocabulary] of one shape.
LanguageFigures CompareLogits(const Tensor& value, const Tensor& reference);

}  // namespace mlc
