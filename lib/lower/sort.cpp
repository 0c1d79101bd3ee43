#include "lib/lower/sort.h"

#include <map>

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::lower {

namespace {

// The distinct slices of a constant along its outermost dimension.
struct DistinctRows {
  std::vector<int64_t> first, inverse, counts;  // in result order
};

DistinctRows RowsOf(const Tensor& rows, bool sorted) {
  int64_t count = rows.dims()[0], width = count ? rows.size() / count : 0;
  std::vector<std::vector<double>> keys(count);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < width; ++k) keys[i].push_back(rows.Double(i * width + k));
  std::map<std::vector<double>, int64_t> places;  // sorted; maps to the index in the results
  DistinctRows distinct;
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

Distinct DistinctConstants(Builder& b, Tensor x, std::optional<int> along, bool sorted) {
  if (RuntimeType(x.dtype()) == DType::kNone)
    throw Error("unsupported-dtype", "elements of type {} are not supported", Name(x.dtype()));
  constexpr int64_t kExact = int64_t{1} << 53;  // compared as doubles
  if (IsInteger(x.dtype()) && Bits(x.dtype()) == 64)
    for (int64_t value : x.Ints())
      if (value > kExact || value < -kExact)
        throw Error("unsupported-dtype", "the magnitude of element {} exceeds 2^53", value);
  int axis = along.value_or(0);
  if (!along) x = x.Reshaped({x.size()});
  std::vector<int> outermost = {axis};
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) outermost.push_back(i);
  DistinctRows rows = RowsOf(x.Transposed(outermost), sorted);
  Value* values =
      b.Make("gather", {{"x", x}, {"indices", Tensor::Vector(rows.first)}, {"axis", axis}});
  return {values, b.Const(Tensor::Vector(rows.first)), b.Const(Tensor::Vector(rows.inverse)),
          b.Const(Tensor::Vector(rows.counts))};
}

// Pairwise comparisons of all slices of x, bool [n, n]: element [i, j] compares slices i and j.
struct Comparisons {
  Value *equal, *greater;  // i > j, lexicographically
};

Comparisons CompareAll(Builder& b, Value* rows, int64_t width) {
  auto at = [&](Value* x, int64_t axis) { return Expanded(b, x, {axis}); };
  Value *left = at(rows, 1), *right = at(rows, 0);
  auto flat = [&](Value* x) { return Squeezed(b, x, {2}); };
  if (width == 1)
    return {flat(Binary(b, "equal", left, right)), flat(Binary(b, "greater", left, right))};
  Value* differ = b.Cast(Binary(b, "not_equal", left, right), DType::kInt32);
  Value* greater = b.Cast(Binary(b, "greater", left, right), DType::kInt32);
  Value* first = b.Make("reduce_argmax", {{"x", differ}, {"axis", 2}, {"keep_dims", true}});
  Value* decides =
      flat(b.Make("gather_along_axis", {{"x", greater}, {"indices", first}, {"axis", 2}}));
  Value* most = Reduced(b, "reduce_max", differ, {2}, false);
  return {Binary(b, "equal", most, 0), Binary(b, "greater", decides, 0)};
}

}  // namespace

Distinct DistinctSlices(Builder& b, Value* x, std::optional<int> along, bool sorted) {
  if (x->is_constant()) return DistinctConstants(b, x->constant(), along, sorted);
  if (!IsStatic(x->type.shape))
    throw Error("dynamic-shape", "X is {}, expected a static shape", x->type.ToString());
  int rank = x->type.rank();
  Dims dims = StaticDims(x->type.shape);
  int64_t total = ElementCount(dims), axis = along.value_or(0);
  int64_t n = !along ? total : dims[axis], width = n ? total / n : 0;
  constexpr int64_t kMost = 1 << 26;  // comparisons
  if (total < 1) throw Error("empty-tensor", "X has no elements").Expected("at least one element");
  if (n > kMost / total)
    throw Error("resource-limit", "comparing {} slices pairwise takes too much memory", n);
  if (!along) x = WithShape(b, x, {n});
  Value* rows = x->type.dtype == DType::kBool ? b.Cast(x, DType::kInt32) : x;
  if (axis > 0) {
    std::vector<int64_t> perm = {axis};
    for (int64_t i = 0; i < rank; ++i)
      if (i != axis) perm.push_back(i);
    rows = Transposed(b, rows, perm);
  }
  rows = WithShape(b, rows, {n, width});

  auto gather = [&](Value* from, Value* indices, int64_t dim) {
    return b.Make("gather", {{"x", from}, {"indices", indices}, {"axis", dim}});
  };
  auto count = [&](Value* flags) {  // row sums
    return Reduced(b, "reduce_sum", b.Cast(flags, DType::kInt32), {1}, false);
  };
  Comparisons all = CompareAll(b, rows, width);
  Value* first =
      b.Make("reduce_argmax",
             {{"x", b.Cast(all.equal, DType::kInt32)}, {"axis", 1}, {"keep_dims", false}});
  Value* is_first = Binary(b, "equal", first, Ints(Consecutive(0, n)));
  Value* ones = b.Cast(is_first, DType::kInt32);
  Value* places = Squeezed(b, b.Make("non_zero", {{"x", ones}}), {1});
  Value* inverse;
  if (sorted) {  // the number of smaller ones
    inverse = count(Binary(b, "logical_and", all.greater, is_first));
    Value* order =
        b.Make("argsort", {{"x", gather(inverse, places, 0)}, {"axis", 0}, {"ascending", true}});
    places = gather(places, order, 0);
  } else {
    Value* before = b.Make("cumsum", {{"x", ones}, {"axis", 0}, {"exclusive", true}});
    inverse = gather(before, first, 0);
  }
  return {gather(x, places, axis), places, inverse, gather(count(all.equal), places, 0)};
}

Value* FirstOfOrder(Builder& b, Value* x, int axis, Value* k, bool largest) {
  int rank = x->type.rank();
  Value* order = b.Make("argsort", {{"x", x}, {"axis", axis}, {"ascending", !largest}});
  Sizes end(b);
  for (int d = 0; d < rank; ++d)
    if (d == axis)
      end.Add(k, 0);
    else
      end.Add(0);
  std::vector<bool> all(rank, true), but_axis(rank, true);
  but_axis[axis] = false;
  return b.Make("slice_by_index", {{"x", order},
                                   {"begin", Ints(std::vector<int64_t>(rank))},
                                   {"end", end.Make()},
                                   {"begin_mask", Tensor::Vector(all)},
                                   {"end_mask", Tensor::Vector(but_axis)}});
}

}  // namespace mlc::lower
