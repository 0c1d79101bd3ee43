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

}  // namespace

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
  return Fits(from, to) ? value : Wrap(builder, value, to);
}

}  // namespace mlc::onnx
