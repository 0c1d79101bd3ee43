// Subtracts the mean from a bias that is added just before a layer_norm, which subtracts the mean
// anyway, but only after fp16 has lost low-order digits.
//
//   y = layer_norm(linear(x, w, b), axes = [-1])
//     ->   y = layer_norm(linear(x, w, b - mean(b)), axes = [-1])
//
// Must not fire if the mean is not larger than the remaining bias, if the sum has other users, on
// normalisations over other axes, or with --precision fp32. Numeric effect: the last bits.
//
// Operators by name: the linear and layer_norm that it matches, and the linear that it creates.
#include <numeric>

#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr double kLeastMean =
    1;  // for a smaller mean, fp16 loses less than the rounding error of the sum

bool Centre(Operation* norm, PassContext& context) {
  if (!norm->is("layer_norm")) return false;
  Value* sums = norm->value("x");
  Operation* linear = DefinedBy(sums, "linear");
  if (!linear || SoleUser(sums) != norm || !linear->value("bias")) return false;
  const int rank = sums->type.rank();
  auto axes = ConstantAxes(*norm, "axes", rank);
  if (!axes || *axes != std::vector<int64_t>{rank - 1}) return false;
  const Tensor bias = linear->constant("bias");
  if (!bias || bias.size() == 0) return false;
  std::vector<double> numbers = bias.Doubles();
  const double mean =
      std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
  double left = kLeastMean;
  for (double& number : numbers) left = std::max(left, std::fabs(number -= mean));
  if (!std::isfinite(mean) || !(std::fabs(mean) > left)) return false;
  Builder builder = BuilderBefore(norm, context);
  builder.SetName(sums->name);
  Builder::Args args = ArgsWithout(*linear, {"bias"});
  args.emplace_back(
      "bias",
      builder.Const(Tensor::Of<double>(bias.dims(), numbers).Cast(bias.dtype()).ComputedFrom(bias),
                    linear->value("bias")->name));
  return Replace(linear, builder.Make("linear", std::move(args)));
}

}  // namespace

extern const PassDef kCentreNorms = {
    "centre-norms", "subtract the mean from a bias that is added just before a layer_norm",
    RewritesForFp16<Centre>};

}  // namespace mlc::passes
