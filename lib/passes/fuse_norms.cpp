// Recognises decomposed layer and instance normalisations, and folds the constant scale and shift
// after them.
//
//   m = reduce_mean(x, axes, keep_dims); d = sub(x, m); v = reduce_mean(d * d, axes, keep_dims)
//   y = d / sqrt(v + eps)                         ->   y = layer_norm(x, axes, eps)
//                                                      instance_norm(x, eps) for axes [2, 3] of 4
//   y = mul(layer_norm(x), g)                     ->   y = layer_norm(x, gamma = g)
//   y = add(layer_norm(x), b)                     ->   y = layer_norm(x, beta = b)
//
// The square may be mul, pow 2 or square; the division by a root may be real_div, or mul with
// rsqrt, inverse, 1 / x or pow -0.5. The axes are the last dimensions. Must not fire if an
// intermediate result has other users, without an epsilon, or if scale and shift are not constants
// of the normalised shape (instance_norm: one number per channel). Numeric effect: the last bits;
// the squares no longer overflow fp16.
//
// Operators by name: the parts of normalisations, and normalisations.
#include "lib/passes/decomposed_norm.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

bool Normalise(Operation* divide, PassContext& context) {
  return ForDecomposedNorm(divide, [&](const DecomposedNorm& norm) {
    Value* d = norm.d;
    Operation* centre = DefinedBy(d, "sub");
    Operation* mean = centre ? DefinedBy(centre->value("y"), "reduce_mean") : nullptr;
    Value* x = centre ? centre->value("x") : nullptr;
    if (!mean || !x || mean->value("x") != x || !(x->type == d->type) || d->is_output() ||
        TrailingAxes(*mean) != norm.axes)
      return false;
    for (Operation* user : d->users)
      if (user != divide && user != norm.square) return false;
    Builder builder = BuilderBefore(divide, context);
    bool instance = x->type.rank() == 4 && norm.axes.size() == 2 && x->type.shape[1].is_constant();
    Builder::Args args = {{"x", x}, {"epsilon", norm.epsilon}};
    if (!instance) args.emplace_back("axes", Ints(norm.axes));
    return Replace(divide,
                   builder.Make(instance ? "instance_norm" : "layer_norm", std::move(args)));
  });
}

// Returns the constant as gamma or beta of the normalisation; empty if its shape does not fit.
Tensor AsParameter(const Tensor& constant, const Operation& norm) {
  const Shape& shape = norm.result()->type.shape;
  std::vector<int64_t> axes = {1};
  if (norm.is("layer_norm")) {
    auto named = ConstantAxes(norm, "axes", static_cast<int>(shape.size()));
    if (!named || !norm.has("axes")) return {};
    axes = *named;
    std::ranges::sort(axes);
  }
  return AsNormParameter(constant, shape, axes);
}

Tensor Combine(const Tensor& a, const Tensor& b, bool product) {
  if (!a) return b;
  std::vector<double> values = a.Doubles();
  for (size_t i = 0; i < values.size(); ++i) {
    double other = b.Double(static_cast<int64_t>(i));
    values[i] = product ? values[i] * other : values[i] + other;
  }
  return Tensor::Of<double>(a.dims(), values).Cast(a.dtype()).ComputedFrom(a).ComputedFrom(b);
}

bool TakeIn(Operation* after, PassContext& context) {
  bool product = after->is("mul");
  if (!product && !after->is("add") && !after->is("sub")) return false;
  auto [constant, normalised] = SplitConstant(after);
  if (!constant || SoleUser(normalised) != after || !normalised->def) return false;
  Operation* norm = normalised->def;
  if (!norm->is("layer_norm") && !norm->is("instance_norm")) return false;
  if (!(after->result()->type == normalised->type)) return false;
  if (after->is("sub") && after->value("y") != constant) return false;
  Tensor gamma = norm->constant("gamma"), beta = norm->constant("beta"),
         own = AsParameter(constant->constant(), *norm);
  if (!own || (norm->has("gamma") && !gamma) || (norm->has("beta") && !beta)) return false;
  if (after->is("sub")) own = Combine(Tensor::Full(own.dtype(), own.dims(), -1), own, true);
  if (product) {
    gamma = Combine(gamma, own, true);
    if (beta) beta = Combine(beta, own, true);
  } else {
    beta = Combine(beta, own, false);
  }
  Builder builder = BuilderBefore(after, context);
  Builder::Args args = ArgsWithout(*norm, {"gamma", "beta"});
  if (gamma) args.emplace_back("gamma", builder.Const(gamma, norm->name + "_gamma"));
  if (beta) args.emplace_back("beta", builder.Const(beta, norm->name + "_beta"));
  return Replace(after, builder.Make(norm->def->name, std::move(args)));
}

}  // namespace

extern const PassDef kFuseNorms = {
    "fuse-norms", "fuse decomposed layer_norm and instance_norm with their scale and shift",
    Rewrites<Normalise, TakeIn>};

}  // namespace mlc::passes
