// Simplifies arithmetic with constants.
//
//   real_div(x, 4.0)                 ->   mul(x, 0.25)
//   mul(mul(x, 2.0), 3.0)            ->   mul(x, 6.0)             likewise sums
//   add(a, mul(b, -1.0))             ->   sub(a, b)
//   pow(x, 2.0)                      ->   square(x)               0.5: sqrt, if x is non-negative
//   mul(reduce_sum(x, axes), 1 / n)  ->   reduce_mean(x, axes)
//   minimum(maximum(x, 0.0), 6.0)    ->   relu6(x)                any chain of relu, relu6, clip,
//                                                                 maximum, minimum with numbers
//   select(true, a, b)               ->   a
//
// Must not fire on integers, if a reciprocal is not a normal number in fp16 or in the type itself
// (the division is better conditioned), on scalars and values that are rounded next (an inexact
// scale shifts the steps of a quantised tensor), if an intermediate result has other users, if
// merged constants would become larger, or if added constants cancel (x + 2^23 - 2^23 rounds on
// purpose). Numeric effect: the last bits; none for clamps and select.
//
// Operators by name: the arithmetic that it matches and the arithmetic that it creates.
#include <limits>

#include "lib/ir/arithmetic.h"
#include "lib/ops/value_range.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns whether the fp16 form of the number has a relative error of at most 2^-15. An inexact
// factor shifts all products in the same direction, whereas a division rounds each result
// independently (1/6 in fp16 has an error of 2^-12.4).
bool IsExactInHalf(double number) {
  double half = static_cast<double>(Half(number));
  return std::fabs(number) >= 0x1p-14 && std::fabs(half - number) <= std::fabs(number) * 0x1p-15;
}

bool IsFloatResult(const Operation* op) {
  return op->results.size() == 1 && op->result()->type.is_tensor() &&
         IsFloat(op->result()->type.dtype);
}

bool DivideToMultiply(Operation* op, PassContext& context) {
  if (!op->is("real_div")) return false;
  Value *x = op->value("x"), *y = op->value("y");
  if (!x || !y || x->is_constant() || !y->is_constant() || y->constant().size() > 65536)
    return false;
  if (op->result()->type.rank() == 0 || DecidesSteps(op->result())) return false;
  const bool half = y->constant().dtype() == DType::kFp16;
  const bool narrow = half || context.precision != PassContext::Precision::kFp32;
  const double least = half ? 0x1p-14 : std::numeric_limits<float>::min(),
               greatest = half ? 65504 : std::numeric_limits<float>::max();
  std::vector<double> reciprocals;
  for (double number : y->constant().Doubles()) {
    double reciprocal = 1 / number, size = std::fabs(reciprocal);
    if (!(size >= least && size <= greatest) || (narrow && !IsExactInHalf(reciprocal)))
      return false;
    reciprocals.push_back(reciprocal);
  }
  Builder builder = BuilderBefore(op, context);
  Tensor factor = Tensor::Of<double>(y->constant().dims(), reciprocals)
                      .Cast(y->constant().dtype())
                      .ComputedFrom(y->constant());
  return Replace(op, Binary(builder, "mul", x, builder.Const(factor, op->name + "_y")));
}

double Extreme(const Tensor& tensor, bool greatest) {
  double extreme = greatest ? 0 : kInfinity;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    double magnitude = std::fabs(tensor.Double(i));
    extreme = greatest ? std::max(extreme, magnitude) : std::min(extreme, magnitude);
  }
  return extreme;
}

// Rewrites (x op c1) op c2 to x op (c1 op c2) for mul and add.
bool MergeConstants(Operation* op, PassContext& context) {
  if (!op->is("mul") && !op->is("add")) return false;
  auto [outer, middle] = SplitConstant(op);
  Operation* first = DefinedBy(middle, op->def->name);
  if (!first || SoleUser(middle) != op || DecidesSteps(op->result())) return false;
  auto [inner, x] = SplitConstant(first);
  if (!inner || inner->constant().size() > 65536 || outer->constant().size() > 65536) return false;
  // One of the two constants must have the shape of the combined one.
  const Dims &a = inner->constant().dims(), &b = outer->constant().dims();
  bool outer_is_one = outer->constant().size() == 1 && b.size() <= a.size();
  bool inner_is_one = inner->constant().size() == 1 && a.size() <= b.size();
  if (a != b && !outer_is_one && !inner_is_one) return false;
  Builder builder = BuilderBefore(op, context);
  Value* merged = builder.Make(op->def->name, {{"x", inner}, {"y", outer}});
  if (!merged->is_constant()) return false;
  double greatest = Extreme(merged->constant(), true), least = Extreme(merged->constant(), false);
  // The factors of scale-small-weights stay apart: fp16 cannot represent their product.
  const bool half = merged->type.dtype == DType::kFp16;
  bool keeps = op->is("mul") ? std::isfinite(greatest) && least >= (half ? kLeastNormal : 1e-30)
                             : greatest >= 0.5 * std::max(Extreme(inner->constant(), true),
                                                          Extreme(outer->constant(), true));
  if (!keeps) {
    merged->def->block->Erase(merged->def);
    return false;
  }
  return Replace(op, builder.Make(op->def->name, {{"x", x}, {"y", merged}}));
}

// Returns b if `value` is -b and has a single user; null otherwise.
Value* Negated(Value* value) {
  Operation* mul = DefinedBy(value, "mul");
  if (!mul || !SoleUser(value)) return nullptr;
  auto [minus, x] = SplitConstant(mul);
  return minus && IsUniform(minus, -1) && mul->result()->type == x->type ? x : nullptr;
}

bool AbsorbMinus(Operation* op, PassContext& context) {
  if (!op->is("add") && !op->is("sub")) return false;
  Value *x = op->value("x"), *y = op->value("y");
  if (!x || !y) return false;
  Value* minus = Negated(y);
  if (!minus && op->is("add")) {
    minus = Negated(x);
    x = y;
  }
  if (!minus) return false;
  return ReplaceBy(op, context, op->is("add") ? "sub" : "add", {{"x", x}, {"y", minus}});
}

bool Power(Operation* op, PassContext& context) {
  if (!op->is("pow") || !op->value("x") || op->value("x")->is_constant()) return false;
  Value* x = op->value("x");
  std::optional<double> exponent = UniformConstant(op->value("y"));
  if (!exponent || !(op->result()->type == x->type) || (*exponent != 2 && *exponent != 0.5))
    return false;
  if (*exponent == 0.5 && !IsNatural(x)) return false;
  return ReplaceBy(op, context, *exponent == 2 ? "square" : "sqrt", {{"x", x}});
}

bool MeanOfSum(Operation* op, PassContext& context) {
  if (!op->is("mul")) return false;
  auto [constant, value] = SplitConstant(op);
  Operation* sum = DefinedBy(value, "reduce_sum");
  if (!sum || SoleUser(value) != op || !(op->result()->type == value->type)) return false;
  Value* x = sum->value("x");
  std::optional<double> factor = UniformConstant(constant);
  if (!x || !factor) return false;
  int64_t count = 1;
  std::vector<int64_t> axes = Consecutive(0, x->type.rank());
  if (sum->has("axes")) {
    auto named = ConstantAxes(*sum, "axes", x->type.rank());
    if (!named) return false;
    axes = *named;
  }
  for (int64_t axis : axes) {
    if (!x->type.shape[axis].is_constant()) return false;
    count *= x->type.shape[axis].constant();
  }
  if (std::fabs(*factor * static_cast<double>(count) - 1) > 1e-6) return false;
  return ReplaceBy(op, context, "reduce_mean", ArgsWithout(*sum, {}));
}

// Represents min(max(x, low), high).
struct Clamp {
  Value* x = nullptr;
  double low = -kInfinity, high = kInfinity;
};

std::optional<Clamp> AsClamp(const Operation* op) {
  if (!op || op->results.size() != 1) return std::nullopt;
  Clamp clamp;
  if (op->is("relu")) {
    clamp = {op->value("x"), 0, kInfinity};
  } else if (op->is("relu6")) {
    clamp = {op->value("x"), 0, 6};
  } else if (op->is("clip")) {
    Tensor low = op->constant("alpha"), high = op->constant("beta");
    if (!low || !high) return std::nullopt;
    clamp = {op->value("x"), low.Double(0), high.Double(0)};
  } else if (op->is("maximum") || op->is("minimum")) {
    auto [constant, x] = SplitConstant(op);
    std::optional<double> bound = UniformConstant(constant);
    if (!bound || std::isnan(*bound)) return std::nullopt;
    clamp = op->is("maximum") ? Clamp{x, *bound, kInfinity} : Clamp{x, -kInfinity, *bound};
  }
  if (!clamp.x || !(clamp.low <= clamp.high) || !(clamp.x->type == op->result()->type))
    return std::nullopt;
  constexpr double kMax = std::numeric_limits<float>::max();
  if (clamp.low <= -kMax) clamp.low = -kInfinity;
  if (clamp.high >= kMax) clamp.high = kInfinity;
  return clamp;
}

std::string_view NameOf(const Clamp& clamp) {
  bool low = std::isfinite(clamp.low), high = std::isfinite(clamp.high);
  if (clamp.low == 0 && clamp.high == kInfinity) return "relu";
  if (clamp.low == 0 && clamp.high == 6) return "relu6";
  if (low && high) return "clip";
  if (low && clamp.high == kInfinity) return "maximum";
  if (high && clamp.low == -kInfinity) return "minimum";
  return "identity";
}

bool MergeClamps(Operation* op, PassContext& context) {
  std::optional<Clamp> clamp = AsClamp(op);
  if (!clamp) return false;
  std::optional<Clamp> inner = AsClamp(clamp->x->def);
  if (inner)
    clamp = Clamp{inner->x, std::clamp(inner->low, clamp->low, clamp->high),
                  std::clamp(inner->high, clamp->low, clamp->high)};
  std::string_view name = NameOf(*clamp);
  if (!inner && name == op->def->name) return false;
  bool bounded = clamp->low > -kInfinity || clamp->high < kInfinity;
  if (name == "identity") {
    if (bounded || !CanReplace(op->result(), clamp->x)) return false;
    return Replace(op, clamp->x);
  }
  Builder builder = BuilderBefore(op, context);
  Builder::Args args = {{"x", clamp->x}};
  if (name == "clip") {
    args.emplace_back("alpha", clamp->low);
    args.emplace_back("beta", clamp->high);
  } else if (name == "maximum" || name == "minimum") {
    args.emplace_back("y", name == "maximum" ? clamp->low : clamp->high);
  }
  return Replace(op, builder.Make(name, std::move(args)));
}

bool KnownChoice(Operation* op) {
  if (!op->is("select")) return false;
  Tensor cond = op->constant("cond");
  if (!cond || cond.size() == 0 || cond.size() > 65536) return false;
  for (int64_t i = 1; i < cond.size(); ++i)
    if (cond.Bool(i) != cond.Bool(0)) return false;
  Value* chosen = op->value(cond.Bool(0) ? "a" : "b");
  if (!chosen || !(chosen->type == op->result()->type) || !CanReplace(op->result(), chosen))
    return false;
  return Replace(op, chosen);
}

bool RunSimplifyArithmetic(Program& program, PassContext& context) {
  return RewriteAll(program, [&](Operation* op) {
    if (KnownChoice(op)) return true;
    if (!IsFloatResult(op)) return false;
    return DivideToMultiply(op, context) || MergeConstants(op, context) ||
           AbsorbMinus(op, context) || Power(op, context) || MeanOfSum(op, context) ||
           MergeClamps(op, context);
  });
}

}  // namespace

extern const PassDef kSimplifyArithmetic = {
    "simplify-arithmetic", "simplify arithmetic with constants", RunSimplifyArithmetic};

}  // namespace mlc::passes
