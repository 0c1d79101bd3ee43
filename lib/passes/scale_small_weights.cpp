// Scales weights that are subnormal in fp16, and scales the product back.
//
//   y = conv(x, w, b)   ->   y = mul(conv(x, w * 2^k, b * 2^k), 2^-k)      max |w| < 2^-14
//
// The factor 2^k scales the largest weight to about 2^-10, so that weights down to a sixteenth of
// it are normal numbers. Applies to conv, conv_transpose and linear. Must not fire if any weight is
// 2^-14 or more, on weights that are all 0 or not constant, or with --precision fp32. Numeric
// effect: only the usual fp16 rounding of weights.
#include "lib/ir/arithmetic.h"
#include "lib/ir/encoding.h"
#include "lib/ir/shape_tensors.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr int kScaledTo = -10;  // exponent of the largest weight

// Returns the constant multiplied by `factor`, in the same encoding.
Tensor Scaled(const Tensor& constant, double factor) {
  if (constant.encoding()) {
    Encoding encoding = *constant.encoding();
    switch (encoding.form) {
      case Encoding::Form::kAffine:
        encoding.scale = Scaled(encoding.scale, factor);
        if (encoding.bias) encoding.bias = Scaled(encoding.bias, factor);
        break;
      case Encoding::Form::kPalette:
        encoding.table = Scaled(encoding.table, factor);
        break;
      case Encoding::Form::kSparse:
        encoding.data = Scaled(encoding.data, factor);
        break;
    }
    return Tensor::Encoded(std::move(encoding)).Reshaped(constant.dims());
  }
  std::vector<double> numbers = constant.Doubles();
  for (double& number : numbers) number *= factor;
  return Tensor::Of<double>(constant.dims(), numbers).Cast(constant.dtype());
}

bool Scale(Operation* op, PassContext& context) {
  if (!(op->def->fp16.kind & Fp16::kProduct) || op->def->Find("weight") < 0) return false;
  const Tensor weight = op->constant("weight"), bias = op->constant("bias");
  if (!weight || !op->value("weight") || weight.dtype() != DType::kFp32) return false;
  if (op->has("bias") && (!bias || !op->value("bias"))) return false;
  if (!IsBelow(weight, kLeastNormal)) return false;
  const Tensor::Range range = weight.range();
  const double largest = std::max(range.high, -range.low);
  if (!(largest > 0)) return false;
  const double scale = std::exp2(kScaledTo - std::ilogb(largest));
  Builder builder = BuilderBefore(op, context);
  auto scaled = [&](const Tensor& constant, std::string_view param) {
    return builder.Const(Scaled(constant, scale), op->value(param)->name);
  };
  Builder::Args args = ArgsWithout(*op, {"weight", "bias"});
  args.emplace_back("weight", scaled(weight, "weight"));
  if (bias) args.emplace_back("bias", scaled(bias, "bias"));
  context.diagnostics.Decide(
      "safe-form", op->name,
      fmt::format("{}: constant weight, {}, is at most {:g}, which is subnormal in fp16, and is "
                  "scaled by 2^{}",
                  op->def->name, op->value("weight")->name, largest,
                  kScaledTo - std::ilogb(largest)));
  Value* product = builder.Make(op->def->name, std::move(args));
  return Replace(op, Binary(builder, "mul", product, 1 / scale));
}

}  // namespace

extern const PassDef kScaleSmallWeights = {
    "scale-small-weights", "multiply weights that are subnormal in fp16 by a power of two",
    RewritesForFp16<Scale>};

}  // namespace mlc::passes
