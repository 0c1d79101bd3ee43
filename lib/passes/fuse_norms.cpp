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
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

// Returns the axes of a reduction over trailing dimensions with keep_dims; empty for any other
// reduction.
std::vector<int64_t> ReducedAxes(const Operation& reduce) {
  Value* x = reduce.value("x");
  if (!x || !reduce.constant_or_default("keep_dims").Bool(0)) return {};
  auto axes = ConstantAxes(reduce, "axes", x->type.rank());
  if (!axes) return {};
  std::ranges::sort(*axes);
  for (size_t i = 0; i < axes->size(); ++i)
    if ((*axes)[i] != x->type.rank() - static_cast<int64_t>(axes->size() - i)) return {};
  return *axes;
}

// Returns v if value = 1 / sqrt(v) (reciprocal) or sqrt(v) without other users, and adds the
// epsilons in between to `epsilon`.
Value* UnderRoot(Value* value, bool reciprocal, double& epsilon) {
  if (!value || !value->def || !SoleUser(value)) return nullptr;
  const Operation& op = *value->def;
  if (!reciprocal) {
    if (op.is("sqrt")) return op.value("x");
    return op.is("pow") && IsUniform(op.value("y"), 0.5) ? op.value("x") : nullptr;
  }
  if (op.is("pow")) return IsUniform(op.value("y"), -0.5) ? op.value("x") : nullptr;
  if (op.is("rsqrt")) {
    if (Tensor own = op.constant_or_default("epsilon"); own && own.Double(0) > 1e-11)
      epsilon += own.Double(0);
    return op.value("x");
  }
  if (op.is("inverse")) {
    Tensor own = op.constant_or_default("epsilon");
    return own && own.Double(0) <= 1e-6 ? UnderRoot(op.value("x"), false, epsilon) : nullptr;
  }
  if (op.is("real_div") && IsUniform(op.value("x"), 1))
    return UnderRoot(op.value("y"), false, epsilon);
  return nullptr;
}

bool Normalise(Operation* divide, PassContext& context) {
  bool reciprocal = divide->is("mul");
  if (!divide->is("real_div") && !reciprocal) return false;
  for (Value* d : {divide->value("x"), divide->value("y")}) {
    if (!d || (!reciprocal && d != divide->value("x"))) continue;
    Operation* centre = DefinedBy(d, "sub");
    Operation* mean = centre ? DefinedBy(centre->value("y"), "reduce_mean") : nullptr;
    Value* x = centre ? centre->value("x") : nullptr;
    if (!mean || !x || mean->value("x") != x || !(x->type == divide->result()->type)) continue;
    std::vector<int64_t> axes = ReducedAxes(*mean);
    double epsilon = 0;
    Value* variance = UnderRoot(OtherOperand(divide, d), reciprocal, epsilon);
    if (Operation* add = DefinedBy(variance, "add")) {
      auto [constant, other] = SplitConstant(add);
      std::optional<double> number = UniformConstant(constant);
      if (!number || !SoleUser(variance)) continue;
      epsilon += *number;
      variance = other;
    }
    Operation* mean_square = DefinedBy(variance, "reduce_mean");
    if (axes.empty() || epsilon <= 0 || !mean_square || !SoleUser(variance)) continue;
    Value* square = mean_square->value("x");
    if (ReducedAxes(*mean_square) != axes || SquareRoot(square) != d || !SoleUser(square) ||
        d->is_output())
      continue;
    bool elsewhere = false;
    for (Operation* user : d->users) elsewhere |= user != divide && user != square->def;
    for (int64_t axis : axes) elsewhere |= !x->type.shape[axis].is_constant();
    if (elsewhere) continue;
    Builder builder = BuilderBefore(divide, context);
    bool instance = x->type.rank() == 4 && axes.size() == 2 && x->type.shape[1].is_constant();
    return Replace(divide,
                   instance ? builder.Make("instance_norm", {{"x", x}, {"epsilon", epsilon}})
                            : builder.Make("layer_norm",
                                           {{"x", x}, {"axes", Ints(axes)}, {"epsilon", epsilon}}));
  }
  return false;
}

// Returns the constant as gamma or beta of the normalisation; empty if its shape does not fit.
Tensor AsParameter(const Tensor& constant, const Operation& norm) {
  const Shape& shape = norm.result()->type.shape;
  int rank = static_cast<int>(shape.size());
  std::vector<int64_t> axes = {1};
  if (norm.is("layer_norm")) {
    auto named = ConstantAxes(norm, "axes", rank);
    if (!named || !norm.has("axes")) return {};
    axes = *named;
    std::ranges::sort(axes);
  }
  Dims dims;
  for (int64_t axis : axes) {
    if (!shape[axis].is_constant()) return {};
    dims.push_back(shape[axis].constant());
  }
  if (std::optional<double> number = Uniform(constant); number && constant.rank() <= rank)
    return Tensor::Full(constant.dtype(), dims, *number);
  int lead = rank - constant.rank();
  if (lead < 0 || constant.size() != ElementCount(dims)) return {};
  for (int i = 0; i < rank; ++i) {
    bool normalised = std::ranges::find(axes, i) != axes.end();
    int64_t dim = i < lead ? 1 : constant.dims()[i - lead];
    if (normalised ? !(shape[i] == Dim(dim)) : dim != 1) return {};
  }
  return constant.Reshaped(dims);
}

Tensor Combine(const Tensor& a, const Tensor& b, bool product) {
  if (!a) return b;
  std::vector<double> values = a.Doubles();
  for (size_t i = 0; i < values.size(); ++i) {
    double other = b.Double(static_cast<int64_t>(i));
    values[i] = product ? values[i] * other : values[i] + other;
  }
  return Tensor::Of<double>(a.dims(), values).Cast(a.dtype());
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
