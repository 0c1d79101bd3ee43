// Rewrites logarithms of exponentials without the exponentials, which in fp16 overflow above 11 and
// underflow below -17.
//
//   y = log(reduce_sum(exp(x), axes))   ->   m = clip(reduce_max(x, axes), -65504, 65504)
//                                            y = add(reduce_log_sum_exp(sub(x, m), axes), m)
//   y = log(softmax(x, axis))           ->   z = sub(x, reduce_max(x, axis))
//                                            y = sub(z, reduce_log_sum_exp(z, axis))
//   y = log(sigmoid(x))                 ->   y = sub(minimum(x, 0.0), softplus(-|x|))
//   y = log(sub(1.0, sigmoid(x)))       ->   y = sub(minimum(-x, 0.0), softplus(-|x|))
//   y = log(add(p, c))                  ->   y = add(softplus(log(p) - log(c)), log(c))
//   y = log(maximum(p, c))              ->   y = maximum(log(p), log(c))
//   y = log(clip(p, c, d))              ->   y = clip(log(p), log(c), log(d)), as maximum where p <= d
//   y = log(add(exp(a), exp(b)))        ->   y = add(maximum(a, b), softplus(-|a - b|))
//   y = softplus(x)                     ->   y = add(relu(x), softplus(-|x|))
//
// p is any of the operands of log above, possibly after data movement, and c is below 2^-10. If x
// is already a difference from its maximum, the maximum is not subtracted again. reduce_log_sum_exp
// is documented as log(sum(exp(x))) and softplus as log(1 + exp(x)); a compute unit may evaluate
// them in this way, so their operands are at most 0.
//
// Must not fire on logarithms of other values, on a softplus whose only users are tanh (which is 1
// for infinity, too), on a softplus whose operand is proved to be at most 11, or with --precision
// fp32. Numeric effect: the last bits; logarithms of probabilities that underflowed become finite.
//
// Operators by name: logarithms and their operands, and safe forms of both.
#include "lib/ir/arithmetic.h"
#include "lib/ops/value_range.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr double kMost = 65504, kMostOfExp = 11, kLeastBeside = 0x1p-10;

Value* Negated(Builder& b, Value* x) { return Binary(b, "mul", x, -1.0); }

// Returns log(1 + exp(-|x|)).
Value* Rest(Builder& b, Value* x) {
  return b.Make("softplus", {{"x", Negated(b, b.Make("abs", {{"x", x}}))}});
}

Value* SafeSoftplus(Builder& b, Value* x) {
  Value* rest = Rest(b, x);
  return Binary(b, "add", b.Make("relu", {{"x", x}}), rest);
}

// x - max(x) and the maximum; x and null if x is already such a difference.
struct Shifted {
  Value *z, *greatest;
};
Shifted Shift(Builder& b, Value* x, const std::vector<int64_t>& axes) {
  if (Unshifted(x, axes)) return {x, nullptr};
  Value* greatest = Reduced(b, "reduce_max", x, axes, true);
  // The difference of two infinities would be NaN.
  greatest = b.Make("clip", {{"x", greatest}, {"alpha", -kMost}, {"beta", kMost}});
  return {Binary(b, "sub", x, greatest), greatest};
}

Value* LogSumExp(Builder& b, Value* z, const std::vector<int64_t>& axes, bool keep) {
  return Reduced(b, "reduce_log_sum_exp", z, axes, keep);
}

// Returns the logarithm of a sum of exponentials, or null if `sum` is another sum.
Value* LogarithmOfSum(Builder& b, const Operation& sum) {
  const Operation* exp = DefinedBy(sum.value("x"), "exp");
  Value* x = exp ? exp->value("x") : nullptr;
  auto axes = x ? ConstantAxes(sum, "axes", x->type.rank()) : std::nullopt;
  if (!axes || axes->empty()) return nullptr;
  bool keep = sum.constant_or_default("keep_dims").Bool(0);
  auto [z, greatest] = Shift(b, x, *axes);
  Value* y = LogSumExp(b, z, *axes, keep);
  if (!greatest) return y;
  if (!keep) greatest = Squeezed(b, greatest, *axes);
  return Binary(b, "add", y, greatest);
}

// Returns the logarithm of p in a safe form, or null without creating operations.
Value* LogarithmOf(Builder& b, Value* p) {
  const Operation* op = p ? p->def : nullptr;
  if (!op) return nullptr;
  if (MovesX(*op) || (op->is("cast") && IsFloat(p->type.dtype))) {
    Value* y = LogarithmOf(b, op->value("x"));
    if (!y) return nullptr;
    Builder::Args args = ArgsWithout(*op, {"x"});
    args.emplace_back("x", y);
    return b.Make(op->def->name, std::move(args));
  }
  if (op->is("softmax") && op->value("x")) {
    auto axes = ConstantAxes(*op, "axis", p->type.rank());
    if (!op->has("axis")) axes = {{p->type.rank() - 1}};
    if (!axes) return nullptr;
    Value* z = Shift(b, op->value("x"), *axes).z;
    return Binary(b, "sub", z, LogSumExp(b, z, *axes, true));
  }
  if (op->is("sigmoid") && op->value("x")) {
    Value* x = op->value("x");
    Value* rest = Rest(b, x);
    return Binary(b, "sub", Binary(b, "minimum", x, 0.0), rest);
  }
  if (op->is("sub") && IsUniform(op->value("x"), 1)) {
    const Operation* sigmoid = DefinedBy(op->value("y"), "sigmoid");
    Value* x = sigmoid ? sigmoid->value("x") : nullptr;
    if (!x || !(x->type == p->type)) return nullptr;
    Value* rest = Rest(b, x);
    return Binary(b, "sub", Binary(b, "minimum", Negated(b, x), 0.0), rest);
  }
  if (op->is("reduce_sum")) return LogarithmOfSum(b, *op);
  if (op->is("add")) {
    const Operation *one = DefinedBy(op->value("x"), "exp"),
                    *other = DefinedBy(op->value("y"), "exp");
    Value *x = one ? one->value("x") : nullptr, *y = other ? other->value("x") : nullptr;
    if (!x || !y) return nullptr;
    Value* rest = Rest(b, Binary(b, "sub", x, y));
    return Binary(b, "add", Binary(b, "maximum", x, y), rest);
  }
  return nullptr;
}

// The parts of p + c or max(p, c), and d of min(max(p, c), d) if p may exceed d.
struct Bounded {
  Value* p = nullptr;
  double c = 0;
  bool sum = false;
  std::optional<double> d = {};
};
Bounded AsBounded(Value* value) {
  const Operation* op = value ? value->def : nullptr;
  Bounded bounded = {value};
  if (!op) return bounded;
  if (op->is("add") || op->is("maximum")) {
    auto [constant, other] = SplitConstant(op);
    std::optional<double> number = UniformConstant(constant);
    if (number && *number > 0 && other->type == value->type)
      bounded = {other, *number, op->is("add")};
  } else if (op->is("clip")) {
    Tensor low = op->constant("alpha"), high = op->constant("beta");
    if (low && high && low.Double(0) > 0 && high.Double(0) > low.Double(0)) {
      bounded = {op->value("x"), low.Double(0)};
      if (!bounded.p || FindInterval(*bounded.p).high > high.Double(0)) bounded.d = high.Double(0);
    }
  }
  return bounded;
}

bool Logarithm(Operation* log, PassContext& context) {
  Value* x = log->is("log") || log->is("reduce_log_sum") ? log->value("x") : nullptr;
  if (!x || !IsFloat(x->type.dtype)) return false;
  Builder b = BuilderBefore(log, context);
  Bounded bounded;
  Value* y = nullptr;
  if (log->is("log")) {
    bounded = AsBounded(x);
    Tensor own = log->constant_or_default("epsilon");
    if (own && own.Double(0) > 1e-30) bounded = {x, own.Double(0), true};
    if (bounded.c >= kLeastBeside) return false;
    y = LogarithmOf(b, bounded.p);
  } else {
    y = LogarithmOfSum(b, *log);
  }
  if (!y) return false;
  if (bounded.c > 0) {
    double least = std::log(bounded.c);
    y = bounded.sum ? Binary(b, "add", SafeSoftplus(b, Binary(b, "sub", y, least)), least)
        : bounded.d ? b.Make("clip", {{"x", y}, {"alpha", least}, {"beta", std::log(*bounded.d)}})
                    : Binary(b, "maximum", y, least);
  }
  context.diagnostics.Decide("safe-form", log->name,
                             fmt::format("{}: rewritten without exponentials, which in fp16 "
                                         "overflow above 11 and underflow below -17",
                                         log->def->name));
  return Replace(log, y);
}

bool Softplus(Operation* op, PassContext& context) {
  Value* x = op->is("softplus") ? op->value("x") : nullptr;
  if (!x || FindInterval(*x).high <= kMostOfExp) return false;
  const Value* y = op->result();
  if (!y->is_output() && std::all_of(y->users.begin(), y->users.end(),
                                     [](const Operation* user) { return user->is("tanh"); }))
    return false;
  Builder b = BuilderBefore(op, context);
  context.diagnostics.Decide(
      "safe-form", op->name,
      "softplus: computed from -|x|, because fp16 exponentials overflow above 11");
  return Replace(op, SafeSoftplus(b, x));
}

}  // namespace

extern const PassDef kSafeLogarithms = {
    "safe-logarithms", "rewrite logarithms of exponentials without the exponentials, for fp16",
    RewritesForFp16<Logarithm, Softplus>};

}  // namespace mlc::passes
