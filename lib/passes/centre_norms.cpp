// Takes the mean out of a bias whose sums are normalised next: it is subtracted there anyway, and fp16 has
// lost last digits until then.
//
//   y = layer_norm(linear(x, w, b), axes = [-1])   ->   y = layer_norm(linear(x, w, b - mean(b)), axes = [-1])
//
// Must not fire where the mean is no greater than what is left of the bias, where the sums are used
// elsewhere, on norms of other dimensions, nor with --precision fp32. Numeric effect: last bits.
//
// Operators by name: what it matches and what it makes.
#include <numeric>

#include "lib/passes/match.h"

namespace mlc {
namespace {

constexpr double kLeastMean = 1;  // below it fp16 loses less than what it keeps of the sums

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
  args.emplace_back("bias",
                    builder.Const(Tensor::Of<double>(bias.dims(), numbers).Cast(bias.dtype()),
                                  linear->value("bias")->name));
  Replace(linear, builder.Make("linear", std::move(args)));
  return true;
}

bool Run(Program& program, PassContext& context) {
  if (context.precision == PassContext::Precision::kFp32) return false;
  return RewriteAll(program, [&](Operation* op) { return Centre(op, context); });
}

}  // namespace

extern const PassDef kCentreNorms = {
    "centre-norms", "take the mean out of a bias whose sums are normalised next", Run};

}  // namespace mlc
