// lib/analysis/fp16_share.h - how much of a program's work is in fp16, and in how many segments.
//
// An operation's work is the estimate of cost.h: multiply-adds, at least one for each element that
// it writes. It is in fp16 when all float operands and results of the operation are fp16. An operand
// that the operator has in fp32 only (a scale factor) does not count where it is a constant. These
// are outside of the measure: constants in every form, casts between floats, operations without
// float operands and results, loops and branches themselves (what is in their blocks counts, as
// often as it runs). Open dimensions have their lower bounds, the default shape of a package.
//
// A segment is a group of fp16 operations that a device can run without anything in fp32 in between.
// There are as many as an order of execution needs at least.
#pragma once

#include "lib/analysis/cost.h"

namespace mlc {

enum class FloatWork : uint8_t { kNone, kFp16, kFp32 };
// In which type the operation computes, as defined above; kNone: it is outside of the measure.
FloatWork FloatWorkOf(const Operation& op);

struct Fp16Share {
  double fp16 = 0, fp32 = 0;  // work
  int segments = 0;
  // 1 where there is no work.
  double share() const { return fp16 + fp32 > 0 ? fp16 / (fp16 + fp32) : 1; }
};
Fp16Share Fp16ShareOf(const Function& function);
// All functions together.
Fp16Share Fp16ShareOf(const Program& program);

// Returns whether the target's form of the operator takes fp16 wherever the operation has fp32 now.
// Constant parameters that exist in fp32 only (scale factors) do not count.
bool HasFp16Form(const Operation& op, Opset target);
// Returns the share of the work in operations that the target has in fp32 only.
double NoFp16FormShare(const Program& program, Opset target);

// The lower bounds of the open dimensions: the sizes of the default shape.
SymbolSizes DefaultSizes(const Function& function);

// The work of each operation that is in the measure: how often it runs is counted.
std::map<const Operation*, double> WorkOfOperations(const Function& function);

}  // namespace mlc
