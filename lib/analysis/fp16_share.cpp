#include "lib/analysis/fp16_share.h"

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace mlc::analysis {

namespace {

bool IsFloatTensor(const Type& type) { return type.is_tensor() && IsFloat(type.dtype); }

// Calls visit(op, number of executions) for each operation of the block, inner operations first.
void Visit(const Block& block, double times, const SymbolSizes& sizes,
           const std::function<void(const Operation&, double)>& visit) {
  for (Operation* op : block.operations()) {
    const double inner = op->def->effect == Effect::kLoop ? times * Trips(*op, sizes) : times;
    for (const auto& nested : op->blocks) Visit(*nested, inner, sizes, visit);
    visit(*op, times);
  }
}

void ForEachWork(const Function& function,
                 const std::function<void(const Operation&, FloatWork, double)>& visit) {
  const SymbolSizes sizes = DefaultSizes(function);
  Visit(function.body, 1, sizes, [&](const Operation& op, double times) {
    if (const FloatWork in = FloatWorkOf(op); in != FloatWork::kNone)
      visit(op, in, times * CostOf(op, sizes).multiply_adds);
  });
}

// An operation with blocks is in fp32 if any operation in them is.
FloatWork TypeOfStep(const Operation& op) {
  FloatWork type = FloatWorkOf(op);
  for (const auto& nested : op.blocks)
    for (Operation* inner : nested->operations()) type = std::max(type, TypeOfStep(*inner));
  return type;
}

// Executes fp32 operations as early as possible, so that all fp16 operations that do not depend on
// later ones form one segment, and so on.
int CountSegments(const Block& block) {
  int segments = 0;
  struct Step {
    const Operation* op;
    FloatWork type;
    std::unordered_set<const Operation*> waits_for;
  };
  std::vector<Step> left;
  std::unordered_map<const Operation*, const Operation*>
      outer;  // maps each operation to the operation of this block that contains it
  for (Operation* op : block.operations()) {
    Step step{op, TypeOfStep(*op), {}};
    const std::function<void(const Operation&)> look = [&](const Operation& at) {
      outer[&at] = op;
      auto read = [&](const Value* value) {
        if (!value || !value->def) return;
        if (auto from = outer.find(value->def); from != outer.end() && from->second != op)
          step.waits_for.insert(from->second);
      };
      for (const Operands& operands : at.args())
        for (const Operand& operand : operands) read(operand.value);
      for (const auto& nested : at.blocks) {
        for (Operation* inner : nested->operations()) look(*inner);
        for (const Value* output : nested->outputs()) read(output);
      }
    };
    look(*op);
    for (const auto& nested : op->blocks)
      if (step.type == FloatWork::kFp32) segments += CountSegments(*nested);
    left.push_back(std::move(step));
  }
  std::unordered_set<const Operation*> done;
  // Runs all operations that are ready, in program order. Returns whether one of this type was run.
  auto run = [&](FloatWork type) {
    bool ran = false;
    std::erase_if(left, [&](const Step& step) {
      if (step.type != FloatWork::kNone && step.type != type) return false;
      for (const Operation* before : step.waits_for)
        if (!done.contains(before)) return false;
      ran = ran || step.type == type;
      done.insert(step.op);
      return true;
    });
    return ran;
  };
  while (!left.empty()) {
    const bool wide = run(FloatWork::kFp32), narrow = run(FloatWork::kFp16);
    segments += narrow;
    if (!wide && !narrow) break;
  }
  return segments;
}

}  // namespace

FloatWork FloatWorkOf(const Operation& op) {
  if (op.def->is_const() || op.def->is_constexpr() || !op.blocks.empty()) return FloatWork::kNone;
  bool fp16 = false, other = false;
  auto look = [&](const Type& type) {
    if (!IsFloatTensor(type)) return;
    (type.dtype == DType::kFp16 ? fp16 : other) = true;
  };
  for (const auto& result : op.results) look(result->type);
  for (size_t i = 0; i < op.args().size(); ++i) {
    const bool has_fp16 = Contains(op.def->canonical().params[i].types, DType::kFp16);
    for (const Operand& operand : op.args()[i])
      if (has_fp16 || !operand.constant()) look(operand.type());
  }
  // A cast between float types: one operand, and a result of another type.
  if (op.results.size() == 1 && op.def->elementwise() && fp16 && other) {
    const Operand& x = op.args()[0][0];
    int operands = 0;
    for (const Operands& some : op.args())
      for (const Operand& operand : some) operands += IsFloatTensor(operand.type());
    if (operands == 1 && IsFloatTensor(x.type()) && x.type().dtype != op.result()->type.dtype)
      return FloatWork::kNone;
  }
  return other ? FloatWork::kFp32 : fp16 ? FloatWork::kFp16 : FloatWork::kNone;
}

SymbolSizes DefaultSizes(const Function& function) {
  SymbolSizes sizes;
  for (const auto& [name, symbol] : function.symbols) sizes[name] = symbol.low;
  return sizes;
}

std::map<const Operation*, double> WorkOfOperations(const Function& function) {
  std::map<const Operation*, double> work;
  ForEachWork(function, [&](const Operation& op, FloatWork, double own) { work[&op] = own; });
  return work;
}

Fp16Share Fp16ShareOf(const Function& function) {
  Fp16Share share;
  ForEachWork(function, [&](const Operation&, FloatWork in, double own) {
    (in == FloatWork::kFp16 ? share.fp16 : share.fp32) += own;
  });
  share.segments = CountSegments(function.body);
  return share;
}

Fp16Share Fp16ShareOf(const Program& program) {
  Fp16Share all;
  for (const auto& function : program.functions) {
    const Fp16Share share = Fp16ShareOf(*function);
    all.fp16 += share.fp16;
    all.fp32 += share.fp32;
    all.segments += share.segments;
  }
  return all;
}

bool HasFp16Form(const Operation& op, Opset target) {
  const Form* form = op.def->FormFor(target);
  if (!form) form = &op.def->forms.front();  // newer than the target, which the writer reports
  for (size_t i = 0; i < op.args().size(); ++i) {
    const int param = form->Find(op.def->canonical().params[i].name);
    for (const Operand& operand : op.args()[i])
      if (param >= 0 && !operand.constant() && IsFloatTensor(operand.type()) &&
          operand.type().dtype == DType::kFp32 &&
          !Contains(form->params[param].types, DType::kFp16))
        return false;
  }
  return true;
}

double NoFp16FormShare(const Program& program, Opset target) {
  double all = 0, lacking = 0;
  for (const auto& function : program.functions)
    ForEachWork(*function, [&](const Operation& op, FloatWork in, double own) {
      all += own;
      if (in == FloatWork::kFp32 && !HasFp16Form(op, target)) lacking += own;
    });
  return lacking > 0 ? lacking / all : 0;
}

}  // namespace mlc::analysis
