// Attention, rotary embeddings and operators on key-value caches. Dimensions in shapes: B batch, S
// queries, P past tokens, T keys (including the past), N heads, H elements per head.
#include "lib/networks/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"
#include "lib/networks/heads.h"
#include "lib/networks/masks.h"
#include "lib/networks/rotary.h"

namespace mlc::onnx {

namespace {

// The keys that each query may attend to: bool values that broadcast to [B, N, S, T]; null: all.
struct Seen {
  Value* places = nullptr;  // positional mask (causal, window)
  Value* given = nullptr;   // bool attn_mask
  Value* added = nullptr;   // float attn_mask, added to the scores
  bool empty_rows = false;  // a query may have no visible key
};

// Extends a mask to T columns; missing columns are masked out.
Value* Widened(Node& node, Value* mask, Value* keys, Seen& seen) {
  const Dim &width = mask->type.shape.back(), &wanted = keys->type.shape[2];
  if (width == wanted) return mask;
  if (width.is_constant() && wanted.is_constant() && width.constant() > wanted.constant())
    node.Fail("bad-operand", "attn_mask has {} columns, but there are {} keys", width.ToString(),
              wanted.ToString());
  Value *columns = IndicesOf(node, keys, 2), *count = DimOf(node, mask, mask->type.rank() - 1);
  seen.places = And(node, seen.places, Binary(node, "less", columns, count));
  seen.empty_rows = true;
  Value* last = Binary(node, "sub", count, 1);
  return node.Make(
      "gather", {{"x", mask}, {"indices", Binary(node, "minimum", columns, last)}, {"axis", -1}});
}

// Reads the node's masks for queries q [B, N, S, H] and keys k [B, N, T, H], including the past.
Seen ReadMasks(Node& node, Value* q, Value* k) {
  bool causal = node.Int("is_causal", 0) != 0;
  int64_t left = -1, right = -1;
  if (node.opset() >= 25) {
    left = node.Int("left_window_size", -1);
    right = node.Int("right_window_size", -1);
  }
  if (causal) right = 0;
  Seen seen;
  Value *offset = nullptr, *filled = node.Optional(6);
  if (filled) {
    filled = WithShape(node, lower::AtRunTime(node, filled, node.dtype(6)), {-1, 1, 1, 1});
    offset = Binary(node, "sub", filled, DimOf(node, q, 2));
    seen.places = Binary(node, "less", IndicesOf(node, k, 2), filled);
    seen.empty_rows = true;
  } else if (node.HasInput(4)) {
    offset = DimOf(node, node.In(4), 2);
  }
  if (left >= 0 || right >= 0)
    seen.places = And(node, seen.places, networks::InReach(node, q, k, offset, left, right));
  // With more queries than keys, the windows of the last queries begin after the last key.
  if (left >= 0) seen.empty_rows = true;

  Value* mask = node.Optional(3);
  if (mask && node.opset() >= 24) mask = Widened(node, mask, k, seen);
  if (mask && mask->type.dtype == DType::kBool) {
    seen.given = mask;
    seen.empty_rows = true;
  } else if (mask) {
    seen.added = mask;
    // The lowest number of the input type also masks a key, as in onnxruntime.
    const double lowest = node.dtype(3) == DType::kFp16
                              ? -65504.0
                              : static_cast<double>(std::numeric_limits<float>::lowest());
    bool finite = false;
    if (Tensor constant = node.ConstantOrNone(3)) {
      std::vector<double> values = constant.Doubles();
      finite = std::ranges::all_of(values, [&](double x) { return x > lowest; });
    }
    if (!finite) {
      seen.given = Binary(node, "greater", mask, lowest);
      seen.empty_rows = true;
    }
  }
  return seen;
}

// Inputs: Q, K, V, attn_mask, past_key, past_value, nonpad_kv_seqlen.
void Attention(Node& node) {
  Value *q = node.In(0), *k = node.In(1), *v = node.In(2);
  bool flat = q->type.rank() == 3;
  if (flat) {
    q = networks::Heads(node, q, node.Int("q_num_heads"));
    k = networks::Heads(node, k, node.Int("kv_num_heads"));
    v = networks::Heads(node, v, node.Int("kv_num_heads"));
  } else {
    node.Ignore({"q_num_heads", "kv_num_heads"});
  }
  for (Value* x : {q, k, v})
    if (x->type.rank() != 4)
      node.Fail("bad-operand", "an input is {}, expected 3 or 4 dimensions", x->type.ToString());
  if (Value* past = node.Optional(4)) {
    k = Concat(node, {past, k}, 2);
    v = Concat(node, {node.In(5), v}, 2);
  }
  RequireEqualSize(node, q, 0, k, 0, "batch sizes of queries and keys");
  RequireEqualSize(node, k, 0, v, 0, "batch sizes of keys and values");
  node.Set(1, k, node.dtype(1));
  node.Set(2, v, node.dtype(2));

  const Dim &size = q->type.shape[3], &heads = q->type.shape[1], &key_heads = k->type.shape[1];
  if (!size.is_constant()) node.Fail("dynamic-shape", "the head size must be constant");
  int64_t group = 1;
  if (heads != key_heads) {
    if (!heads.is_constant() || !key_heads.is_constant())
      node.Fail("dynamic-shape", "the numbers of heads must be constant");
    group = key_heads.constant() > 0 ? heads.constant() / key_heads.constant() : 0;
    if (group * key_heads.constant() != heads.constant())
      node.Fail("bad-operand", "{} query heads are not divisible by {} key heads", heads.constant(),
                key_heads.constant());
  }
  Value *all_k = networks::Repeated(node, k, group), *all_v = networks::Repeated(node, v, group);

  Seen seen = ReadMasks(node, q, k);
  int64_t shown = node.Int("qk_matmul_output_mode", 0);
  if (shown < 0 || shown > 3)
    node.Unsupported("qk_matmul_output_mode", "qk_matmul_output_mode={}", shown);
  double scale = node.Float("scale", 1 / std::sqrt(static_cast<double>(size.constant())));
  networks::AttentionParts parts{Binary(node, "mul", q, scale), all_k, all_v};
  parts.softcap = node.Float("softcap", 0.0);
  if (seen.added) parts.biases = {seen.added};
  parts.seen = {seen.places};
  if (!seen.added) parts.seen.push_back(seen.given);
  if (seen.empty_rows) parts.kept = {seen.places, seen.given};
  parts.wants_masked = shown == 2;
  if (int64_t precision = node.Int("softmax_precision", 0)) {
    parts.softmax = lower::RuntimeType(ToDType(static_cast<int>(precision)));
    if (!IsFloat(parts.softmax))
      node.Unsupported("softmax_precision", "softmax_precision={}", precision);
  }
  parts.fits = [&](Value* changed, Value* before) {
    return OfShape(node, changed, before, "the attention scores");
  };
  networks::Attended attended = Attend(node, parts);
  Value* const outputs[] = {attended.products, attended.capped, attended.masked, attended.shares};
  node.Set(3, outputs[shown], node.dtype());
  Value* y = attended.y;
  node.Set(0, flat ? networks::Joined(node, y) : y, node.dtype());
}

// X is [B, S, N * H] or [B, N, S, H]. cos_cache and sin_cache are [B, S, angles], or tables with
// rows of [angles] that position_ids [B, S] selects.
void RotaryEmbedding(Node& node) {
  Value *x = node.In(0), *cosine = node.In(1), *sine = node.In(2);
  bool flat = x->type.rank() == 3;
  if (flat) x = networks::Heads(node, x, node.Int("num_heads"));
  if (!flat) node.Ignore({"num_heads"});
  if (Value* ids = node.Optional(3)) {
    if (cosine->type.rank() == 2 && sine->type.rank() == 2)
      RequireEqualSize(node, cosine, 0, sine, 0, "numbers of rows of cos_cache and sin_cache");
    cosine = Rows(node, cosine, ids);
    sine = Rows(node, sine, ids);
  }
  const Dim &size = x->type.shape[3], &angles = cosine->type.shape.back();
  int64_t turned = node.Int("rotary_embedding_dim", 0);
  if (!size.is_constant() || !angles.is_constant())
    node.Fail("dynamic-shape", "the head size must be constant");
  if (turned == 0) turned = size.constant();
  if (cosine->type.rank() != 3 || angles.constant() * 2 != turned)
    node.Fail("bad-operand", "cos_cache is {}, which does not match {} rotated elements per head",
              cosine->type.ToString(), turned);
  for (Value** angle : {&cosine, &sine})
    if ((*angle)->type.rank() == 3) {
      RequireEqualSize(node, x, 0, *angle, 0, "batch sizes of the input and of the caches");
      RequireEqualSize(node, x, 2, *angle, 1, "sequence lengths of the input and of the caches");
    }
  Value* y = networks::Rotated(node, x, cosine, sine, node.Int("interleaved", 0) != 0);
  node.SetAlike(flat ? networks::Joined(node, y) : y);
}

// Returns x with dimension `axis` starting at `begin`; negative values count from the end.
Value* From(Node& node, Value* x, int axis, Value* begin) {
  int rank = x->type.rank();
  std::vector<bool> masks(rank, true);
  std::vector<Value*> starts;
  Value* zero = node.Const(Tensor::Vector<int32_t>({0}));
  for (int i = 0; i < rank; ++i) starts.push_back(i == axis ? AsVector(node, begin) : zero);
  std::vector<bool> begin_mask = masks;
  begin_mask[axis] = false;
  return node.Make("slice_by_index", {{"x", x},
                                      {"begin", Concat(node, starts, 0)},
                                      {"end", Ints(std::vector<int64_t>(rank, 0))},
                                      {"begin_mask", Tensor::Vector<bool>(begin_mask)},
                                      {"end_mask", Tensor::Vector<bool>(masks)}});
}

// Writes update [B, ..., S, ...] to past_cache [B, ..., T, ...], starting at write_indices [B].
void TensorScatter(Node& node) {
  Value *cache = node.In(0), *update = node.In(1), *starts = node.Optional(2);
  DType dtype = node.dtype();
  node.RequireRunTimeType(dtype, "elements");
  std::string mode = node.String("mode", "linear");
  if (mode != "linear" && mode != "circular") node.Unsupported("mode", "unknown mode \"{}\"", mode);
  int rank = node.rank(), axis = node.Axis(node.Int("axis", -2), rank);
  if (axis == 0 || node.rank(1) != rank)
    node.Fail("bad-operand", "past_cache {} and update {} do not match for axis {}",
              ToString(node.shape(0)), ToString(node.shape(1)), axis);
  cache = lower::AtRunTime(node, cache, dtype);
  update = lower::AtRunTime(node, update, dtype);
  RequireSameShape(node, cache, update, "shapes of past_cache and update", axis);
  if (starts)
    RequireEqualSize(node, cache, 0, starts, 0,
                     "batch size of past_cache and length of write_indices");
  if (!starts) {
    if (node.shape(0)[axis] == node.shape(1)[axis]) return node.Set(update, dtype);
    Value* rest = From(node, cache, axis, DimOf(node, update, axis));
    return node.Set(Concat(node, {update, rest}, axis), dtype);
  }
  Value* steps = VectorAlong(node, IndicesOf(node, update, axis), axis, rank);
  starts = VectorAlong(node, lower::AtRunTime(node, starts, node.dtype(2)), 0, rank);
  Value* places = Binary(node, "add", starts, steps);
  if (mode == "circular") places = Binary(node, "mod", places, DimOf(node, cache, axis));
  Value* shape = ShapeOf(node, update);
  places = node.Apply("Expand", 13, {{places, DType::kInt32}, {shape, DType::kInt32}});
  node.Set(node.Make("scatter_along_axis", {{"data", cache},
                                            {"indices", places},
                                            {"updates", update},
                                            {"axis", axis},
                                            {"mode", "update"}}),
           dtype);
}

// Inputs: input [B, C, L], weight [C, 1, K], bias [C], past_state [B, C, K - 1].
void CausalConvWithState(Node& node) {
  Value *x = node.In(0), *past = node.Optional(3);
  DType dtype = node.dtype();
  const Shape& kernel = node.shape(1);
  if (node.rank() != 3 || kernel.size() != 3)
    node.Fail("bad-operand", "input {} and weight {} do not match", ToString(node.shape(0)),
              ToString(kernel));
  if (!kernel[0].is_constant() || !kernel[2].is_constant())
    node.Fail("dynamic-shape", "the shape of weight must be constant");
  std::string activation = node.String("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    node.Unsupported("activation", "unsupported activation \"{}\"", activation);
  int64_t before = kernel[2].constant() - 1;
  if (past && before > 0) {
    x = Concat(node, {past, x}, 2);
  } else if (before > 0) {
    x = node.Make("pad", {{"x", x},
                          {"pad", Ints({0, 0, 0, 0, before, 0})},
                          {"mode", "constant"},
                          {"constant_val", Tensor::Full(x->type.dtype, {}, 0)}});
  }
  Value* y = node.Apply("Conv", 22, {{x, dtype}, node.Input(1), node.Input(2)}, {},
                        {{"group", "", Attribute::Kind::kInt, {}, {kernel[0].constant()}}});
  if (activation != "none") y = node.Make("silu", {{"x", y}});
  node.Set(0, y, dtype);
  if (!node.HasOutput(1)) return;
  if (before == 0) node.Fail("empty-tensor", "a kernel of size 1 has an empty state");
  node.Set(1, From(node, x, 2, node.Const(Tensor::Scalar<int32_t>(static_cast<int32_t>(-before)))),
           dtype);
}

constexpr NodeRow kAttentionRows[] = {
    {"Attention", Attention, 23},
    {"CausalConvWithState", CausalConvWithState, 27},
    {"RotaryEmbedding", RotaryEmbedding, 23},
    {"TensorScatter", TensorScatter, 24},
};

}  // namespace

std::span<const NodeRow> AttentionRows() { return kAttentionRows; }

}  // namespace mlc::onnx
