// lib/analysis/fp16_share.h - the share of a program's work that is done in fp16, and its number of
// fp16 segments.
//
// The work of an operation is estimated by cost.h: its multiply-adds, at least one per written
// element. It counts as fp16 if all float operands and results are fp16; a constant operand that
// the operator supports in fp32 only (a scale factor) is ignored. Not measured are constants in
// every form, casts between float types, operations without float operands and results, and loops
// and branches themselves; the operations in their blocks count once per execution. Dynamic
// dimensions have their lower bounds, which give the default shape of a package.
//
// A segment is a group of fp16 operations that a device can execute without an fp32 operation in
// between. The number of segments is the minimum over all execution orders.
#pragma once

#include "lib/analysis/cost.h"

namespace mlc::analysis {

enum class FloatWork : uint8_t { kNone, kFp16, kFp32 };
// The type in which the operation computes, as defined above, or kNone if it is not measured.
FloatWork FloatWorkOf(const Operation& op);

struct Fp16Share {
  double fp16 = 0, fp32 = 0;  // work
  int segments = 0;
  // Returns the share of fp16, or 1 if there is no work.
  double share() const { return fp16 + fp32 > 0 ? fp16 / (fp16 + fp32) : 1; }
};
Fp16Share Fp16ShareOf(const Function& function);
// Returns the sum over all functions.
Fp16Share Fp16ShareOf(const Program& program);

// Returns whether the target's form of the operator supports fp16 for all operands and results that
// are fp32 now. Constant parameters that exist in fp32 only (scale factors) are ignored.
bool HasFp16Form(const Operation& op, Opset target);
// Returns the share of the work in operations that the target supports in fp32 only.
double NoFp16FormShare(const Program& program, Opset target);

// Returns the lower bounds of the dynamic dimensions, which give the default shape.
SymbolSizes DefaultSizes(const Function& function);

// Returns the work of each measured operation, multiplied by its number of executions.
std::map<const Operation*, double> WorkOfOperations(const Function& function);

}  // namespace mlc::analysis
