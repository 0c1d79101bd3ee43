// lib/coreml/dtypes.h - the enumerations of element types in Apple's formats, and where constants
// of each type are stored.
//
// Three enumerations describe the same types: that of MIL (MIL.proto), of the weight file
// (BlobDataType.hpp) and of model descriptions (FeatureTypes.proto). An unknown number gives
// nullopt; a type that an enumeration lacks gives 0.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/ir/dtype.h"
#include "lib/ir/op_def.h"

namespace mlc::coreml {

int MilDataType(DType dtype);
std::optional<DType> FromMilDataType(int number);

uint32_t BlobDataType(DType dtype);
std::optional<DType> FromBlobDataType(uint32_t number);

int ArrayDataType(DType dtype);
std::optional<DType> FromArrayDataType(int number);

// The first target that allows this type for model inputs and outputs; nullopt if none does.
std::optional<Opset> InterfaceTypeSince(DType dtype);

// Core ML computes with at most five dimensions.
inline constexpr int kMostDimensions = 5;

// Returns whether a constant is stored in the weight file rather than in the program: it has at
// least ten elements, and the target's weight file supports its type.
bool BelongsInWeightFile(DType dtype, int64_t elements, Opset target);

// The type in which a constant is written: int64 becomes int32, fp64 and bf16 become fp32, uint64
// becomes uint32; other types are unchanged.
DType EmittedType(DType dtype);

}  // namespace mlc::coreml
