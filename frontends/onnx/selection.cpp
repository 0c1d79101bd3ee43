// Greatest and least elements and where they are.
#include <algorithm>
#include <map>

#include "frontends/onnx/row.h"
#include "frontends/onnx/sizes.h"

namespace mlc::onnx {

namespace {

void TopK(Node& node) {
  int axis = node.Axis(node.Int("axis", -1), node.rank());
  int64_t k;
  if (node.opset() < 10) {
    k = node.Int("k");
  } else {
    std::vector<int64_t> values = node.ConstantInts(1, "K");
    if (values.size() != 1) node.Fail("bad-operand", "K is no single number");
    k = values[0];
  }
  bool largest = node.opset() < 11 || node.Int("largest", 1) != 0;
  node.Ignore({"sorted"});  // what promises no order may be sorted
  if (k < 1) node.Fail("bad-operand", fmt::format("K is {}", k));
  std::vector<Value*> results = node.builder().MakeAll(
      "topk", {{"x", node.In(0)}, {"k", k}, {"axis", axis}, {"ascending", !largest}});
  node.Set(0, results[0], node.dtype());
  node.Set(1, results[1], DType::kInt64);
}

// The first of equal elements; with select_last_index the last, found from behind.
void Arg(Node& node, std::string_view op) {
  int axis = node.Axis(node.Int("axis", 0), node.rank());
  bool keep = node.Int("keepdims", 1) != 0;
  bool last = node.opset() >= 12 && node.Int("select_last_index", 0) != 0;
  Value* x = node.In(0);
  if (last) x = node.Make("reverse", {{"x", x}, {"axes", Ints({axis})}});
  Value* index = node.Make(op, {{"x", x}, {"axis", axis}, {"keep_dims", keep}});
  if (last) {
    Sizes size(node);
    size.AddDim(x, axis);
    Value* count = node.Make("squeeze", {{"x", size.Make()}, {"axes", Ints({0})}});
    if (count->is_constant()) count = node.builder().Cast(count, index->type.dtype);
    Value* end = node.Make("sub", {{"x", count}, {"y", 1}});
    index = node.Make("sub", {{"x", end}, {"y", index}});
  }
  node.Set(index, DType::kInt64);
}
void ArgMax(Node& node) { Arg(node, "reduce_argmax"); }
void ArgMin(Node& node) { Arg(node, "reduce_argmin"); }

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

// The size of the result depends on the data: constants only.
void Unique(Node& node) {
  Tensor x = node.Constant(0, "X");
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

constexpr Row kRows[] = {
    Row("ArgMax", ArgMax).Direct(),
    Row("ArgMin", ArgMin).Direct(),
    Row("TopK", TopK).Direct(),
    Row("Unique", Unique, 11).Never("the result's shape depends on data; constants are folded"),
};

}  // namespace

std::span<const Row> SelectionRows() { return kRows; }

}  // namespace mlc::onnx
