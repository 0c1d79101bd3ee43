// lib/passes/fp32_reason.h - the reasons for which an operation stays in fp32 in an fp16 package:
// the ids in the manifest, and a sentence for each operation.
//
// The list is complete. Rounding alone is a reason only within a work budget
// (lib/precision/measure.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mlc::passes {

enum class Fp32Reason : uint8_t {
  kNone,        // the operation computes in fp16
  kOverflow,    // values become infinite or NaN, and no other form of the operation is safe
  kIndex,       // a value decides an index or a branch
  kAngle,       // an angle or a coordinate exceeds the resolution of fp16
  kLogarithm,   // the operand of a logarithm is small
  kLoop,        // a loop counter or accumulator
  kNoFp16Form,  // the target's operator supports fp32 only
  kRounding,    // rounding exceeds the error budget of an output
  kOption,      // requested by the user
};

// The id in the manifest ("overflow", "index", ...); "" for kNone.
std::string_view Name(Fp32Reason reason);

// The reason text for an operator that a newer target supports in fp16; the name of that target is
// appended.
inline constexpr std::string_view kFp32Before =
    "Core ML supports this operator in fp32 only before ";

struct Fp32Decision {
  Fp32Reason reason = Fp32Reason::kNone;
  std::string text = {};  // a sentence without a full stop
  // True if the overflow is an estimate that measuring may disprove: the values come from a product
  // with weights, which determine their size for any input.
  bool estimated = false;
  bool fp32() const { return reason != Fp32Reason::kNone; }
};

}  // namespace mlc::passes
