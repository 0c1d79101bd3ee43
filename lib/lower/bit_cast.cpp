#include <cmath>
#include <limits>

#include "lib/ir/arithmetic.h"
#include "lib/lower/bits.h"
#include "lib/lower/convert.h"

namespace mlc::lower {

namespace {

// 2^(e - 127) for e from 1 to 254, the exponents of finite fp32 numbers, then infinity.
std::vector<float> Powers() {
  std::vector<float> powers;
  for (int e = 1; e < 255; ++e) powers.push_back(std::ldexp(1.0f, e - 127));
  powers.push_back(std::numeric_limits<float>::infinity());
  return powers;
}

constexpr double kMantissa = 1 << 23;

Value* Power(Builder& b, Value* exponent) {  // int32 values from 1 to 255
  Value* place = Binary(b, "sub", exponent, 1);
  return Rows(b, b.Const(Tensor::Vector(Powers())), place);
}

// x must be a vector.
Value* FloatToInt(Builder& b, Value* x) {
  Value* size = b.Make("abs", {{"x", x}});
  Value* column = Expanded(b, size, {1});
  Value* reached = Binary(b, "greater_equal", column, Tensor::Vector(Powers()));
  Value* exponent = Reduced(b, "reduce_sum", b.Cast(reached, DType::kInt32), {1}, false);
  Value* subnormal = Binary(b, "equal", exponent, 0);
  Value* infinite = Binary(b, "equal", exponent, 255);
  Value* known = Binary(b, "minimum", Binary(b, "maximum", exponent, 1), 254);
  Value* power = Power(b, known);
  Value* scaled = Binary(b, "real_div", Select(b, infinite, 0.0, size), power);
  Value* fraction = Binary(b, "sub", scaled, Select(b, subnormal, 0.0, 1.0));
  fraction = Select(b, infinite, 0.0, fraction);
  Value* mantissa = b.Cast(Binary(b, "mul", fraction, kMantissa), DType::kInt32);
  Value* bits = Binary(b, "add", Binary(b, "mul", exponent, int64_t{1} << 23), mantissa);
  bits = Select(b, Binary(b, "not_equal", x, x), int64_t{0x7fc00000}, bits);
  // -0 is negative as well.
  Value* inverse = Binary(b, "real_div", 1.0, x);
  Value* below = Binary(b, "less", inverse, 0.0);
  Value* negative = Binary(b, "logical_or", Binary(b, "less", x, 0.0), below);
  return Select(b, negative, Binary(b, "add", bits, int64_t{INT32_MIN}), bits);
}

Value* IntToFloat(Builder& b, Value* x) {
  Value* negative = Binary(b, "less", x, 0);
  Value* bits = Select(b, negative, Binary(b, "sub", x, int64_t{INT32_MIN}), x);
  Value* exponent = Binary(b, "floor_div", bits, int64_t{1} << 23);
  Value* mantissa = b.Cast(Binary(b, "mod", bits, int64_t{1} << 23), DType::kFp32);
  Value* fraction = Binary(b, "mul", mantissa, 1 / kMantissa);
  Value* subnormal = Binary(b, "equal", exponent, 0);
  Value* scaled = Binary(b, "add", fraction, Select(b, subnormal, 0.0, 1.0));
  Value* y = Binary(b, "mul", scaled, Power(b, Binary(b, "maximum", exponent, 1)));
  Value* marked = Binary(b, "greater", mantissa, 0.0);
  Value* special = Binary(b, "logical_and", Binary(b, "equal", exponent, 255), marked);
  y = Select(b, special, std::nan(""), y);
  return Binary(b, "mul", y, Select(b, negative, -1.0, 1.0));
}

}  // namespace

Value* BitCast(Builder& b, Value* x, DType from, DType to) {
  auto width = [](DType dtype) { return dtype == DType::kBool ? 8 : Bits(dtype); };
  if (to == DType::kNone || from == DType::kString || to == DType::kString ||
      width(from) != width(to))
    throw Error("bad-attribute", "from {} to {}, which have different widths", Name(from),
                Name(to));
  if (x->is_constant()) {
    Tensor bits = x->constant();
    std::vector<std::byte> bytes(bits.byte_size());
    bits.Read(0, bits.size(), bytes.data());
    if (to == DType::kBool)
      for (std::byte& byte : bytes) byte = std::byte(byte != std::byte(0));
    return b.Const(Tensor::Owned(to, bits.dims(), std::move(bytes)));
  }
  if (from == to) return x;
  if (width(from) > 32 || to == DType::kUint32 || from == DType::kUint32)
    throw Error("unsupported-dtype",
                "from {} to {} at run time; Core ML only has 32-bit signed integers", Name(from),
                Name(to));
  bool integers =
      (IsInteger(from) || from == DType::kBool) && (IsInteger(to) || to == DType::kBool);
  if (integers) return Convert(b, x, from, to);
  bool to_int = from == DType::kFp32 && to == DType::kInt32;
  if (!to_int && !(from == DType::kInt32 && to == DType::kFp32))
    throw Error("unsupported-dtype", "from {} to {} at run time", Name(from), Name(to));
  Shape shape = x->type.shape;
  Value* sizes = b.Make("shape", {{"x", x}});
  if (shape.size() != 1) x = WithShape(b, x, {-1});
  Value* y = to_int ? FloatToInt(b, x) : IntToFloat(b, x);
  if (shape.empty())
    y = Squeezed(b, y, {0});
  else if (shape.size() != 1)
    y = b.Make("reshape", {{"x", y}, {"shape", sizes}});
  return y;
}

}  // namespace mlc::lower
