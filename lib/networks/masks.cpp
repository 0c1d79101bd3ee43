#include "lib/networks/masks.h"

#include <limits>

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"

namespace mlc::networks {

double Lowest(DType dtype) {
  return dtype == DType::kFp16 ? -65504.0 : std::numeric_limits<float>::lowest();
}

Value* Positions(Builder& b, Value* queries, Value* keys) {
  Value* count = DimOf(b, queries, 2);
  Value* past = Binary(b, "sub", DimOf(b, keys, 2), count);
  return Binary(b, "add", IndicesOf(b, queries, 2), past);
}

Value* InReach(Builder& b, Value* queries, Value* keys, Value* offset, int64_t left,
               int64_t right) {
  Value* rows = Expanded(b, IndicesOf(b, queries, 2), {1});
  Value* columns = Expanded(b, IndicesOf(b, keys, 2), {0});
  if (offset) rows = Binary(b, "add", rows, offset);
  auto moved = [&](int64_t by) { return by ? Binary(b, "add", rows, by) : rows; };
  Value* seen = nullptr;
  if (left >= 0) seen = Binary(b, "greater_equal", columns, moved(-left));
  if (right >= 0) seen = And(b, seen, Binary(b, "less_equal", columns, moved(right)));
  return seen;
}

Value* Filled(Builder& b, Value* places, double fill, DType dtype) {
  return Binary(b, "mul", b.Cast(places, dtype), fill);
}

Value* BiasOf(Builder& b, Value* seen, double fill, DType dtype) {
  if (seen->type.dtype != DType::kBool) seen = Binary(b, "greater", seen, 0);
  return Filled(b, b.Make("logical_not", {{"x", seen}}), fill, dtype);
}

Value* Hidden(Builder& b, Value* rows, Value* columns, int64_t window) {
  columns = Expanded(b, columns, {0});
  Value* hidden = Binary(b, "greater", columns, rows);
  if (window <= 0) return hidden;
  Value* reach = Binary(b, "add", columns, window - 1);
  return Binary(b, "logical_or", hidden, Binary(b, "less", reach, rows));
}

Value* CausalBias(Builder& b, Value* positions, Value* keys, int64_t window, double fill,
                  DType dtype) {
  Value* rows =
      positions->type.rank() == 2 ? Expanded(b, positions, {1, 3}) : Expanded(b, positions, {1});
  return Filled(b, Hidden(b, rows, IndicesOf(b, keys, 2), window), fill, dtype);
}

Value* SoftCapped(Builder& b, Value* scores, double cap) {
  scores = b.Make("tanh", {{"x", Binary(b, "mul", scores, 1 / cap)}});
  return Binary(b, "mul", scores, cap);
}

Value* Shares(Builder& b, Value* scores, Value* sink) {
  if (!sink) return b.Make("softmax", {{"x", scores}, {"axis", -1}});
  Value* column = Reduced(b, "reduce_max", scores, {-1}, true);
  column = Binary(b, "mul", column, 0.0);
  Value* all = Concat(b, {scores, Binary(b, "add", column, sink)}, 3);
  Value* shares = b.Make("softmax", {{"x", all}, {"axis", -1}});
  return SliceBetween(b, shares, {0, 0, 0, 0}, {0, 0, 0, -1}, {true, true, true, false});
}

}  // namespace mlc::networks
