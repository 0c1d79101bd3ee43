// Scales quantised integers before they are multiplied and summed, so that fp16 can represent the
// sums.
//
//   y = mul(cast(cast(conv(q, w), int32), fp32), s)   ->   y = conv(mul(q, s), w)
//   y = mul(conv(q, w), mul(s, c))                    ->   y = conv(mul(q, s), w * c)
//   y = cast(cast(q, int32), fp32)                    ->   q
//
// q holds integers, as quantised values without their zero point do: the sum of 255 products of 255
// and 127 far exceeds 65504, whereas the scaled values are as large as the original floats. s is a
// scalar that is known at run time (the scale of a dynamically quantised operand), and c is a
// constant with one number or one per row of w; fuse-conv and fuse-linear handle constant scales.
// Applies to conv, linear and matmul without a bias.
//
// Must not fire with --precision fp32, where such sums are exact, if an intermediate result has
// other users, or on values that are not known to be integers. Numeric effect: the sums consist of
// rounded products, so that a later rounding may differ by one step.
//
// Operators by name: casts, products and scales that it matches, and those that it creates.
#include "lib/ir/arithmetic.h"
#include "lib/ir/encoding.h"
#include "lib/ir/shape_tensors.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr int kDepth = 8;

bool IsWhole(const Value* value, int depth = 0) {
  if (!value || depth > kDepth) return false;
  if (value->is_constant()) {
    const Tensor constant = value->constant();
    if (!constant || constant.size() > 4096) return false;
    const std::vector<double> numbers = constant.Doubles();
    return std::ranges::all_of(numbers, [](double x) { return std::trunc(x) == x; });
  }
  const Operation* op = value->def;
  if (!op) return false;
  if (IsCast(*op)) {
    const Value* x = op->value("x");
    return x && (IsInteger(x->type.dtype) || IsWhole(x, depth + 1));
  }
  if (op->def->fp16.kind & Fp16::kMakesWhole) return true;
  if (!(op->def->fp16.kind & Fp16::kKeepsWhole)) return false;
  for (const Operands& operands : op->args())
    for (const Operand& operand : operands) {
      if (!operand.type().is_tensor() || !IsFloat(operand.type().dtype)) continue;
      if (operand.value ? !IsWhole(operand.value, depth + 1)
                        : std::trunc(operand.constant().Double(0)) != operand.constant().Double(0))
        return false;
    }
  return true;
}

// Returns whether the decoded values of a constant are integers.
bool IsWholeWeight(const Tensor& weight) {
  const Encoding* encoding = weight ? weight.encoding() : nullptr;
  if (!encoding || encoding->form != Encoding::Form::kAffine || encoding->bias ||
      !IsInteger(encoding->data.dtype()))
    return false;
  const std::vector<double> scale = encoding->scale.Doubles();
  return std::ranges::all_of(scale, [](double x) { return std::trunc(x) == x; });
}

// Returns whether the operand is a constant of integers, dense or encoded.
bool IsWholeConstant(const Value* value) {
  return value && value->is_constant() && (IsWholeWeight(value->constant()) || IsWhole(value));
}

bool IsProduct(const Operation& op) { return op.def->fp16.needs & Fp16::kWholeSums; }

// Returns the operand of a cast from float to int32 or back; null for other values.
Value* Converted(Value* value, DType to) {
  Operation* cast = DefinedBy(value, "cast");
  return cast && value->type.dtype == to ? cast->value("x") : nullptr;
}

bool DropCasts(Operation* op, PassContext&) {
  if (!IsCast(*op) || op->result()->type.dtype != DType::kFp32) return false;
  Value* integers = op->value("x");
  Value* from = integers ? Converted(integers, DType::kInt32) : nullptr;
  if (!from || from->type.dtype != DType::kFp32) return false;
  const bool product = from->def && IsProduct(*from->def) && IsWhole(from->def->value("x")) &&
                       (from->def->is("matmul") ? IsWhole(from->def->value("y")) ||
                                                      IsWholeConstant(from->def->value("y"))
                                                : IsWholeConstant(from->def->value("weight")));
  if ((!product && !IsWhole(from)) || !CanReplace(op->result(), from)) return false;
  return Replace(op, from);
}

// A factor as a scalar that is known at run time and a constant.
struct ScaleFactor {
  Value* number = nullptr;
  Tensor constant;
};
std::optional<ScaleFactor> FactorOf(Value* value) {
  auto is_number = [](const Value* x) {
    return x && !x->is_constant() && Product(x->type.shape) == Dim(1);
  };
  if (is_number(value)) {
    if (const Operation* mul = DefinedBy(value, "mul"); mul && SplitConstant(mul).second) {
      auto [constant, number] = SplitConstant(mul);
      if (is_number(number) && constant->constant().size() == 1)
        return ScaleFactor{number, constant->constant()};
    }
    return ScaleFactor{value, {}};
  }
  const Operation* mul = DefinedBy(value, "mul");
  if (!mul) return std::nullopt;
  auto [constant, number] = SplitConstant(mul);
  if (!number || !is_number(number)) return std::nullopt;
  return ScaleFactor{number, constant->constant()};
}

bool ScaleFirst(Operation* op, PassContext& context) {
  if (!op->is("mul") || !op->value("x") || !op->value("y")) return false;
  for (auto [sums, factor] : {std::pair{"x", "y"}, std::pair{"y", "x"}}) {
    Value* product = op->value(sums);
    if (!product->def || !IsProduct(*product->def) || SoleUser(product) != op) continue;
    Operation* multiply = product->def;
    if (multiply->def->Find("bias") >= 0 && multiply->has("bias")) continue;
    if (!(op->result()->type == product->type)) continue;
    if (!IsWhole(multiply->value("x"))) continue;
    std::optional<ScaleFactor> scale = FactorOf(op->value(factor));
    if (!scale) continue;
    const std::string weight = multiply->is("matmul") ? "y" : "weight";
    Value* right = multiply->value(weight);
    if (!right) continue;
    const Tensor rows = multiply->constant(weight);
    if (!IsWhole(right) && !IsWholeConstant(right)) continue;
    Builder builder = BuilderBefore(op, context);
    Value* number = scale->number;
    // Constants are folded into the weights if there is one per row, otherwise into the scalar.
    if (scale->constant) {
      Tensor scaled;
      if (rows && !multiply->is("matmul")) {
        const auto count = static_cast<size_t>(rows.dims()[0]);
        std::vector<double> numbers = scale->constant.Doubles();
        if (numbers.size() == 1) numbers.assign(count, numbers[0]);
        if (numbers.size() == count) scaled = ScaledRows(rows, numbers);
      }
      if (scaled)
        right = builder.Const(scaled, right->name);
      else if (scale->constant.size() == 1)
        number = op->value(factor);
      else
        continue;
    }
    if (number->type.rank() > 0) {
      std::vector<int64_t> none;
      number = WithShape(builder, number, {1});
      number = builder.Make("squeeze", {{"x", number}});
    }
    Value* q = Binary(builder, "mul", multiply->value("x"), number);
    Builder::Args args = ArgsWithout(*multiply, {"x", weight});
    args.emplace_back("x", q);
    args.emplace_back(weight, right);
    return Replace(op, builder.Make(multiply->def->name, std::move(args)));
  }
  return false;
}

}  // namespace

extern const PassDef kQuantisedProducts = {
    "quantised-products",
    "scale quantised integers before conv and matmul, so that fp16 sums do not overflow",
    RewritesForFp16<DropCasts, ScaleFirst>};

}  // namespace mlc::passes
