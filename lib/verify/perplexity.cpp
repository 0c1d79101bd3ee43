#include "lib/verify/perplexity.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "lib/support/error.h"
#include "lib/support/threads.h"

namespace mlc::verify {

namespace {

// Name | mean divergence | allowed relative deviation of the perplexity.
constexpr AgreementLimit kLimits[] = {
    {"fp32", 1e-4, 1e-3},
    {"fp16", 5e-3, 1e-2},
    {"int8", 5e-2, 5e-2},
};

constexpr size_t kTop = 5;

// The most likely tokens; equal logits are ordered by token.
using Top = std::array<int64_t, kTop>;

double LogSum(std::span<const float> logits) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum);
}

Top TopOf(std::span<const float> logits) {
  Top top;
  top.fill(-1);
  for (size_t i = 0; i < logits.size(); ++i) {
    size_t place = kTop;
    while (place > 0 &&
           (top[place - 1] < 0 || logits[i] > logits[static_cast<size_t>(top[place - 1])]))
      --place;
    if (place == kTop) continue;
    std::copy_backward(top.begin() + place, top.end() - 1, top.end());
    top[place] = static_cast<int64_t>(i);
  }
  return top;
}

// The contribution of one token to the figures.
struct Pair {
  double reference, value, divergence, top1, top5;
};

Pair Score(std::span<const float> p, std::span<const float> q, int32_t next) {
  const double from = LogSum(p), to = LogSum(q);
  double divergence = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double likely = p[i] - from;
    // Tokens of probability zero in the reference contribute nothing to the divergence.
    if (const double chance = std::exp(likely); chance > 0)
      divergence += chance * (likely - (q[i] - to));
  }
  const Top top_p = TopOf(p), top_q = TopOf(q);
  const size_t most = std::min(kTop, p.size());
  int64_t shared = 0;
  for (size_t k = 0; k < most; ++k) shared += std::ranges::find(top_q, top_p[k]) != top_q.end();
  const auto at = static_cast<size_t>(next);
  return {from - p[at], to - q[at], std::max(divergence, 0.0), top_p[0] == top_q[0] ? 1.0 : 0.0,
          static_cast<double>(shared) / static_cast<double>(most)};
}

// Calls score(row, next token) in parallel for the scored rows of a chunk, and take(result) in the
// order of the rows.
template <class Result, class Score, class Take>
void EachRow(const Tensor& logits, std::span<const int32_t> next, Score score, Take take) {
  const ScoredRows rows = RowsToScore(logits.dims()[0]);
  const int64_t vocabulary = logits.dims()[1];
  MLC_CHECK(std::ssize(next) >= rows.end, "{} tokens follow {} rows", next.size(), rows.end);
  for (int64_t row = rows.begin; row < rows.end; ++row)
    if (const int32_t token = next[static_cast<size_t>(row)]; token < 0 || token >= vocabulary)
      throw Error("bad-input", "token {} is not in the vocabulary of the model", token)
          .Expected("0 to {}", vocabulary - 1);
  std::vector<Result> results(static_cast<size_t>(std::max<int64_t>(rows.end - rows.begin, 0)));
  ParallelFor(std::ssize(results), 0, [&](int64_t i) {
    results[static_cast<size_t>(i)] =
        score(rows.begin + i, next[static_cast<size_t>(rows.begin + i)]);
  });
  for (const Result& result : results) take(result);
}

std::span<const float> RowOf(const Pin<float>& logits, int64_t vocabulary, int64_t row) {
  return {logits.data() + row * vocabulary, static_cast<size_t>(vocabulary)};
}

}  // namespace

double MeanOf::mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }

double MeanOf::error() const {
  if (count_ < 2) return 0;
  const double variance = squares_ / static_cast<double>(count_) - mean() * mean();
  return std::sqrt(std::max(variance, 0.0) / static_cast<double>(count_ - 1));
}

PerplexityFigures PerplexityOf(const MeanOf& surprises) {
  const double perplexity = std::exp(surprises.mean());
  return {surprises.count(), perplexity, perplexity * surprises.error()};
}

ScoredRows RowsToScore(int64_t tokens) { return {tokens / 2, tokens - 1}; }

void ScoreChunk(const Tensor& logits, std::span<const int32_t> next, MeanOf& surprises) {
  const Pin<float> values = logits.data<float>();
  const int64_t vocabulary = logits.dims()[1];
  EachRow<double>(
      logits, next,
      [&](int64_t row, int32_t token) {
        const std::span<const float> own = RowOf(values, vocabulary, row);
        return LogSum(own) - own[static_cast<size_t>(token)];
      },
      [&](double surprise) { surprises.Add(surprise); });
}

void Agreement::AddChunk(const Tensor& reference, const Tensor& value,
                         std::span<const int32_t> next) {
  if (reference.dims() != value.dims())
    throw Error("bad-input", "the logits of the two models differ in shape: [{}] and [{}]",
                fmt::join(reference.dims(), ", "), fmt::join(value.dims(), ", "));
  const Pin<float> p = reference.data<float>(), q = value.data<float>();
  const int64_t vocabulary = reference.dims()[1];
  EachRow<Pair>(
      reference, next,
      [&](int64_t row, int32_t token) {
        return Score(RowOf(p, vocabulary, row), RowOf(q, vocabulary, row), token);
      },
      [&](const Pair& pair) {
        reference_.Add(pair.reference);
        value_.Add(pair.value);
        difference_.Add(pair.value - pair.reference);
        divergence_.Add(pair.divergence);
        // The negated comparison keeps NaN.
        if (!(pair.divergence <= most_)) most_ = pair.divergence;
        top1_.Add(pair.top1);
        top5_.Add(pair.top5);
      });
}

AgreementFigures Agreement::figures() const {
  const double ratio = std::exp(difference_.mean());
  return {.reference = PerplexityOf(reference_),
          .value = PerplexityOf(value_),
          .ratio = ratio,
          .ratio_error = ratio * difference_.error(),
          .divergence = divergence_.mean(),
          .divergence_error = divergence_.error(),
          .most_divergence = most_,
          .top1 = top1_.mean(),
          .top1_error = top1_.error(),
          .top5 = top5_.mean(),
          .top5_error = top5_.error()};
}

const AgreementLimit& AgreementLimitOf(std::string_view name) {
  for (const AgreementLimit& limit : kLimits)
    if (limit.name == name) return limit;
  throw Error("bad-name", "budget \"{}\" defines no limits for perplexity", name)
      .Expected("fp32, fp16 or int8");
}

std::string Describe(const AgreementLimit& limit) {
  return fmt::format("mean divergence {:g}, perplexity within {:g} %", limit.divergence,
                     100 * limit.ratio);
}

bool Within(const AgreementFigures& figures, const AgreementLimit& limit) {
  return figures.divergence <= limit.divergence && std::fabs(figures.ratio - 1) <= limit.ratio;
}

}  // namespace mlc::verify
