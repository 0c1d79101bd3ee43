// The bits of a value as one of another type.
#include <cmath>
#include <limits>

#include "frontends/onnx/row.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// 2^(e - 127) for e of 1 to 254, the exponents of finite numbers in fp32; then infinity.
std::vector<float> Powers() {
  std::vector<float> powers;
  for (int e = 1; e < 255; ++e) powers.push_back(std::ldexp(1.0f, e - 127));
  powers.push_back(std::numeric_limits<float>::infinity());
  return powers;
}

constexpr double kMantissa = 1 << 23;

struct Maker {
  Node& node;
  template <class X, class Y>
  Value* Two(std::string_view op, X x, Y y) const {
    return node.Make(op, {{"x", x}, {"y", y}});
  }
  template <class A, class B>
  Value* Select(Value* cond, A a, B b) const {
    return node.Make("select", {{"cond", cond}, {"a", a}, {"b", b}});
  }
  Value* Cast(Value* x, DType dtype) const { return node.builder().Cast(x, dtype); }
  Value* Power(Value* exponent) const {  // of int32 values from 1 to 255
    Value* place = Two("sub", exponent, 1);
    return node.Make(
        "gather", {{"x", node.Const(Tensor::Vector(Powers()))}, {"indices", place}, {"axis", 0}});
  }
};

// x is a vector.
Value* FloatToInt(Node& node, Value* x) {
  Maker make{node};
  Value* size = node.Make("abs", {{"x", x}});
  Value* column = node.Make("expand_dims", {{"x", size}, {"axes", Ints({1})}});
  Value* reached = make.Two("greater_equal", column, Tensor::Vector(Powers()));
  Value* exponent = node.Make(
      "reduce_sum",
      {{"x", make.Cast(reached, DType::kInt32)}, {"axes", Ints({1})}, {"keep_dims", false}});
  Value* subnormal = make.Two("equal", exponent, 0);
  Value* infinite = make.Two("equal", exponent, 255);
  Value* known = make.Two("minimum", make.Two("maximum", exponent, 1), 254);
  Value* scaled = make.Two("real_div", make.Select(infinite, 0.0, size), make.Power(known));
  Value* fraction = make.Two("sub", scaled, make.Select(subnormal, 0.0, 1.0));
  fraction = make.Select(infinite, 0.0, fraction);
  Value* bits = make.Two("add", make.Two("mul", exponent, int64_t{1} << 23),
                         make.Cast(make.Two("mul", fraction, kMantissa), DType::kInt32));
  bits = make.Select(make.Two("not_equal", x, x), int64_t{0x7fc00000}, bits);
  // -0 is negative, too.
  Value* inverse = make.Two("real_div", 1.0, x);
  Value* negative =
      make.Two("logical_or", make.Two("less", x, 0.0), make.Two("less", inverse, 0.0));
  return make.Select(negative, make.Two("add", bits, int64_t{INT32_MIN}), bits);
}

Value* IntToFloat(Node& node, Value* x) {
  Maker make{node};
  Value* negative = make.Two("less", x, 0);
  Value* bits = make.Select(negative, make.Two("sub", x, int64_t{INT32_MIN}), x);
  Value* exponent = make.Two("floor_div", bits, int64_t{1} << 23);
  Value* mantissa = make.Cast(make.Two("mod", bits, int64_t{1} << 23), DType::kFp32);
  Value* fraction = make.Two("mul", mantissa, 1 / kMantissa);
  Value* subnormal = make.Two("equal", exponent, 0);
  Value* scaled = make.Two("add", fraction, make.Select(subnormal, 0.0, 1.0));
  Value* y = make.Two("mul", scaled, make.Power(make.Two("maximum", exponent, 1)));
  Value* special =
      make.Two("logical_and", make.Two("equal", exponent, 255), make.Two("greater", mantissa, 0.0));
  y = make.Select(special, std::nan(""), y);
  return make.Two("mul", y, make.Select(negative, -1.0, 1.0));
}

void BitCast(Node& node) {
  DType from = node.dtype(), to = ToDType(static_cast<int>(node.Int("to")));
  Value* x = node.In(0);
  auto width = [](DType dtype) { return dtype == DType::kBool ? 8 : Bits(dtype); };
  if (to == DType::kNone || from == DType::kString || to == DType::kString ||
      width(from) != width(to))
    node.Fail("bad-attribute",
              fmt::format("from {} to {}, which differ in size", Name(from), Name(to)));
  if (x->is_constant()) {
    Tensor bits = x->constant();
    std::vector<std::byte> bytes(bits.bytes().begin(), bits.bytes().end());
    if (to == DType::kBool)
      for (std::byte& byte : bytes) byte = std::byte(byte != std::byte(0));
    return node.Set(node.Const(Tensor::Owned(to, bits.dims(), std::move(bytes))), to);
  }
  if (from == to) return node.Set(x, to);
  if (width(from) > 32 || to == DType::kUint32 || from == DType::kUint32)
    node.Fail("unsupported-dtype",
              fmt::format("from {} to {} at run time; Core ML has 32-bit signed integers",
                          Name(from), Name(to)));
  bool integers =
      (IsInteger(from) || from == DType::kBool) && (IsInteger(to) || to == DType::kBool);
  if (integers) return node.Set(Convert(node, x, from, to), to);
  bool to_int = from == DType::kFp32 && to == DType::kInt32;
  if (!to_int && !(from == DType::kInt32 && to == DType::kFp32))
    node.Fail("unsupported-dtype", fmt::format("from {} to {} at run time", Name(from), Name(to)));
  Shape shape = x->type.shape;
  Value* sizes = node.Make("shape", {{"x", x}});
  if (shape.size() != 1) x = node.Make("reshape", {{"x", x}, {"shape", Ints({-1})}});
  Value* y = to_int ? FloatToInt(node, x) : IntToFloat(node, x);
  if (shape.empty())
    y = node.Make("squeeze", {{"x", y}, {"axes", Ints({0})}});
  else if (shape.size() != 1)
    y = node.Make("reshape", {{"x", y}, {"shape", sizes}});
  node.Set(y, to);
}

constexpr NodeRow kRows[] = {
    NodeRow("BitCast", BitCast, 26)
        .When(
            "at run time: integers of 8 and 16 bits, fp32 and int32; a NaN becomes the usual one"),
};

}  // namespace

std::span<const NodeRow> BitCastRows() { return kRows; }

}  // namespace mlc::onnx
