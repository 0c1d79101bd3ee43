#include "lib/lower/convert.h"

#include "lib/ir/arithmetic.h"

namespace mlc::lower {

namespace {

// Returns whether every value of integer type `from` (or bool) is representable in `to`.
bool Fits(DType from, DType to) {
  if (from == DType::kBool || from == to) return true;
  if (!IsInteger(from)) return false;
  if (IsSigned(from) && !IsSigned(to)) return false;
  return IsSigned(from) == IsSigned(to) ? Bits(from) <= Bits(to) : Bits(from) < Bits(to);
}

// Rounds to the nearest numbers with 8 significant bits, those of bfloat16, ties to even (Veltkamp
// splitting); values whose intermediate results would overflow are unchanged.
Value* Rounded(Builder& b, Value* x) {
  constexpr double kSplit = (1 << 16) + 1, kMost = 0x1p110;
  Value* scaled = Binary(b, "mul", x, kSplit);
  Value* rest = Binary(b, "sub", scaled, x);
  Value* high = Binary(b, "sub", scaled, rest);
  Value* size = b.Make("abs", {{"x", x}});
  Value* fits = Binary(b, "less", size, kMost);
  return Select(b, fits, high, x);
}

}  // namespace

Value* CutToBf16(Builder& b, Value* x) {
  Value* near = Rounded(b, x);
  // If the result is larger than x: anything from half a step to almost one step below x rounds to
  // the lower number.
  Value* step = Binary(b, "mul", near, 0x1p-8 - 0x1p-16);
  Value* below = Rounded(b, Binary(b, "sub", x, step));
  Value* larger =
      b.Make("greater", {{"x", b.Make("abs", {{"x", near}})}, {"y", b.Make("abs", {{"x", x}})}});
  return Select(b, larger, below, near);
}

DType RuntimeType(DType source) {
  switch (source) {
    case DType::kBool:
    case DType::kFp32:
      return source;
    case DType::kFp16:
    case DType::kFp64:
    case DType::kBf16:
      return DType::kFp32;
    default:
      return IsInteger(source) ? DType::kInt32 : DType::kNone;
  }
}

Value* AtRunTime(Builder& b, Value* value, DType dtype) {
  DType want = RuntimeType(dtype);
  if (!value->is_constant() || want == DType::kNone || value->type.dtype == want) return value;
  return b.Const(NarrowForMil(value->constant(), want));
}

Value* Wrap(Builder& b, Value* value, DType dtype) {
  if (value->is_constant() || !IsInteger(dtype) || Bits(dtype) >= 32) return value;
  int64_t range = int64_t{1} << Bits(dtype);
  if (!IsSigned(dtype)) return Binary(b, "mod", value, range);
  Value* shifted = Binary(b, "add", value, range / 2);
  Value* wrapped = Binary(b, "mod", shifted, range);
  return Binary(b, "sub", wrapped, range / 2);
}

Value* Convert(Builder& b, Value* value, DType from, DType to) {
  if (value->is_constant() && RuntimeType(to) != DType::kNone) {
    if (from == to) return value;
    return b.Const(value->constant().Cast(to));
  }
  DType have = RuntimeType(from), want = RuntimeType(to);
  if (have == DType::kNone || want == DType::kNone)
    throw Error("unsupported-dtype", "Core ML has no values of type {}",
                Name(have == DType::kNone ? from : to))
        .Expected("bool, an integer type, fp16, bf16, fp32 or fp64");
  if (want == DType::kBool && have != DType::kBool) return Binary(b, "not_equal", value, 0);
  if (to == DType::kFp16 && from != to) value = b.Cast(value, to);
  if (value->type.dtype != want) value = b.Cast(value, want);
  if (to == DType::kBf16 && from != to) return Rounded(b, value);
  return Fits(from, to) ? value : Wrap(b, value, to);
}

}  // namespace mlc::lower
