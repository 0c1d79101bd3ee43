#include "lib/ir/dtype.h"

#include <iterator>

namespace mlc {

namespace {
enum Family : uint8_t { kOther, kFloating, kSignedInteger, kUnsignedInteger };
// In the order of DType: name in MIL text, bits per element, kind.
constexpr struct {
  std::string_view name;
  int bits;
  Family family;
} kRows[] = {
    {"none", 0, kOther},
    {"bool", 8, kOther},
    {"string", 0, kOther},
    {"fp16", 16, kFloating},
    {"fp32", 32, kFloating},
    {"fp64", 64, kFloating},
    {"bf16", 16, kFloating},
    {"fp8e4m3fn", 8, kFloating},
    {"fp8e5m2", 8, kFloating},
    {"int4", 4, kSignedInteger},
    {"int8", 8, kSignedInteger},
    {"int16", 16, kSignedInteger},
    {"int32", 32, kSignedInteger},
    {"int64", 64, kSignedInteger},
    {"uint1", 1, kUnsignedInteger},
    {"uint2", 2, kUnsignedInteger},
    {"uint3", 3, kUnsignedInteger},
    {"uint4", 4, kUnsignedInteger},
    {"uint6", 6, kUnsignedInteger},
    {"uint8", 8, kUnsignedInteger},
    {"uint16", 16, kUnsignedInteger},
    {"uint32", 32, kUnsignedInteger},
    {"uint64", 64, kUnsignedInteger},
};
static_assert(std::size(kRows) == kDTypeCount);
}  // namespace

std::string_view Name(DType dtype) { return kRows[static_cast<int>(dtype)].name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (int i = 1; i < kDTypeCount; ++i)
    if (kRows[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

int Bits(DType dtype) { return kRows[static_cast<int>(dtype)].bits; }
bool IsFloat(DType dtype) { return kRows[static_cast<int>(dtype)].family == kFloating; }
bool IsSigned(DType dtype) { return kRows[static_cast<int>(dtype)].family == kSignedInteger; }
bool IsInteger(DType dtype) {
  return IsSigned(dtype) || kRows[static_cast<int>(dtype)].family == kUnsignedInteger;
}

}  // namespace mlc
