// Perplexity and agreement: expected figures calculated by hand.
#include "lib/verify/perplexity.h"

#include <cmath>

#include "lib/support/error.h"
#include "test/catch.h"
#include "test/expected_error.h"

namespace mlc::test {
using namespace verify;
namespace {

// Returns logits of these probabilities, one row each, shifted by `add`.
Tensor Logits(const std::vector<std::vector<double>>& rows, double add = 0) {
  std::vector<float> values;
  for (const std::vector<double>& row : rows)
    for (double p : row) values.push_back(static_cast<float>(std::log(p) + add));
  return Tensor::Of<float>({std::ssize(rows), std::ssize(rows[0])}, values);
}

constexpr double kEnough = 1e-6;

}  // namespace

TEST_CASE("perplexity: the second half of a chunk is scored, without the last row",
          "[perplexity]") {
  CHECK(RowsToScore(8).begin == 4);
  CHECK(RowsToScore(8).end == 7);
  CHECK(RowsToScore(5).begin == 2);
  // Rows 2 and 3 are scored by the tokens that follow: 1/2 and 1/8.
  const Tensor logits =
      Logits({{0.9, 0.1}, {0.9, 0.1}, {0.5, 0.5}, {0.875, 0.125}, {0.9, 0.1}}, 3.25);
  MeanOf surprises;
  ScoreChunk(logits, std::vector<int32_t>{0, 0, 0, 1}, surprises);
  const PerplexityFigures figures = PerplexityOf(surprises);
  CHECK(figures.scored == 2);
  // sqrt(2 * 8); the surprisals log 2 and log 8 have mean log 4 and deviation log 2, over sqrt(2 -
  // 1).
  CHECK(std::fabs(figures.perplexity - 4) < kEnough);
  CHECK(std::fabs(figures.error - 4 * std::log(2)) < kEnough);
}

TEST_CASE("perplexity: agreement of two models", "[perplexity]") {
  const std::vector<double> p = {0.5, 0.25, 0.125, 0.0625, 0.03125, 0.03125},
                            q = {0.25, 0.5, 0.125, 0.03125, 0.0625, 0.03125};
  Agreement agreement;
  agreement.AddChunk(Logits({p, p, p, p}), Logits({p, p, q, p}, 1),
                     std::vector<int32_t>{0, 0, 1, 0});
  const AgreementFigures figures = agreement.figures();
  // The only scored row is 2, and its next token is 1.
  CHECK(std::fabs(figures.reference.perplexity - 4) < kEnough);
  CHECK(std::fabs(figures.value.perplexity - 2) < kEnough);
  CHECK(std::fabs(figures.ratio - 0.5) < kEnough);
  // (1/2 - 1/4 + 1/16 - 1/32) log 2
  CHECK(std::fabs(figures.divergence - 0.28125 * std::log(2)) < kEnough);
  CHECK(std::fabs(figures.most_divergence - figures.divergence) < kEnough);
  CHECK(figures.top1 == 0);
  CHECK(figures.top5 == 1);
  CHECK(!Within(figures, AgreementLimitOf("int8")));
}

TEST_CASE("perplexity: a constant added to the logits has no effect", "[perplexity]") {
  const std::vector<double> p = {0.5, 0.3, 0.2}, q = {0.2, 0.3, 0.5};
  Agreement agreement;
  agreement.AddChunk(Logits({p, q, p, q, p, q}), Logits({p, q, p, q, p, q}, -4),
                     std::vector<int32_t>{0, 1, 2, 0, 1});
  const AgreementFigures figures = agreement.figures();
  CHECK(figures.reference.scored == 2);
  CHECK(figures.divergence < kEnough);
  CHECK(figures.top1 == 1);
  CHECK(figures.top5 == 1);
  CHECK(Within(figures, AgreementLimitOf("fp32")));
}

TEST_CASE("perplexity: four of five most likely tokens agree", "[perplexity]") {
  std::vector<double> p = {0.3, 0.2, 0.15, 0.1, 0.09, 0.08, 0.08}, q = p;
  std::swap(q[4], q[6]);
  Agreement agreement;
  agreement.AddChunk(Logits({p, p, p, p}), Logits({p, p, q, p}), std::vector<int32_t>{0, 0, 0});
  CHECK(std::fabs(agreement.figures().top5 - 0.8) < kEnough);
  CHECK(agreement.figures().top1 == 1);
}

TEST_CASE("perplexity: NaN fails", "[perplexity]") {
  const Tensor good = Logits({{0.5, 0.5}, {0.5, 0.5}, {0.5, 0.5}, {0.5, 0.5}});
  const Tensor bad = Tensor::Full(DType::kFp32, {4, 2}, NAN).InMemory();
  Agreement agreement;
  agreement.AddChunk(good, bad, std::vector<int32_t>{0, 1, 0});
  CHECK(!Within(agreement.figures(), AgreementLimitOf("int8")));
}

TEST_CASE("perplexity: logits and tokens that do not match are rejected", "[perplexity]") {
  const Tensor two = Logits({{0.5, 0.5}, {0.5, 0.5}, {0.5, 0.5}, {0.5, 0.5}});
  const Tensor three = Logits({{0.5, 0.3, 0.2}, {0.5, 0.3, 0.2}, {0.5, 0.3, 0.2}, {0.5, 0.3, 0.2}});
  Agreement agreement;
  const std::vector<int32_t> next = {0, 1, 2};
  CHECK(RefusalId([&] { agreement.AddChunk(two, three, next); }) == "bad-input");
  MeanOf surprises;
  CHECK(RefusalId([&] { ScoreChunk(two, next, surprises); }) == "bad-input");
  CHECK(RefusalId([] { AgreementLimitOf("int4"); }) == "bad-name");
}

}  // namespace mlc::test
