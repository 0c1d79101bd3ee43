// ReverseSequence.
#include "frontends/onnx/row.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

void ReverseSequence(Node& node) {
  Value *x = node.In(0), *lengths = node.In(1);
  if (!lengths->is_constant()) x = lower::AtRunTime(node, x, node.dtype());
  int64_t batch = node.Int("batch_axis", 1), time = node.Int("time_axis", 0);
  node.SetAlike(node.Make("reverse_sequence", {{"x", x},
                                               {"lengths", lengths},
                                               {"seq_axis", node.Axis(time, node.rank())},
                                               {"batch_axis", node.Axis(batch, node.rank())}}));
}

constexpr NodeRow kReverseSequenceRows[] = {
    NodeRow("ReverseSequence", ReverseSequence, 10).Direct(),
};

}  // namespace

std::span<const NodeRow> ReverseSequenceRows() { return kReverseSequenceRows; }

}  // namespace mlc::onnx
