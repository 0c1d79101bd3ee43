#include "frontends/onnx/row.h"
#include "lib/lower/sort.h"

namespace mlc::onnx {

namespace {

// The distinct slices of a tensor along an axis, or its distinct elements.
void Unique(Node& node) {
  std::optional<int> axis;
  if (node.Has("axis")) axis = node.Axis(node.Int("axis"), node.rank());
  lower::Distinct distinct =
      lower::DistinctSlices(node, node.In(0), axis, node.Int("sorted", 1) != 0);
  node.Set(0, distinct.values, node.dtype());
  node.Set(1, distinct.first, DType::kInt64);
  node.Set(2, distinct.inverse, DType::kInt64);
  node.Set(3, distinct.counts, DType::kInt64);
}

constexpr NodeRow kRows[] = {
    NodeRow("Unique", Unique, 11)
        .When("at run time: constant sizes, and all pairwise comparisons fit into memory"),
};

}  // namespace

std::span<const NodeRow> UniqueRows() { return kRows; }

}  // namespace mlc::onnx
