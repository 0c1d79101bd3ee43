// Compares kernels with the row's eval on special values, element by element: NaN, infinities, and
// zeros with their signs.
#include "lib/engine/kernels.h"
#include "test/catch.h"
#include "test/lib/ops/evaluate.h"

namespace mlc::test {
using namespace engine;
namespace {

constexpr float kMax = std::numeric_limits<float>::max(), kTiny = std::numeric_limits<float>::min(),
                kLeast = std::numeric_limits<float>::denorm_min();
const std::vector<float> kSpecial = {
    NAN,   INFINITY, -INFINITY, 0.0f,   -0.0f, kMax,   -kMax, kTiny,  -kTiny, kLeast, -kLeast,
    1.0f,  -1.0f,    0.5f,      -0.5f,  1e-4f, -1e-4f, 1e-8f, -1e-8f, 10.0f,  -10.0f, 50.0f,
    89.0f, -89.0f,   -104.0f,   104.0f, 1e20f, -1e20f, 2.0f,  0.625f, 0.4f,   -0.4f,  3e38f};

// Returns the elements that differ from eval; the sign of a zero matters if `zeros` is set.
std::string Differences(std::string_view op, const std::vector<In>& operands, bool zeros) {
  const OpDef& def = Ops().At(op);
  std::vector<bool> constant(def.canonical().params.size(), true);
  constant[def.Find("x")] = false;
  InferContext inferred = Infer(op, operands);
  PreparedWeights prepared;
  Kernel kernel =
      MakeKernel(FindKernels(op),
                 {EvalContext(def, ArgsOf(def, operands), inferred.results), constant, prepared});
  if (!kernel) return "there is no kernel";
  EvalContext context(def, ArgsOf(def, operands), inferred.results);
  kernel(context);
  std::string text;
  std::vector<double> got = context.results[0].Doubles(),
                      expected = Evaluate(op, operands).Doubles();
  for (size_t i = 0; i < expected.size(); ++i) {
    double a = got[i], b = expected[i];
    // Subnormal results may be flushed, including that of silu's sigmoid, which is multiplied by up
    // to 104.
    bool same = a == b || (std::isnan(a) && std::isnan(b)) ||
                (std::isfinite(a) && std::isfinite(b) &&
                 std::fabs(a - b) <= 3e-6 * std::fabs(b) + (op == "silu" ? 104 : 1) * 3e-38);
    if (zeros && a == 0 && b == 0) same = std::signbit(a) == std::signbit(b);
    if (!same) text += fmt::format("{}[{}]: {}, eval {}\n", op, i, a, b);
  }
  return text;
}

}  // namespace

TEST_CASE("elementwise kernels preserve special values") {
  Tensor x = Tensor::Vector(kSpecial);
  auto number = [](float v) { return Tensor::Scalar<float>(v); };
  std::string wrong;
  for (const char* op : {"abs", "erf", "exp", "relu", "relu6", "sigmoid", "silu", "softplus",
                         "sqrt", "square", "tanh"})
    wrong += Differences(op, {{"x", x}},
                         std::string_view(op) != "relu" && std::string_view(op) != "relu6");
  for (const char* mode : {"EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION"})
    wrong += Differences("gelu", {{"x", x}, {"mode", Tensor::String(mode)}}, false);
  for (const char* op : {"inverse", "rsqrt"})
    wrong += Differences(op, {{"x", x}, {"epsilon", number(0)}}, true);
  for (const char* op : {"elu", "leaky_relu"})
    for (float alpha : {1.0f, 0.5f, 0.0f, -1.0f, INFINITY, NAN})
      wrong += Differences(op, {{"x", x}, {"alpha", number(alpha)}}, true);
  for (auto [low, high] :
       {std::pair(-1.0f, 1.0f), {NAN, 1.0f}, {-1.0f, NAN}, {-INFINITY, 0.5f}, {2.0f, 1.0f}}) {
    wrong += Differences("clip", {{"x", x}, {"alpha", number(low)}, {"beta", number(high)}}, false);
    wrong += Differences("sigmoid_hard", {{"x", x}, {"alpha", number(low)}, {"beta", number(high)}},
                         false);
    wrong += Differences("linear_activation",
                         {{"x", x}, {"alpha", number(low)}, {"beta", number(high)}}, false);
  }
  CHECK(wrong == "");
}

TEST_CASE("binary kernels preserve special values") {
  int64_t n = static_cast<int64_t>(kSpecial.size());
  Tensor x = Tensor::Of<float>({n, 1}, kSpecial), y = Tensor::Of<float>({1, n}, kSpecial);
  std::string wrong;
  for (const char* op : {"add", "sub", "mul", "real_div", "pow"})
    wrong += Differences(op, {{"x", x}, {"y", y}}, true);
  for (const char* op : {"maximum", "minimum"})
    wrong += Differences(op, {{"x", x}, {"y", y}}, false);
  for (float exponent : {2.0f, 0.5f, -0.5f, 1.0f, 0.0f, 3.0f})
    wrong += Differences("pow", {{"x", x}, {"y", Tensor::Scalar<float>(exponent)}}, true);
  CHECK(wrong == "");
}

TEST_CASE("reduction kernels preserve special values") {
  const float inf = INFINITY;
  Tensor x = Tensor::Of<float>(
      {10, 3}, {1,   NAN, 2,   NAN,  1,    2,    inf,  1, 2,  -inf,   1,     2, inf, -inf, 1,
                inf, inf, inf, -inf, -inf, -inf, kMax, 1, -1, kLeast, kTiny, 0, NAN, inf,  -inf});
  std::string wrong;
  for (int32_t axis : {0, 1}) {
    for (const char* op : {"reduce_max", "reduce_min", "reduce_sum", "reduce_mean"})
      wrong += Differences(op, {{"x", x}, {"axes", Tensor::Vector<int32_t>({axis})}}, false);
    wrong += Differences("softmax", {{"x", x}, {"axis", Tensor::Scalar<int32_t>(axis)}}, false);
  }
  CHECK(wrong == "");
}

}  // namespace mlc::test
