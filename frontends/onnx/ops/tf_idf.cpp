// TfIdfVectorizer: counts how often the n-grams of a constant pool occur in sequences of integers.
#include <algorithm>

#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

struct Pool {
  int64_t length = 0;          // number of items in each n-gram
  std::vector<int64_t> items;  // the n-grams, concatenated
  int64_t first = 0;           // index of the first n-gram in the whole pool
  int64_t count() const { return static_cast<int64_t>(items.size()) / length; }
};

// The pool lists all unigrams, then all bigrams and so on; ngram_counts gives the start of each
// group.
std::vector<Pool> Pools(Node& node) {
  std::vector<int64_t> items = node.Ints("pool_int64s"), starts = node.Ints("ngram_counts");
  std::vector<Pool> pools;
  int64_t first = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t begin = starts[i], size = static_cast<int64_t>(items.size());
    int64_t end = i + 1 < starts.size() ? starts[i + 1] : size;
    int64_t length = static_cast<int64_t>(i) + 1;
    if (begin < 0 || end < begin || end > size || (end - begin) % length != 0)
      node.Fail("bad-attribute", "ngram_counts does not match the pool");
    if (begin == end) continue;
    pools.push_back({length, {items.begin() + begin, items.begin() + end}, first});
    first += pools.back().count();
  }
  return pools;
}

// Counts the occurrences of each n-gram whose items are `step` positions apart: [b, n-grams],
// int32. Null if the sequences x [b, n] are too short.
Value* Occurrences(Node& node, Value* x, int64_t n, const Pool& pool, int64_t step) {
  int64_t places = n - (pool.length - 1) * step;
  if (places < 1) return nullptr;
  Value* found = nullptr;
  for (int64_t k = 0; k < pool.length; ++k) {
    std::vector<int64_t> column;
    for (int64_t gram = 0; gram < pool.count(); ++gram)
      column.push_back(pool.items[gram * pool.length + k]);
    Value* part = SliceOfSize(node, x, {0, k * step}, {-1, places});
    part = Expanded(node, part, {2});
    Value* equal = Binary(node, "equal", part, Ints(column));
    found = found ? Binary(node, "logical_and", found, equal) : equal;
  }
  return Reduced(node, "reduce_sum", node.builder().Cast(found, DType::kInt32), {1}, false);
}

void TfIdfVectorizer(Node& node) {
  int64_t shortest = node.Int("min_gram_length"), longest = node.Int("max_gram_length"),
          skips = node.Int("max_skip_count");
  std::string mode = node.String("mode");
  std::vector<int64_t> columns = node.Ints("ngram_indexes");
  if (node.Has("pool_strings") || node.dtype() == DType::kString)
    node.Fail("unsupported-dtype", "n-grams of strings are not supported");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    node.Unsupported("mode", "unknown mode \"{}\"", mode);
  std::vector<Pool> pools = Pools(node);
  int64_t grams = pools.empty() ? 0 : pools.back().first + pools.back().count();
  if (columns.empty() || grams != static_cast<int64_t>(columns.size()))
    node.Fail("bad-attribute", "ngram_indexes has {} elements for {} n-grams", columns.size(),
              grams);
  std::vector<double> weights = node.Floats("weights", std::vector<double>(grams, 1.0));
  if (static_cast<int64_t>(weights.size()) != grams)
    node.Fail("bad-attribute", "weights has {} elements for {} n-grams", weights.size(), grams);
  constexpr int64_t kSane = 1 << 24;
  int64_t width = *std::ranges::max_element(columns) + 1;
  if (*std::ranges::min_element(columns) < 0 || width > kSane)
    node.Fail("bad-attribute", "an element of ngram_indexes is out of range");

  bool alone = node.rank() == 1;
  if (!alone && node.rank() != 2)
    node.Fail("bad-operand", "expected an input of shape [n] or [b, n]");
  Value* x = lower::AtRunTime(node, node.In(0), node.dtype());
  if (alone) x = Expanded(node, x, {0});
  if (!x->type.shape[1].is_constant())
    node.Fail("dynamic-shape", "the length of the sequences must be constant");
  int64_t n = x->type.shape[1].constant();

  // The counts of the selected n-grams followed by a 0, and for each output column its index in
  // them.
  std::vector<Value*> counts;
  std::vector<int64_t> source(width, -1);
  std::vector<double> weight(width, 1.0);
  int64_t found = 0;
  for (const Pool& pool : pools) {
    if (pool.length < shortest || pool.length > longest) continue;
    Value* sum = nullptr;
    // Skips do not apply to unigrams, which have a single item.
    for (int64_t skip = 0; skip <= (pool.length == 1 ? 0 : std::min(skips, n)); ++skip)
      if (Value* one = Occurrences(node, x, n, pool, skip + 1))
        sum = sum ? Binary(node, "add", sum, one) : one;
    if (!sum) continue;
    counts.push_back(sum);
    for (int64_t gram = 0; gram < pool.count(); ++gram, ++found) {
      source[columns[pool.first + gram]] = found;
      weight[columns[pool.first + gram]] = weights[pool.first + gram];
    }
  }
  if (counts.empty()) node.Fail("bad-attribute", "the sequences are too short for any n-gram");
  Value* none = Reduced(node, "reduce_sum", Binary(node, "mul", x, 0), {1}, true);
  counts.push_back(none);
  for (int64_t& place : source)
    if (place < 0) place = found;
  Value* all = Concat(node, counts, 1);
  Value* y = node.Make("gather", {{"x", all}, {"indices", Ints(source)}, {"axis", 1}});
  if (mode == "IDF") y = Binary(node, "minimum", y, 1);
  y = node.builder().Cast(y, DType::kFp32);
  if (mode != "TF") y = Binary(node, "mul", y, Tensor::Vector(weight).Cast(DType::kFp32));
  if (alone) y = Squeezed(node, y, {0});
  node.Set(y, DType::kFp32);
}

constexpr NodeRow kTfIdfRows[] = {
    NodeRow("TfIdfVectorizer", TfIdfVectorizer, 9)
        .When("X is an integer tensor with a constant last dimension"),
};

}  // namespace

std::span<const NodeRow> TfIdfRows() { return kTfIdfRows; }

}  // namespace mlc::onnx
