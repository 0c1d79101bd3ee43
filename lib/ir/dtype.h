// lib/ir/dtype.h - element types: MIL's own, plus those in which sources hold constants (int64,
// fp64, ...).
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

// As MIL text writes it: "fp16", "int32", "bool", "uint4", "fp8e4m3fn", ...
std::string_view Name(DType dtype);
std::optional<DType> ParseDType(std::string_view name);
// Bits of one element in memory and in files; bool is 8, string 0. Sub-byte types are packed LSB
// first, without gaps.
int Bits(DType dtype);
bool IsFloat(DType dtype);    // fp16, fp32, fp64, bf16, fp8
bool IsInteger(DType dtype);  // signed and unsigned, not bool
bool IsSigned(DType dtype);

// A set of element types, as operator signatures have it.
using DTypeSet = uint32_t;
constexpr DTypeSet SetOf(DType dtype) { return 1u << static_cast<int>(dtype); }
constexpr bool Contains(DTypeSet set, DType dtype) { return (set & SetOf(dtype)) != 0; }

}  // namespace mlc
