// lib/passes/fp32_reason.h - why an operation stays fp32 in a package of precision fp16: the ids that
// the manifest has, and the sentence that goes with one.
//
// These are all the reasons that there are. Mere rounding is one only within a budget of work
// (lib/precision/measure.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mlc {

enum class Fp32Reason : uint8_t {
  kNone,        // it computes in fp16
  kOverflow,    // numbers become infinite or NaN, and no other form of the operation is safe
  kIndex,       // a number decides an index or a branch
  kAngle,       // an angle or a coordinate that fp16 does not resolve
  kLogarithm,   // small numbers of which the logarithm is taken
  kLoop,        // what a loop counts or adds up
  kNoFp16Form,  // the target's operator takes fp32 only
  kRounding,    // rounding takes an output out of its budget
  kOption,      // the user asks for it
};

// "overflow", "index", ...: the id in the manifest. "" for kNone.
std::string_view Name(Fp32Reason reason);

// With the name of the target behind it: the text of an operator that a newer target has in fp16.
inline constexpr std::string_view kFp32Before = "Core ML has this operator in fp32 only before ";

struct WhyFp32 {
  Fp32Reason reason = Fp32Reason::kNone;
  std::string text = {};  // a sentence for people, without a full stop
  // An overflow that measured numbers may disprove: they are a product's with weights, which decide
  // about their size on whatever inputs.
  bool estimated = false;
  bool fp32() const { return reason != Fp32Reason::kNone; }
};

}  // namespace mlc
