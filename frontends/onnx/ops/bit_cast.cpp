#include "lib/lower/bit_cast.h"

#include "frontends/onnx/row.h"

namespace mlc::onnx {

namespace {

void BitCast(Node& node) {
  DType to = ToDType(static_cast<int>(node.Int("to")));
  node.Set(mlc::BitCast(node, node.In(0), node.dtype(), to), to);
}

constexpr NodeRow kRows[] = {
    NodeRow("BitCast", BitCast, 26)
        .When(
            "at run time: integers of 8 and 16 bits, fp32 and int32; a NaN becomes the usual one"),
};

}  // namespace

std::span<const NodeRow> BitCastRows() { return kRows; }

}  // namespace mlc::onnx
