// Writes operations in the forms that GPUs execute best (rules unfused-attention and gpu-pointwise
// of lib/analysis/placement_rules.h).
//
//   s = matmul(mul(q, 0.125), k, transpose_y = true); p = softmax(add(s, mask), axis = -1)
//   y = matmul(p, v)
//     ->   y = scaled_dot_product_attention(q, k, v, mask)         from iOS18; heads of 64 elements
//
//   x: [1, 64, 1, 16]; y = conv(x, w: [32, 64, 1, 1])
//     ->   a = transpose(squeeze(x, [2]), [0, 2, 1]); b = linear(a, w: [32, 64])
//          y = expand_dims(transpose(b, [0, 2, 1]), [2])
//
// A scale other than 1 / sqrt(width) multiplies the queries. Must not fire without --optimize-for
// gpu, if the target is older, if an intermediate result has other users, if queries, keys and
// values differ in their leading dimensions, on windows, strides and groups, or on pooled images,
// [n, c, 1, 1], between other convolutions. Numeric effect: the
// order of rounding.
//
// Operators by name: those that the rules concern.
#include <algorithm>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr double kSameScale = 0x1p-11;  // relative; the precision of fp16

bool IsFor(const PassContext& context) { return context.optimize_for == analysis::Unit::kGpu; }

// Removes a factor from a value that has no other users, and multiplies `scale` by it.
Value* WithoutScale(Value* value, double& scale) {
  Value* scaled = nullptr;
  if (!value->def || !SoleUser(value)) return value;
  const std::optional<double> factor = ScaleOf(*value->def, scaled);
  if (!factor || !scaled || !(scaled->type.shape == value->type.shape)) return value;
  scale *= *factor;
  return scaled;
}

// Returns whether the value is a product of two values, possibly scaled.
bool IsProduct(const Value* value) {
  if (!value->def) return false;
  Value* scaled = nullptr;
  if (ScaleOf(*value->def, scaled)) value = scaled;
  const Operation* product = DefinedBy(value, "matmul");
  return product && !product->constant("x") && !product->constant("y");
}

bool Attention(Operation* op, PassContext& context) {
  if (!IsFor(context) || context.target < Opset::kIos18 || !op->is("matmul")) return false;
  const Tensor swapped = op->constant_or_default("transpose_x"),
               swapped_values = op->constant_or_default("transpose_y");
  Operation* softmax = DefinedBy(op->value("x"), "softmax");
  Value* v = op->value("y");
  if (!softmax || !v || v->is_constant() || !swapped || swapped.Bool(0) || !swapped_values ||
      swapped_values.Bool(0) || SoleUser(softmax->result()) != op)
    return false;
  Value* scores = softmax->value("x");
  auto axis = ConstantAxes(*softmax, "axis", softmax->result()->type.rank());
  if (!scores || !axis || (*axis)[0] != scores->type.rank() - 1 || !SoleUser(scores)) return false;
  Value* mask = nullptr;
  if (Operation* add = DefinedBy(scores, "add")) {
    Value *x = add->value("x"), *y = add->value("y");
    if (!x || !y) return false;
    const bool first = IsProduct(x);
    scores = first ? x : y;
    mask = first ? y : x;
    // A mask may broadcast the scores; attention does not.
    if (!SoleUser(scores) || mask->type.dtype != scores->type.dtype ||
        !(add->result()->type.shape == scores->type.shape))
      return false;
  }
  double scale = 1;
  scores = WithoutScale(scores, scale);
  Operation* product = DefinedBy(scores, "matmul");
  if (!product || !SoleUser(scores)) return false;
  Value *q = product->value("x"), *k = product->value("y");
  const Tensor transposed_q = product->constant_or_default("transpose_x"),
               transposed_k = product->constant_or_default("transpose_y");
  if (!q || !k || !transposed_q || !transposed_k || transposed_q.Bool(0)) return false;
  const size_t rank = q->type.shape.size();
  if (rank < 3 || k->type.shape.size() != rank || v->type.shape.size() != rank) return false;
  for (size_t i = 0; i + 2 < rank; ++i)
    if (!(q->type.shape[i] == k->type.shape[i]) || !(q->type.shape[i] == v->type.shape[i]))
      return false;
  if (mask && mask->type.shape.size() > rank) return false;
  const Dim width = q->type.shape.back();
  if (!width.is_constant()) return false;
  q = WithoutScale(q, scale);
  Builder b = BuilderBefore(op, context);
  if (!transposed_k.Bool(0)) {
    std::vector<int64_t> perm = Consecutive(0, static_cast<int64_t>(rank));
    std::swap(perm[rank - 1], perm[rank - 2]);
    k = Transposed(b, k, perm);
  }
  const double rest = scale * std::sqrt(static_cast<double>(width.constant()));
  if (std::fabs(rest - 1) > kSameScale) q = Binary(b, "mul", q, rest);
  Builder::Args args = {{"query", q}, {"key", k}, {"value", v}};
  if (mask) args.emplace_back("attn_mask", mask);
  return Replace(op, b.Make("scaled_dot_product_attention", std::move(args)));
}

bool Pointwise(Operation* op, PassContext& context) {
  const Tensor weight = op->is("conv") ? op->constant("weight") : Tensor();
  Value* x = op->is("conv") ? op->value("x") : nullptr;
  if (!IsFor(context) || !weight || !x || !op->value("weight") || weight.rank() != 4) return false;
  const Dims& dims = weight.dims();
  if (dims[2] != 1 || dims[3] != 1 || !(x->type.shape[2] == Dim(1)) || x->type.shape[3] == Dim(1))
    return false;
  const Tensor groups = op->constant_or_default("groups");
  if (!groups || groups.Int(0) != 1) return false;
  for (auto [param, number] : {std::pair{"strides", 1}, {"dilations", 1}, {"pad", 0}}) {
    const Tensor numbers = op->constant(param);
    if (numbers && !IsUniform(op->value(param), number)) return false;
  }
  Builder b = BuilderBefore(op, context);
  Builder::Args args = {
      {"x", Transposed(b, Squeezed(b, x, {2}), {0, 2, 1})},
      {"weight", b.Const(weight.Reshaped({dims[0], dims[1]}), op->value("weight")->name)}};
  if (op->has("bias")) args.emplace_back("bias", op->arg("bias")[0]);
  return Replace(op, Expanded(b, Transposed(b, b.Make("linear", std::move(args)), {0, 2, 1}), {2}));
}

// Says once that a newer target would help.
void ReportTarget(Program& program, PassContext& context) {
  if (!IsFor(context) || context.target >= Opset::kIos18) return;
  bool has_attention = false;
  for (const std::unique_ptr<Function>& function : program.functions)
    ForEachOperation(*function, [&](const Operation* op) {
      const Operation* user = op->is("softmax") ? SoleUser(op->result(), "matmul") : nullptr;
      has_attention |= user && !user->constant("x") && !user->constant("y");
    });
  if (has_attention)
    context.diagnostics.Note(
        "option 'optimize-for' gpu: attention stays as it is, because scaled_dot_product_attention "
        "requires option 'target' iOS18 or newer");
}

bool RunGpuForms(Program& program, PassContext& context) {
  const bool changed = Rewrites<Attention, Pointwise>(program, context);
  if (!changed) ReportTarget(program, context);
  return changed;
}

}  // namespace

extern const PassDef kGpuForms = {
    "gpu-forms",
    "fuse attention, and turn pointwise convolutions into linear, if the program is for a GPU",
    RunGpuForms};

}  // namespace mlc::passes
