#include <algorithm>
#include <unordered_map>

#include "frontends/onnx/onnx.h"
#include "frontends/onnx/row.h"

namespace mlc {

namespace onnx {

std::span<const Row* const> AllRows() {
  static const std::vector<const Row*> rows = [] {
    std::vector<const Row*> all;
    for (std::span<const Row> (*family)() : {ActivationRows,
                                             AttentionRows,
                                             BitCastRows,
                                             BitsRows,
                                             ControlRows,
                                             ConvolutionRows,
                                             ElementwiseRows,
                                             EliminationRows,
                                             GatherRows,
                                             HostRows,
                                             ImageRows,
                                             IntegerRows,
                                             LinearRows,
                                             LinearAttentionRows,
                                             LoopRows,
                                             LossRows,
                                             MicrosoftRows,
                                             MicrosoftAttentionRows,
                                             MicrosoftQuantizedRows,
                                             NBitsRows,
                                             NgramRows,
                                             NormalizationRows,
                                             PadRows,
                                             PoolRows,
                                             QuantizedRows,
                                             RandomRows,
                                             RecurrentRows,
                                             ReductionRows,
                                             SamplingRows,
                                             ScatterRows,
                                             SelectionRows,
                                             SequenceRows,
                                             ShapeRows,
                                             SignalRows,
                                             SliceRows,
                                             SpaceRows,
                                             TriangleRows,
                                             UniqueRows})
      for (const Row& row : family()) all.push_back(&row);
    std::sort(all.begin(), all.end(), [](const Row* a, const Row* b) {
      return std::tie(a->domain, a->name, a->since) < std::tie(b->domain, b->name, b->since);
    });
    return all;
  }();
  return rows;
}

const Row* FindRow(std::string_view domain, std::string_view name, int opset) {
  static const std::unordered_multimap<std::string_view, const Row*> by_name = [] {
    std::unordered_multimap<std::string_view, const Row*> map;
    for (const Row* row : AllRows()) map.emplace(row->name, row);
    return map;
  }();
  auto [begin, end] = by_name.equal_range(name);
  for (auto it = begin; it != end; ++it) {
    const Row& row = *it->second;
    if (row.domain == domain && opset >= row.since && (row.until == 0 || opset <= row.until))
      return &row;
  }
  return nullptr;
}

}  // namespace onnx

std::vector<OnnxOperator> OnnxOperators() {
  constexpr std::string_view kKinds[] = {"direct", "decomposed", "folded", "conditional",
                                         "impossible"};
  std::vector<OnnxOperator> operators;
  for (const onnx::Row* row : onnx::AllRows())
    operators.push_back({row->domain, row->name, row->since, row->until,
                         kKinds[static_cast<int>(row->kind)], row->condition});
  return operators;
}

}  // namespace mlc
