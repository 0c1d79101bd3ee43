// Merges chains of casts and removes lossless round trips.
//
//   b = cast(a: fp16 -> fp32); c = cast(b -> fp16)   ->   c = a
//   b = cast(a: int8 -> int32); c = cast(b -> fp16)  ->   c = cast(a -> fp16)
//
// Must not fire if the intermediate type is narrower than both ends (fp32 -> fp16 -> fp32 rounds).
// No numeric effect.
//
// Operators by name: the casts that it matches and the casts that it creates.
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

// Returns whether every value of `from` is exact in `to`.
bool Holds(DType to, DType from) {
  if (to == from) return true;
  if (from == DType::kBool) return true;
  if (to == DType::kFp32) return from == DType::kFp16 || (IsInteger(from) && Bits(from) <= 16);
  if (to == DType::kFp16) return IsInteger(from) && Bits(from) <= 8;
  if (to == DType::kInt32) return IsInteger(from) && (Bits(from) < 32);
  return false;
}

bool MergeCasts(Operation* second, PassContext& context) {
  if (!second->is("cast")) return false;
  Operation* first = DefinedBy(second->value("x"), "cast");
  if (!first) return false;
  Value* source = first->value("x");
  if (!source) return false;
  DType from = source->type.dtype, middle = first->result()->type.dtype,
        to = second->result()->type.dtype;
  if (!Holds(middle, from)) return false;
  if (from == to) {
    if (!CanReplace(second->result(), source)) return false;
    Replace(second, source);
  } else {
    Replace(second, BuilderBefore(second, context)
                        .Make("cast", {{"x", source}, {"dtype", std::string(Name(to))}}));
  }
  return true;
}

}  // namespace

extern const PassDef kOptimiseCasts = {"optimise-casts",
                                       "merge chains of casts and remove lossless round trips",
                                       Rewrites<MergeCasts>};

}  // namespace mlc::passes
