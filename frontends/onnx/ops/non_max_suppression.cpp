// NonMaxSuppression.
#include <algorithm>

#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"

namespace mlc::onnx {

namespace {

// Reads a threshold or count that MIL requires to be constant; `fallback` if the input is omitted.
double Single(Node& node, int i, std::string_view operand, double fallback) {
  if (!node.HasInput(i)) return fallback;
  Tensor value = node.Constant(i, operand);
  if (value.size() != 1) node.Fail("bad-operand", "{} must be a single number", operand);
  return value.Double(0);
}

// Converts corners (y1, x1, y2, x2) of either diagonal to center and size (x, y, width, height):
// [b, n, 4].
Value* CentreSize(Node& node, Value* boxes) {
  auto corner = [&](int64_t i) { return SliceOfSize(node, boxes, {0, 0, i}, {-1, -1, 2}); };
  Value *a = corner(0), *b = corner(2);
  Value* centre = Binary(node, "mul", Binary(node, "add", a, b), 0.5);
  Value* size = node.Make("abs", {{"x", Binary(node, "sub", b, a)}});
  auto swapped = [&](Value* x) { return node.Make("reverse", {{"x", x}, {"axes", Ints({2})}}); };
  return Concat(node, std::vector<Value*>{swapped(centre), swapped(size)}, 2);
}

// Lower than every score, and representable in fp16.
constexpr double kLowestHalf = -65504;

// Appends a box of size zero with the lowest score to each group, because Core ML always selects at
// least one box.
void AddLast(Node& node, Value*& boxes, Value*& scores, int64_t groups) {
  auto behind = [&](Value* x, int64_t width, float fill) {
    Value* one = node.Const(Tensor::Full(x->type.dtype, {groups, 1, width}, fill));
    return Concat(node, std::vector<Value*>{x, one}, 1);
  };
  boxes = behind(boxes, 4, 0);
  scores = behind(scores, 1, kLowestHalf);
}

// Each class of each batch entry becomes a batch entry of MIL's operator; its results become rows
// (batch, class, box). Unused entries are -1.
void NonMaxSuppression(Node& node) {
  node.WantConstants(
      {{2, "max_output_boxes_per_class"}, {3, "iou_threshold"}, {4, "score_threshold"}});
  const Shape boxes_shape = node.shape(0), scores_shape = node.shape(1);
  auto shapes = [&] {
    return fmt::format("the shape of boxes is {} and that of scores is {}", ToString(boxes_shape),
                       ToString(scores_shape));
  };
  if (node.rank(0) != 3 || node.rank(1) != 3 || boxes_shape[2] != Dim(4))
    node.Fail("bad-operand", shapes());
  if (!scores_shape[0].is_constant() || !scores_shape[1].is_constant())
    node.Fail("dynamic-shape", shapes() + "; the numbers of batches and classes must be constant");
  int64_t batches = scores_shape[0].constant(), classes = scores_shape[1].constant();
  Dim::Range count = scores_shape[2].Bounds(node.builder().symbols());
  bool centred = node.Int("center_point_box", 0) != 0;
  double most = Single(node, 2, "max_output_boxes_per_class", 0);
  double overlap = Single(node, 3, "iou_threshold", 0);
  bool thresholded = node.HasInput(4);
  double threshold = Single(node, 4, "score_threshold", kLowestHalf);
  int64_t kept = static_cast<int64_t>(std::clamp(most, 0.0, static_cast<double>(count.high)));
  if (kept < 1 || batches < 1 || classes < 1)
    node.Fail("empty-tensor",
              "the output is empty: max_output_boxes_per_class or a dimension is 0");
  constexpr int64_t kMostBoxes = 1 << 24;
  if (kept > kMostBoxes)
    node.Fail("dynamic-shape", shapes() + "; the number of boxes must have a known upper bound");

  Value* boxes = centred ? node.In(0) : CentreSize(node, node.In(0));
  int64_t groups = batches * classes;
  if (classes > 1) {
    boxes = Expanded(node, boxes, {1});
    boxes = node.Make("tile", {{"x", boxes}, {"reps", Ints({1, classes, 1, 1})}});
    boxes = WithShape(node, boxes, {groups, -1, 4});
  }
  Value* scores = WithShape(node, node.In(1), {groups, -1, 1});
  if (count.low < 1) AddLast(node, boxes, scores, groups);
  // The form with score_threshold is used for all deployment targets; lib/passes/newer_forms.cpp
  // rewrites it for iOS17 and later, which lack this parameter. Core ML selects the best box even
  // if its score is below the threshold.
  Value* selected =
      node.builder().MakeAll("non_maximum_suppression", {{"boxes", boxes},
                                                         {"scores", scores},
                                                         {"iou_threshold", overlap},
                                                         {"score_threshold", threshold},
                                                         {"max_boxes", kept}})[2];
  Value* used = Binary(node, "greater_equal", selected, 0);
  if (thresholded || count.low < 1) {
    Value* safe = Binary(node, "maximum", selected, 0);
    Value* flat = WithShape(node, scores, {groups, -1});
    Value* score = node.Make("gather_along_axis", {{"x", flat}, {"indices", safe}, {"axis", 1}});
    Value* high = Binary(node, "greater", score, threshold);
    used = Binary(node, "logical_and", used, high);
  }
  Value* places = Places(node, node.builder().Cast(used, DType::kInt32));  // (group, index)
  std::vector<int64_t> labels;
  for (int64_t group = 0; group < groups; ++group)
    labels.insert(labels.end(), {group / classes, group % classes});
  Value* table = node.Const(Tensor::Of({groups, 2}, labels).Cast(DType::kInt32));
  Value* group =
      node.Make("slice_by_index", {{"x", places},
                                   {"begin", Ints({0, 0})},
                                   {"end", Ints({0, 1})},
                                   {"end_mask", Tensor::Vector<bool>({true, false})},
                                   {"squeeze_mask", Tensor::Vector<bool>({false, true})}});
  Value* label = node.Make("gather", {{"x", table}, {"indices", group}, {"axis", 0}});
  Value* box = node.Make("gather_nd", {{"x", selected}, {"indices", places}});
  box = Expanded(node, box, {1});
  node.Set(Concat(node, std::vector<Value*>{label, box}, 1), DType::kInt64);
}

constexpr NodeRow kNonMaxSuppressionRows[] = {
    NodeRow("NonMaxSuppression", NonMaxSuppression, 10)
        .When("max_output_boxes_per_class, the thresholds and the numbers of batches and classes "
              "are constant"),
};

}  // namespace

std::span<const NodeRow> NonMaxSuppressionRows() { return kNonMaxSuppressionRows; }

}  // namespace mlc::onnx
