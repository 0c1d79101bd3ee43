#include "lib/lower/bits.h"

#include <algorithm>

#include "lib/ir/arithmetic.h"
#include "lib/lower/convert.h"

namespace mlc::lower {

namespace {

// How to split a number into bits and compose it again, in two's complement: bit i = x div first[i]
// div then[i] mod 2, rounded down; the weight of the sign bit is negative.
struct Digits {
  Tensor first, then, weight;
};

// For numbers of `bits` bits stored as `held`. A power of two that would be the sign bit there is
// divided by in two steps.
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

// 2^k if the constant is a single element 2^k - 1 with k in 0..30; else 0.
int64_t LowMask(const Value* value) {
  if (!value->is_constant() || value->constant().size() != 1) return 0;
  int64_t mask = value->constant().Int(0), power = mask + 1;
  return power > 0 && power <= 1 << 30 && (power & mask) == 0 ? power : 0;
}

Value* BitsOfBoth(Builder& b, Value* x, Value* y, DType dtype) {
  for (auto [value, mask] : {std::pair{x, y}, {y, x}})
    if (int64_t power = LowMask(mask);
        power > 0 && !value->is_constant() && mask->type.rank() <= value->type.rank())
      return Binary(b, "mod", Convert(b, value, dtype, DType::kInt32), power);
  bool constant = x->is_constant() && y->is_constant();
  DType held = constant ? DType::kInt64 : DType::kInt32;
  // Bits above 32 of a 64-bit run-time value equal its sign.
  int bits = std::min(Bits(dtype), Bits(held));
  Digits digits = DigitsOf(bits, IsSigned(dtype) || bits == Bits(held), held);
  auto apart = [&](Value* value) {
    value = Convert(b, value, dtype, held);
    int64_t last = value->type.rank();
    value = Expanded(b, value, {last});
    value = Binary(b, "floor_div", value, b.Const(digits.first));
    if (bits == Bits(held)) value = Binary(b, "floor_div", value, b.Const(digits.then));
    return Binary(b, "mod", value, 2);
  };
  Value *of_y = apart(y), *of_x = apart(x);
  Value* both = Binary(b, "mul", of_x, of_y);
  both = Binary(b, "mul", both, b.Const(digits.weight));
  both = Reduced(b, "reduce_sum", both, {-1}, false);
  return constant ? Convert(b, both, held, dtype) : both;
}

}  // namespace

// The sums below combine disjoint bits and therefore do not overflow.
Value* BitsAnd(Builder& b, Value* x, Value* y, DType dtype) { return BitsOfBoth(b, x, y, dtype); }
Value* BitsOr(Builder& b, Value* x, Value* y, DType dtype) {
  Value* both = BitsOfBoth(b, x, y, dtype);
  return Binary(b, "add", Binary(b, "sub", x, both), y);
}
Value* BitsXor(Builder& b, Value* x, Value* y, DType dtype) {
  Value* both = BitsOfBoth(b, x, y, dtype);
  Value* only_y = Binary(b, "sub", y, both);
  return Binary(b, "add", Binary(b, "sub", x, both), only_y);
}

Value* BitsShifted(Builder& b, Value* x, Value* by, bool left, DType dtype) {
  bool constant = x->is_constant() && by->is_constant();
  int bits = std::min(Bits(dtype), constant ? 63 : 31);
  if (left && !constant && bits == 31)
    throw Error("unsupported-dtype",
                "cannot shift {} to the left at run time: Core ML has 32-bit signed integers only",
                Name(dtype));
  DType held = constant ? DType::kInt64 : DType::kInt32;
  x = Convert(b, x, dtype, held);
  by = Convert(b, by, dtype, held);
  std::vector<int64_t> powers;
  for (int i = 0; i < bits; ++i) powers.push_back(int64_t{1} << i);
  Value* out = Binary(b, "greater_equal", by, static_cast<int64_t>(bits));
  by = Binary(b, "minimum", by, static_cast<int64_t>(bits - 1));
  Value* power = b.Make("gather", {{"x", b.Const(Tensor::Of<int64_t>({bits}, powers).Cast(held))},
                                   {"indices", by},
                                   {"axis", 0}});
  Value* y = Binary(b, left ? "mul" : "floor_div", x, power);
  y = Select(b, out, Binary(b, "sub", y, y), y);
  return constant ? Convert(b, y, held, dtype) : Wrap(b, y, dtype);
}

}  // namespace mlc::lower
