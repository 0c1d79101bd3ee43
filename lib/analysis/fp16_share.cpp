#include "lib/analysis/fp16_share.h"

#include <functional>
#include <vector>

#include "lib/analysis/segments.h"

namespace mlc::analysis {

namespace {

bool IsFloatTensor(const Type& type) { return type.is_tensor() && IsFloat(type.dtype); }

void ForEachWork(const Function& function,
                 const std::function<void(const Operation&, FloatWork, double)>& visit) {
  const SymbolSizes sizes = DefaultSizes(function);
  ForEachExecution(function, sizes, [&](const Operation& op, double times) {
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

int CountSegments(const Block& block) {
  const std::vector<Segment> segments = SegmentsOf(block, [](const Operation& op) {
    const FloatWork type = TypeOfStep(op);
    return type == FloatWork::kNone   ? Side::kEither
           : type == FloatWork::kFp16 ? Side::kDevice
                                      : Side::kElsewhere;
  });
  int count = 0;
  for (const Segment& segment : segments) {
    count += segment.side == Side::kDevice;
    if (segment.side == Side::kElsewhere)
      for (const Operation* op : segment.operations)
        if (TypeOfStep(*op) == FloatWork::kFp32)
          for (const auto& nested : op->blocks) count += CountSegments(*nested);
  }
  return count;
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
