// Replaces the large negative fill values of attention masks by values that fp16 can represent.
//
//   m = select(p, 0.0, -3.4e38); y = softmax(add(scores, m))
//     ->   m = select(p, 0.0, -40000.0); y = softmax(add(scores, m))
//
// A constant element below -30000 (including -inf) becomes -40000 if it reaches only softmax, by
// sums, selects, products with 0 or 1, and data movement. If another element of the row is not
// masked, exp(-40000 + score - max) is 0 for scores within +-19000. A row that is entirely masked
// gives equal probabilities, as with -3.4e38 (fp16 numbers around 40000 are 32 apart, so usual
// scores vanish in the sum), instead of the NaN that -inf gives.
//
// If the masks of one softmax have different fill values (padding of -1e9 and -inf), their order is
// preserved: a row in which all elements above -inf are padding gives its probability to the
// padding. Fill values within a factor of 1000 of the smallest magnitude become -12000, larger ones
// -30000. The sum of two of the former is still above one of the latter, and the sum of both is far
// from the limit of fp16, for scores within +-3000 (numbers around 12000 are 8 apart). Additive
// masks that are added to each other also become -12000, if fp32 can represent their sum.
//
// Must not fire if the masked value has a user that is none of these operations, on products with
// anything that is not a converted boolean or integer, or with --precision fp32. Numeric effect:
// only fp16 rounding.
//
// Operators by name: masks and the operations after them that it matches.
#include "lib/passes/safe_masks.h"

#include <limits>
#include <unordered_map>

#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr double kMasked = -30000, kBound = -40000, kShallow = -12000, kDeep = -30000;
constexpr double kAlike = 1000;   // the maximum ratio of fill values that are considered equal
constexpr double kScores = 3000;  // the maximum magnitude of scores next to the smallest fill value

bool IsMove(const Operation& op) { return op.def->moves != Moves::kNone || IsCast(op); }

// Returns whether every element is 0 or 1, in the forms that masks have.
bool IsTruth(const Value* value, int depth = 0) {
  const Operation* op = value ? value->def : nullptr;
  if (!op || depth > 8) return false;
  if (IsCast(*op)) return !IsFloat(op->value("x")->type.dtype);
  if (op->is("sub") && IsUniform(op->value("x"), 1)) return IsTruth(op->value("y"), depth + 1);
  if (IsMove(*op) && op->def->Find("x") >= 0) return IsTruth(op->value("x"), depth + 1);
  return false;
}

// The smallest and largest magnitudes of the fill values; infinite and 0 if there are none.
struct Depths {
  double least = std::numeric_limits<double>::infinity(), most = 0;

  bool any() const { return most > 0; }
  void Join(const Depths& other) {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
  }
};

Depths DepthsOf(const Value* value) {
  Depths depths;
  if (!value || !value->is_constant()) return depths;
  const Tensor& tensor = value->constant();
  if (!IsFloat(tensor.dtype()) || tensor.size() > (int64_t{1} << 24)) return depths;
  for (double number : tensor.Doubles())
    if (number < kMasked) {
      // A fill value that this pass has already replaced counts as infinite.
      double depth = number == kBound ? std::numeric_limits<double>::infinity() : -number;
      depths.Join({depth, depth});
    }
  return depths;
}

// Masks that reach the same softmax.
struct Group {
  Depths depths;
  int summed = 0;  // the maximum number of masks that are added to each other

  // Returns the new fill value.
  double Bound(double number) const {
    bool sum_is_finite = 2 * depths.least < std::numeric_limits<float>::max();
    bool several = depths.most > kAlike * depths.least || (summed > 1 && sum_is_finite);
    if (number == kBound || !several) return kBound;
    return -number > kAlike * depths.least ? kDeep : kShallow;
  }
};

Tensor Bounded(const Tensor& tensor, const Group& group) {
  std::vector<double> numbers = tensor.Doubles();
  for (double& number : numbers)
    if (number < kMasked) number = group.Bound(number);
  return Tensor::Of<double>(tensor.dims(), numbers).Cast(tensor.dtype()).ComputedFrom(tensor);
}

// Returns the operands that may hold masks.
std::vector<std::string_view> Parameters(const Operation& op) {
  if (op.is("add") || op.is("mul")) return {"x", "y"};
  if (op.is("select")) return {"a", "b"};
  if (IsMove(op) && op.def->Find("x") >= 0) return {"x"};
  return {};
}

class Masks {
 public:
  Masks(Block& block, PassContext& context) : context_(context) {
    for (Operation* op : block.operations()) operations_.push_back(op);
    const std::unordered_set<const Operation*> ending = EndInSoftmax(block);
    for (auto it = operations_.rbegin(); it != operations_.rend(); ++it)
      if (ending.contains(*it)) Join(*it);
    for (Operation* op : operations_)
      if (groups_.contains(op)) Measure(*op);
  }

  bool Bound() {
    bool changed = false;
    for (auto it = operations_.rbegin(); it != operations_.rend(); ++it)
      if (groups_.contains(*it)) changed |= Bound(*it);
    for (Operation* op : unused_) op->block->Erase(op);
    return changed;
  }

 private:
  // Merges the operation into the group of its users.
  void Join(const Operation* op) {
    groups_[op] = op;
    for (const std::unique_ptr<Value>& result : op->results)
      for (const Operation* user : result->users) {
        groups_.try_emplace(user, user);  // softmax
        groups_[Root(user)] = op;
      }
  }

  const Operation* Root(const Operation* op) {
    while (groups_.at(op) != op) op = groups_[op] = groups_.at(groups_.at(op));
    return op;
  }

  // Returns whether the constant is a mask: an additive one, or a factor of a value that is 0 or 1.
  static bool IsMask(const Operation& op, const Value* constant) {
    return constant && constant->is_constant() && !IsMove(op) &&
           (!op.is("mul") || IsTruth(OtherOperand(&op, constant)));
  }

  void Measure(const Operation& op) {
    Group& group = found_[Root(&op)];
    int summed = 0;
    for (std::string_view param : Parameters(op)) {
      const Value* operand = op.value(param);
      int own = 0;
      if (IsMask(op, operand)) {
        auto [known, first] = depths_.try_emplace(operand);
        if (first) known->second = DepthsOf(operand);
        group.depths.Join(known->second);
        own = known->second.any() ? 1 : 0;
      } else if (operand && operand->def) {
        auto before = summed_.find(operand->def);
        own = before != summed_.end() ? before->second : 0;
      }
      summed = op.is("add") ? summed + own : std::max(summed, own);
    }
    summed_[&op] = summed;
    group.summed = std::max(group.summed, summed);
  }

  bool Bound(Operation* op) {
    bool changed = false;
    for (std::string_view param : Parameters(*op)) {
      Value* constant = op->value(param);
      if (!IsMask(*op, constant) || !depths_.at(constant).any()) continue;
      const Group& group = found_.at(Root(op));
      Tensor bounded = Bounded(constant->constant(), group);
      if (bounded.SameBytes(constant->constant())) continue;
      Builder builder = BuilderBefore(op, context_);
      op->SetArg(param, {builder.Const(bounded, constant->name)});
      context_.diagnostics.Decide(
          "safe-form", op->name,
          fmt::format("{}: mask fill value set to {:g}, which fp16 can represent and which softmax "
                      "maps to 0",
                      op->def->name, group.Bound(-depths_.at(constant).most)));
      if (!constant->has_uses()) unused_.push_back(constant->def);
      changed = true;
    }
    return changed;
  }

  PassContext& context_;
  std::vector<Operation*> operations_;
  // Softmax and the operations whose results reach only softmax. Each maps to its parent in a
  // union-find forest; a root maps to itself.
  std::unordered_map<const Operation*, const Operation*> groups_;
  std::unordered_map<const Operation*, Group> found_;  // by root
  std::unordered_map<const Operation*, int> summed_;
  std::unordered_map<const Value*, Depths> depths_;
  std::vector<Operation*> unused_;
};

bool RewriteMasks(Block& block, PassContext& context) {
  bool changed = false;
  // Nested blocks come first, because they may erase constants of this block.
  for (Operation* op : block.operations())
    for (const std::unique_ptr<Block>& nested : op->blocks)
      changed |= RewriteMasks(*nested, context);
  return changed | Masks(block, context).Bound();
}

bool RunSafeMasks(Program& program, PassContext& context) {
  if (context.precision == PassContext::Precision::kFp32) return false;
  return OnEachFunction(program, [&](Function& f) { return RewriteMasks(f.body, context); });
}

}  // namespace

// Returns whether the program tests the value for NaN, which is the result for rows that are
// entirely masked by -inf.
bool IsTestedForNan(const Value* value, int depth = 0) {
  constexpr int kDepth = 4;
  return depth < kDepth &&
         std::any_of(value->users.begin(), value->users.end(), [&](const Operation* user) {
           if ((user->is("not_equal") || user->is("equal")) && user->value("x") == user->value("y"))
             return true;
           return (IsCast(*user) || MovesX(*user)) && IsTestedForNan(user->result(), depth + 1);
         });
}

bool EndsInSoftmax(const Operation& reader, const std::unordered_set<const Operation*>& ending) {
  return (reader.is("softmax") && !IsTestedForNan(reader.result())) || ending.contains(&reader);
}

std::unordered_set<const Operation*> EndInSoftmax(const Block& block) {
  std::vector<const Operation*> operations(block.operations().begin(), block.operations().end());
  std::unordered_set<const Operation*> ending;
  auto ends = [&](const Operation& op) {
    if (Parameters(op).empty() && !IsMove(op)) return false;
    for (const std::unique_ptr<Value>& result : op.results) {
      if (!result->has_uses() || result->is_output()) return false;
      for (const Operation* user : result->users)
        if (user->is("mul") || !EndsInSoftmax(*user, ending)) return false;
    }
    return true;
  };
  for (auto it = operations.rbegin(); it != operations.rend(); ++it)
    if (ends(**it)) ending.insert(*it);
  return ending;
}

bool MasksBoth(double source, double package) {
  return source < kMasked && package <= kShallow + kScores;
}

extern const PassDef kSafeMasks = {
    "safe-masks", "bound the fill values of attention masks, for fp16", RunSafeMasks};

}  // namespace mlc::passes
