// Gather, GatherElements and GatherND.
#include <algorithm>

#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"
#include "lib/lower/indices.h"

namespace mlc::onnx {

namespace {

// Returns a slice if the indices are constant and form an increasing arithmetic progression within
// the bounds of x, otherwise null.
Value* AsSlice(Node& node, Value* x, Value* indices, int axis) {
  const Dim& size = x->type.shape[axis];
  if (!indices->is_constant() || indices->type.rank() > 1) return nullptr;
  std::vector<int64_t> places = indices->constant().Ints();
  if (places.empty()) return nullptr;
  for (int64_t& place : places) {
    int64_t greatest = Greatest(node, size);
    bool inside = place >= -greatest && place < greatest;
    if (inside && size.is_constant() && place < 0) place += greatest;
    if (!inside)
      node.Fail("bad-operand", "an index is out of range for dimension {} of {}", axis,
                ToString(x->type.shape));
  }
  auto [least, most] = std::minmax_element(places.begin(), places.end());
  bool inside = RequireSize(node, size, std::max(*most + 1, -*least), INT32_MAX,
                            fmt::format("dimension {} of {} must contain the indices {} to {}",
                                        axis, ToString(x->type.shape), *least, *most));
  if (!inside && indices->type.rank() == 1) return nullptr;  // the slice would be clamped
  int64_t step = places.size() > 1 ? places[1] - places[0] : 1;
  if (step < 1 || (places.size() > 1 && places[0] < 0)) return nullptr;
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i] - places[i - 1] != step) return nullptr;
  int rank = x->type.rank();
  std::vector<int64_t> begin(rank, 0), end(rank, 0), stride(rank, 1);
  std::vector<bool> mask(rank, true), end_mask(rank, true), squeeze(rank, false);
  begin[axis] = places.front();
  end[axis] = places.back() + 1;
  stride[axis] = step;
  mask[axis] = false;
  end_mask[axis] = end[axis] == 0 || size == Dim(end[axis]);  // the slice ends at the last index
  squeeze[axis] = indices->type.rank() == 0;
  Builder::Args args = {{"x", x},
                        {"begin", Tensor::Vector(begin)},
                        {"end", Tensor::Vector(end)},
                        {"begin_mask", Tensor::Vector<bool>(mask)},
                        {"end_mask", Tensor::Vector<bool>(end_mask)}};
  if (step != 1) args.emplace_back("stride", Tensor::Vector(stride));
  if (squeeze[axis]) args.emplace_back("squeeze_mask", Tensor::Vector<bool>(squeeze));
  return node.Make("slice_by_index", std::move(args));
}

void Gather(Node& node) {
  Value *x = node.In(0), *indices = node.In(1);
  int axis = node.Axis(node.Int("axis", 0), node.rank());
  if (Value* slice = AsSlice(node, x, indices, axis)) return node.SetAlike(slice);
  if (!indices->is_constant()) x = lower::AtRunTime(node, x, node.dtype());
  node.SetAlike(lower::CountingFromEnd(
      node.Make("gather", {{"x", x}, {"indices", indices}, {"axis", axis}})));
}

// In MIL, the indices must match the data in all dimensions except the axis; in ONNX they may be
// smaller.
void GatherElements(Node& node) {
  Value *x = node.In(0), *indices = node.In(1);
  int rank = node.rank(), axis = node.Axis(node.Int("axis", 0), rank);
  if (node.rank(1) != rank)
    node.Fail("bad-operand", "data is {} and indices is {}, expected equal ranks",
              ToString(node.shape(0)), ToString(node.shape(1)));
  if (!indices->is_constant()) x = lower::AtRunTime(node, x, node.dtype());
  bool cut = false;
  Sizes sizes(node);
  for (int i = 0; i < rank; ++i) {
    bool same = i == axis || x->type.shape[i] == indices->type.shape[i];
    cut = cut || !same;
    if (same)
      sizes.Add(-1);
    else
      sizes.AddDim(indices, i);
  }
  if (cut)
    x = node.Make(
        "slice_by_size",
        {{"x", x}, {"begin", Ints(std::vector<int64_t>(rank, 0))}, {"size", sizes.Make()}});
  node.SetAlike(lower::CountingFromEnd(
      node.Make("gather_along_axis", {{"x", x}, {"indices", indices}, {"axis", axis}})));
}

void GatherNd(Node& node) {
  Value *x = node.In(0), *indices = node.In(1);
  int64_t batch = node.opset() >= 12 ? node.Int("batch_dims", 0) : 0;
  if (batch < 0 || batch >= std::min(node.rank(0), node.rank(1)))
    node.Fail("bad-attribute", "batch_dims is {}", batch);
  if (!indices->is_constant()) x = lower::AtRunTime(node, x, node.dtype());
  Builder::Args args = {{"x", x}, {"indices", indices}};
  if (batch) args.emplace_back("batch_dims", batch);
  node.SetAlike(lower::CountingFromEnd(node.Make("gather_nd", std::move(args))));
}

constexpr NodeRow kGatherRows[] = {
    NodeRow("Gather", Gather).Direct(),
    NodeRow("GatherElements", GatherElements, 11).Direct(),
    NodeRow("GatherND", GatherNd, 11).Direct(),
};

}  // namespace

std::span<const NodeRow> GatherRows() { return kGatherRows; }

}  // namespace mlc::onnx
