// lib/coreml/dtypes.h - the numbers by which Apple's formats call element types, and where
// constants of a type are kept.
//
// Three enumerations for the same types: MIL's (MIL.proto), the weight file's (BlobDataType.hpp)
// and that of model descriptions (FeatureTypes.proto). Unknown numbers give nothing; types that an
// enumeration lacks give 0.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/ir/dtype.h"
#include "lib/ir/op_def.h"

namespace mlc {

int MilDataType(DType dtype);
std::optional<DType> FromMilDataType(int number);

uint32_t BlobDataType(DType dtype);
std::optional<DType> FromBlobDataType(uint32_t number);

int ArrayDataType(DType dtype);
std::optional<DType> FromArrayDataType(int number);

// The first target whose model inputs and outputs may have this type; nothing when none does.
std::optional<Opset> InterfaceTypeSince(DType dtype);

// Whether a constant goes into the weight file (else it stands in the program): at least ten
// elements of a type that the weight file has for this target.
bool BelongsInWeightFile(DType dtype, int64_t elements, Opset target);

// The type in which a constant of any type is written: int64 becomes int32, fp64 and bf16 fp32,
// uint64 uint32.
DType EmittedType(DType dtype);

}  // namespace mlc
