#include "lib/lower/scatter.h"

#include "lib/ir/arithmetic.h"
#include "lib/lower/indices.h"

namespace mlc::lower {

namespace {

Value* Scatter(Builder& b, std::string_view op, const Scattered& s, Builder::Args args = {}) {
  args.insert(args.end(),
              {{"mode", s.mode}, {"data", s.data}, {"indices", s.indices}, {"updates", s.updates}});
  return CountingFromEnd(b.Make(op, std::move(args)));
}

// Scatters by flat indices, because index vectors of five-dimensional data would have six
// dimensions. An index out of range becomes a flat index out of range.
Value* ScatterPlaces(Builder& b, const Scattered& s, int axis) {
  Dims data = StaticDims(s.data->type.shape), dims = StaticDims(s.indices->type.shape);
  std::vector<int64_t> places(ElementCount(dims)), strides(data.size(), 1);
  for (size_t i = data.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * data[i];
  int64_t stride = strides[axis];
  strides[axis] = 0;
  for (size_t k = 0; k < places.size(); ++k)
    for (int64_t i = static_cast<int64_t>(dims.size()) - 1, rest = k; i >= 0; rest /= dims[i--])
      places[k] += rest % dims[i] * strides[i];
  auto flat = [&](Value* x) { return WithShape(b, x, {-1}); };
  Value* indices = b.Cast(s.indices, DType::kInt32);
  int64_t size = data[axis];
  Value* turn = Binary(b, "floor_div", Binary(b, "add", indices, size), 2 * size);
  Value* along = Binary(b, "mul", Binary(b, "mod", indices, size), stride);
  Value* others = b.Const(Tensor::Of(dims, places).Cast(DType::kInt32));
  Value* inside = Binary(b, "add", along, others);
  Value* outside = b.Const(Tensor::Scalar<int32_t>(ElementCount(data)));
  Value* flat_indices = Select(b, Binary(b, "equal", turn, 0), inside, outside);
  Value* y = b.Make("scatter", {{"data", flat(s.data)},
                                {"indices", flat(flat_indices)},
                                {"updates", flat(s.updates)},
                                {"axis", 0},
                                {"mode", s.mode}});
  return WithShape(b, y, data);
}

}  // namespace

// scatter_along_axis requires indices with the sizes of the data in every dimension except `axis`.
// Smaller static indices are lowered to scatter_nd or, for data of rank 5, where its indices would
// have rank 6, to a scatter of flattened data.
Value* ScatterAlongAxis(Builder& b, Scattered s, int axis) {
  const Shape data = s.data->type.shape, indices = s.indices->type.shape;
  int rank = s.data->type.rank();
  if (s.indices->type.rank() != rank || s.updates->type.rank() != rank)
    throw Error("bad-operand", "data is {}, indices {} and updates {}", ToString(data),
                ToString(indices), ToString(s.updates->type.shape));
  bool less = false;
  for (int i = 0; i < rank; ++i) less = less || (i != axis && data[i] != indices[i]);
  if (!less || !IsStatic(indices)) return Scatter(b, "scatter_along_axis", s, {{"axis", axis}});
  if (rank == 5 && IsStatic(data)) return ScatterPlaces(b, s, axis);
  Dims dims = StaticDims(indices), column = dims;
  column.push_back(1);
  std::vector<Value*> columns;
  DType dtype = s.indices->type.dtype;
  int64_t stride = ElementCount(dims), count = stride;
  for (int i = 0; i < rank; ++i) {
    stride /= dims[i];
    if (i == axis) {
      columns.push_back(Expanded(b, s.indices, {rank}));
      continue;
    }
    std::vector<int64_t> places(count);
    for (int64_t k = 0; k < count; ++k) places[k] = k / stride % dims[i];
    columns.push_back(b.Const(Tensor::Of(column, places).Cast(dtype)));
  }
  s.indices = Concat(b, columns, rank);
  return Scatter(b, "scatter_nd", s);
}

Value* ScatterVectors(Builder& b, Scattered s) { return Scatter(b, "scatter_nd", s); }

}  // namespace mlc::lower
