// lib/verify/perplexity.h - the perplexity of a language model on a text, and the divergence of a
// second model that is expected to agree with it.
//
// The definitions follow tools/perplexity of llama.cpp: the text is cut into chunks of C tokens,
// each of which is an independent prompt, and the successors of its tokens C/2 to C-2 are scored.
// The perplexity is exp(mean of -log p(token)); its error is one standard error of that mean, times
// the perplexity.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/ir/tensor.h"

namespace mlc::verify {

// A running mean and its standard error.
class MeanOf {
 public:
  void Add(double value) { ++count_, sum_ += value, squares_ += value * value; }
  int64_t count() const { return count_; }
  double mean() const;
  double error() const;  // 0 for fewer than two samples

 private:
  int64_t count_ = 0;
  double sum_ = 0, squares_ = 0;
};

struct PerplexityFigures {
  int64_t scored = 0;
  double perplexity = 0, error = 0;
};
PerplexityFigures PerplexityOf(const MeanOf& surprises);  // mean of -log p, in nats

// The scored rows of a chunk of `tokens` tokens: the second half without the last row.
struct ScoredRows {
  int64_t begin, end;
};
ScoredRows RowsToScore(int64_t tokens);

// Adds the scored rows of `logits` [tokens, vocabulary]. `next` holds the successor of each token
// except the last: tokens - 1 elements.
void ScoreChunk(const Tensor& logits, std::span<const int32_t> next, MeanOf& surprises);

// The agreement of a model Q with a reference P.
struct AgreementFigures {
  PerplexityFigures reference, value;
  double ratio = 1, ratio_error = 0;            // perplexity of Q / perplexity of P
  double divergence = 0, divergence_error = 0;  // mean of KL(P || Q) over the tokens, in nats
  double most_divergence = 0;
  double top1 = 0, top1_error = 0;  // share of tokens with the same most likely successor
  double top5 = 0, top5_error = 0;  // share of P's five most likely tokens that are among Q's
};
class Agreement {
 public:
  void AddChunk(const Tensor& reference, const Tensor& value, std::span<const int32_t> next);
  AgreementFigures figures() const;

 private:
  MeanOf reference_, value_, difference_, divergence_, top1_, top5_;
  double most_ = 0;
};

// The limits for one kind of weights.
struct AgreementLimit {
  std::string_view name;  // budget name: "fp32", "fp16", "int8"
  double divergence;      // mean, in nats
  double ratio;           // |ratio - 1|
};
// Error "bad-name" for an unknown name.
const AgreementLimit& AgreementLimitOf(std::string_view name);
std::string Describe(const AgreementLimit& limit);
bool Within(const AgreementFigures& figures, const AgreementLimit& limit);

}  // namespace mlc::verify
