#include "lib/calibration/tuning.h"

#include <cmath>

#include "lib/compress/quantise.h"
#include "lib/engine/engine.h"
#include "lib/ir/encoding.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

using namespace mlc;
using namespace mlc::calibration;

namespace {

constexpr int64_t kIn = 16, kHidden = 32, kOut = 8;

Tensor Numbers(const Dims& dims, int seed, double scale) {
  std::vector<float> numbers(static_cast<size_t>(ElementCount(dims)));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(
        scale * std::sin(static_cast<double>((i + 7 * seed) * (i + seed) % 997)));
  return Tensor::Of(dims, numbers);
}

// Two layers. The numbers of the weights are set afterwards.
Program Layers(const std::string& between, int64_t rows = 4, int64_t out = kOut) {
  Program program = ParseText(
      fmt::format(
          "func main<ios18>(tensor<fp32, [{4}, {0}]> x) {{\n"
          "  u = const()[val = tensor<fp32, [{1}, {0}]>(fill(0.0))];\n"
          "  v = const()[val = tensor<fp32, [{2}, {1}]>(fill(0.0))];\n"
          "  a = linear(x = x, weight = u); b = {3}(x = a); y = linear(x = b, weight = v);\n"
          "}} -> (y);",
          kIn, kHidden, out, between, rows),
      "test.mil", Ops());
  ForEachOperation(*program.main(), [&](Operation* op) {
    if (!op->def->is_const() || op->val.rank() != 2) return;
    op->val = Numbers(op->val.dims(), op->result()->name == "u" ? 1 : 2, 0.3);
  });
  return program;
}

Samples Inputs(int count, int64_t rows = 4) {
  Samples samples;
  for (int i = 0; i < count; ++i)
    samples.functions["main"].push_back({{{"x", Numbers({rows, kIn}, 10 + i, 1)}}});
  samples.description = "samples";
  return samples;
}

// The weights of a program in 2-bit palettes, which replace its constants.
std::vector<compress::Tunable> Compress(Program& program) {
  std::vector<compress::Tunable> weights;
  ForEachOperation(*program.main(), [&](Operation* op) {
    if (!op->def->is_const() || op->val.rank() != 2) return;
    const Tensor source = op->val;
    op->val = compress::Quantise(source, {.scheme = compress::ParseScheme("pal2"),
                                          .axes = {.param = "weight", .output = 0, .input = 1},
                                          .target = Opset::kIos18})
                  .tensor;
    weights.push_back({.values = {op->result()}, .source = source, .encoded = op->val});
  });
  return weights;
}

double ErrorOn(const Program& source, const Program& compressed, const Samples& samples) {
  double sum = 0;
  for (const Sample& sample : samples.functions.at("main")) {
    const std::vector<double> a = engine::Execute(source, sample[0]).at("y").Doubles(),
                              b = engine::Execute(compressed, sample[0]).at("y").Doubles();
    for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return sum;
}

}  // namespace

TEST_CASE("training lowers the error of compressed weights on other samples") {
  // An output with one element has a variance over samples only.
  const int64_t rows = GENERATE(4, 1), out = rows == 1 ? 1 : kOut;
  const Program source = Layers("silu", rows, out);
  Program compressed = Clone(source);
  std::vector<compress::Tunable> weights = Compress(compressed);
  REQUIRE(weights.size() == 2);
  const Samples samples = Inputs(64, rows), others = Inputs(96, rows);
  Tuner tuner(samples, {}, 1e6, 1e12);
  REQUIRE(tuner.Aim(source));
  const double before = ErrorOn(source, compressed, others);
  const compress::Tuned tuned = tuner(compressed, weights, {});
  CHECK(tuned.why.empty());
  CHECK(tuned.weights == 2);
  CHECK(tuned.samples == 56);
  for (const compress::Tunable& weight : weights)
    const_cast<Value*>(weight.values[0])->def->val = weight.encoded;
  CHECK(ErrorOn(source, compressed, others) < 0.7 * before);
}

TEST_CASE("training says why it leaves weights as they are") {
  const Program source = Layers("erf");
  Program compressed = Clone(source);
  std::vector<compress::Tunable> weights = Compress(compressed);
  const Samples samples = Inputs(16);
  Tuner tuner(samples, {}, 1e6, 1e12);
  REQUIRE(tuner.Aim(source));
  const compress::Tuned tuned = tuner(compressed, weights, {});
  CHECK(tuned.weights == 0);
  CHECK_THAT(tuned.why, ContainsSubstring("erf"));
  // Too many elements: a table of 2^24 is at the limit.
  for (const int64_t rows : {4096, 4097}) {
    std::vector<compress::Tunable> table(1);
    table[0].values = weights[0].values;
    Encoding encoding{.form = Encoding::Form::kAffine,
                      .data = Tensor::Full(DType::kInt8, {rows, 4096}, 1),
                      .scale = Tensor::Full(DType::kFp32, {1, 1}, 1)};
    table[0].source = table[0].encoded = Tensor::Encoded(std::move(encoding));
    CHECK_THAT(tuner(compressed, table, {}).why,
               ContainsSubstring(rows == 4096 ? "erf" : "memory"));
  }
  // Too few samples, too much work.
  const Samples few = Inputs(7);
  CHECK_FALSE(Tuner(few, {}, 1e6, 1e12).Aim(source));
  CHECK_FALSE(Tuner(samples, {}, 1e12, 1e12).Aim(source));
}
