#include "lib/lower/bit_cast.h"

#include "frontends/onnx/row.h"

namespace mlc::onnx {

namespace {

void BitCast(Node& node) {
  DType to = ToDType(static_cast<int>(node.Int("to")));
  node.Set(mlc::lower::BitCast(node, node.In(0), node.dtype(), to), to);
}

constexpr NodeRow kRows[] = {
    NodeRow("BitCast", BitCast, 26)
        .When("at run time only 8- and 16-bit integers, fp32 and int32; NaN payloads are not "
              "preserved"),
};

}  // namespace

std::span<const NodeRow> BitCastRows() { return kRows; }

}  // namespace mlc::onnx
