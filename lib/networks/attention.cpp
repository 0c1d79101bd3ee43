#include "lib/networks/attention.h"

#include "lib/ir/arithmetic.h"
#include "lib/networks/masks.h"

namespace mlc::networks {

namespace {

Value* All(Builder& b, const std::vector<Value*>& values) {
  Value* all = nullptr;
  for (Value* value : values) all = And(b, all, value);
  return all;
}

}  // namespace

Attended Attend(Builder& b, const AttentionParts& parts) {
  Attended made{};
  auto fitting = [&](Value* changed, Value* before) {
    return parts.fits ? parts.fits(changed, before) : changed;
  };
  Value* scores = b.Make("matmul", {{"x", parts.q}, {"y", parts.k}, {"transpose_y", true}});
  if (parts.scale != 1) scores = Binary(b, "mul", scores, parts.scale);
  made.products = scores;
  if (parts.softcap > 0) scores = SoftCapped(b, scores, parts.softcap);
  made.capped = scores;
  for (Value* bias : parts.biases) scores = fitting(Binary(b, "add", scores, bias), scores);
  DType type = scores->type.dtype;
  if (parts.wants_masked) made.masked = scores;
  if (Value* visible = All(b, parts.seen)) {
    double lowest = Lowest(type);
    Value* bias = BiasOf(b, visible, lowest, type);
    Value* hid = visible->is_constant() ? Binary(b, "add", scores, bias)
                                        : Select(b, visible, scores, lowest);
    scores = fitting(hid, scores);
    // Adding the bias to the lowest number gives -inf without a constant of -inf.
    if (parts.wants_masked) made.masked = Binary(b, "add", scores, bias);
  }
  made.scores = scores;
  if (parts.softmax != DType::kNone) scores = b.Cast(scores, parts.softmax);
  made.shares = b.Cast(Shares(b, scores, parts.sink), type);
  if (Value* kept = All(b, parts.kept))
    made.shares = Select(b, kept, made.shares, Tensor::Full(type, {}, 0));
  made.y = Binary(b, "matmul", made.shares, b.Cast(parts.v, type));
  return made;
}

}  // namespace mlc::networks
