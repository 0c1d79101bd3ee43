// Operators by name: the parts of normalisations that it matches.
#include "lib/passes/decomposed_norm.h"

#include <algorithm>

#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

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

// Returns the normalisation of `d` by the division, if nothing else uses its parts.
std::optional<DecomposedNorm> NormOf(const Operation* divide, Value* d, bool reciprocal) {
  DecomposedNorm norm = {d};
  Value* variance = UnderRoot(OtherOperand(divide, d), reciprocal, norm.epsilon);
  if (Operation* add = DefinedBy(variance, "add")) {
    auto [constant, other] = SplitConstant(add);
    std::optional<double> number = UniformConstant(constant);
    if (!number || !SoleUser(variance)) return std::nullopt;
    norm.epsilon += *number;
    variance = other;
  }
  Operation* mean_square = DefinedBy(variance, "reduce_mean");
  if (norm.epsilon <= 0 || !mean_square || !SoleUser(variance)) return std::nullopt;
  Value* square = mean_square->value("x");
  norm.axes = TrailingAxes(*mean_square);
  if (norm.axes.empty() || SquareRoot(square) != d || !SoleUser(square)) return std::nullopt;
  norm.square = square->def;
  for (int64_t axis : norm.axes)
    if (!d->type.shape[axis].is_constant()) return std::nullopt;
  return norm;
}

}  // namespace

std::vector<int64_t> TrailingAxes(const Operation& reduce) {
  Value* x = reduce.value("x");
  if (!x || !reduce.constant_or_default("keep_dims").Bool(0)) return {};
  auto axes = ConstantAxes(reduce, "axes", x->type.rank());
  if (!axes) return {};
  std::ranges::sort(*axes);
  for (size_t i = 0; i < axes->size(); ++i)
    if ((*axes)[i] != x->type.rank() - static_cast<int64_t>(axes->size() - i)) return {};
  return *axes;
}

bool ForDecomposedNorm(const Operation* divide,
                       const std::function<bool(const DecomposedNorm&)>& rewrite) {
  const bool reciprocal = divide->is("mul");
  if (!divide->is("real_div") && !reciprocal) return false;
  for (Value* d : {divide->value("x"), divide->value("y")}) {
    if (!d || (!reciprocal && d != divide->value("x")) || !(d->type == divide->result()->type))
      continue;
    std::optional<DecomposedNorm> norm = NormOf(divide, d, reciprocal);
    if (norm && rewrite(*norm)) return true;
  }
  return false;
}

Tensor AsNormParameter(const Tensor& constant, const Shape& shape,
                       const std::vector<int64_t>& axes) {
  const int rank = static_cast<int>(shape.size());
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

}  // namespace mlc::passes
