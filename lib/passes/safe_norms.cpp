// Writes norms so that fp16 can represent them, although it cannot represent sums of squares.
//
//   v = reduce_mean(square(x), [-1], keep_dims); y = mul(mul(x, rsqrt(add(v, eps))), g)
//     ->   n = layer_norm(concat(x, mul(x, -1)), axes = [-1], epsilon = eps, gamma = concat(g, g))
//          y = the first half of n
//
// The mean of a row and its negative is 0, and the variance is the mean of the squares. layer_norm
// is one operation that every compute unit takes. All other norms are scaled:
//
//   v = reduce_mean(square(x), axes, keep_dims); y = mul(x, rsqrt(add(v, eps)))
//     ->   m = maximum(reduce_max(abs(x), axes, keep_dims), c);  c = sqrt(eps), at least 2^-14
//          xs = real_div(x, m); v = reduce_mean(square(xs), axes, keep_dims)
//          y = mul(xs, rsqrt(add(v, square(real_div(c, m)))))
//   y = real_div(x, reduce_l2_norm(x))   ->   y = real_div(xs, reduce_l2_norm(xs))
//   y = sqrt(reduce_sum_square(x))       ->   y = mul(sqrt(reduce_sum_square(xs)), m)
//
// In fp16 squares overflow for |x| > 255 and underflow below 2^-12. With v' of xs instead of v, v =
// v' m^2. The following operations keep a power of m as a separate factor, which is applied where
// it is safe:
//   - the square may be mul, pow 2, square or abs; the sum may be reduce_mean, reduce_sum,
//     reduce_sum_square, reduce_l2_norm or reduce_l1_norm, with or without keep_dims;
//   - between the sum and its use there may be added numbers (eps / m^2), bounds (maximum, clip),
//     numbers that multiply or divide, other norms that multiply, roots, powers, inverses, data
//     movement, and the selection of a number if the sum is 0;
//   - a value that is divided by the norm, or multiplied by its inverse, is divided by m first; x
//     is divided already, and a product of x with another row uses xs instead. For any other use
//     the norm is multiplied by m.
// Sums of more than 2^14 elements become means, which fp16 represents without loss if xs is at most
// 2^7 instead of 1; the number of elements becomes a factor of the result.
//
// Scaling is preferred to fp32: abs, a maximum and a division are three passes over x that all
// compute units support, whereas two casts and fp32 arithmetic leave the Neural Engine for as many
// passes.
//
// Must not fire if intervals prove that no square overflows and that underflow does not matter, on
// a sum of squares without a root, on a norm operator without a division by its result, or with
// --precision fp32. Numeric effect: the last bits.
//
// Operators by name: the parts of norms that it matches, and the operations that it creates.
#include "lib/ir/arithmetic.h"
#include "lib/ops/value_range.h"
#include "lib/passes/decomposed_norm.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr double kNormal = 0x1p-14;        // the smallest normal fp16 number
constexpr int64_t kMostMirrored = 8192;    // twice as many are an axis that the Neural Engine takes
constexpr double kLeastEpsilon = 0x1p-24;  // the smallest positive fp16 number
constexpr int64_t kMostSummed = int64_t{1} << 14;  // 1 / n is normal, and n is not too large

// A sum of |x|^degree, or its root, over axes.
struct Sum {
  Value* x = nullptr;
  int degree = 2;
  bool mean = false, keep = false;
  std::vector<int64_t> axes;
  int64_t most = 1;      // maximum number of elements
  bool counted = false;  // whether `most` is exact
};

std::optional<Sum> AsSum(const Operation& op) {
  Sum sum;
  const Sums& sums = op.def->sums;
  if (sums.of == Sums::kNone || op.def->layout.axes.empty()) return std::nullopt;
  const bool plain = sums.of == Sums::kElements;
  sum.mean = sums.mean;
  if (sums.root || sums.of == Sums::kMagnitudes) sum.degree = 1;
  sum.x = op.value("x");
  if (!sum.x || !IsFloat(sum.x->type.dtype)) return std::nullopt;
  const Value* reduced = sum.x;
  if (plain) sum.x = SquareRoot(reduced);
  if (Operation* abs = plain && !sum.mean ? DefinedBy(reduced, "abs") : nullptr) {
    sum.x = abs->value("x");
    sum.degree = 1;
  }
  if (!sum.x || sum.x->is_constant()) return std::nullopt;
  const Shape& shape = sum.x->type.shape;
  if (op.has("axes")) {
    auto named = ConstantAxes(op, "axes", sum.x->type.rank());
    if (!named) return std::nullopt;
    sum.axes = *named;
  } else {
    sum.axes = Consecutive(0, sum.x->type.rank());
  }
  sum.keep = op.constant_or_default("keep_dims").Bool(0);
  Shape dims;
  for (int64_t axis : sum.axes) dims.push_back(shape[axis]);
  Dim count = Product(dims);
  sum.most = std::max<int64_t>(1, count.Bounds(op.block->function->symbols).high);
  sum.counted = count.is_constant();
  return sum;
}

// The effect of an operation on v = v' s^degree, if its result is again such a product.
struct Step {
  enum Kind { kNone, kSum, kBound, kFactor, kDividend, kPower, kMove, kChoice } kind = kNone;
  double number = 0;       // the addend, bound, factor, dividend, exponent or selected number
  double epsilon = 0;      // added by the operator to its operand first
  Value* other = nullptr;  // replaces `number` if it is computed at run time
};

Step StepOf(const Operation& op, const Value* v) {
  if (op.results.size() != 1 || !op.blocks.empty()) return {};
  const Type& type = op.result()->type;
  if (!type.is_tensor() || !IsFloat(type.dtype)) return {};
  if (op.def->moves != Moves::kNone || IsCast(op))
    return (IsCast(op) || MovesX(op)) && op.value("x") == v ? Step{Step::kMove} : Step{};
  if (!(type == v->type)) return {};
  auto own_epsilon = [&] {
    Tensor own = op.constant_or_default("epsilon");
    return (own ? own : op.def->default_value(ContextOf(op), "epsilon")).Double(0);
  };
  if (op.is("sqrt")) return {Step::kPower, 0.5};
  if (op.is("rsqrt")) return {Step::kPower, -0.5, own_epsilon()};
  if (op.is("inverse")) return {Step::kPower, -1, own_epsilon()};
  if (op.is("clip") && op.value("x") == v) {
    Tensor low = op.constant("alpha"), high = op.constant("beta");
    if (low && high && low.Double(0) > 0 && high.Double(0) > 1e30)
      return {Step::kBound, low.Double(0)};
    return {};
  }
  if (op.is("select")) {
    for (auto [number, other] : {std::pair{"a", "b"}, std::pair{"b", "a"}})
      if (auto uniform = UniformConstant(op.value(number)); uniform && op.value(other) == v)
        return {Step::kChoice, *uniform};
    return {};
  }
  if (op.def->Find("y") < 0) return {};
  auto [constant, other] = SplitConstant(&op);
  std::optional<double> number = UniformConstant(constant);
  if (Value* beside = constant ? nullptr : OtherOperand(&op, v); beside && beside != v) {
    if (op.is("mul")) return {Step::kFactor, 0, 0, beside};
    if (op.is("maximum")) return {Step::kBound, 0, 0, beside};
  }
  if (!number || other != v) return {};
  bool first = op.value("x") == v;
  if (op.is("add") && *number >= 0) return {Step::kSum, *number};
  if (op.is("maximum") && *number > 0) return {Step::kBound, *number};
  if (op.is("mul") && *number > 0) return {Step::kFactor, *number};
  if (op.is("real_div") && *number > 0)
    return first ? Step{Step::kFactor, 1 / *number} : Step{Step::kDividend, *number};
  if (op.is("pow") && first && (*number == 0.5 || *number == -0.5 || *number == -1))
    return {Step::kPower, *number};
  return {};
}

bool IsZeroTest(const Operation& op, const Value* v) {
  const bool compares =
      op.def->elementwise() && op.def->Find("y") >= 0 && op.result()->type.dtype == DType::kBool;
  if (!compares) return false;
  auto [constant, other] = SplitConstant(&op);
  return other == v && IsUniform(constant, 0);
}

// Returns z if the operation is z / norm or z * (1 / norm), where v is the norm (degree 1) or its
// inverse (degree -1).
Value* DividedBy(const Operation& op, const Value* v, int degree) {
  if (op.is("real_div") && degree == 1 && op.value("y") == v && op.value("x") != v)
    return op.value("x");
  Value* other = op.is("mul") && degree == -1 ? OtherOperand(&op, v) : nullptr;
  return other != v ? other : nullptr;
}

// Returns the degree after the step; nothing if the step does not apply to this degree.
std::optional<int> DegreeAfter(const Step& step, int degree) {
  switch (step.kind) {
    case Step::kNone:
      return std::nullopt;
    case Step::kSum:
    case Step::kBound:
      return degree > 0 ? std::optional(degree) : std::nullopt;
    case Step::kChoice:
      return degree == 1 ? std::optional(1) : std::nullopt;
    case Step::kFactor:
      return degree > 0 || !step.other ? std::optional(degree) : std::nullopt;
    case Step::kDividend:
      return -degree;
    case Step::kPower: {
      double power = degree * step.number;
      if (std::floor(power) != power || (step.epsilon != 0 && degree < 0)) return std::nullopt;
      return static_cast<int>(power);
    }
    default:
      return degree;
  }
}

// The uses of a sum, collected before any change.
struct Prospect {
  bool root = false;     // the value is a norm or the inverse of one
  bool divides = false;  // a value is divided by it
  double epsilon = 0;    // the largest number that is added to the norm or bounds it
};

void Look(const Value* v, int degree, Prospect& prospect) {
  prospect.root |= degree == 1 || degree == -1;
  for (Operation* user : v->users) {
    Step step = StepOf(*user, v);
    std::optional<int> after = DegreeAfter(step, degree);
    if (!after) {
      prospect.divides |= DividedBy(*user, v, degree) != nullptr;
      continue;
    }
    double added =
        step.kind == Step::kSum || step.kind == Step::kBound ? step.number : step.epsilon;
    if (added > 0) prospect.epsilon = std::max(prospect.epsilon, std::pow(added, 1.0 / degree));
    Look(user->result(), *after, prospect);
  }
}

// Returns whether fp16 can represent the squares of x: neither they nor the sum of `count` of them
// overflow, and those that underflow are small compared to the smallest one or to epsilon.
bool IsSafe(const Value& x, double count, double epsilon) {
  Interval size = Magnitude(FindInterval(x));
  return size.high * size.high * count <= 65000 && (size.low >= 0x1p-7 || epsilon >= 0x1p-5);
}

class Scaling {
 public:
  Scaling(Operation* op, const Sum& sum, double epsilon, PassContext& context)
      : context_(context), x_(sum.x), axes_(sum.axes) {
    Builder b = BuilderBefore(op, context);
    bool squares = sum.degree == 2, many = squares && sum.most > kMostSummed;
    int up = 0;  // |xs| is at most 2^up
    if (many) up = std::clamp(static_cast<int>(std::ceil((std::log2(sum.most) - 10) / 2)), 1, 7);
    if (many && !sum.mean) root_ = std::sqrt(static_cast<double>(sum.most));
    least_ = std::max(kNormal, epsilon / root_);
    Value* size = b.Make("abs", {{"x", x_}});
    Value* scale = mlc::Reduced(b, "reduce_max", size, sum.axes, true);
    scale = Binary(b, "maximum", scale, std::ldexp(least_, up));
    scale = Times(b, scale, std::ldexp(1.0, -up));
    scaled_ = Binary(b, "real_div", x_, scale);
    if (!sum.keep) scale = Squeezed(b, scale, sum.axes);
    const bool as_mean = root_ != 1;
    Value* summed = scaled_;
    if (as_mean || op->def->sums.of == Sums::kElements)
      summed = b.Make(squares ? "square" : "abs", {{"x", scaled_}});
    Builder::Args args = ArgsWithout(*op, {"x"});
    args.emplace_back("x", summed);
    Follow(op->result(),
           {b.Make(as_mean ? "reduce_mean" : op->def->name, std::move(args)), scale, sum.degree});
    context.diagnostics.Decide(
        "safe-form", op->name,
        fmt::format("{}: rows are divided by their largest magnitude, because fp16 squares "
                    "overflow above 255 and underflow below 2^-12",
                    op->def->name));
    for (auto scale = scales_.rbegin(); scale != scales_.rend(); ++scale)
      if (!(*scale)->has_uses()) (*scale)->def->block->Erase((*scale)->def);
    if (!scale->has_uses()) EraseUnused(scale->def);
    for (auto [old, now] : replaced_) Replace(old, now);
  }

 private:
  struct Scaled {  // value * (scale * root_)^degree
    Value *value, *scale;
    int degree;
  };

  static Value* Times(Builder& b, Value* value, double number) {
    return std::fabs(number - 1) < 1e-9 ? value : Binary(b, "mul", value, number);
  }

  // Returns the number to combine with v.value, whose degree is 1 or 2. It is at least kNormal if
  // v.value may be 0, because a number that prevents a division by 0 must not underflow.
  Value* Beside(Builder& b, double number, const Scaled& v) {
    Value* part = Binary(b, "real_div", least_, v.scale);
    if (v.degree == 2) part = b.Make("square", {{"x", part}});
    double share = number / std::pow(least_ * root_, v.degree);
    return Times(b, part, std::max(share, kNormal));
  }

  // Returns the run-time value to combine with v.value.
  Value* Divided(Builder& b, Value* other, const Scaled& v) {
    for (int i = 0; i < v.degree; ++i) other = Binary(b, "real_div", other, v.scale);
    return Times(b, other, std::pow(root_, -v.degree));
  }

  // Returns z / v.scale. If z is x, or a sum of products with x over the same axes, uses the scaled
  // row instead, so that no intermediate result overflows.
  Value* Reduced(Builder& b, Value* z, const Scaled& v) {
    if (z == x_) return scaled_;
    const Operation* sum = DefinedBy(z, "reduce_sum");
    const Operation* product = sum && SoleUser(z) ? DefinedBy(sum->value("x"), "mul") : nullptr;
    Value* other = product && SoleUser(sum->value("x")) ? OtherOperand(product, x_) : nullptr;
    if (!other || !(product->result()->type == x_->type) || !(z->type == v.scale->type) ||
        ConstantAxes(*sum, "axes", x_->type.rank()) != axes_)
      return Binary(b, "real_div", z, v.scale);
    Builder::Args args = ArgsWithout(*sum, {"x"});
    args.emplace_back("x", Binary(b, "mul", scaled_, other));
    return b.Make("reduce_sum", std::move(args));
  }

  Value* Whole(Builder& b, const Scaled& v) {
    Value* whole = Times(b, v.value, std::pow(root_, v.degree));
    for (int i = 0; i < std::abs(v.degree); ++i)
      whole = Binary(b, v.degree > 0 ? "mul" : "real_div", whole, v.scale);
    return whole;
  }

  Scaled After(Operation* op, const Step& step, int degree, const Scaled& v) {
    Builder b = BuilderBefore(op, context_);
    Scaled next = {v.value, v.scale, degree};
    switch (step.kind) {
      case Step::kSum:
        if (step.number > 0) next.value = Binary(b, "add", v.value, Beside(b, step.number, v));
        break;
      case Step::kBound:
        next.value = Binary(b, "maximum", v.value,
                            step.other ? Divided(b, step.other, v) : Beside(b, step.number, v));
        break;
      case Step::kFactor:
        next.value =
            step.other ? Binary(b, "mul", v.value, step.other) : Times(b, v.value, step.number);
        break;
      case Step::kDividend:
        next.value = Binary(b, "real_div", step.number, v.value);
        break;
      case Step::kPower: {
        Value* base = v.value;
        if (step.epsilon > 0) base = Binary(b, "add", base, Beside(b, step.epsilon, v));
        if (step.number == 0.5)
          next.value = b.Make("sqrt", {{"x", base}});
        else if (step.number == -0.5)
          next.value = b.Make("rsqrt", {{"x", base}, {"epsilon", 0.0}});
        else
          next.value = Binary(b, "real_div", 1.0, base);
        break;
      }
      case Step::kChoice: {
        Value* number = Binary(b, "real_div", step.number / root_, v.scale);
        bool first = op->value("a")->is_constant();
        next.value =
            Select(b, op->value("cond"), first ? number : v.value, first ? v.value : number);
        break;
      }
      default:  // kMove
        for (Value** moved : {&next.value, &next.scale}) {
          Builder::Args args = ArgsWithout(*op, {"x"});
          args.emplace_back("x", *moved);
          *moved = b.Make(op->def->name, std::move(args));
        }
        scales_.push_back(next.scale);
    }
    return next;
  }

  // Creates the replacement of `old` and its users from v, which represents the same value.
  void Follow(Value* old, const Scaled& v) {
    bool whole = old->is_output();
    for (const Use& use : old->users.All()) {
      Operation* user = use.operation;
      Step step = StepOf(*user, old);
      if (std::optional<int> after = DegreeAfter(step, v.degree)) {
        Follow(user->result(), After(user, step, *after, v));
      } else if (IsZeroTest(*user, old)) {
        user->SetOperand(use, v.value);
      } else if (Value* z = DividedBy(*user, old, v.degree)) {
        Builder b = BuilderBefore(user, context_);
        Value* part = Reduced(b, z, v);
        replaced_.emplace_back(user,
                               Times(b, Binary(b, user->def->name, part, v.value), 1 / root_));
      } else {
        whole = true;
      }
    }
    if (!whole) return;
    Builder b = BuilderBefore(old->def, context_);
    replaced_.emplace_back(old->def, Whole(b, v));
  }

  PassContext& context_;
  Value *x_, *scaled_;
  std::vector<int64_t> axes_;
  double root_ = 1;  // square root of the number of elements, if a mean replaces their sum
  double least_;     // minimum scale
  // Applied at the end, because replacing erases operations.
  std::vector<std::pair<Operation*, Value*>> replaced_;
  std::vector<Value*> scales_;  // results of data movement, possibly unused
};

bool Scale(Operation* op, PassContext& context) {
  std::optional<Sum> sum = AsSum(*op);
  if (!sum || IsDividedByGreatest(sum->x)) return false;
  if (!sum->mean && sum->most > kMostSummed && (!sum->counted || sum->degree == 1)) return false;
  Prospect prospect;
  Look(op->result(), sum->degree, prospect);
  if (sum->degree == 2 ? !prospect.root : !prospect.divides) return false;
  double count = sum->mean ? 1 : static_cast<double>(sum->most);
  if (IsSafe(*sum->x, count, prospect.epsilon)) return false;
  Scaling(op, *sum, prospect.epsilon, context);
  return true;
}

// Returns the scale of a normalised row, as a vector, if the operation multiplies by it.
Tensor RowScale(const Operation& op) {
  if (!op.is("mul")) return {};
  auto [constant, row] = SplitConstant(&op);
  if (!constant || !row->def || SoleUser(row) != &op || !(op.result()->type == row->type))
    return {};
  const int rank = row->type.rank();
  return rank == 0 ? Tensor() : AsNormParameter(constant->constant(), row->type.shape, {rank - 1});
}

// Replaces an RMSNorm over the last dimension by a layer_norm over the row and its negative. `last`
// is the division by the root, or the scale after it.
bool Mirror(Operation* last, PassContext& context) {
  const Tensor gamma = RowScale(*last);
  Operation* divide = gamma ? SplitConstant(last).second->def : last;
  if (divide->results.size() != 1) return false;
  const Operation* after = gamma ? nullptr : SoleUser(divide->result());
  if (after && RowScale(*after)) return false;  // begins there
  return ForDecomposedNorm(divide, [&](const DecomposedNorm& norm) {
    Value* x = norm.d;
    const int64_t axis = x->type.rank() - 1;
    if (norm.axes != std::vector{axis} || IsDividedByGreatest(x)) return false;
    const int64_t size = x->type.shape[axis].constant();
    if (size > kMostMirrored || norm.epsilon < kLeastEpsilon || IsSafe(*x, 1, norm.epsilon))
      return false;
    Builder b = BuilderBefore(last, context);
    Value* both = Concat(b, {x, Binary(b, "mul", x, -1.0)}, axis);
    Builder::Args args = {{"x", both}, {"axes", Ints(norm.axes)}, {"epsilon", norm.epsilon}};
    if (gamma) {
      std::vector<double> numbers = gamma.Doubles();
      numbers.resize(2 * numbers.size());
      std::copy_n(numbers.begin(), size, numbers.begin() + size);
      args.emplace_back(
          "gamma",
          b.Const(Tensor::Of<double>({2 * size}, numbers).Cast(gamma.dtype()).ComputedFrom(gamma),
                  divide->name + "_gamma"));
    }
    Value* normal = b.Make("layer_norm", std::move(args));
    context.diagnostics.Decide(
        "safe-form", divide->name,
        "RMSNorm: a layer_norm of the rows and their negatives, because fp16 "
        "squares overflow above 255 and underflow below 2^-12");
    return Replace(last, SliceAlong(b, normal, axis, 0, size, false));
  });
}

bool RunSafeNorms(Program& program, PassContext& context) {
  if (context.precision == PassContext::Precision::kFp32) return false;
  const bool mirrored = RewriteAll(program, [&](Operation* op) { return Mirror(op, context); });
  return mirrored | OnEachFunction(program, [&](Function& function) {
           std::vector<Operation*> sums;
           ForEachOperation(function, [&](Operation* op) {
             if (AsSum(*op)) sums.push_back(op);
           });
           bool changed = false;
           for (Operation* op : sums) changed |= Scale(op, context);
           return changed;
         });
}

}  // namespace

extern const PassDef kSafeNorms = {
    "safe-norms", "divide rows by their largest magnitude before squaring, for fp16", RunSafeNorms};

}  // namespace mlc::passes
