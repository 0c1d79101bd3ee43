#include "lib/passes/precision_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "lib/analysis/fp16_share.h"
#include "lib/ops/value_range.h"
#include "lib/passes/constant_ranges.h"
#include "lib/passes/def_use_across_blocks.h"
#include "lib/passes/encoded_constants.h"
#include "lib/passes/fp16_sensitivity.h"
#include "lib/passes/rewriting.h"
#include "lib/support/edit_distance.h"
#include "lib/support/threads.h"

namespace mlc::passes {
namespace {

constexpr double kOverflow = 65520;  // rounds to infinity in fp16
constexpr double kNormal = 0x1p-14;  // below it fp16 loses precision

// The maximum share of the function's work in operations that stay in fp32 because of an estimated
// rounding error.
constexpr double kRoundingWork = 0.05;

// Returns the names of an operation: its own, which the text form lacks, and those of its results.
std::vector<std::string> NamesOf(const Operation& op) {
  std::vector<std::string> names;
  if (!op.name.empty()) names.push_back(op.name);
  for (const std::unique_ptr<Value>& result : op.results) names.push_back(result->name);
  return names;
}

enum class Asked : uint8_t { kNothing, kFp32, kFp16 };

// Returns what the user requested for the operation or for an operation that contains it.
Asked WhatIsAsked(const Operation& op, const PassContext& context) {
  auto asked = [&](const std::vector<std::string>& names) {
    auto are = [&](const std::vector<std::string>& listed) {
      return std::find_first_of(listed.begin(), listed.end(), names.begin(), names.end()) !=
             listed.end();
    };
    return are(context.fp32_ops)   ? Asked::kFp32
           : are(context.fp16_ops) ? Asked::kFp16
                                   : Asked::kNothing;
  };
  if (context.fp32_ops.empty() && context.fp16_ops.empty()) return Asked::kNothing;
  if (Asked by_name = asked(NamesOf(op)); by_name != Asked::kNothing) return by_name;
  if (Asked by_operator = asked({std::string(op.def->name)}); by_operator != Asked::kNothing)
    return by_operator;
  return op.block->parent ? WhatIsAsked(*op.block->parent, context) : Asked::kNothing;
}

// Returns the result of measuring for the operation.
Fp32Decision Measured(const Operation& op, const PassContext& context) {
  if (!context.measured.empty())
    for (const std::string& name : NamesOf(op))
      if (auto it = context.measured.find(name); it != context.measured.end()) return it->second;
  return {};
}

class Planner {
 public:
  Planner(const Function& function, const PassContext& context)
      : function_(const_cast<Function&>(function)), context_(context), flow_(function) {}

  PrecisionPlan Run() {
    std::vector<const Operation*> operations;
    ForEachOperation(function_, [&](Operation* op) { operations.push_back(op); });
    digits_ = FindFp16Sensitive(function_, flow_);
    MeasureConstants(operations);
    for (const Operation* op : operations) LookForSmallConstants(*op);
    LimitRounding();
    for (const Operation* op : operations) Decide(*op);
    for (auto it = operations.rbegin(); it != operations.rend(); ++it) FollowUsers(**it);
    return std::move(plan_);
  }

 private:
  // Returns whether the operation already computes in fp16 and only scalar constants are fp32; the
  // forms before iOS17 require these in fp16, too.
  bool ComputesInFp16(const Operation& op) const {
    if (!op.blocks.empty() || op.def->is_constexpr()) return false;
    bool half = false;
    for (const Operands& operands : op.args())
      for (const Operand& operand : operands) {
        const Tensor& constant = operand.constant();
        if (constant && IsFp32(operand.type()) &&
            (constant.size() != 1 || std::fabs(constant.Double(0)) >= kOverflow))
          return false;
        if (constant) continue;
        if (IsFp32(operand.type())) return false;
        half = half || (operand.type().is_tensor() && operand.type().dtype == DType::kFp16);
      }
    return half && std::ranges::none_of(op.results,
                                        [](const auto& result) { return IsFp32(result->type); });
  }

  // Decoded constexpr operations count like dense constants, so that the plan of a program that has
  // been encoded already is the same.
  void MeasureConstants(const std::vector<const Operation*>& operations) {
    std::vector<const Value*> values;
    std::vector<Tensor> constants;
    OpContext::Values decoded;
    auto add = [&](const Value* value, Tensor constant) {
      if (!IsFp32(value->type)) return;
      values.push_back(value);
      constants.push_back(std::move(constant));
    };
    for (const Operation* op : operations) {
      if (op->def->is_const()) add(op->result(), op->val);
      if (!op->def->is_constexpr()) continue;
      std::vector<Type> types;
      for (const std::unique_ptr<Value>& result : op->results) types.push_back(result->type);
      EvalContext context(*op->def, op->args(), decoded, std::move(types));
      try {
        op->def->eval(context);
      } catch (const Error&) {
        continue;  // the error remains at run time
      }
      for (size_t i = 0; i < op->results.size(); ++i) {
        const Value* result = op->results[i].get();
        decoded[result] = {result->type, context.results[i]};
        add(result, context.results[i]);
      }
    }
    std::vector<char> wide(values.size());
    ParallelFor(std::ssize(values), 0, [&](int64_t i) {
      wide[i] = NeedsFp32(*values[i]->def, constants[i], context_.target);
    });
    std::vector<double> largest = MaxMagnitudes(std::move(constants), kNormal, kOverflow);
    for (size_t i = 0; i < values.size(); ++i) {
      magnitudes_[values[i]] = largest[i];
      if (wide[i]) wide_.insert(values[i]);
    }
  }

  // Returns why Core ML does not support the operation in fp16; empty if it does.
  std::string Lack(const Operation& op) const {
    if (analysis::HasFp16Form(op, context_.target)) return "";
    for (const Form& form : op.def->forms)
      if (analysis::HasFp16Form(op, form.since))
        return fmt::format("{}{}", kFp32Before, TargetName(form.since));
    return "Core ML supports this operator in fp32 only";
  }

  // Adds products with constants that are subnormal in fp16.
  void LookForSmallConstants(const Operation& op) {
    if (!Is(op, Fp16::kProduct)) return;
    for (size_t i = 0; i < op.args().size(); ++i) {
      const Param& param = op.def->canonical().params[i];
      if (!Contains(param.types, DType::kFp16) || param.name == "bias") continue;
      for (const Operand& operand : op.args()[i])
        if (auto known = magnitudes_.find(operand.value); known != magnitudes_.end())
          if (const double magnitude = known->second; magnitude > 0 && magnitude < kNormal)
            digits_.try_emplace(
                &op,
                Fp32Decision{Fp32Reason::kRounding,
                             fmt::format("constant {} is at most {:g}, which is subnormal in fp16",
                                         param.name, magnitude)});
    }
  }

  // Returns whether all operands and results were measured and are far below the limit of fp16.
  bool IsSmall(const Operation& op) const {
    constexpr double kSmall = 65504.0 / 32;
    auto is_small = [&](const Value* value) {
      if (!value || value->is_constant() || !IsFp32(value->type)) return true;
      auto known = context_.reached.find(value->name);
      return known != context_.reached.end() && known->second <= kSmall;
    };
    for (const Operands& operands : op.args())
      for (const Operand& operand : operands)
        if (!is_small(operand.value)) return false;
    return std::ranges::all_of(op.results,
                               [&](const auto& result) { return is_small(result.get()); });
  }

  // Drops all decisions based on estimated rounding errors if they exceed the work budget.
  void LimitRounding() {
    auto rounds = [](const auto& entry) { return entry.second.reason == Fp32Reason::kRounding; };
    if (std::ranges::none_of(digits_, rounds)) return;
    double rounded = 0, all = 0;
    for (const auto& [op, work] : analysis::WorkOfOperations(function_)) {
      all += work;
      if (auto it = digits_.find(op); it != digits_.end() && rounds(*it)) rounded += work;
    }
    if (rounded > kRoundingWork * all) std::erase_if(digits_, rounds);
  }

  // Returns why the operation must stay in fp32, if it must.
  Fp32Decision Reason(const Operation& op) const {
    Asked asked = WhatIsAsked(op, context_);
    const Fp32Decision lack{Fp32Reason::kNoFp16Form, Lack(op)};
    if (asked == Asked::kFp32) return {Fp32Reason::kOption, "option 'fp32-ops'"};
    if (asked == Asked::kFp16) return lack.text.empty() ? Fp32Decision{} : lack;
    if (Fp32Decision measured = Measured(op, context_); measured.fp32()) return measured;
    if (!lack.text.empty()) return lack;
    if (auto it = digits_.find(&op); it != digits_.end() && !(it->second.estimated && IsSmall(op)))
      return it->second;
    if (context_.precision == PassContext::Precision::kMixed && !context_.judged &&
        Is(op, Fp16::kRough))
      return {Fp32Reason::kOption, "option 'precision' mixed"};
    std::string overflow = OverflowOfConstants(op);
    if (overflow.empty()) overflow = Overflow(op);
    if (overflow.empty()) return {};
    return {Fp32Reason::kOverflow, std::move(overflow)};
  }

  // Returns which constant fp16 cannot represent; empty if it can represent all.
  std::string OverflowOfConstants(const Operation& op) const {
    for (size_t i = 0; i < op.args().size(); ++i) {
      const Param& param = op.def->canonical().params[i];
      if (!Contains(param.types, DType::kFp16)) continue;
      for (const Operand& operand : op.args()[i]) {
        auto measured = magnitudes_.find(operand.value);
        if (measured == magnitudes_.end()) continue;
        const double magnitude = measured->second;
        if (wide_.contains(operand.value))
          return fmt::format("fp16 cannot represent the scales or the table of constant {}, {}",
                             param.name, operand.value->name);
        if (magnitude >= kOverflow && !op.def->fp16.IsBound(param.name))
          return fmt::format("constant {} contains {:g}, which exceeds the range of fp16",
                             param.name, magnitude);
      }
    }
    return "";
  }

  // Returns that an operand or a result exceeds fp16 at the largest input, if the rows prove this;
  // an empty string proves nothing.
  std::string Overflow(const Operation& op) const {
    double most = 0;
    auto look = [&](const Value& value) {
      auto [known, first] = reaches_.try_emplace(&value);
      if (first) known->second = Reaches(value);
      most = std::max(most, known->second);
    };
    for (size_t i = 0; i < op.args().size(); ++i)
      if (Contains(op.def->canonical().params[i].types, DType::kFp16))
        for (const Operand& operand : op.args()[i])
          if (operand.value) look(*operand.value);
    for (const std::unique_ptr<Value>& result : op.results) look(*result);
    return most < kOverflow
               ? ""
               : fmt::format("its values reach {:g}, which exceeds the range of fp16", most);
  }

  static bool IsBounded(Interval interval) {
    constexpr double kMost = std::numeric_limits<float>::max();
    return -kMost < interval.low && interval.high < kMost;
  }

  // Returns the magnitude that elements of the value reach, if each is computed from one element,
  // beginning with a bounded function; otherwise 0.
  static double Reaches(const Value& value) {
    if (!IsFp32(value.type) || value.is_constant()) return 0;
    const Value* at = &value;
    for (int i = 0; i < 6; ++i) {
      const Value* from = nullptr;
      if (!MadeOfOne(*at, from) || !IsFp32(from->type)) return 0;
      Interval whatever = IntervalWhen(*at, Interval());
      if (i == 0 && IsBounded(whatever) && Magnitude(whatever).high < kOverflow) return 0;
      if (at->def->is("clip") || IsBounded(whatever)) {
        Interval reached = FindInterval(value);
        return IsBounded(reached) ? std::max(-reached.low, reached.high) : 0;
      }
      at = from;
    }
    return 0;
  }

  void Decide(const Operation& op) {
    if (op.def->is_const() || op.def->is_constexpr() || !op.blocks.empty() || op.is("identity") ||
        IsCast(op) || op.def->effect == Effect::kList || !HasFp32(op))
      return;
    plan_[&op] = ComputesInFp16(op) ? Fp32Decision{} : Reason(op);
  }

  // Encoded weights have the precision of their users.
  void FollowUsers(const Operation& op) {
    if (!op.def->is_constexpr() || !HasFp32(op)) return;
    Fp32Decision why;
    bool all = true;
    for (const std::unique_ptr<Value>& result : op.results)
      for (const Operation* user : result->users) {
        auto planned = plan_.find(user);
        all = all && planned != plan_.end() && planned->second.fp32();
        if (all) why = {planned->second.reason, "all its users stay in fp32"};
      }
    plan_[&op] = all ? why : Fp32Decision{};
  }

  Function& function_;
  const PassContext& context_;
  const DefUseGraph flow_;
  PrecisionPlan plan_;
  std::unordered_map<const Value*, double>
      magnitudes_;                             // magnitudes of fp32 constants, dense or encoded
  std::unordered_set<const Value*> wide_;      // constants whose encoding fp16 cannot represent
  mutable PointerMap<Value, double> reaches_;  // filled on demand
  std::unordered_map<const Operation*, Fp32Decision> digits_;
};

}  // namespace

void CheckNamedOperations(const Program& program, const PassContext& context) {
  if (context.fp32_ops.empty() && context.fp16_ops.empty()) return;
  std::set<std::string> known;
  for (const std::unique_ptr<Function>& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (op->def->is_const()) return;
      for (std::string& name : NamesOf(*op)) known.insert(std::move(name));
      known.emplace(op->def->name);
    });
  auto check = [&](std::string_view option, const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (!known.contains(name))
        throw Error("bad-name",
                    "{} {}: the program has no operation and no "
                    "operator of this name{}",
                    option, name, DidYouMean(known, name))
            .Expected(Quoted(NearNames(known, name)));
  };
  check("option 'fp32-ops'", context.fp32_ops);
  check("option 'fp16-ops'", context.fp16_ops);
}

PrecisionPlan PlanPrecision(const Function& function, const PassContext& context) {
  return Planner(function, context).Run();
}

}  // namespace mlc::passes
