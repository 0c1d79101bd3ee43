// Recognises a spelled-out layer normalisation.
//
//   m = reduce_mean(x, axes, keep_dims); d = sub(x, m); v = reduce_mean(d * d, axes, keep_dims)
//   y = d / sqrt(v + eps) [* gamma] [+ beta]      ->   y = layer_norm(x, axes, gamma, beta, eps)
//
// The square may be mul, pow 2 or square; the division real_div by sqrt, or mul by rsqrt. axes are
// the last dimensions. Must not fire where a part is used elsewhere (d is used three times, m
// once), or where gamma or beta are not constants of the normalised shape (then the scale stays
// outside). Numeric effect: last bits.
#include "lib/passes/match.h"

namespace mlc {
namespace {

std::vector<int64_t> ReducedAxes(const Operation& reduce) {
  Tensor axes = reduce.constant("axes");
  int64_t rank = reduce.value("x")->type.rank();
  std::vector<int64_t> list;
  if (!axes || !reduce.constant_or_default("keep_dims").Bool(0)) return {};
  for (int64_t axis : axes.Ints()) list.push_back(axis < 0 ? axis + rank : axis);
  std::sort(list.begin(), list.end());
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i] != rank - static_cast<int64_t>(list.size() - i)) return {};
  return list;
}

bool IsSquareOf(const Value* value, const Value* d) {
  const Operation* op = value ? value->def : nullptr;
  if (!op) return false;
  if (op->is("mul")) return op->value("x") == d && op->value("y") == d;
  if (op->is("square")) return op->value("x") == d;
  return op->is("pow") && op->value("x") == d && IsUniform(op->value("y"), 2);
}

// The constant operand of `op` in the normalised shape; null when it has another.
Value* Affine(Operation* op, const Value* normalised, size_t axes) {
  Value* other = OtherOperand(op, normalised);
  if (!other || !other->is_constant() || !(op->result()->type == normalised->type)) return nullptr;
  const Tensor& tensor = other->constant();
  const Shape& shape = normalised->type.shape;
  size_t lead = shape.size() - axes;
  if (tensor.rank() < static_cast<int>(axes)) return nullptr;
  for (int i = 0; i < tensor.rank(); ++i) {
    int from_end = tensor.rank() - i;
    if (from_end > static_cast<int>(axes)
            ? tensor.dims()[i] != 1
            : !(shape[lead + axes - from_end] == Dim(tensor.dims()[i])))
      return nullptr;
  }
  return other;
}

bool Match(Operation* divide, PassContext& context) {
  bool reciprocal = divide->is("mul");
  if (!divide->is("real_div") && !reciprocal) return false;
  for (Value* d : {divide->value("x"), divide->value("y")}) {
    Value* scale = d ? OtherOperand(divide, d) : nullptr;
    if (!scale || !scale->def || (!reciprocal && d != divide->value("x"))) continue;
    Operation* centre = DefinedBy(d, "sub");
    Operation* mean = centre ? DefinedBy(centre->value("y"), "reduce_mean") : nullptr;
    if (!mean || mean->value("x") != centre->value("x")) continue;
    std::vector<int64_t> axes = ReducedAxes(*mean);
    if (axes.empty()) continue;
    // scale = sqrt(v + eps), or rsqrt(v [+ eps], epsilon)
    double epsilon = 0;
    Value* sum = nullptr;
    if (!reciprocal && scale->def->is("sqrt")) {
      sum = scale->def->value("x");
    } else if (reciprocal && scale->def->is("rsqrt")) {
      sum = scale->def->value("x");
      Tensor own = scale->def->constant_or_default("epsilon");
      if (own && own.Double(0) > 1e-11) epsilon += own.Double(0);
    } else if (!reciprocal && scale->def->is("pow") && IsUniform(scale->def->value("y"), 0.5)) {
      sum = scale->def->value("x");
    } else {
      continue;
    }
    Value* variance = sum;
    if (Operation* add = DefinedBy(sum, "add")) {
      auto [constant, other] = SplitConstant(add);
      std::optional<double> number = UniformConstant(constant);
      if (!number) continue;
      epsilon += *number;
      variance = other;
    }
    Operation* mean_square = DefinedBy(variance, "reduce_mean");
    if (!mean_square || ReducedAxes(*mean_square) != axes ||
        !IsSquareOf(mean_square->value("x"), d))
      continue;
    if (epsilon <= 0 || !SoleUser(variance) || !SoleUser(scale) ||
        !SoleUser(mean_square->value("x")) || d->output_uses)
      continue;
    for (Operation* user : d->users)
      if (user != divide && user != mean_square->value("x")->def) return false;

    Operation* root = divide;
    Value *gamma = nullptr, *beta = nullptr;
    if (Operation* mul = SoleUser(root->result(), "mul"))
      if ((gamma = Affine(mul, root->result(), axes.size()))) root = mul;
    if (Operation* add = SoleUser(root->result(), "add"))
      if ((beta = Affine(add, root->result(), axes.size()))) root = add;
    Builder builder = BuilderBefore(root, context);
    Dims normalised;
    const Shape& shape = divide->result()->type.shape;
    for (int64_t axis : axes) {
      if (!shape[axis].is_constant()) return false;
      normalised.push_back(shape[axis].constant());
    }
    auto affine = [&](Value* value) {
      return value ? builder.Const(value->constant().Reshaped(normalised), value->name) : nullptr;
    };
    Value* made = builder.Make("layer_norm", {{"x", centre->value("x")},
                                              {"axes", Ints(axes)},
                                              {"gamma", affine(gamma)},
                                              {"beta", affine(beta)},
                                              {"epsilon", epsilon}});
    ReplaceAllUses(root->result(), made);
    root->block->Erase(root);
    return true;
  }
  return false;
}

bool Run(Program& program, PassContext& context) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (std::unique_ptr<Function>& function : program.functions) {
      std::vector<Operation*> starts;
      ForEachOperation(*function, [&](Operation* op) {
        if (op->is("real_div") || op->is("mul")) starts.push_back(op);
      });
      for (Operation* op : starts)
        if (Match(op, context)) {
          again = true;  // operations of the list may be gone
          break;
        }
    }
    changed |= again;
  }
  return changed;
}

}  // namespace

const PassDef kFuseLayerNorm = {"fuse-layer-norm", "recognise a spelled-out layer normalisation",
                                Run};

}  // namespace mlc
