// Recognises linear: a product with a constant matrix, and the constant sum after it.
//
//   y = matmul(x, w)                  ->   y = linear(x, transpose(w))          x of rank 1 to 3, w
//   constant of rank 2 y = add(linear(x, w, b), c)       ->   y = linear(x, w, b + c) c one number
//   per output feature
//
// Must not fire where w is computed, where x is transposed by the product or has more than three
// dimensions, or where the linear's result is used elsewhere. Numeric effect: the sums of bias are
// rounded once.
#include "lib/passes/match.h"

namespace mlc {
namespace {

bool FromMatmul(Operation* matmul, PassContext& context) {
  if (!matmul->is("matmul")) return false;
  Value *x = matmul->value("x"), *y = matmul->value("y");
  if (!x || !y || x->is_constant() || !y->is_constant() || !IsFloat(y->type.dtype)) return false;
  if (y->type.rank() != 2 || x->type.rank() < 2 || x->type.rank() > 3) return false;
  if (matmul->constant_or_default("transpose_x").Bool(0)) return false;
  Tensor weight = y->constant();
  if (!matmul->constant_or_default("transpose_y").Bool(0)) weight = weight.Transposed({1, 0});
  Builder builder = BuilderBefore(matmul, context);
  Value* w = builder.Const(weight, y->name);
  ReplaceAllUses(matmul->result(), builder.Make("linear", {{"x", x}, {"weight", w}}));
  matmul->block->Erase(matmul);
  return true;
}

bool Bias(Operation* sum, PassContext& context) {
  if (!sum->is("add") && !sum->is("sub")) return false;
  auto [constant, product] = SplitConstant(sum);
  Operation* linear = DefinedBy(product, "linear");
  if (!linear || SoleUser(product) != sum || !linear->constant("weight")) return false;
  if (sum->is("sub") && sum->value("y") != constant) return false;
  if (linear->has("bias") && !linear->constant("bias")) return false;
  if (!(sum->result()->type == product->type)) return false;
  Tensor added = constant->constant();
  int64_t features = linear->constant("weight").dims()[0];
  if (added.size() != 1 && (added.size() != features || added.dims().back() != features))
    return false;
  Tensor old = linear->constant("bias");
  std::vector<double> bias(features);
  for (int64_t i = 0; i < features; ++i) {
    double number = added.Double(added.size() == 1 ? 0 : i);
    bias[i] = (old ? old.Double(i) : 0) + (sum->is("sub") ? -number : number);
  }
  Builder builder = BuilderBefore(sum, context);
  Value* b =
      builder.Const(Tensor::Of<double>({features}, bias).Cast(added.dtype()), constant->name);
  ReplaceAllUses(sum->result(), builder.Make("linear", {{"x", linear->value("x")},
                                                        {"weight", linear->value("weight")},
                                                        {"bias", b}}));
  sum->block->Erase(sum);
  return true;
}

bool Run(Program& program, PassContext& context) {
  return RewriteAll(program,
                    [&](Operation* op) { return FromMatmul(op, context) || Bias(op, context); });
}

}  // namespace

const PassDef kFuseLinear = {
    "fuse-linear", "turn products with constant matrices into linear, with its bias", Run};

}  // namespace mlc
