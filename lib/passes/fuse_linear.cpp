// Recognises linear layers (a product with a constant matrix and a constant bias), and replaces
// transposes of the last two dimensions with flags of matmul.
//
//   y = matmul(x, w)                                ->   y = linear(x, transpose(w))
//   y = add(linear(x, w, b), c)                     ->   y = linear(x, w, b + c)
//   y = mul(linear(x, w, b), c)                     ->   y = linear(x, w * c, b * c)
//   y = matmul(x, transpose(k, [0, 1, 3, 2]))       ->   y = matmul(x, k, transpose_y = true)
//
// x has rank 2 or 3, w is a constant of rank 2, and c has one number per feature. The third rewrite
// applies only to products of integers that are scaled and rounded, because fp16 cannot represent
// their sums.
//
// Must not fire if w is computed, if the product transposes x or x has more than three dimensions,
// or if the result of linear has other users. The third must not fire with --precision fp32, which
// keeps such sums exact. Numeric effect: bias sums are rounded once.
//
// Operators by name: products and the operations around them.
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

bool FromMatmul(Operation* matmul, PassContext& context) {
  if (!matmul->is("matmul")) return false;
  Value *x = matmul->value("x"), *y = matmul->value("y");
  if (!x || !y || x->is_constant() || !y->is_constant() || !IsFloat(y->type.dtype)) return false;
  if (y->type.rank() != 2 || x->type.rank() < 2 || x->type.rank() > 3) return false;
  if (x->type.dtype != y->type.dtype) return false;
  if (matmul->constant_or_default("transpose_x").Bool(0)) return false;
  Builder builder = BuilderBefore(matmul, context);
  Value* w = matmul->constant_or_default("transpose_y").Bool(0)
                 ? y
                 : builder.Const(y->constant().Transposed({1, 0}), y->name);
  return Replace(matmul, builder.Make("linear", {{"x", x}, {"weight", w}}));
}

bool Bias(Operation* sum, PassContext& context) {
  if (!sum->is("add") && !sum->is("sub")) return false;
  auto [constant, product] = SplitConstant(sum);
  Operation* linear = DefinedBy(product, "linear");
  if (!linear || SoleUser(product) != sum || !linear->value("weight")) return false;
  if (sum->is("sub") && sum->value("y") != constant) return false;
  if (linear->has("bias") && !linear->constant("bias")) return false;
  if (!(sum->result()->type == product->type)) return false;
  const Dim& last = product->type.shape.back();
  Tensor added = constant->constant();
  if (!last.is_constant() || !IsFloat(added.dtype())) return false;
  int64_t features = last.constant();
  if (added.size() != 1 && (added.size() != features || added.dims().back() != features))
    return false;
  Tensor old = linear->constant("bias");
  std::vector<double> bias(features);
  for (int64_t i = 0; i < features; ++i) {
    double number = added.Double(added.size() == 1 ? 0 : i);
    bias[i] = (old ? old.Double(i) : 0) + (sum->is("sub") ? -number : number);
  }
  Builder builder = BuilderBefore(sum, context);
  Value* b = builder.Const(Tensor::Of<double>({features}, bias)
                               .Cast(added.dtype())
                               .ComputedFrom(added)
                               .ComputedFrom(old),
                           constant->name);
  return Replace(sum, builder.Make("linear", {{"x", linear->value("x")},
                                              {"weight", linear->value("weight")},
                                              {"bias", b}}));
}

// Returns one number per feature; empty if the constant has another shape.
std::vector<double> PerFeature(const Tensor& constant, int64_t features) {
  if (!IsFloat(constant.dtype())) return {};
  if (constant.size() == 1)
    return std::vector<double>(static_cast<size_t>(features), constant.Double(0));
  if (constant.size() != features || constant.dims().back() != features) return {};
  return constant.Doubles();
}

bool Scale(Operation* scaled, PassContext& context) {
  if (context.precision == PassContext::Precision::kFp32) return false;
  if (!scaled->is("mul") && !scaled->is("real_div")) return false;
  auto [constant, product] = SplitConstant(scaled);
  Operation* linear = DefinedBy(product, "linear");
  if (!linear || SoleUser(product) != scaled || !linear->value("weight")) return false;
  if (scaled->is("real_div") && scaled->value("y") != constant) return false;
  if (linear->has("bias") && !linear->constant("bias")) return false;
  if (!(scaled->result()->type == product->type) || !DecidesSteps(scaled->result())) return false;
  const Tensor weight = linear->constant("weight"), old = linear->constant("bias");
  std::vector<double> numbers = PerFeature(constant->constant(), weight.dims()[0]);
  for (double& number : numbers)
    if (scaled->is("real_div")) number = 1 / number;
  const Tensor rows = numbers.empty() ? Tensor() : ScaledRows(weight, numbers);
  if (!rows) return false;
  Builder builder = BuilderBefore(scaled, context);
  Builder::Args args = {{"x", linear->value("x")},
                        {"weight", builder.Const(rows, linear->value("weight")->name)}};
  if (old) {
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] *= old.Double(static_cast<int64_t>(i));
    args.emplace_back(
        "bias",
        builder.Const(Tensor::Of<double>(old.dims(), numbers).Cast(old.dtype()).ComputedFrom(old),
                      linear->value("bias")->name));
  }
  return Replace(scaled, builder.Make("linear", std::move(args)));
}

// Returns whether the operation swaps the last two dimensions only.
bool SwapsLastTwo(const Operation& transpose) {
  int rank = transpose.result()->type.rank();
  auto perm = ConstantAxes(transpose, "perm", rank);
  if (!perm || rank < 2) return false;
  std::swap((*perm)[rank - 1], (*perm)[rank - 2]);
  return std::ranges::is_sorted(*perm);
}

bool TakeTranspose(Operation* matmul, PassContext& context) {
  if (!matmul->is("matmul")) return false;
  for (auto [operand, flag] : {std::pair{"x", "transpose_x"}, std::pair{"y", "transpose_y"}}) {
    Operation* transpose = DefinedBy(matmul->value(operand), "transpose");
    Tensor old = matmul->constant_or_default(flag);
    if (!transpose || !SwapsLastTwo(*transpose) || !transpose->value("x") || !old) continue;
    Builder::Args args = ArgsWithout(*matmul, {operand, flag});
    args.emplace_back(operand, transpose->value("x"));
    args.emplace_back(flag, !old.Bool(0));
    return ReplaceBy(matmul, context, "matmul", std::move(args));
  }
  return false;
}

}  // namespace

extern const PassDef kFuseLinear = {
    "fuse-linear",
    "turn products with constant matrices into linear, and transposes into matmul flags",
    Rewrites<TakeTranspose, FromMatmul, Bias, Scale>};

}  // namespace mlc::passes
