// Unique: the distinct slices of a tensor along an axis, or its distinct elements.
//
// Constants are sorted. At run time every slice is compared with every other; how many differ only
// the run time knows.
#include <map>

#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/sizes.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// The distinct slices of a constant along its outermost dimension.
struct Distinct {
  std::vector<int64_t> first, inverse, counts;  // in the order of the results
};

Distinct DistinctRows(const Tensor& rows, bool sorted) {
  int64_t count = rows.dims()[0], width = count ? rows.size() / count : 0;
  std::vector<std::vector<double>> keys(count);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < width; ++k) keys[i].push_back(rows.Double(i * width + k));
  std::map<std::vector<double>, int64_t> places;  // sorted; place in the results
  Distinct distinct;
  for (int64_t i = 0; i < count; ++i) {
    auto [it, added] = places.emplace(keys[i], static_cast<int64_t>(distinct.first.size()));
    if (added) distinct.first.push_back(i);
  }
  if (sorted) {
    std::vector<int64_t> first;
    for (auto& [key, place] : places) {
      first.push_back(distinct.first[place]);
      place = static_cast<int64_t>(first.size()) - 1;
    }
    distinct.first = first;
  }
  distinct.counts.resize(distinct.first.size());
  for (int64_t i = 0; i < count; ++i) {
    distinct.inverse.push_back(places[keys[i]]);
    ++distinct.counts[distinct.inverse.back()];
  }
  return distinct;
}

void UniqueConstant(Node& node, Tensor x) {
  if (RuntimeType(x.dtype()) == DType::kNone)
    node.Fail("unsupported-dtype", fmt::format("{} elements", Name(x.dtype())));
  constexpr int64_t kExact = int64_t{1} << 53;  // compared as doubles
  if (IsInteger(x.dtype()) && Bits(x.dtype()) == 64)
    for (int64_t value : x.Ints())
      if (value > kExact || value < -kExact)
        node.Fail("unsupported-dtype", fmt::format("{} among the elements", value));
  int axis = 0;
  if (node.Has("axis"))
    axis = node.Axis(node.Int("axis"), node.rank());
  else
    x = x.Reshaped({x.size()});
  std::vector<int> outermost = {axis};
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) outermost.push_back(i);
  Distinct distinct = DistinctRows(x.Transposed(outermost), node.Int("sorted", 1) != 0);
  node.Set(
      0,
      node.Make("gather", {{"x", x}, {"indices", Tensor::Vector(distinct.first)}, {"axis", axis}}),
      node.dtype());
  node.Set(1, node.Const(Tensor::Vector(distinct.first)), DType::kInt64);
  node.Set(2, node.Const(Tensor::Vector(distinct.inverse)), DType::kInt64);
  node.Set(3, node.Const(Tensor::Vector(distinct.counts)), DType::kInt64);
}

// Comparisons of all slices of x with each other, bool [n, n]: [i, j] is about i and j.
struct Comparisons {
  Value *equal, *greater;  // i > j, in the order of the first elements that differ
};

Comparisons CompareAll(Node& node, Value* rows, int64_t width) {
  auto at = [&](Value* x, int64_t axis) {
    return node.Make("expand_dims", {{"x", x}, {"axes", Ints({axis})}});
  };
  Value *left = at(rows, 1), *right = at(rows, 0);
  auto flat = [&](Value* x) { return node.Make("squeeze", {{"x", x}, {"axes", Ints({2})}}); };
  if (width == 1)
    return {flat(Binary(node, "equal", left, right)), flat(Binary(node, "greater", left, right))};
  Value* differ = node.builder().Cast(Binary(node, "not_equal", left, right), DType::kInt32);
  Value* greater = node.builder().Cast(Binary(node, "greater", left, right), DType::kInt32);
  Value* first = node.Make("reduce_argmax", {{"x", differ}, {"axis", 2}, {"keep_dims", true}});
  Value* decides =
      flat(node.Make("gather_along_axis", {{"x", greater}, {"indices", first}, {"axis", 2}}));
  Value* most = node.Make("reduce_max", {{"x", differ}, {"axes", Ints({2})}, {"keep_dims", false}});
  return {Binary(node, "equal", most, 0), Binary(node, "greater", decides, 0)};
}

void UniqueAtRunTime(Node& node) {
  Value* x = node.In(0);
  if (!IsStatic(x->type.shape))
    node.Fail("dynamic-shape", fmt::format("X is {}; its sizes must be known", x->type.ToString()));
  Dims dims = StaticDims(x->type.shape);
  bool whole = !node.Has("axis"), sorted = node.Int("sorted", 1) != 0;
  int64_t total = ElementCount(dims), axis = whole ? 0 : node.Axis(node.Int("axis"), node.rank());
  int64_t n = whole ? total : dims[axis], width = n ? total / n : 0;
  constexpr int64_t kMost = 1 << 26;  // comparisons
  if (total < 1) node.Fail("empty-tensor", "X has no elements");
  if (n > kMost / total)
    node.Fail("resource-limit", fmt::format("compares {} slices with each other", n));
  if (whole) x = node.Make("reshape", {{"x", x}, {"shape", Ints({n})}});
  Value* rows = x->type.dtype == DType::kBool ? node.builder().Cast(x, DType::kInt32) : x;
  if (axis > 0) {
    std::vector<int64_t> perm = {axis};
    for (int64_t i = 0; i < node.rank(); ++i)
      if (i != axis) perm.push_back(i);
    rows = node.Make("transpose", {{"x", rows}, {"perm", Ints(perm)}});
  }
  rows = node.Make("reshape", {{"x", rows}, {"shape", Ints({n, width})}});

  auto gather = [&](Value* from, Value* indices, int64_t along) {
    return node.Make("gather", {{"x", from}, {"indices", indices}, {"axis", along}});
  };
  auto count = [&](Value* flags) {  // of each row
    return node.Make("reduce_sum", {{"x", node.builder().Cast(flags, DType::kInt32)},
                                    {"axes", Ints({1})},
                                    {"keep_dims", false}});
  };
  Comparisons all = CompareAll(node, rows, width);
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < n; ++i) numbers.push_back(i);
  Value* first = node.Make(
      "reduce_argmax",
      {{"x", node.builder().Cast(all.equal, DType::kInt32)}, {"axis", 1}, {"keep_dims", false}});
  Value* is_first = Binary(node, "equal", first, Ints(numbers));
  Value* ones = node.builder().Cast(is_first, DType::kInt32);
  Value* places =
      node.Make("squeeze", {{"x", node.Make("non_zero", {{"x", ones}})}, {"axes", Ints({1})}});
  Value* inverse;
  if (sorted) {  // as many as there are lesser ones
    inverse = count(Binary(node, "logical_and", all.greater, is_first));
    Value* order =
        node.Make("argsort", {{"x", gather(inverse, places, 0)}, {"axis", 0}, {"ascending", true}});
    places = gather(places, order, 0);
  } else {
    Value* before = node.Make("cumsum", {{"x", ones}, {"axis", 0}, {"exclusive", true}});
    inverse = gather(before, first, 0);
  }
  node.Set(0, gather(x, places, axis), node.dtype());
  node.Set(1, places, DType::kInt64);
  node.Set(2, inverse, DType::kInt64);
  node.Set(3, gather(count(all.equal), places, 0), DType::kInt64);
}

void Unique(Node& node) {
  if (Tensor x = node.ConstantOrNone(0)) return UniqueConstant(node, x);
  UniqueAtRunTime(node);
}

constexpr NodeRow kRows[] = {
    NodeRow("Unique", Unique, 11)
        .When("at run time: known sizes, as many comparisons as fit memory"),
};

}  // namespace

std::span<const NodeRow> UniqueRows() { return kRows; }

}  // namespace mlc::onnx
