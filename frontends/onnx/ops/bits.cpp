// BitShift and the operators on the bits of two integers. MIL has none: powers of two divide a
// number into its bits. Exact for values that int32 holds.
#include <algorithm>

#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// How the bits of a number are taken apart and put together again, in two's complement:
// bit i = x div first[i] div then[i] mod 2, rounded down; its weight is negative for a sign.
struct Digits {
  Tensor first, then, weight;
};

// Of `bits` bits, held in numbers of type `held`: a power that is a sign there is divided by twice.
Digits DigitsOf(int bits, bool is_signed, DType held) {
  std::vector<int64_t> first, then, weight;
  for (int i = 0; i < bits; ++i) {
    bool top = i == Bits(held) - 1;
    first.push_back(int64_t{1} << (top ? i - 1 : i));
    then.push_back(top ? 2 : 1);
    bool sign = is_signed && i == bits - 1;
    weight.push_back(sign ? -(int64_t{1} << (i - 1)) * 2 : int64_t{1} << i);
  }
  auto tensor = [&](const std::vector<int64_t>& values) {
    return Tensor::Of<int64_t>({bits}, values).Cast(held);
  };
  return {tensor(first), tensor(then), tensor(weight)};
}

// 2^k when the constant is one element 2^k - 1 with k in 0..30; else 0.
int64_t LowMask(const Value* value) {
  if (!value->is_constant() || value->constant().size() != 1) return 0;
  int64_t mask = value->constant().Int(0), power = mask + 1;
  return power > 0 && power <= 1 << 30 && (power & mask) == 0 ? power : 0;
}

Value* BitsOfBoth(Node& node, Value* x, Value* y, DType dtype) {
  for (auto [value, mask] : {std::pair{x, y}, {y, x}})
    if (int64_t power = LowMask(mask);
        power > 0 && !value->is_constant() && mask->type.rank() <= value->type.rank())
      return node.Make("mod", {{"x", Convert(node, value, dtype, DType::kInt32)}, {"y", power}});
  bool constant = x->is_constant() && y->is_constant();
  DType held = constant ? DType::kInt64 : DType::kInt32;
  // What run-time values of 64 bits have above 32 is their sign.
  int bits = std::min(Bits(dtype), Bits(held));
  Digits digits = DigitsOf(bits, IsSigned(dtype) || bits == Bits(held), held);
  auto apart = [&](Value* value) {
    value = Convert(node, value, dtype, held);
    int64_t last = value->type.rank();
    value = node.Make("expand_dims", {{"x", value}, {"axes", Ints({last})}});
    value = Binary(node, "floor_div", value, node.Const(digits.first));
    if (bits == Bits(held)) value = Binary(node, "floor_div", value, node.Const(digits.then));
    return node.Make("mod", {{"x", value}, {"y", 2}});
  };
  Value* both = Binary(node, "mul", apart(x), apart(y));
  both = Binary(node, "mul", both, node.Const(digits.weight));
  both = node.Make("reduce_sum", {{"x", both}, {"axes", Ints({-1})}, {"keep_dims", false}});
  return constant ? Convert(node, both, held, dtype) : both;
}

void CheckOperands(Node& node) {
  if (!IsInteger(node.dtype(0)) || node.dtype(0) != node.dtype(1))
    node.Fail("bad-operand", fmt::format("its operands are {} and {}, expected equal integer types",
                                         Name(node.dtype(0)), Name(node.dtype(1))));
}

// The sums below are of numbers without a common bit, so nothing leaves the range.
void BitwiseAnd(Node& node) {
  CheckOperands(node);
  node.Set(BitsOfBoth(node, node.In(0), node.In(1), node.dtype()), node.dtype());
}
void BitwiseOr(Node& node) {
  CheckOperands(node);
  Value *x = node.In(0), *y = node.In(1);
  Value* both = BitsOfBoth(node, x, y, node.dtype());
  node.Set(Binary(node, "add", Binary(node, "sub", x, both), y), node.dtype());
}
void BitwiseXor(Node& node) {
  CheckOperands(node);
  Value *x = node.In(0), *y = node.In(1);
  Value* both = BitsOfBoth(node, x, y, node.dtype());
  node.Set(Binary(node, "add", Binary(node, "sub", x, both), Binary(node, "sub", y, both)),
           node.dtype());
}

// Shifts by as many bits as the type has, or more, give 0.
void BitShift(Node& node) {
  CheckOperands(node);
  std::string direction = node.String("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    node.Fail("bad-attribute", fmt::format("direction is \"{}\"", direction));
  DType dtype = node.dtype();
  Value *x = node.In(0), *by = node.In(1);
  bool left = direction == "LEFT", constant = x->is_constant() && by->is_constant();
  int bits = std::min(Bits(dtype), constant ? 63 : 31);
  if (left && !constant && bits == 31)
    node.Fail("unsupported-dtype",
              fmt::format("shifting {} to the left at run time; Core ML has 32-bit signed integers",
                          Name(dtype)));
  DType held = constant ? DType::kInt64 : DType::kInt32;
  x = Convert(node, x, dtype, held);
  by = Convert(node, by, dtype, held);
  std::vector<int64_t> powers;
  for (int i = 0; i < bits; ++i) powers.push_back(int64_t{1} << i);
  Value* out = node.Make("greater_equal", {{"x", by}, {"y", static_cast<int64_t>(bits)}});
  by = node.Make("minimum", {{"x", by}, {"y", static_cast<int64_t>(bits - 1)}});
  Value* power =
      node.Make("gather", {{"x", node.Const(Tensor::Of<int64_t>({bits}, powers).Cast(held))},
                           {"indices", by},
                           {"axis", 0}});
  Value* y = Binary(node, left ? "mul" : "floor_div", x, power);
  y = node.Make("select", {{"cond", out}, {"a", Binary(node, "sub", y, y)}, {"b", y}});
  y = constant ? Convert(node, y, held, dtype) : Wrap(node, y, dtype);
  node.Set(y, dtype);
}

constexpr char kWithin[] = "integers of 32 and 64 bits: values within int32";

constexpr NodeRow kRows[] = {
    NodeRow("BitShift", BitShift, 11).When("to the left: uint8, uint16; else values within int32"),
    NodeRow("BitwiseAnd", BitwiseAnd, 18).When(kWithin),
    NodeRow("BitwiseOr", BitwiseOr, 18).When(kWithin),
    NodeRow("BitwiseXor", BitwiseXor, 18).When(kWithin),
};

}  // namespace

std::span<const NodeRow> BitsRows() { return kRows; }

}  // namespace mlc::onnx
