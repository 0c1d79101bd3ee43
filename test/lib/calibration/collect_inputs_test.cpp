#include "lib/calibration/collect_inputs.h"

#include "lib/engine/engine.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

using namespace mlc;
using namespace mlc::calibration;

namespace {

// For each product with a weight w and inputs x, the mean of |w x|^2 over positions is the sum over
// rows of w H w': the statistics must give the energy of the outputs that the engine computes.
void CheckEnergy(const std::string& body, const Dims& input, const std::string& weight_name) {
  INFO(body);
  const Program program = ParseText(body, "test.mil", Ops());
  const Function& function = *program.main();
  const Value* weight = nullptr;
  ForEachOperation(const_cast<Function&>(function), [&](Operation* op) {
    if (op->def->is_const() && op->result()->name == weight_name) weight = op->result();
  });
  REQUIRE(weight);
  std::vector<float> numbers(static_cast<size_t>(ElementCount(input)));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(static_cast<int>((i * 37 + 11) % 23) - 9) / 7;
  const verify::StepInputs inputs = {{"x", Tensor::Of(input, numbers)}};
  Samples samples;
  samples.functions[function.name] = {{inputs}};
  const auto sums = Observe(program, samples, {weight}, {}).inputs;
  REQUIRE(sums.contains(weight));
  const compress::InputStatistics means = sums.at(weight).Means();
  const std::vector<double> w = weight->constant().Doubles();
  const int64_t rows = std::ssize(w) / means.columns, set_rows = rows / means.sets;
  double energy = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const float* h = &means.products[r / set_rows * means.columns * means.columns];
    for (int64_t a = 0; a < means.columns; ++a)
      for (int64_t b = 0; b < means.columns; ++b)
        energy += w[r * means.columns + a] * w[r * means.columns + b] *
                  static_cast<double>(h[a * means.columns + b]);
  }
  const Tensor y = engine::Execute(program, inputs).at("y");
  double expected = 0;
  for (const double value : y.Doubles()) expected += value * value;
  // A mean over the positions, of which each has an output of every row.
  expected /= static_cast<double>(y.size()) / static_cast<double>(rows);
  CHECK(energy == Approx(expected).epsilon(1e-4));
}

}  // namespace

TEST_CASE("collected inputs explain the energy of outputs") {
  CheckEnergy(R"(func main<ios16>(tensor<fp32, [2, 3, 4]> x) {
  tensor<fp32, [5, 4]> w = const()[val = tensor<fp32, [5, 4]>([[0.5, -1, 2, 0.25], [1, 1, -0.5, 0], [0.1, 0.2, 0.3, -0.4], [2, 0, 0, 1], [-1, 0.5, 0.5, 0.5]])];
  tensor<fp32, [2, 3, 5]> y = linear(x = x, weight = w);
} -> (y);)",
              {2, 3, 4}, "w");
  CheckEnergy(R"(func main<ios16>(tensor<fp32, [1, 4, 5, 5]> x) {
  tensor<fp32, [2, 2, 3, 1]> w = const()[val = tensor<fp32, [2, 2, 3, 1]>([[[[0.5], [-1], [2]], [[1], [0.25], [-0.5]]], [[[1], [1], [1]], [[0.3], [-2], [0.7]]]])];
  tensor<fp32, [1, 2, 3, 3]> y = conv(x = x, weight = w, strides = [2, 2], pad_type = "custom", pad = [1, 1, 0, 0], groups = 2);
} -> (y);)",
              {1, 4, 5, 5}, "w");
}

TEST_CASE("collected inputs of products, on both sides and in batches") {
  // On the right the columns of the view are the rows of the matrix, so that the weight is symmetric
  // in this test.
  CheckEnergy(R"(func main<ios16>(tensor<fp32, [2, 3, 2]> x) {
  tensor<fp32, [2, 2, 2]> w = const()[val = tensor<fp32, [2, 2, 2]>([[[0.5, -1], [-1, 2]], [[3, 0.25], [0.25, 1]]])];
  tensor<fp32, [2, 3, 2]> y = matmul(x = x, y = w);
} -> (y);)",
              {2, 3, 2}, "w");
  CheckEnergy(R"(func main<ios16>(tensor<fp32, [2, 2, 3]> x) {
  tensor<fp32, [3, 2]> w = const()[val = tensor<fp32, [3, 2]>([[0.5, -1], [2, 1], [0.25, 3]])];
  tensor<fp32, [2, 3, 3]> y = matmul(x = w, y = x);
} -> (y);)",
              {2, 2, 3}, "w");
  CheckEnergy(R"(func main<ios16>(tensor<fp32, [4, 2]> x) {
  tensor<fp32, [3, 2]> w = const()[val = tensor<fp32, [3, 2]>([[0.5, -1], [2, 1], [0.25, 3]])];
  tensor<fp32, [4, 3]> y = matmul(x = x, y = w, transpose_y = true);
} -> (y);)",
              {4, 2}, "w");
}

TEST_CASE("collected inputs of hidden weights: the states of the steps, by direction") {
  const Program program = ParseText(R"(func main<ios16>(tensor<fp32, [5, 1, 3]> x) {
  z = const()[val = tensor<fp32, [1, 4]>(fill(0))];
  b = const()[val = tensor<fp32, [8]>(fill(0.1))];
  i = const()[val = tensor<fp32, [8, 3]>(fill(0.5))];
  w = const()[val = tensor<fp32, [8, 2]>(fill(0.25))];
  v = const()[val = tensor<fp32, [8, 2]>(fill(-0.75))];
  y, h, c = lstm(x = x, initial_h = z, initial_c = z, weight_ih = i, weight_hh = w, bias = b, weight_ih_back = i, weight_hh_back = v, bias_back = b, direction = "bidirectional", output_sequence = true);
} -> (y);)",
                                    "test.mil", Ops());
  std::map<std::string, const Value*> weights;
  ForEachOperation(*program.functions[0], [&](Operation* op) {
    if (op->def->is_const()) weights[op->result()->name] = op->result();
  });
  std::vector<float> numbers;
  for (int i = 0; i < 15; ++i) numbers.push_back(static_cast<float>(i % 7) / 4 - 0.5F);
  const verify::StepInputs inputs = {{"x", Tensor::Of({5, 1, 3}, numbers)}};
  Samples samples;
  samples.functions[program.functions[0]->name] = {{inputs}};
  const auto sums = Observe(program, samples, {weights["w"], weights["v"]}, {}).inputs;
  const std::vector<double> states = engine::Execute(program, inputs).at("y").Doubles();
  for (const auto& [name, begin] : {std::pair("w", 0), std::pair("v", 2)}) {
    const compress::InputStatistics means = sums.at(weights[name]).Means();
    REQUIRE(means.columns == 2);
    for (int c = 0; c < 2; ++c) {
      double mean = 0;
      for (int t = 0; t < 5; ++t) mean += states[t * 4 + begin + c] / 5;
      CHECK(static_cast<double>(means.mean[c]) == Approx(mean).epsilon(1e-5));
    }
  }
}
