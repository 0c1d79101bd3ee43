// Scales an operand of a product of two run-time values instead of the product, so that fp16 can
// represent the intermediate result.
//
//   y = mul(matmul(q, k), 0.125)       ->   y = matmul(mul(q, 0.125), k)
//   y = mul(matmul(q, k), 2^-20 / 3)   ->   y = matmul(mul(q, 2^-10 / 3), mul(k, 2^-10))
//
// Queries and keys of 20 heads with 64 values around 30 give scores of 60000 before attention
// divides them by 8. The scale is applied to the operand with fewer elements, q in attention. A
// scale below 2^-8 is split between both operands: one factor is its square root rounded to a power
// of two, which is exact, because fp16 values that are scaled down by all of it would lose digits.
// A larger scale that is not a power of two is also applied to one operand: each element of the
// product has a relative error of 2^-12, as if the product were scaled.
//
// The scale may be a real_div, and may follow data movement and a select with a number (from a
// mask), which is scaled too. Must not fire on scales of 1 and above, with a constant operand
// (whose product is a linear layer), if the unscaled product has other users or is proved to fit,
// or with --precision fp32. Numeric effect: the last bits; none for powers of two.
//
// Operators by name: products and scales that it matches, and those that it creates.
#include "lib/ir/arithmetic.h"
#include "lib/ops/value_range.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr double kLeastOfOne = 0x1p-8;

// Returns whether the value is computed at run time.
bool IsComputed(const Value* value) {
  return value && !value->is_constant() && !(value->def && value->def->def->is_constexpr());
}

// An operation between a product and its scale: data movement, or a select with a number.
struct Between {
  const Operation* op;
  std::string_view param,
      other = {};  // the parameters of the scaled value and of the number, which is scaled too
  double number = 0;
};
std::optional<Between> StepTo(const Value* value) {
  const Operation* op = value->def;
  if (!op || !SoleUser(value)) return std::nullopt;
  if (MovesX(*op)) return Between{op, "x"};
  if (!op->is("select")) return std::nullopt;
  for (auto [param, other] : {std::pair{"a", "b"}, std::pair{"b", "a"}}) {
    std::optional<double> number = UniformConstant(op->value(other));
    const Value* scaled = op->value(param);
    if (number && scaled && scaled->type == value->type) return Between{op, param, other, *number};
  }
  return std::nullopt;
}

bool Move(Operation* op, PassContext& context) {
  Value* product = nullptr;
  std::optional<double> scale = ScaleOf(*op, product);
  if (!scale || !(std::fabs(*scale) < 1) || !IsFloat(product->type.dtype) ||
      !(op->result()->type == product->type))
    return false;
  std::vector<Between> between;
  for (std::optional<Between> next; (next = StepTo(product));
       product = next->op->value(next->param))
    between.push_back(*next);
  const Operation* matmul = DefinedBy(product, "matmul");
  if (!matmul || !SoleUser(product)) return false;
  Value *x = matmul->value("x"), *y = matmul->value("y");
  if (!IsComputed(x) || !IsComputed(y) || Magnitude(FindInterval(*product)).high <= 65504)
    return false;
  const Symbols& symbols = op->block->function->symbols;
  auto elements = [&](const Value* value) {
    return Product(value->type.shape).Smallest(symbols).value_or(0);
  };
  Value *&fewer = elements(y) < elements(x) ? y : x, *&more = &fewer == &x ? y : x;
  Builder b = BuilderBefore(op, context);
  double rest = 1;
  if (std::fabs(*scale) < kLeastOfOne)
    rest = std::exp2(std::round(std::log2(std::fabs(*scale)) / 2));
  Value* small = Binary(b, "mul", fewer, *scale / rest);
  Value* great = rest == 1 ? more : Binary(b, "mul", more, rest);
  fewer = small;
  more = great;
  Builder::Args args = ArgsWithout(*matmul, {"x", "y"});
  args.emplace_back("x", x);
  args.emplace_back("y", y);
  Value* scaled = b.Make("matmul", std::move(args));
  for (auto step = between.rbegin(); step != between.rend(); ++step) {
    args = ArgsWithout(*step->op, {step->param, step->other});
    args.emplace_back(step->param, scaled);
    if (!step->other.empty()) args.emplace_back(step->other, step->number * *scale);
    scaled = b.Make(step->op->def->name, std::move(args));
  }
  context.diagnostics.Decide("safe-form", matmul->name,
                             fmt::format("matmul: operands instead of the result scaled by {:g}, "
                                         "because fp16 overflows above 65504",
                                         *scale));
  return Replace(op, scaled);
}

}  // namespace

extern const PassDef kScaleBeforeProduct = {"scale-before-product",
                                            "scale an operand instead of the product, for fp16",
                                            RewritesForFp16<Move>};

}  // namespace mlc::passes
