// lib/verify/perplexity.h - how well a language model expects a text, and how far another that should be
// the same is from it.
//
// The definitions are those of llama.cpp's tools/perplexity: the text is cut into chunks of C tokens, of
// which each is a prompt of its own, and what follows its tokens C/2 to C-2 is scored. Perplexity is e to
// the mean of -log p(token); its error is one standard error of that mean, times the perplexity.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/ir/tensor.h"

namespace mlc {

// A mean of what is added, and its standard error.
class MeanOf {
 public:
  void Add(double value) { ++count_, sum_ += value, squares_ += value * value; }
  int64_t count() const { return count_; }
  double mean() const;
  double error() const;  // 0 of fewer than two

 private:
  int64_t count_ = 0;
  double sum_ = 0, squares_ = 0;
};

struct PerplexityFigures {
  int64_t scored = 0;
  double perplexity = 0, error = 0;
};
PerplexityFigures PerplexityOf(const MeanOf& surprises);  // of -log p, in nats

// The rows of a chunk that are scored: of `tokens`, from half of them to the last but one.
struct ScoredRows {
  int64_t begin, end;
};
ScoredRows RowsToScore(int64_t tokens);

// Adds the scored rows of `logits` [tokens, vocabulary]. `next` has what follows each token but the last:
// tokens - 1 of them.
void ScoreChunk(const Tensor& logits, std::span<const int32_t> next, MeanOf& surprises);

// Of a reference P and a model Q that should be the same.
struct AgreementFigures {
  PerplexityFigures reference, value;
  double ratio = 1, ratio_error = 0;            // Q's perplexity / P's
  double divergence = 0, divergence_error = 0;  // mean of KL(P || Q) over the tokens, in nats
  double most_divergence = 0;
  double top1 = 0, top1_error = 0;  // share of tokens for which both have the same likeliest one
  double top5 = 0, top5_error = 0;  // share of P's five likeliest that are among Q's
};
class Agreement {
 public:
  void AddChunk(const Tensor& reference, const Tensor& value, std::span<const int32_t> next);
  AgreementFigures figures() const;

 private:
  MeanOf reference_, value_, difference_, divergence_, top1_, top5_;
  double most_ = 0;
};

// What is allowed of a model by the kind of its numbers.
struct AgreementLimit {
  std::string_view name;  // of the budget: "fp32", "fp16", "int8"
  double divergence;      // mean, in nats
  double ratio;           // |ratio - 1|
};
// Error "bad-name" for no such name.
const AgreementLimit& AgreementLimitOf(std::string_view name);
std::string Describe(const AgreementLimit& limit);
bool Within(const AgreementFigures& figures, const AgreementLimit& limit);

}  // namespace mlc
