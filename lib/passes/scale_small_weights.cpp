// Scales weights that are subnormal in fp16, and scales the product back.
//
//   y = conv(x, w, b)   ->   y = mul(conv(x, w * 2^k, b * 2^k), 2^-k)      max |w| < 2^-14
//   y = mul(x, c)       ->   y = mul(mul(x, c * 2^k), 2^-k)                max |c| < 2^-14
//   y = mul(matmul(x, w), c)   ->   y = mul(matmul(x, w * c * 2^k), 2^-k)
//
// The factor 2^k scales the largest weight to about 2^-10, so that weights down to a sixteenth of
// it are normal numbers. Applies to conv, conv_transpose and linear, and to products with a
// constant that are only added to other values (the layer scale of residual networks): the absolute
// error of a subnormal result, 2^-25, does not matter there. Must not fire if any weight is 2^-14
// or more, on weights that are all 0 or not constant, or with --precision fp32. Numeric effect:
// only the usual fp16 rounding of weights.
//
// Operators by name: the products and sums of residual branches.
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
  return Tensor::Of<double>(constant.dims(), numbers).Cast(constant.dtype()).ComputedFrom(constant);
}

// Returns the power of two that scales the largest number of an fp32 constant to 2^-10; nothing if
// it is a normal fp16 number, or 0.
std::optional<double> ScaleFor(const Tensor& constant) {
  if (!constant || constant.dtype() != DType::kFp32 || !IsBelow(constant, kLeastNormal))
    return std::nullopt;
  const Tensor::Range range = constant.range();
  const double largest = std::max(range.high, -range.low);
  return largest > 0 ? std::optional(std::exp2(kScaledTo - std::ilogb(largest))) : std::nullopt;
}

void Report(const Operation& op, std::string_view param, double scale, PassContext& context) {
  const Tensor& constant = op.constant(param);
  const Tensor::Range range = constant.range();
  context.diagnostics.Decide(
      "safe-form", op.name,
      fmt::format("{}: constant {}, {}, is at most {:g}, which is subnormal in fp16, and is "
                  "scaled by 2^{}",
                  op.def->name, param, op.value(param)->name, std::max(range.high, -range.low),
                  std::ilogb(scale)));
}

bool ScaleWeight(Operation* op, PassContext& context) {
  if (!(op->def->fp16.kind & Fp16::kProduct) || op->def->Find("weight") < 0) return false;
  const Tensor weight = op->constant("weight"), bias = op->constant("bias");
  if (!op->value("weight") || (op->has("bias") && (!bias || !op->value("bias")))) return false;
  const std::optional<double> scale = ScaleFor(weight);
  if (!scale) return false;
  Builder builder = BuilderBefore(op, context);
  auto scaled = [&](const Tensor& constant, std::string_view param) {
    return builder.Const(Scaled(constant, *scale), op->value(param)->name);
  };
  Builder::Args args = ArgsWithout(*op, {"weight", "bias"});
  args.emplace_back("weight", scaled(weight, "weight"));
  if (bias) args.emplace_back("bias", scaled(bias, "bias"));
  Report(*op, "weight", *scale, context);
  Value* product = builder.Make(op->def->name, std::move(args));
  return Replace(op, Binary(builder, "mul", product, 1 / *scale));
}

// Returns whether the value, possibly moved, is only added to values that are not constant.
bool IsOnlyAdded(const Value* value) {
  if (value->is_output() || value->users.empty()) return false;
  return std::all_of(value->users.begin(), value->users.end(), [&](const Operation* user) {
    if (user->is("add") || user->is("sub")) return !user->constant("x") && !user->constant("y");
    return MovesX(*user) && user->value("x") == value && IsOnlyAdded(user->result());
  });
}

// Returns matmul(x, w * factor), or add(matmul(x, w * factor), b * factor), for a value that is
// matmul(x, w), or add(matmul(x, w), b), with other constants; null for any other value. `factor`
// has one number, or one per column. Sets `scale` to a power of two that the result is scaled by.
Value* Folded(Builder& builder, Value* value, const Tensor& factor, double& scale) {
  Tensor bias;
  if (!SoleUser(value)) return nullptr;
  if (Operation* add = DefinedBy(value, "add")) {
    auto [constant, other] = SplitConstant(add);
    if (!constant || !SoleUser(other)) return nullptr;
    bias = constant->constant();
    value = other;
  }
  Operation* product = DefinedBy(value, "matmul");
  const Tensor weight = product ? product->constant("y") : Tensor();
  const Tensor transposed = product ? product->constant_or_default("transpose_y") : Tensor();
  if (!weight || !product->value("y") || weight.rank() != 2 || weight.encoding() || !transposed ||
      transposed.Bool(0) || weight.dtype() != DType::kFp32)
    return nullptr;
  const int64_t columns = weight.dims()[1];
  auto is_per_column = [&](const Tensor& tensor) {
    return tensor.size() == 1 || (tensor.size() == columns && tensor.dims().back() == columns);
  };
  if (!is_per_column(factor) || (bias && !is_per_column(bias))) return nullptr;
  constexpr int kFoldedTo = -3;  // exponent of the largest folded weight
  const Tensor::Range of_weight = weight.range(), of_factor = factor.range();
  const double largest =
      std::max(of_weight.high, -of_weight.low) * std::max(of_factor.high, -of_factor.low);
  if (!(largest > 0)) return nullptr;
  // Its reciprocal is a normal number, and so not scaled again.
  scale = std::exp2(std::min(kFoldedTo - std::ilogb(largest), 14));
  auto at = [](const Tensor& tensor, int64_t i) {
    return tensor.Double(tensor.size() == 1 ? 0 : i);
  };
  std::vector<double> factors, biases;
  for (int64_t i = 0; i < columns; ++i) {
    factors.push_back(at(factor, i) * scale);
    if (bias) biases.push_back(at(bias, i) * factors.back());
  }
  if (std::ranges::any_of(biases, [](double number) { return std::fabs(number) > 65504; }))
    return nullptr;
  Builder::Args args = ArgsWithout(*product, {"y"});
  args.emplace_back(
      "y", builder.Const(ScaledChannels(weight, factors, true), product->value("y")->name));
  Value* scaled = builder.Make("matmul", std::move(args));
  if (!bias) return scaled;
  return Binary(builder, "add", scaled, Tensor::Of<double>({columns}, biases).Cast(DType::kFp32));
}

bool ScaleFactor(Operation* op, PassContext& context) {
  if (!op->is("mul") || !IsOnlyAdded(op->result())) return false;
  auto [factor, x] = SplitConstant(op);
  std::optional<double> scale = factor ? ScaleFor(factor->constant()) : std::nullopt;
  if (!scale) return false;
  Builder builder = BuilderBefore(op, context);
  Value* scaled = Folded(builder, x, factor->constant(), *scale);
  if (!scaled)
    scaled =
        Binary(builder, "mul", x, builder.Const(Scaled(factor->constant(), *scale), factor->name));
  Report(*op, op->value("x") == factor ? "x" : "y", *scale, context);
  return Replace(op, Binary(builder, "mul", scaled, 1 / *scale));
}

}  // namespace

extern const PassDef kScaleSmallWeights = {
    "scale-small-weights", "multiply weights that are subnormal in fp16 by a power of two",
    RewritesForFp16<ScaleWeight, ScaleFactor>};

}  // namespace mlc::passes
