// frontends/onnx/indices.h - indices that count from the front.
//
// ONNX lets indices count from the end where they are negative; from iOS17 on MIL leaves such
// indices undefined.
#pragma once

#include "frontends/onnx/node.h"

namespace mlc::onnx {

// Indices into dimension `axis` of x. Folded when constant; as they are when none can be negative.
Value* FromFront(Node& node, Value* indices, Value* x, int axis);
// Index vectors in the last dimension of `indices`, of the dimensions of x behind the first
// `batch`.
Value* VectorsFromFront(Node& node, Value* indices, Value* x, int batch);

}  // namespace mlc::onnx
