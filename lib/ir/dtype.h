// lib/ir/dtype.h - element types: those of MIL, and those that source models use for constants
// (int64, fp64, ...).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mlc {

enum class DType : uint8_t {
  kNone,
  kBool,
  kString,
  kFp16,
  kFp32,
  kFp64,
  kBf16,
  kFp8E4M3FN,
  kFp8E5M2,
  kInt4,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint1,
  kUint2,
  kUint3,
  kUint4,
  kUint6,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
};
inline constexpr int kDTypeCount = 23;

// The name in MIL text: "fp16", "int32", "bool", "uint4", "fp8e4m3fn", ...
std::string_view Name(DType dtype);
std::optional<DType> ParseDType(std::string_view name);
// Bits per element in memory and in files; 8 for bool, 0 for string. Sub-byte types are packed
// without gaps, least significant bits first.
int Bits(DType dtype);
bool IsFloat(DType dtype);    // fp16, fp32, fp64, bf16, fp8
bool IsInteger(DType dtype);  // signed and unsigned, not bool
bool IsSigned(DType dtype);

// A set of element types, used by operator signatures.
using DTypeSet = uint32_t;
constexpr DTypeSet SetOf(DType dtype) { return 1u << static_cast<int>(dtype); }
constexpr bool Contains(DTypeSet set, DType dtype) { return (set & SetOf(dtype)) != 0; }

}  // namespace mlc
