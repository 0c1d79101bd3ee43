#include <algorithm>
#include <unordered_map>

#include "frontends/onnx/onnx.h"
#include "frontends/onnx/row.h"

namespace mlc::onnx {

std::span<const NodeRow* const> AllRows() {
  static const std::vector<const NodeRow*> rows = [] {
    std::vector<const NodeRow*> all;
    for (std::span<const NodeRow> (*family)() : {ActivationRows,
                                                 AttentionRows,
                                                 BitsRows,
                                                 ConstantRows,
                                                 ConvolutionRows,
                                                 CumulativeRows,
                                                 DepthToSpaceRows,
                                                 DeterminantRows,
                                                 ElementwiseRows,
                                                 GatherRows,
                                                 GridSampleRows,
                                                 IfRows,
                                                 IntegerProductRows,
                                                 LinearAttentionRows,
                                                 LoopRows,
                                                 LossRows,
                                                 MatMulRows,
                                                 NonMaxSuppressionRows,
                                                 NonZeroRows,
                                                 NormalizationRows,
                                                 OneHotRows,
                                                 PadRows,
                                                 PoolRows,
                                                 QuantizedRows,
                                                 RandomRows,
                                                 RecurrentRows,
                                                 ReductionRows,
                                                 ResizeRows,
                                                 ReverseSequenceRows,
                                                 ScatterRows,
                                                 SequenceRows,
                                                 ShapeRows,
                                                 SignalRows,
                                                 SliceRows,
                                                 HostOnlyRows,
                                                 TfIdfRows,
                                                 TopKRows,
                                                 TriangleRows,
                                                 MicrosoftAttentionRows,
                                                 MicrosoftFusedRows,
                                                 MicrosoftQuantizedRows,
                                                 NBitsRows})
      for (const NodeRow& row : family()) all.push_back(&row);
    std::ranges::sort(all, [](const NodeRow* a, const NodeRow* b) {
      return std::tie(a->domain, a->name, a->since) < std::tie(b->domain, b->name, b->since);
    });
    return all;
  }();
  return rows;
}

const NodeRow* FindRow(std::string_view domain, std::string_view name, int opset) {
  static const std::unordered_multimap<std::string_view, const NodeRow*> by_name = [] {
    std::unordered_multimap<std::string_view, const NodeRow*> map;
    for (const NodeRow* row : AllRows()) map.emplace(row->name, row);
    return map;
  }();
  auto [begin, end] = by_name.equal_range(name);
  for (auto it = begin; it != end; ++it) {
    const NodeRow& row = *it->second;
    if (row.domain == domain && opset >= row.since && (row.until == 0 || opset <= row.until))
      return &row;
  }
  return nullptr;
}

std::vector<OnnxOperator> OnnxOperators() {
  constexpr std::string_view kKinds[] = {"direct", "decomposed", "folded", "conditional",
                                         "impossible"};
  std::vector<OnnxOperator> operators;
  for (const NodeRow* row : AllRows())
    operators.push_back({row->domain, row->name, row->since, row->until,
                         kKinds[static_cast<int>(row->kind)], row->condition});
  return operators;
}

}  // namespace mlc::onnx
