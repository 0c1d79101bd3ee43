#include "lib/analysis/constraint_propagation.h"

#include <algorithm>

namespace mlc::analysis {

namespace {

constexpr int64_t kLargestRead = 4096;  // maximum size of a constant that is read
constexpr int kMostSteps = 16;

class Analysis {
 public:
  Analysis(const Function& function, const SymbolSizes& sizes)
      : sizes_(sizes),
        walk_{[this](const Value& value) -> const OperandConstraint& { return Of(value); },
              [this](const Operand& operand) { return Known(operand, 0); },
              [this](const Dim& dim) { return Size(dim); }} {
    Visit(function.body);
  }
  Analysis(const Analysis&) = delete;
  Analysis& operator=(const Analysis&) = delete;

  std::unordered_map<const Value*, OperandConstraint> Take() && { return std::move(wants_); }

 private:
  // Returns the requirements of a value's users.
  const OperandConstraint& Of(const Value& value) const {
    static const OperandConstraint nothing;
    auto it = wants_.find(&value);
    return it == wants_.end() ? nothing : it->second;
  }

  void Ask(const Value* value, OperandConstraint constraint) {
    auto [it, first] = wants_.try_emplace(value);
    it->second = first ? std::move(constraint) : Meet(std::move(it->second), constraint);
  }

  // Visits operations in reverse order, so that all users of an operation's results come first.
  void Visit(const Block& block) {
    for (auto it = block.operations().rbegin(); it != block.operations().rend(); ++it) {
      const Operation& op = **it;
      for (const auto& nested : op.blocks) {
        for (size_t i = 0; i < nested->inputs.size(); ++i)
          variables_[nested->inputs[i].get()] = {&op, i};
        const std::vector<Value*>& outputs = nested->outputs();
        // Block outputs become results, except for the condition block of a loop; only loop blocks
        // have inputs.
        bool test = !nested->inputs.empty() && nested == op.blocks[0];
        for (size_t i = 0; !test && i < std::min(outputs.size(), op.results.size()); ++i)
          Ask(outputs[i], Of(*op.results[i]));
        Visit(*nested);
      }
      for (size_t p = 0; p < op.args().size(); ++p)
        for (size_t i = 0; i < op.args()[p].size(); ++i)
          if (const Value* value = op.args()[p][i].value; value && !value->is_constant())
            Ask(value, ConstraintOfResults(ConstraintContext(
                           walk_, op, op.def->canonical().params[p].name, i, *value)));
    }
  }

  double Size(const Dim& dim) const {
    return static_cast<double>(std::max<int64_t>(dim.Evaluate(sizes_).value_or(1), 0));
  }

  // Returns the interval of a value that depends on inputs only through their sizes.
  std::optional<Interval> Known(const Operand& operand, int steps) {
    if (Tensor constant = operand.constant()) {
      int64_t most = IsFloat(constant.dtype()) ? kLargestRead : 16 * kLargestRead;
      if (constant.size() == 0 || constant.size() > most || constant.dtype() == DType::kString)
        return {};
      return IntervalOf(constant);
    }
    const Value* value = operand.value;
    if (!value || steps > kMostSteps) return {};
    auto [it, first] = known_.try_emplace(value);
    if (!first) return it->second;
    std::optional<Interval> known = value->elements && !value->elements->empty()
                                        ? OfElements(*value->elements)
                                    : value->def ? OfResult(*value, steps)
                                                 : OfVariable(*value, steps);
    return known_[value] = known;
  }

  std::optional<Interval> OfElements(const std::vector<Dim>& elements) const {
    std::optional<Interval> joined;
    for (const Dim& element : elements) {
      std::optional<int64_t> known = element.Evaluate(sizes_);
      if (!known) return {};
      auto number = static_cast<double>(*known);
      joined = joined ? Join(*joined, {number, number}) : Interval{number, number};
    }
    return joined;
  }

  std::optional<Interval> OfResult(const Value& value, int steps) {
    const Operation& op = *value.def;
    if (!op.def->range || !op.def->pure) return {};
    RangeContext::Intervals intervals(op.args().size());
    OpContext::Args args(op.args().size());
    for (size_t p = 0; p < args.size(); ++p)
      for (const Operand& operand : op.args()[p]) {
        std::optional<Interval> known = Known(operand, steps + 1);
        if (!known) return {};
        intervals[p].push_back(*known);
        args[p].push_back({Sized(operand.type(), sizes_), operand.constant()});
      }
    std::vector<Type> types;
    for (const auto& result : op.results) types.push_back(Sized(result->type, sizes_));
    return RangeOf(RangeContext(*op.def, std::move(args), std::move(intervals), std::move(types)),
                   value.index);
  }

  // The counter of a loop lies below the limit in its condition.
  std::optional<Interval> OfVariable(const Value& value, int steps) {
    auto it = variables_.find(&value);
    if (it == variables_.end()) return {};
    const auto& [loop, index] = it->second;
    const Operand* limit = LimitOf(*loop->blocks[0]->inputs.at(index));
    std::optional<Interval> known = limit ? Known(*limit, steps + 1) : std::nullopt;
    return known ? std::optional(Interval{0, std::max(0.0, known->high - 1)}) : std::nullopt;
  }

  const SymbolSizes& sizes_;
  ConstraintWalk walk_;
  std::unordered_map<const Value*, OperandConstraint> wants_;
  std::unordered_map<const Value*, std::optional<Interval>> known_;
  std::unordered_map<const Value*, std::pair<const Operation*, size_t>>
      variables_;  // loop variables
};

}  // namespace

std::unordered_map<const Value*, OperandConstraint> PropagateConstraints(const Function& function,
                                                                         const SymbolSizes& sizes) {
  return Analysis(function, sizes).Take();
}

}  // namespace mlc::analysis
