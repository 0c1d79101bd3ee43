// com.microsoft: attention and rotary embeddings. Dimensions in shapes: B batch, S queries, P past
// tokens, T = P + S keys, N heads, H elements per head.
#include "lib/networks/attention.h"

#include <fmt/ranges.h>

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

constexpr double kLowest = std::numeric_limits<float>::lowest();

// Converts the key mask of Attention and MultiHeadAttention to a bias that broadcasts against [B,
// N, S, T].
Value* MaskBias(Node& node, Value* mask, Value* queries, Value* keys, double fill, DType dtype) {
  switch (mask->type.rank()) {
    case 1: {
      // The mask holds end positions [B], or end and start positions [2 B].
      const Dim &count = mask->type.shape[0], &batch = keys->type.shape[0];
      Value* columns = Expanded(node, IndicesOf(node, keys, 2), {0});
      auto limit = [&](Value* vector) { return Expanded(node, vector, {1}); };
      if (count == batch)
        return Expanded(
            node, networks::BiasOf(node, Binary(node, "less", columns, limit(mask)), fill, dtype),
            {1, 2});
      if (!(count == batch * Dim(2)) || !batch.is_constant())
        node.Unsupported("", "a mask of shape [{}] for batch size {} is not supported",
                         count.ToString(), batch.ToString());
      std::vector<Value*> ends = Parts(node, mask, {batch.constant(), batch.constant()}, 0);
      Value* started = Binary(node, "greater_equal", columns, limit(ends[1]));
      Value* going = Binary(node, "less", columns, limit(ends[0]));
      Value* seen = Binary(node, "logical_and", going, started);
      return Expanded(node, networks::BiasOf(node, seen, fill, dtype), {1, 2});
    }
    case 2:
      return Expanded(node, networks::BiasOf(node, mask, fill, dtype), {1, 2});
    case 3:
      return Expanded(node, networks::BiasOf(node, mask, fill, dtype), {1});
    case 4: {
      // For a mask [B, 1, max, max], uses the rows from P on.
      const Dim &s = queries->type.shape[2], &t = keys->type.shape[2];
      if (!s.is_constant() || !t.is_constant())
        node.Fail("dynamic-shape", "a mask of four dimensions requires constant sequence lengths");
      int64_t past = t.constant() - s.constant();
      mask = SliceBetween(node, mask, {0, 0, past, 0}, {0, 0, t.constant(), t.constant()},
                          {true, true, false, false});
      return networks::BiasOf(node, mask, fill, dtype);
    }
    default:
      node.Fail("bad-operand", "mask is {}, expected 1 to 4 dimensions", mask->type.ToString());
  }
}

networks::Attended Attend(Node& node, networks::AttentionParts parts) {
  RequireEqualSize(node, parts.q, 0, parts.k, 0, "batch sizes of queries and keys");
  RequireEqualSize(node, parts.k, 0, parts.v, 0, "batch sizes of keys and values");
  parts.fits = [&](Value* changed, Value* before) {
    return OfShape(node, changed, before, "the attention scores");
  };
  return mlc::networks::Attend(node, parts);
}

double Scale(Node& node, Value* q) {
  const Dim& size = q->type.shape[3];
  if (!size.is_constant()) node.Fail("dynamic-shape", "the head size must be constant");
  double scale = node.Float("scale", 0.0);
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size.constant()));
}

// Returns an input whose rank must be one of `ranks`; null if omitted.
Value* Ranked(Node& node, int input, std::initializer_list<int> ranks, std::string_view what) {
  Value* value = node.Optional(input);
  if (!value || std::ranges::find(ranks, value->type.rank()) != ranks.end()) return value;
  node.Fail("bad-operand", "{} is {}, expected {} dimensions", what, value->type.ToString(),
            fmt::join(ranks, " or "));
}
Value* Needed(Node& node, int input, std::initializer_list<int> ranks, std::string_view what) {
  node.In(input);
  return Ranked(node, input, ranks, what);
}

// Returns the past keys or values; null if the input is omitted or has length 0.
Value* Past(Node& node, int input, int rank, std::string_view what) {
  Value* past = Ranked(node, input, {rank}, what);
  return past && past->type.shape[rank - 2] == Dim(0) ? nullptr : past;
}

// Sets the scale and the biases of Attention and MultiHeadAttention: the input `mask_input`, the
// causal mask and attention_bias.
void SetBiases(Node& node, int mask_input, networks::AttentionParts& parts) {
  parts.scale = Scale(node, parts.q);
  double fill = node.Float("mask_filter_value", -10000.0);
  DType type = parts.q->type.dtype;
  if (Value* mask = node.Optional(mask_input))
    parts.biases.push_back(MaskBias(node, mask, parts.q, parts.k, fill, type));
  if (node.Int("unidirectional", 0) != 0)
    parts.biases.push_back(networks::CausalBias(node, networks::Positions(node, parts.q, parts.k),
                                                parts.k, -1, kLowest, type));
  if (Value* bias = Ranked(node, 5, {4}, "attention_bias")) parts.biases.push_back(bias);
}

void RefuseInputs(Node& node, std::initializer_list<int> inputs, std::string_view what) {
  for (int i : inputs)
    if (node.HasInput(i)) node.Unsupported("", what);
}

// Inputs: input [B, S, width], weights [width, q + k + v], bias, mask, past [2, B, N, P, H],
// attention_bias.
void Attention(Node& node) {
  int64_t heads = node.Int("num_heads");
  if (node.Int("past_present_share_buffer", 0) != 0)
    node.Unsupported("past_present_share_buffer",
                     "a buffer shared by past and present is not supported");
  RefuseInputs(node, {6}, "a partially filled past is not supported");
  if (node.Int("do_rotary", 0) != 0) node.Unsupported("do_rotary", "do_rotary=1");
  node.Ignore({"rotary_embedding_dim"});
  DType dtype = node.dtype();
  Value* weights = Needed(node, 1, {2}, "weights");
  Value* all = Binary(node, "matmul", Needed(node, 0, {3}, "input"), weights);
  if (Ranked(node, 2, {1}, "bias")) all = PlusLast(node, all, node.In(2));
  const Dim& width = all->type.shape.back();
  if (!width.is_constant()) node.Fail("dynamic-shape", "the width of weights must be constant");
  std::vector<int64_t> sizes =
      node.Ints("qkv_hidden_sizes", std::vector<int64_t>(3, width.constant() / 3));
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != width.constant())
    node.Fail("bad-attribute", "qkv_hidden_sizes [{}] do not add up to {}, the width of weights",
              fmt::join(sizes, ", "), width.constant());
  std::vector<Value*> qkv = Parts(node, all, sizes, 2);
  networks::AttentionParts parts{networks::Heads(node, qkv[0], heads),
                                 networks::Heads(node, qkv[1], heads),
                                 networks::Heads(node, qkv[2], heads)};
  if (Value* past = Past(node, 4, 5, "past")) {
    parts.k = Concat(node, {Element(node, past, 0, 0), parts.k}, 2);
    parts.v = Concat(node, {Element(node, past, 1, 0), parts.v}, 2);
  }
  if (node.HasOutput(1))
    node.Set(1,
             node.Make("stack", {{"values", std::vector<Value*>{parts.k, parts.v}}, {"axis", 0}}),
             dtype);
  SetBiases(node, 3, parts);
  node.Set(0, networks::Joined(node, Attend(node, parts).y), dtype);
}

// Inputs: query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value.
void MultiHeadAttention(Node& node) {
  int64_t heads = node.Int("num_heads");
  RefuseInputs(node, {8, 9}, "a partially filled past is not supported");
  DType dtype = node.dtype();
  Value *q = Needed(node, 0, {3, 4, 5}, "query"), *k = Ranked(node, 1, {3, 4, 5}, "key"),
        *v = Ranked(node, 2, {3, 4}, "value"), *bias = Ranked(node, 3, {1}, "bias");
  networks::AttentionParts parts{};
  if (q->type.rank() == 5) {  // [B, S, N, 3, H]
    auto part = [&](int64_t i) { return Transposed(node, Element(node, q, i, 3), {0, 2, 1, 3}); };
    parts.q = part(0);
    parts.k = part(1);
    parts.v = part(2);
    if (bias) node.Unsupported("", "a bias of packed queries, keys and values is not supported");
  } else {
    if (!k) node.Fail("bad-graph", "key is missing");
    std::vector<Value*> biases(3, nullptr);
    if (bias) {
      if (k->type.rank() == 5)
        node.Unsupported("", "a bias of packed keys and values is not supported");
      const Dim &hidden = q->type.shape[q->type.rank() == 3 ? 2 : 3], &all = bias->type.shape[0];
      if (!hidden.is_constant() || !all.is_constant())
        node.Fail("dynamic-shape", "the width of query and the length of bias must be constant");
      int64_t width = q->type.rank() == 3 ? hidden.constant() : hidden.constant() * heads;
      int64_t rest = all.constant() - 2 * width;
      if (rest < 1)
        node.Fail("bad-operand", "bias has {} elements, expected more than {}", all.constant(),
                  2 * width);
      biases = Parts(node, bias, {width, width, rest}, 0);
    }
    // As in onnxruntime, the bias is not added to inputs that already have a dimension of heads.
    auto heads_of = [&](Value* x, Value* added) {
      if (x->type.rank() == 4) return x;
      return networks::Heads(node, added ? Binary(node, "add", x, added) : x, heads);
    };
    parts.q = heads_of(q, biases[0]);
    if (k->type.rank() == 5) {  // [B, T, N, 2, H]
      parts.k = Transposed(node, Element(node, k, 0, 3), {0, 2, 1, 3});
      parts.v = Transposed(node, Element(node, k, 1, 3), {0, 2, 1, 3});
    } else {
      if (!v) node.Fail("bad-graph", "value is missing");
      parts.k = heads_of(k, biases[1]);
      parts.v = heads_of(v, biases[2]);
    }
  }
  if (node.HasInput(6) != node.HasInput(7))
    node.Fail("bad-graph", "past_key and past_value must be given together");
  if (Value* key = Past(node, 6, 4, "past_key"), *value = Past(node, 7, 4, "past_value");
      key && value) {
    parts.k = Concat(node, {key, parts.k}, 2);
    parts.v = Concat(node, {value, parts.v}, 2);
  }
  node.Set(1, parts.k, dtype);
  node.Set(2, parts.v, dtype);
  SetBiases(node, 4, parts);
  networks::Attended attended = Attend(node, parts);
  node.Set(0, networks::Joined(node, attended.y), dtype);
  node.Set(3, attended.scores, dtype);
}

// Inputs: input [B, S, N * H] or [B, N, S, H], position_ids [1] (the first position) or [B, S],
// cos_cache, sin_cache.
void RotaryEmbedding(Node& node) {
  Value *x = Needed(node, 0, {3, 4}, "input"), *ids = Needed(node, 1, {0, 1, 2}, "position_ids"),
        *cosine = Needed(node, 2, {2}, "cos_cache");
  Needed(node, 3, {2}, "sin_cache");
  if (node.Int("is_packed_batching", 0) != 0)
    node.Unsupported("is_packed_batching", "is_packed_batching=1");
  double scale = node.Float("scale", 1.0);
  if (scale != 1) node.Unsupported("scale", "scale={}", scale);
  int64_t heads = node.Int("num_heads", 0), part = node.Int("rotary_embedding_dim", 0);
  bool flat = x->type.rank() == 3;
  if (!cosine->type.shape.back().is_constant())
    node.Fail("dynamic-shape", "the width of cos_cache must be constant");
  if (flat) {
    const Dim& width = x->type.shape[2];
    if (part == 0) heads = 0;  // the head size follows from the cache
    if (heads == 0 && width.is_constant())
      heads = width.constant() / (2 * cosine->type.shape.back().constant());
    x = networks::Heads(node, x, heads);
  }
  if (ids->type.rank() <= 1) {
    if (ids->type.rank() == 1) ids = Squeezed(node, ids, {0});
    ids = lower::AtRunTime(node, ids, node.dtype(1));
    ids = Binary(node, "add", IndicesOf(node, x, 2), ids);
    ids = Expanded(node, ids, {0});
  } else {
    RequireEqualSize(node, x, 0, ids, 0, "batch sizes of input and position_ids");
    RequireEqualSize(node, x, 2, ids, 1, "sequence lengths of input and position_ids");
  }
  Value* sine = Rows(node, node.In(3), ids);
  cosine = Rows(node, cosine, ids);
  Value* y = networks::Rotated(node, x, cosine, sine, node.Int("interleaved", 0) != 0);
  node.SetAlike(flat ? networks::Joined(node, y) : y);
}

// The index of the last key of each row, [B], in GroupQueryAttention; null if every row has P + S
// keys.
Value* LastKeys(Node& node, Value* k, Value* past) {
  Dim keys = k->type.shape[2];
  if (past) keys = keys + past->type.shape[2];
  Tensor known = node.Known(5);
  std::vector<int64_t> lengths = known ? known.Ints() : std::vector<int64_t>();
  bool full = known &&
              std::ranges::all_of(lengths, [&](int64_t length) { return Dim(length + 1) == keys; });
  if (full) return nullptr;
  return Reshaped(node, lower::AtRunTime(node, node.In(5), node.dtype(5)), {-1});
}

// Concatenates the valid part of the past (`counts` [B] tokens per row) and the new tokens, and
// pads with zeros to [B, N, T, H]. T is P + S, or less if total_sequence_length says so; past and
// present then share one buffer of length P.
Value* Appended(Node& node, Value* past, Value* added, Value* counts) {
  Value* all = Concat(node, {past, added}, 2);
  Tensor total = node.Known(6);
  const Dim &most = past->type.shape[2], &sum = all->type.shape[2];
  if (total && most.is_constant() && sum.is_constant()) {
    int64_t length = std::max(total.Int(0), most.constant());
    if (length < sum.constant()) all = SliceOfSize(node, all, {0, 0, 0, 0}, {-1, -1, length, -1});
  }
  Value* begin = Expanded(node, counts, {1});
  Value* place = Binary(node, "sub", Expanded(node, IndicesOf(node, all, 2), {0}),
                        begin);  // [B, T]: index into the new tokens
  Value* old = Binary(node, "less", place, 0);
  Value* kept =
      Select(node, Expanded(node, old, {1, 3}), all, Tensor::Full(all->type.dtype, {}, 0));
  Value* wanted = Expanded(node, IndicesOf(node, added, 2), {0, 1});
  Value* taken = Binary(node, "equal", Expanded(node, place, {2}), wanted);  // [B, T, S]
  taken = Expanded(node, node.builder().Cast(taken, all->type.dtype), {1});
  return Binary(node, "add", kept, Binary(node, "matmul", taken, added));
}

// Inputs: query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache,
// sin_cache, position_ids, attention_bias, head_sink.
void GroupQueryAttention(Node& node) {
  int64_t heads = node.Int("num_heads"), key_heads = node.Int("kv_num_heads");
  if (heads < 1 || key_heads < 1 || heads % key_heads != 0)
    node.Fail("bad-attribute", "{} query heads are not divisible by {} key heads", heads,
              key_heads);
  RefuseInputs(node, {12, 13}, "a quantized past is not supported");
  RefuseInputs(node, {14, 15}, "normalization of queries and keys is not supported");
  for (std::string_view name : {"k_quant_type", "v_quant_type"})
    if (node.String(name, "NONE") != "NONE")
      node.Unsupported(name, "a quantized past is not supported");
  node.Ignore({"kv_cache_bit_width", "qk_norm_epsilon"});
  if (node.Int("sliding_window_cache", 0) != 0)
    node.Unsupported("sliding_window_cache", "a sliding window cache is not supported");
  DType dtype = node.dtype();
  Value *q = Needed(node, 0, {3}, "query"), *k = Ranked(node, 1, {3}, "key"),
        *v = Ranked(node, 2, {3}, "value");
  if (!k != !v) node.Fail("bad-graph", "key and value must be given together");
  if (!k) {
    const Dim& width = q->type.shape[2];
    if (!width.is_constant() || width.constant() % (heads + 2 * key_heads) != 0)
      node.Fail("bad-operand",
                "packed query is {}, whose width does not match the numbers of heads",
                q->type.ToString());
    int64_t size = width.constant() / (heads + 2 * key_heads);
    std::vector<Value*> parts =
        Parts(node, q, {heads * size, key_heads * size, key_heads * size}, 2);
    q = parts[0];
    k = parts[1];
    v = parts[2];
  }
  networks::AttentionParts parts{networks::Heads(node, q, heads),
                                 networks::Heads(node, k, key_heads),
                                 networks::Heads(node, v, key_heads)};
  if (node.HasInput(3) != node.HasInput(4))
    node.Fail("bad-graph", "past_key and past_value must be given together");
  Value *past = Past(node, 3, 4, "past_key"), *past_values = Past(node, 4, 4, "past_value");
  if (!past != !past_values)
    node.Fail("bad-operand", "past_key is {}, but past_value is {}", node.In(3)->type.ToString(),
              node.In(4)->type.ToString());
  Value* last = LastKeys(node, parts.k, past);
  Value *positions = nullptr,
        *counts = nullptr;  // positions of queries [S] or [B, S]; lengths of the past [B]
  if (!last || !past) {
    Value* all = past ? Concat(node, {past, parts.k}, 2) : parts.k;
    positions = networks::Positions(node, parts.q, all);
  } else {
    Value* first = Binary(node, "add", Binary(node, "sub", last, DimOf(node, parts.q, 2)), 1);
    counts = Binary(node, "maximum", first, 0);
    positions = Expanded(node, IndicesOf(node, parts.q, 2), {0});
    positions = Binary(node, "add", Expanded(node, counts, {1}), positions);
  }
  if (node.Int("do_rotary", 0) != 0) {
    Value* ids = node.HasInput(9) ? lower::AtRunTime(node, node.In(9), node.dtype(9)) : positions;
    if (ids->type.rank() == 1) ids = Expanded(node, ids, {0});
    if (node.HasInput(9) && !past) {  // for a first prompt, only its first position is used
      ids = Element(node, Element(node, ids, 0, 0), 0, 0);
      ids = Binary(node, "add", Expanded(node, IndicesOf(node, parts.q, 2), {0}), ids);
    }
    bool interleaved = node.Int("rotary_interleaved", 0) != 0;
    Value *cosine = Rows(node, Needed(node, 7, {2}, "cos_cache"), ids),
          *sine = Rows(node, Needed(node, 8, {2}, "sin_cache"), ids);
    parts.q = networks::Rotated(node, parts.q, cosine, sine, interleaved);
    parts.k = networks::Rotated(node, parts.k, cosine, sine, interleaved);
  } else {
    node.Ignore({"rotary_interleaved"});
  }
  if (past) {
    auto appended = [&](Value* old, Value* added) {
      return counts ? Appended(node, old, added, counts) : Concat(node, {old, added}, 2);
    };
    parts.k = appended(past, parts.k);
    parts.v = appended(past_values, parts.v);
  }
  node.Set(1, parts.k, dtype);
  node.Set(2, parts.v, dtype);
  parts.k = networks::Repeated(node, parts.k, heads / key_heads);
  parts.v = networks::Repeated(node, parts.v, heads / key_heads);
  parts.scale = Scale(node, parts.q);
  parts.softcap = node.Float("softcap", 0.0);
  DType type = parts.q->type.dtype;
  int64_t window = node.Int("local_window_size", -1);
  if (window == 0)
    node.Unsupported("local_window_size", "local_window_size=0 leaves no keys to attend to");
  bool causal = node.Int("causal", 1) != 0;
  if (causal)
    parts.biases.push_back(networks::CausalBias(node, positions, parts.k, window, kLowest, type));
  if (last && !(causal && parts.q->type.shape[2] == Dim(1))) {
    // Masks out the keys after the last key of each row.
    Value* behind = Expanded(node, last, {1});
    behind = Binary(node, "greater", Expanded(node, IndicesOf(node, parts.k, 2), {0}), behind);
    parts.biases.push_back(
        Expanded(node, networks::Filled(node, behind, kLowest / 2, type), {1, 2}));
  }
  if (Value* bias = Ranked(node, 10, {4}, "attention_bias")) parts.biases.push_back(bias);
  if (Value* sink = node.Optional(11))
    parts.sink = Reshaped(node, sink, {1, heads, 1, 1});
  else if (node.Int("smooth_softmax", 0) == 1)
    parts.sink = node.Const(Tensor::Full(type, {1, 1, 1, 1}, 0));
  networks::Attended attended = Attend(node, parts);
  node.Set(0, networks::Joined(node, attended.y), dtype);
  int64_t kind = node.Int("qk_output", 0);
  if (kind == 1 || kind == 2) node.Set(3, kind == 1 ? attended.scores : attended.shares, dtype);
}

constexpr char kFull[] =
    "all rows of the past have the same length, and past and present do not share a buffer";

constexpr NodeRow kMicrosoftAttentionRows[] = {
    Microsoft("Attention", Attention).When(kFull),
    Microsoft("GroupQueryAttention", GroupQueryAttention)
        .When("if past and present share a buffer, total_sequence_length is constant"),
    Microsoft("MultiHeadAttention", MultiHeadAttention).When(kFull),
    Microsoft("RotaryEmbedding", RotaryEmbedding),
};

}  // namespace

std::span<const NodeRow> MicrosoftAttentionRows() { return kMicrosoftAttentionRows; }

}  // namespace mlc::onnx
