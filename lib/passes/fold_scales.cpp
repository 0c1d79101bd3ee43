// Folds the scale of a linear layer's result, or of some of its features, into the weights.
//
//   y = mul(reshape(linear(x, w, b), [1, 49, 3, 32]), 0.18)
//     ->   y = reshape(linear(x, w * 0.18, b * 0.18), [1, 49, 3, 32])
//   h = transpose(reshape(linear(x, w, b), [1, 49, 3, 4, 32]), [2, 0, 3, 1, 4])
//   q = mul(slice_by_index(h, 0 of dimension 0), 0.18)
//   k = slice_by_index(h, 1 of dimension 0)
//     ->   the same without mul; w and b with their first third multiplied by 0.18
//
// The scale is one constant number, which may be a divisor. Only data movement may be between it
// and the linear layer; a split or slice of one dimension selects features if other operations use
// other parts of the dimension, and reshapes and transposes before it must keep the dimension
// inside that of the features.
//
// Must not fire on weights that are encoded, in fp16 or used by other operations, if another
// operation uses the features, if the scaled result is rounded next, on scales above 1, which could
// exceed fp16, or if the largest scaled weight of a feature is below 2^-10 and not 0, since weights
// below a sixteenth of 2^-10 are subnormal in fp16. Numeric effect: weights are scaled in double
// and rounded to fp32, before they are narrowed; results differ in the last bits, and not for
// powers of two.
//
// Operators by name: the linear layer and scale that it matches, and the parts between them.
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr double kLeastOfFeature = 0x1p-10;

// The elements whose index along dimension `axis`, divided by `inner` and taken modulo `count`, is
// from `begin` to below `end`. The size of the dimension is a multiple of inner * count.
struct Features {
  int64_t axis, begin, end, count, inner = 1;
};

// Returns the elements of x that are those of `part`, a slice of x or a result of its split.
std::optional<Features> TakenBy(const Value* part) {
  const Operation* op = part->def;
  const Shape& shape = op->value("x")->type.shape;
  if (std::optional<Cut> cut = OnlyCut(*op))
    return Features{cut->axis, cut->begin, cut->end, shape[cut->axis].constant()};
  auto axes =
      op->is("split") ? ConstantAxes(*op, "axis", static_cast<int>(shape.size())) : std::nullopt;
  if (!axes || !shape[axes->front()].is_constant()) return std::nullopt;
  const int64_t axis = axes->front();
  int64_t begin = 0;
  for (const std::unique_ptr<Value>& result : op->results) {
    const int64_t end = begin + result->type.shape[axis].constant();
    if (result.get() == part) return Features{axis, begin, end, shape[axis].constant()};
    begin = end;
  }
  return std::nullopt;
}

// Returns whether all users of x but `op` are slices without these elements.
bool OthersTakeOther(const Value* x, const Operation* op, const Features& features) {
  if (x->is_output() || x->def->block != op->block) return false;
  for (const Operation* user : x->users) {
    if (user == op) continue;
    std::optional<Cut> cut = OnlyCut(*user);
    if (!cut || cut->axis != features.axis ||
        (cut->begin < features.end && features.begin < cut->end))
      return false;
  }
  return true;
}

// Returns the elements of operand x that are these elements of the result.
std::optional<Features> BeforeReshape(const Operation& op, Features features) {
  const Shape& from = op.value("x")->type.shape;
  const Dim after = ProductFrom(op.result()->type.shape, features.axis + 1);
  if (!after.is_constant()) return std::nullopt;
  const int64_t inner = after.constant() * features.inner, outer = inner * features.count;
  int64_t step = 1;  // elements from one index of dimension i to the next
  for (int64_t i = static_cast<int64_t>(from.size()) - 1; i >= 0 && outer > 0; --i) {
    if (!from[i].is_constant() || from[i] == Dim(0)) return std::nullopt;
    const int64_t next = step * from[i].constant();
    if (inner % step == 0 && next % outer == 0) {
      features.axis = i;
      features.inner = inner / step;
      return features;
    }
    step = next;
  }
  return std::nullopt;
}
std::optional<Features> Before(const Operation& op, Features features) {
  if (Reshapes(op)) return BeforeReshape(op, features);
  auto perm =
      op.is("transpose") ? ConstantAxes(op, "perm", op.result()->type.rank()) : std::nullopt;
  if (!perm) return std::nullopt;
  features.axis = (*perm)[features.axis];
  return features;
}

// A linear layer, and the features that reach a value; all of them without `features`.
struct Source {
  Operation* linear;
  std::optional<Features> features;
};

// Returns the linear layer all of whose features that reach `value` are used there only.
std::optional<Source> SourceOf(Value* value) {
  std::optional<Features> features;
  while (value && value->def && !value->def->is("linear")) {
    Operation* op = value->def;
    Value* x = op->def->Find("x") < 0 ? nullptr : op->value("x");
    if (!x || !x->def) return std::nullopt;
    const bool is_only = SoleUser(x) == op;
    if (features) {
      features = is_only ? Before(*op, *features) : std::nullopt;
      if (!features) return std::nullopt;
    } else if (!is_only || !MovesX(*op)) {
      features = TakenBy(value);
      if (!features || !OthersTakeOther(x, op, *features)) return std::nullopt;
    }
    value = x;
  }
  if (!value || !value->def) return std::nullopt;
  if (features && features->axis + 1 != value->type.rank()) return std::nullopt;
  return Source{value->def, features};
}

// Returns the factor of each feature.
std::vector<double> Factors(const std::optional<Features>& scaled, int64_t count, double factor) {
  std::vector<double> factors(static_cast<size_t>(count), scaled ? 1 : factor);
  for (int64_t i = 0; scaled && i < count; ++i) {
    const int64_t at = i / scaled->inner % scaled->count;
    if (at >= scaled->begin && at < scaled->end) factors[static_cast<size_t>(i)] = factor;
  }
  return factors;
}

// Returns whether fp16 can represent the scaled weights as well as the others.
bool KeepsPrecision(const Tensor& weight, const std::vector<double>& factors) {
  for (size_t i = 0; i < factors.size(); ++i) {
    if (factors[i] == 1) continue;
    const Tensor row = weight.Rows(static_cast<int64_t>(i), static_cast<int64_t>(i) + 1);
    if (IsBelow(row, kLeastOfFeature / std::fabs(factors[i])) && Uniform(row) != 0.0) return false;
  }
  return true;
}

bool Fold(Operation* scale, PassContext& context) {
  Value* scaled = nullptr;
  std::optional<double> factor = ScaleOf(*scale, scaled);
  if (!factor || !(std::fabs(*factor) <= 1) || SoleUser(scaled) != scale ||
      !(scale->result()->type == scaled->type) || !CanReplace(scale->result(), scaled) ||
      DecidesSteps(scale->result()))
    return false;
  std::optional<Source> source = SourceOf(scaled);
  if (!source) return false;
  Operation* linear = source->linear;
  const Value* weight_value = linear->value("weight");
  const Tensor weight = linear->constant("weight"), bias = linear->constant("bias");
  if (!weight_value || !weight || weight.encoding() || weight.dtype() != DType::kFp32 ||
      !SoleUser(weight_value) || (linear->has("bias") && !bias))
    return false;
  std::vector<double> factors = Factors(source->features, weight.dims()[0], *factor);
  if (!KeepsPrecision(weight, factors)) return false;
  Builder builder = BuilderBefore(linear, context);
  Builder::Args args = ArgsWithout(*linear, {"weight", "bias"});
  args.emplace_back("weight", builder.Const(ScaledChannels(weight, factors), weight_value->name));
  if (bias) {
    for (size_t i = 0; i < factors.size(); ++i) factors[i] *= bias.Double(static_cast<int64_t>(i));
    args.emplace_back(
        "bias", Tensor::Of<double>(bias.dims(), factors).Cast(bias.dtype()).ComputedFrom(bias));
  }
  Replace(scale, scaled);
  return Replace(linear, builder.Make("linear", std::move(args)));
}

}  // namespace

extern const PassDef kFoldScales = {"fold-scales", "fold scales into the weights of linear layers",
                                    Rewrites<Fold>};

}  // namespace mlc::passes
