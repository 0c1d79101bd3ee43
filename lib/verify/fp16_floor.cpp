#include "lib/verify/fp16_floor.h"

#include <algorithm>
#include <cmath>

#include "lib/ir/builder.h"
#include "lib/support/half.h"

namespace mlc::verify {

namespace {

constexpr uint16_t kInfinite = 0x7C00, kSign = 0x8000;
constexpr double kSmallest = 0x1p-24;
constexpr int64_t kBlock = 4096;

// Finite numbers outside the range of fp16 are kept, because no package stores them in fp16.
void Round(DType dtype, std::byte* elements, int64_t count) {
  std::vector<uint16_t> halves(static_cast<size_t>(count));
  auto* bytes = reinterpret_cast<std::byte*>(halves.data());
  ConvertElements(dtype, elements, DType::kFp16, bytes, count);
  std::vector<std::byte> rounded(static_cast<size_t>(ByteCount(dtype, count)));
  ConvertElements(DType::kFp16, bytes, dtype, rounded.data(), count);
  const size_t size = ByteCount(dtype, 1);
  for (int64_t i = 0; i < count; ++i) {
    const size_t at = ByteCount(dtype, i);
    double exact = 0;
    const bool infinite = (halves[i] & ~kSign) == kInfinite;
    if (infinite)
      ConvertElements(dtype, elements + at, DType::kFp64, reinterpret_cast<std::byte*>(&exact), 1);
    if (!infinite || !std::isfinite(exact)) std::copy_n(&rounded[at], size, elements + at);
  }
}

Tensor Rounded(const Tensor& constant) {
  DType dtype = constant.dtype();
  if (dtype != DType::kFp32 && dtype != DType::kFp64 && dtype != DType::kBf16) return constant;
  if (double value = constant.size() == 1 ? constant.Double(0) : 0;
      value != 0 && std::fabs(value) < kSmallest)
    return Tensor::Full(dtype, constant.dims(), std::copysign(kSmallest, value));
  return Tensor::Lazy(
      dtype, constant.dims(), [constant, dtype](int64_t first, int64_t count, std::byte* out) {
        constant.Read(first, count, out);
        for (int64_t done = 0; done < count; done += kBlock)
          Round(dtype, out + ByteCount(dtype, done), std::min(kBlock, count - done));
      });
}

// Returns whether the operand may be fp16. Operations that decode constants keep their operands.
bool Rounds(const Operation& op, int parameter) {
  return !op.def->is_constexpr() &&
         Contains(op.def->canonical().params[parameter].types, DType::kFp16);
}

void RoundLiterals(Operation& op) {
  for (int p = 0; p < std::ssize(op.args()); ++p) {
    Operands operands = op.args()[p];
    bool any = false;
    for (Operand& operand : operands)
      if (!operand.value && Rounds(op, p)) {
        operand = Rounded(operand.constant());
        any = true;
      }
    if (any) op.SetArg(p, std::move(operands));
  }
}

// Replaces all uses of `value` by the literal `constant`, rounded where the operand may be fp16.
void RoundUses(const Value& value, const Tensor& constant) {
  Tensor rounded = Rounded(constant);
  for (const Use& use : value.users.All()) {
    Operation& op = *use.operation;
    Operands operands = op.args()[use.parameter];
    operands[use.index] = Rounds(op, use.parameter) ? rounded : constant;
    op.SetArg(use.parameter, std::move(operands));
  }
}

}  // namespace

Program RoundConstants(const Program& program) {
  Program rounded = Clone(program);
  for (const auto& function : rounded.functions) {
    ForEachOperation(*function, [](Operation* op) { RoundLiterals(*op); });
    ForEachOperation(*function, [](Operation* op) {
      if (op->def->is_const()) {
        RoundUses(*op->result(), op->val);
        op->val = Rounded(op->val);
      } else if (op->def->is_constexpr()) {
        std::vector<Tensor> decoded = Evaluate(*op);
        for (size_t i = 0; i < decoded.size(); ++i) RoundUses(*op->results[i], decoded[i]);
      }
    });
  }
  return rounded;
}

Budgets Fp16Budgets(Budgets base, const std::vector<StepResults>& references,
                    const std::vector<StepResults>& rounded) {
  std::map<std::string, Floor> floors;
  for (const Compared& compared : CompareSteps("", rounded, references, Match::kByPlace, base)) {
    const Comparison& c = compared.comparison;
    if (!c.discriminating && c.infinite == 0) continue;
    Floor& floor = floors[compared.name];
    floor.resized |= c.resized;
    if (c.exact) {
      floor.unequal = std::max(floor.unequal, 1 - c.equal_fraction);
      continue;
    }
    floor.max_error = std::max(floor.max_error, c.max_error);
    floor.rmse = std::max(floor.rmse, c.rmse);
    if (!c.resized)
      floor.unequal = std::max(floor.unequal, static_cast<double>(c.infinite) /
                                                  static_cast<double>(ElementCount(c.dims)));
  }
  for (const auto& [name, floor] : floors) {
    Budget budget = base.of(name);
    budget.floor = floor;
    base.outputs[name] = budget;
  }
  return base;
}

}  // namespace mlc::verify
