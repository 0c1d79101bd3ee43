// frontends/onnx/tensor_elements.h - the elements of a TensorProto as bytes, and in simpler forms for
// `mlc reduce`. Elements in external data must be embedded first, unless stated otherwise.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "lib/ir/model_graph.h"

namespace onnx {
class TensorProto;
}

namespace mlc::onnx {

bool IsExternal(const ::onnx::TensorProto& tensor);
bool IsFloatTensor(const ::onnx::TensorProto& tensor);
// Moves the elements of floats, int32 and int64 to raw_data.
void MakeRaw(::onnx::TensorProto& tensor);
// Returns whether a floating-point constant is not yet as Simplify would make it. External data
// counts as such.
bool CanSimplify(const ::onnx::TensorProto& tensor, Simplification how);
// Overwrites all elements by the first one (kUniform), zero or one.
void Simplify(::onnx::TensorProto& tensor, Simplification how);
// Reduces the dimensions of these sizes to their first element; the elements of integer vectors
// that equal such a size, as in the shape of Reshape, become 1.
void Shrink(::onnx::TensorProto& tensor, const std::set<int64_t>& sizes);

}  // namespace mlc::onnx
