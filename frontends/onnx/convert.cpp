// ONNX element types against those of run-time values in MIL.
#include "frontends/onnx/row.h"

namespace mlc::onnx {

namespace {

// Whether every value of integer type `from` (or bool) is one of `to`.
bool Fits(DType from, DType to) {
  if (from == DType::kBool || from == to) return true;
  if (!IsInteger(from)) return false;
  if (IsSigned(from) && !IsSigned(to)) return false;
  return IsSigned(from) == IsSigned(to) ? Bits(from) <= Bits(to) : Bits(from) < Bits(to);
}

// The nearest numbers with 8 significant bits, those of bfloat16, ties to even (Veltkamp's way to
// split a float); what would overflow on the way stays as it is.
Value* Rounded(Builder& builder, Value* x) {
  constexpr double kSplit = (1 << 16) + 1, kMost = 0x1p110;
  Value* scaled = builder.Make("mul", {{"x", x}, {"y", kSplit}});
  Value* rest = builder.Make("sub", {{"x", scaled}, {"y", x}});
  Value* high = builder.Make("sub", {{"x", scaled}, {"y", rest}});
  Value* size = builder.Make("abs", {{"x", x}});
  Value* fits = builder.Make("less", {{"x", size}, {"y", kMost}});
  return builder.Make("select", {{"cond", fits}, {"a", high}, {"b", x}});
}

}  // namespace

Value* CutToBf16(Builder& builder, Value* x) {
  Value* near = Rounded(builder, x);
  // Where that is larger than x: what is half to almost one step less than x rounds to the number
  // below.
  Value* step = builder.Make("mul", {{"x", near}, {"y", 0x1p-8 - 0x1p-16}});
  Value* below = Rounded(builder, builder.Make("sub", {{"x", x}, {"y", step}}));
  Value* larger = builder.Make("greater", {{"x", builder.Make("abs", {{"x", near}})},
                                           {"y", builder.Make("abs", {{"x", x}})}});
  return builder.Make("select", {{"cond", larger}, {"a", below}, {"b", near}});
}

DType RuntimeType(DType onnx) {
  switch (onnx) {
    case DType::kBool:
    case DType::kFp16:
    case DType::kFp32:
      return onnx;
    case DType::kFp64:
    case DType::kBf16:
      return DType::kFp32;
    default:
      return IsInteger(onnx) ? DType::kInt32 : DType::kNone;
  }
}

Value* Wrap(Builder& builder, Value* value, DType onnx) {
  if (value->is_constant() || !IsInteger(onnx) || Bits(onnx) >= 32) return value;
  int64_t range = int64_t{1} << Bits(onnx);
  if (!IsSigned(onnx)) return builder.Make("mod", {{"x", value}, {"y", range}});
  Value* shifted = builder.Make("add", {{"x", value}, {"y", range / 2}});
  Value* wrapped = builder.Make("mod", {{"x", shifted}, {"y", range}});
  return builder.Make("sub", {{"x", wrapped}, {"y", range / 2}});
}

Value* Convert(Builder& builder, Value* value, DType from, DType to) {
  if (value->is_constant() && RuntimeType(to) != DType::kNone) {
    if (from == to) return value;
    return builder.Const(value->constant().Cast(to));
  }
  DType have = RuntimeType(from), want = RuntimeType(to);
  if (have == DType::kNone || want == DType::kNone)
    throw Error("unsupported-dtype", fmt::format("Core ML cannot compute with {}",
                                                 Name(have == DType::kNone ? from : to)));
  if (want == DType::kBool && have != DType::kBool)
    return builder.Make("not_equal", {{"x", value}, {"y", 0}});
  if (have != want) value = builder.Cast(value, want);
  if (to == DType::kBf16 && from != to) return Rounded(builder, value);
  return Fits(from, to) ? value : Wrap(builder, value, to);
}

}  // namespace mlc::onnx
