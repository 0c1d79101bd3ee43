// BitCast, BitShift and the bitwise operators with two operands.
#include "lib/lower/bits.h"

#include "frontends/onnx/row.h"

namespace mlc::onnx {

namespace {

void BitCast(Node& node) {
  DType to = ToDType(static_cast<int>(node.Int("to")));
  node.Set(lower::BitCast(node, node.In(0), node.dtype(), to), to);
}

void CheckOperands(Node& node) {
  if (!IsInteger(node.dtype(0)) || node.dtype(0) != node.dtype(1))
    node.Fail("bad-operand", "the inputs are {} and {}, expected the same integer type",
              Name(node.dtype(0)), Name(node.dtype(1)));
}

template <Value* (*kOf)(Builder&, Value*, Value*, DType)>
void Bitwise(Node& node) {
  CheckOperands(node);
  node.SetAlike(kOf(node, node.In(0), node.In(1), node.dtype()));
}

void BitShift(Node& node) {
  CheckOperands(node);
  std::string direction = node.String("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    node.Fail("bad-attribute", "direction is \"{}\", expected \"LEFT\" or \"RIGHT\"", direction);
  node.SetAlike(
      lower::BitsShifted(node, node.In(0), node.In(1), direction == "LEFT", node.dtype()));
}

constexpr char kWithin[] = "32- and 64-bit integers must be in the range of int32";

constexpr NodeRow kBitsRows[] = {
    NodeRow("BitCast", BitCast, 26)
        .When("at run time only 8- and 16-bit integers, fp32 and int32; NaN payloads are not "
              "preserved"),
    NodeRow("BitShift", BitShift, 11)
        .When("shifts to the left: uint8 and uint16; shifts to the right: values in the range of "
              "int32"),
    NodeRow("BitwiseAnd", Bitwise<lower::BitsAnd>, 18).When(kWithin),
    NodeRow("BitwiseOr", Bitwise<lower::BitsOr>, 18).When(kWithin),
    NodeRow("BitwiseXor", Bitwise<lower::BitsXor>, 18).When(kWithin),
};

}  // namespace

std::span<const NodeRow> BitsRows() { return kBitsRows; }

}  // namespace mlc::onnx
