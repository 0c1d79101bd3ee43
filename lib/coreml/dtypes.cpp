#include "lib/coreml/dtypes.h"

#include <array>

namespace mlc::coreml {

namespace {
struct Numbers {
  DType dtype;
  int mil;
  uint32_t blob;
  int array;
};
constexpr std::array<Numbers, 22> kNumbers = {{
    {DType::kBool, 1, 0, 0},          {DType::kString, 2, 0, 0},
    {DType::kFp16, 10, 1, 0x10010},   {DType::kFp32, 11, 2, 0x10020},
    {DType::kFp64, 12, 0, 0x10040},   {DType::kBf16, 13, 5, 0},
    {DType::kInt8, 21, 4, 0x20008},   {DType::kInt16, 22, 6, 0},
    {DType::kInt32, 23, 14, 0x20020}, {DType::kInt64, 24, 0, 0},
    {DType::kInt4, 25, 8, 0},         {DType::kUint8, 31, 3, 0},
    {DType::kUint16, 32, 7, 0},       {DType::kUint32, 33, 15, 0},
    {DType::kUint64, 34, 0, 0},       {DType::kUint4, 35, 11, 0},
    {DType::kUint2, 36, 10, 0},       {DType::kUint1, 37, 9, 0},
    {DType::kUint6, 38, 13, 0},       {DType::kUint3, 39, 12, 0},
    {DType::kFp8E4M3FN, 40, 16, 0},   {DType::kFp8E5M2, 41, 17, 0},
}};

const Numbers* Find(DType dtype) {
  for (const Numbers& row : kNumbers)
    if (row.dtype == dtype) return &row;
  return nullptr;
}

template <class T>
std::optional<DType> FromNumber(T Numbers::*column, T number) {
  if (number == 0) return std::nullopt;
  for (const Numbers& row : kNumbers)
    if (row.*column == number) return row.dtype;
  return std::nullopt;
}
}  // namespace

int MilDataType(DType dtype) { return Find(dtype) ? Find(dtype)->mil : 0; }
uint32_t BlobDataType(DType dtype) { return Find(dtype) ? Find(dtype)->blob : 0; }
int ArrayDataType(DType dtype) { return Find(dtype) ? Find(dtype)->array : 0; }

std::optional<DType> FromMilDataType(int number) { return FromNumber(&Numbers::mil, number); }
std::optional<DType> FromBlobDataType(uint32_t number) {
  return FromNumber(&Numbers::blob, number);
}
std::optional<DType> FromArrayDataType(int number) { return FromNumber(&Numbers::array, number); }

std::optional<Opset> InterfaceTypeSince(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
    case DType::kInt32:
      return Opset::kIos15;
    case DType::kFp16:
      return Opset::kIos16;
    case DType::kInt8:
      return Opset::kIos26;
    default:
      return std::nullopt;
  }
}

bool BelongsInWeightFile(DType dtype, int64_t elements, Opset target) {
  if (elements < 10) return false;
  constexpr DTypeSet kAlways =
      SetOf(DType::kFp16) | SetOf(DType::kFp32) | SetOf(DType::kInt8) | SetOf(DType::kUint8);
  return Contains(kAlways, dtype) || (target >= Opset::kIos18 && BlobDataType(dtype) != 0);
}

DType EmittedType(DType dtype) {
  switch (dtype) {
    case DType::kInt64:
      return DType::kInt32;
    case DType::kUint64:
      return DType::kUint32;
    case DType::kFp64:
    case DType::kBf16:
      return DType::kFp32;
    default:
      return dtype;
  }
}

}  // namespace mlc::coreml
