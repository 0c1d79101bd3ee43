#include "lib/passes/choose_schemes.h"

#include <cmath>
#include <random>

#include "lib/ir/encoding.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::passes {
namespace {

// Two layers with drawn weights of 64 x 64, for which auto chooses schemes.
struct Case {
  Case()
      : program(ParseText(R"(
func main<ios18>(tensor<fp32, [2, 64]> x) {
  v = const()[val = tensor<fp32, [64, 64]>(fill(0))];
  w = const()[val = tensor<fp32, [64, 64]>(fill(0))];
  h = linear(x = x, weight = v);
  y = linear(x = h, weight = w);
} -> (y);
)",
                          "t.mil", Ops())) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    ForEachOperation(*program.functions[0], [&](Operation* op) {
      if (!op->def->is_const() || op->val.rank() != 2) return;
      std::vector<float> values(static_cast<size_t>(op->val.size()));
      for (float& value : values) value = normal(random);
      op->val = Tensor::Of(op->val.dims(), values);
      originals.push_back(op->val);
      weights.push_back(op->result());
    });
    collected = CollectCandidates(program);
    for (const auto& candidate : collected)
      if (candidate->subject.weight) {
        candidate->report.bytes_before = 2 * candidate->tensor.size();
        candidates.push_back(candidate.get());
      }
  }

  // The squared error of a weight in the program.
  double ErrorOf(size_t i) const {
    const std::vector<double> a = originals[i].Doubles(), b = weights[i]->constant().Doubles();
    double error = 0;
    for (size_t k = 0; k < a.size(); ++k) error += (a[k] - b[k]) * (a[k] - b[k]);
    return error / static_cast<double>(a.size());
  }

  // Returns the bytes of both weights in the schemes that were chosen.
  std::vector<uint64_t> Choose(const char* goal, const std::function<double()>& noise) {
    compress::Compression compression;
    compression.evaluate = [&](const Program&) {
      return compress::Loss{.noise_of_scores = noise()};
    };
    compression.most_evaluations = 100;
    const QuantiseFn quantise = [](Candidate& candidate, const compress::Scheme& scheme, int) {
      compress::Request request{.scheme = scheme, .axes = *candidate.axes};
      return compress::Quantise(candidate.tensor, request);
    };
    ChooseSchemes(program, compress::ParseScheme(goal), candidates, DType::kFp16, Opset::kIos18,
                  compression, quantise);
    std::vector<uint64_t> bytes;
    for (Candidate* candidate : candidates)
      bytes.push_back(candidate->scheme.values == compress::Scheme::Values::kKept
                          ? candidate->report.bytes_before
                          : quantise(*candidate, candidate->scheme, 1).bytes);
    return bytes;
  }

  Program program;
  std::vector<Tensor> originals;
  std::vector<const Value*> weights;
  std::vector<std::unique_ptr<Candidate>> collected;
  std::vector<Candidate*> candidates;
};

constexpr uint64_t kBudget = 4 * 2 * 64 * 64 / 8;  // of 4 bits for each element

}  // namespace

TEST_CASE("auto: the weight that the outputs depend on gets more bits") {
  Case made;
  const std::vector<uint64_t> bytes =
      made.Choose("auto:bits=4", [&] { return 100 * made.ErrorOf(0) + made.ErrorOf(1); });
  CHECK(bytes[0] > bytes[1]);
  CHECK(bytes[0] + bytes[1] <= kBudget);
  CHECK(bytes[0] + bytes[1] > kBudget * 9 / 10);
}

TEST_CASE("auto: outputs that depend on no weight leave the choice to the errors of the weights") {
  Case made;
  const std::vector<uint64_t> bytes = made.Choose("auto:bits=4", [] { return 0; });
  CHECK(bytes[0] + bytes[1] <= kBudget);
  CHECK(bytes[0] + bytes[1] > kBudget * 9 / 10);
}

TEST_CASE("auto: schemes are compared with corrected biases, which are put back") {
  Program program(ParseText(R"(
func main<ios18>(tensor<fp32, [2, 64]> x) {
  v = const()[val = tensor<fp32, [64, 64]>(fill(1))];
  b = const()[val = tensor<fp32, [64]>(fill(3))];
  y = linear(x = x, weight = v, bias = b);
} -> (y);
)",
                            "t.mil", Ops()));
  Operation *weight = nullptr, *bias = nullptr;
  ForEachOperation(*program.functions[0], [&](Operation* op) {
    if (op->def->is_const()) (op->val.rank() == 2 ? weight : bias) = op;
  });
  std::vector<float> values(64 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  weight->val = Tensor::Of({64, 64}, values);
  const auto collected = CollectCandidates(program);
  std::vector<Candidate*> candidates;
  for (const auto& candidate : collected)
    if (candidate->subject.weight) candidates.push_back(candidate.get());
  compress::Compression compression;
  int corrected = 0, others = 0;
  compression.evaluate = [&](const Program&) {
    const bool quantised = weight->val.encoding(), shifted = bias->val.Doubles()[0] == 3.5;
    corrected += quantised && shifted;
    others += quantised != shifted;
    return compress::Loss{.noise_of_scores = 1};
  };
  compression.most_evaluations = 100;
  ChooseSchemes(
      program, compress::ParseScheme("auto:bits=4"), candidates, DType::kFp16, Opset::kIos18,
      compression, [](Candidate& candidate, const compress::Scheme& scheme, int) {
        compress::Quantised made =
            compress::Quantise(candidate.tensor, {.scheme = scheme, .axes = *candidate.axes});
        made.bias.assign(64, 0.5F);
        return made;
      });
  CHECK(corrected > 5);
  CHECK(others == 0);
  CHECK(bias->val.Doubles()[0] == 3);
  CHECK(!weight->val.encoding());
}

}  // namespace mlc::passes
