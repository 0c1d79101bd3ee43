// Operators by name: the formulas that the rules match.
#include "lib/passes/fp16_cancellation.h"

#include <algorithm>
#include <cmath>

#include "lib/ops/value_range.h"
#include "lib/passes/fp16_sensitivity.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr int kMostSteps = 8;         // maximum number of operations between the parts of a formula
constexpr double kMost = 65000;       // the largest sum that is considered safe
constexpr double kLargeMean = 16;     // from here, fp16 numbers are at least 1/64 apart
constexpr int64_t kManySummed = 256;  // minimum number of non-negative terms of a large sum

// Returns the value without factors, data movement and casts, and adds these operations to
// `passed`.
const Value* Unscaled(const Value* value, Operations* passed = nullptr) {
  for (int i = 0; i < kMostSteps && value; ++i) {
    const Value* from = nullptr;
    const Operation* op = MadeOfOne(*value, from);
    if (!op || !IsFp32(from->type) ||
        !(Scales(*op, from) || IsCast(*op) || op->def->moves != Moves::kNone))
      break;
    if (passed) passed->insert(op);
    value = from;
  }
  return value;
}

// Returns the operation that computes the value as a sum or mean over dimensions or windows.
const Operation* AsMean(const Value* value) {
  const Operation* op = value ? value->def : nullptr;
  bool mean = op && (op->def->sums.of == Sums::kElements ||
                     (op->is("conv") && op->value("weight")->is_constant()));
  return mean && IsFp32(value->type) ? op : nullptr;
}

// Returns x if the value is a sum of squares of x, and adds the operations that compute it to
// `parts`.
const Value* SummedSquares(const Value* value, Operations& parts) {
  value = Unscaled(value, &parts);
  const Operation* op = value ? value->def : nullptr;
  if (!op) return nullptr;
  parts.insert(op);
  if (op->def->sums.of == Sums::kSquares && !op->def->sums.root) return op->value("x");
  const Value* norm = SquareRoot(value);
  if (norm && norm->def && norm->def->def->sums.of == Sums::kSquares && norm->def->def->sums.root) {
    parts.insert(norm->def);
    return norm->def->value("x");
  }
  const Operation* mean = AsMean(value);
  const Value* squares = mean ? Unscaled(mean->value("x"), &parts) : nullptr;
  const Value* x = SquareRoot(squares);
  if (x) parts.insert(squares->def);
  return x;
}

// Returns the mean or sum whose square the value is.
const Operation* SquaredMean(const Value* value, Operations& parts) {
  value = Unscaled(value, &parts);
  const Operation* op = value ? value->def : nullptr;
  if (!op) return nullptr;
  const Value *one = SquareRoot(value), *other = one;
  if (!one && op->is("mul")) {  // a product of a sum and the mean, possibly
    one = op->value("x");
    other = op->value("y");
  }
  const Operation* mean = AsMean(Unscaled(one, &parts));
  if (!mean || AsMean(Unscaled(other, &parts)) != mean) return nullptr;
  parts.insert({op, mean});
  return mean;
}

// Returns whether large operands give large results, unlike a square root.
bool StaysLarge(const Operation& op) {
  constexpr double kLarge = 0x1p40, kStill = 0x1p30;
  return Magnitude(IntervalWhen(*op.result(), {-kLarge, kLarge})).high >= kStill;
}

// Adds the operations whose only non-constant operand is derived from the value, as long as their
// results stay large.
void AddMadeOf(const Value& value, const Operations& known, Operations& found) {
  for (const Operation* user : value.users) {
    const Value* from = nullptr;
    if (!known.contains(user) || user->results.size() != 1 ||
        MadeOfOne(*user->result(), from) != user || found.contains(user))
      continue;
    found.insert(user);
    if (user->def->moves != Moves::kNone || StaysLarge(*user))
      AddMadeOf(*user->result(), known, found);
  }
}

void AddVariance(const Operation& difference, const Operations& known, Operations& found) {
  const Value *x = difference.value("x"), *y = difference.value("y");
  for (auto [squares, square] : {std::pair{x, y}, std::pair{y, x}}) {
    Operations parts = {&difference};
    const Value* of = SummedSquares(squares, parts);
    const Operation* mean = of ? SquaredMean(square, parts) : nullptr;
    if (!mean || Unscaled(mean->value("x")) != Unscaled(of)) continue;
    for (const Operation* user : of->users) {
      const Value* other = user->is("sub") ? OtherOperand(user, of) : nullptr;
      if (other && Unscaled(other) == mean->result()) parts.insert(user);
    }
    for (const Operation* part : parts)
      if (known.contains(part)) found.insert(part);
    AddMadeOf(*difference.result(), known, found);
    return;
  }
}

// Splits a sum or difference into its terms, without factors; adds the traversed operations to
// `passed`.
void Terms(const Value* value, Operations& passed, std::vector<const Value*>& terms, int steps) {
  value = Unscaled(value, &passed);
  const Operation* op = value ? value->def : nullptr;
  if (!op || !IsFp32(value->type) || !(op->is("add") || op->is("sub")) || steps == 0) {
    terms.push_back(value);
    return;
  }
  passed.insert(op);
  for (std::string_view operand : {"x", "y"}) Terms(op->value(operand), passed, terms, steps - 1);
}

// Returns whether the value is a product with operand x.
bool IsProductOf(const Value* value, const Value* x) {
  const Operation* op = value ? value->def : nullptr;
  if (!op || op->def->elementwise() || !(op->def->fp16.kind & Fp16::kProduct)) return false;
  for (const Operands& operands : op->args())
    for (const Operand& operand : operands)
      if (operand.value && Unscaled(operand.value) == x) return true;
  return false;
}

void AddDistance(const Operation& sum, const Operations& known, Operations& found) {
  constexpr int kMostSums = 3;
  Operations parts;
  std::vector<const Value*> terms;
  Terms(sum.result(), parts, terms, kMostSums);
  bool cancels = false;
  for (const Value* term : terms) {
    Operations squares;
    const Value* x = Unscaled(SummedSquares(term, squares));
    if (!x) continue;
    parts.merge(squares);
    for (const Value* product : terms)
      if (product != term && IsProductOf(product, x)) {
        parts.insert(product->def);
        cancels = true;
      }
  }
  if (!cancels) return;
  for (const Operation* part : parts)
    if (known.contains(part)) found.insert(part);
  AddMadeOf(*sum.result(), known, found);
}

// Returns the number of elements that are summed for each element of the result; 0 if unknown.
double Summed(const Operation& sum) {
  double from = 1, to = 1;
  for (const Dim& dim : sum.value("x")->type.shape)
    from *= dim.is_constant() ? static_cast<double>(dim.constant()) : 0;
  for (const Dim& dim : sum.result()->type.shape)
    to *= dim.is_constant() ? static_cast<double>(dim.constant()) : 0;
  return to > 0 ? from / to : 0;
}

// Returns base and exponent if the value is a power that increases large values.
std::pair<const Value*, double> AsPower(const Value* value) {
  if (const Value* root = SquareRoot(value)) return {root, 2};
  const Operation* pow = DefinedBy(value, "pow");
  std::optional<double> exponent = pow ? UniformConstant(pow->value("y")) : std::nullopt;
  if (!exponent || *exponent < 1) return {nullptr, 1};
  return {pow->value("x"), *exponent};
}

// Returns whether the operation sums powers or magnitudes that may exceed fp16; `made` is the
// operation that computes these powers.
bool MayOverflow(const Operation& op, const Operation*& made) {
  made = nullptr;
  const Sums& sums = op.def->sums;
  if (sums.of == Sums::kNone || sums.root) return false;
  double power = sums.of == Sums::kSquares ? 2 : 1;
  const Value* x = op.value("x");
  double count = sums.mean ? 1 : Summed(op);
  if (auto [base, exponent] = AsPower(x); base && sums.of == Sums::kElements) {
    made = x->def;
    x = base;
    power = exponent;
  }
  if (IsDividedByGreatest(x)) return false;
  Interval interval = FindInterval(*x);
  double most = Magnitude(interval).high;
  if (power > 1) return !(count > 0 && std::pow(most, power) * count <= kMost);
  bool many = sums.of == Sums::kMagnitudes || (!sums.mean && interval.low >= 0);
  return many && !(count > 0 && (count < kManySummed || most * count <= kMost));
}

// Returns whether the value is a norm, a standard deviation, or the square of either; all are
// non-negative.
bool IsNorm(const Value* value, int depth = 0) {
  const Operation* op = value ? value->def : nullptr;
  if (!op || depth > kMostSteps) return false;
  if (op->is("sqrt") || op->def->sums.of == Sums::kSquares) return true;
  if (op->is("pow") && IsUniform(op->value("y"), 0.5)) return true;
  if (const Operation* sum = AsMean(value); sum && SquareRoot(sum->value("x"))) return true;
  const Value* from = nullptr;
  if (MadeOfOne(*value, from)) return IsNorm(from, depth + 1);
  // A product of the divisor of rows and the norm of the divided rows.
  return op->is("mul") && IsNatural(value) &&
         (IsNorm(op->value("x"), depth + 1) || IsNorm(op->value("y"), depth + 1));
}

// Returns the largest magnitude of `numbers` multiplied or divided by `scale`; 0 if it is unknown.
double LargestScaled(const Tensor& numbers, const Tensor& scale, bool divides) {
  if (scale.size() != 1 && scale.size() != numbers.size()) return 0;
  double most = 0;
  for (int64_t i = 0; i < numbers.size(); ++i) {
    double factor = scale.Double(scale.size() == 1 ? 0 : i);
    most = std::max(most,
                    std::fabs(divides ? numbers.Double(i) / factor : numbers.Double(i) * factor));
  }
  return std::isfinite(most) ? most : 0;
}

// Returns the largest mean of a batch norm in standard deviations, weighted by gamma.
double MeanOfBatchNorm(const Operation& op) {
  Tensor mean = op.constant("mean"), variance = op.constant("variance"),
         gamma = op.constant("gamma"), epsilon = op.constant_or_default("epsilon");
  if (!mean || !variance) return 0;
  double added = (epsilon ? epsilon : op.def->default_value(ContextOf(op), "epsilon")).Double(0);
  double most = 0, largest = 0;
  for (int64_t i = 0; i < mean.size(); ++i) {
    double factor = gamma ? std::fabs(gamma.Double(i)) : 1;
    largest = std::max(largest, factor);
    most =
        std::max(most, std::fabs(mean.Double(i)) / std::sqrt(variance.Double(i) + added) * factor);
  }
  return largest > 0 && std::isfinite(most) ? most / largest : 0;
}

}  // namespace

Operations FindVariances(const std::vector<const Operation*>& operations) {
  const Operations known(operations.begin(), operations.end());
  Operations found;
  for (const Operation* op : operations)
    if (op->is("sub")) AddVariance(*op, known, found);
  return found;
}

Operations FindDistances(const std::vector<const Operation*>& operations) {
  const Operations known(operations.begin(), operations.end());
  Operations found;
  for (const Operation* op : operations)
    if (op->is("add") || op->is("sub")) AddDistance(*op, known, found);
  return found;
}

Operations FindLargeSums(const std::vector<const Operation*>& operations) {
  const Operations known(operations.begin(), operations.end());
  Operations found;
  for (const Operation* op : operations) {
    const Operation* made = nullptr;
    if (!MayOverflow(*op, made)) continue;
    found.insert(op);
    if (known.contains(made)) found.insert(made);
    AddMadeOf(*op->result(), known, found);
  }
  return found;
}

NormProducts FindNormProducts(const std::vector<const Operation*>& operations) {
  NormProducts found;
  for (const Operation* op : operations) {
    if (!op->is("real_div")) continue;
    Operations between = {op};
    const Value* value = op->value("y");
    for (int i = 0; i < kMostSteps && value; ++i) {
      const Value* from = nullptr;
      const Operation* maker = MadeOfOne(*value, from);
      if (!maker || !IsFp32(from->type)) break;
      between.insert(maker);
      value = from;
    }
    const Operation* product = value ? value->def : nullptr;
    if (!product || !(product->is("mul") || product->is("matmul"))) continue;
    const Value *x = product->value("x"), *y = product->value("y");
    if (x == y || !IsNorm(x) || !IsNorm(y)) continue;
    between.insert(product);
    found.operations.merge(between);
    for (const Value* norm : {x, y})
      if (norm->def) found.norms.insert(norm->def);
  }
  return found;
}

bool SubtractsLargeMean(const Operation& op) {
  if (op.is("batch_norm")) return MeanOfBatchNorm(op) > kLargeMean;
  if (!op.is("sub") && !op.is("add")) return false;
  auto [mean, x] = SplitConstant(&op);
  if (!mean || !IsFp32(op.result()->type) || mean->constant().size() > 65536) return false;
  while (x->def && MovesX(*x->def)) x = x->def->value("x");
  if (x->def) return false;  // a computed value, which may be large
  const Operation* next = SoleUser(op.result());
  bool divides = next && next->is("real_div") && next->value("x") == op.result();
  const Value* scale = divides || (next && next->is("mul")) ? SplitConstant(next).first : nullptr;
  if (!scale && UniformConstant(mean))
    return false;  // a uniform constant, added to values that may be small
  return LargestScaled(mean->constant(),
                       scale ? scale->constant() : Tensor::Full(DType::kFp32, {}, 1),
                       divides) > kLargeMean;
}

}  // namespace mlc::passes
