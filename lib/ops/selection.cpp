#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "lib/ops/eval.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"

namespace mlc {

namespace {

// For every line of x along axis, the indices of its first k elements in sorted order. The sort is
// stable, and NaN is greater than every number, as in reduce_argmax, torch.topk and ONNX's
// reference implementation. f(offset of the line, stride, indices).
void ForEachSorted(const Tensor& x, int axis, int64_t k, bool ascending,
                   const std::function<void(int64_t, int64_t, std::span<const int64_t>)>& f) {
  int64_t n = x.dims()[axis], stride = StridesOf(x.dims())[axis];
  if (n == 0) return;
  Dispatch(x.dtype(), [&]<class T>(T) {
    Pin<T> in = x.data<T>();
    std::vector<int64_t> order(n);
    for (int64_t line = 0; line < x.size() / n; ++line) {
      int64_t base = line / stride * n * stride + line % stride;
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t i, int64_t j) {
        auto a = Widen(in[base + i * stride]), b = Widen(in[base + j * stride]);
        if ((a != a) != (b != b)) return ascending ? b != b : a != a;
        if (a == b || a != a) return i < j;
        return ascending ? a < b : a > b;
      });
      f(base, line, std::span<const int64_t>(order.data(), k));
    }
  });
}

// Writes indices [k along axis] as dtype.
struct IndexWriter {
  IndexWriter(Dims dims, int axis) : out(dims), k(dims[axis]), stride(StridesOf(dims)[axis]) {}
  void Write(int64_t line, std::span<const int64_t> indices) {
    int64_t base = line / stride * k * stride + line % stride;
    for (int64_t i = 0; i < k; ++i) out.data[base + i * stride] = static_cast<int32_t>(indices[i]);
  }
  Out<int32_t> out;
  int64_t k, stride;
};

void InferArgsort(InferContext& context) {
  OpContext::Axis(context.Int("axis"), context.rank("x"));
  context.Bool("ascending");
  context.Result(DType::kInt32, context.shape("x"));
}

void EvalArgsort(EvalContext& context) {
  Tensor x = context.in("x");
  int axis = OpContext::Axis(context.Int("axis"), x.rank());
  IndexWriter writer(x.dims(), axis);
  ForEachSorted(
      x, axis, x.dims()[axis], context.Bool("ascending"),
      [&](int64_t, int64_t line, std::span<const int64_t> order) { writer.Write(line, order); });
  context.Set(writer.out.tensor);
}

void InferTopk(InferContext& context) {
  Shape shape = context.shape("x");
  int axis = OpContext::Axis(context.Int("axis"), context.rank("x"));
  auto elements = context.Elements("k");
  if (!elements && !context.has("k")) elements = std::vector<Dim>{1};
  if (elements && elements->size() != 1) context.Fail("k is not a scalar");
  Dim k = elements ? elements->front() : context.Fresh("topk");
  if (k == Dim(-1)) k = shape[axis];
  Dim left = shape[axis] - k;
  if ((k.is_constant() && k.constant() < 0) || (left.is_constant() && left.constant() < 0))
    context.Fail("k is {}, out of range for dimension {} of {}", k.ToString(), axis,
                 ToString(shape));
  shape[axis] = k;
  context.Result(context.dtype("x"), shape);
  if (!context.Bool("return_indices")) {
    if (context.has("output_indices_dtype"))
      context.Fail("output_indices_dtype requires return_indices");
    return;
  }
  std::string dtype = context.String("output_indices_dtype");
  if (dtype != "int32" && dtype != "uint16")
    context.Fail("output_indices_dtype is \"{}\", expected int32 or uint16", dtype);
  context.Result(dtype == "int32" ? DType::kInt32 : DType::kUint16, shape);
}

// The elements are always sorted; sort=false merely does not guarantee an order.
void EvalTopk(EvalContext& context) {
  Tensor x = context.in("x");
  int axis = OpContext::Axis(context.Int("axis"), x.rank());
  Dims dims = context.out_dims();
  int64_t k = dims[axis], stride = StridesOf(x.dims())[axis];
  IndexWriter writer(dims, axis);
  context.Set(Dispatch(x.dtype(), [&]<class T>(T) {
    Out<T> out(dims);
    Pin<T> in = x.data<T>();
    ForEachSorted(x, axis, k, context.Bool("ascending"),
                  [&](int64_t base, int64_t line, std::span<const int64_t> order) {
                    writer.Write(line, order);
                    int64_t to = line / stride * k * stride + line % stride;
                    for (int64_t i = 0; i < k; ++i)
                      out.data[to + i * stride] = in[base + order[i] * stride];
                  });
    return out.tensor;
  }));
  if (context.result_types.size() > 1) context.Set(writer.out.tensor.Cast(context.out_dtype(1)));
}

// non_maximum_suppression. Since iOS17, boxes are [n, 4, B], scores [n, K, B], and there are three
// results. The earlier form, which has the operand score_threshold, takes boxes [n, B, 4] and
// scores [n, B, K], and returns the number of boxes as a fourth result.
bool BoxesLast(const OpContext& context) { return !context.has("score_threshold"); }

void InferSuppression(InferContext& context) {
  const Shape &boxes = context.shape("boxes"), &scores = context.shape("scores");
  bool last = BoxesLast(context);
  int box = last ? 2 : 1, coordinate = last ? 1 : 2;
  auto differ = [](const Dim& a, const Dim& b) {
    return a.is_constant() && b.is_constant() && a != b;
  };
  if (boxes.size() != 3 || scores.size() != 3 || differ(boxes[0], scores[0]) ||
      differ(boxes[box], scores[box]) || differ(boxes[coordinate], Dim(4)))
    context.Fail("boxes are {}, but scores are {}", ToString(boxes), ToString(scores));
  int64_t max_boxes = context.Int("max_boxes");
  constexpr int64_t kMaxBoxes = 1 << 24;
  if (max_boxes < 1 || max_boxes > kMaxBoxes) context.Fail("max_boxes is {}", max_boxes);
  for (const char* name : {"boxes", "scores"}) {
    Shape selected = context.shape(name);
    selected[box] = max_boxes;
    context.Result(context.dtype(name), std::move(selected));
  }
  context.Result(DType::kInt32, {scores[0], Dim(max_boxes)});
  if (!last) context.Result(DType::kInt32, {scores[0]});
}

struct Box {
  double left, bottom, right, top;
};

double Overlap(const Box& a, const Box& b) {
  double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  double height = std::min(a.top, b.top) - std::max(a.bottom, b.bottom);
  double common = std::max(width, 0.0) * std::max(height, 0.0);
  double area = (a.right - a.left) * (a.top - a.bottom) + (b.right - b.left) * (b.top - b.bottom);
  return common > 0 ? common / (area - common) : 0;
}

// Follows Core ML's NonMaximumSuppressionLayerParams: the score of a box is that of its best class;
// with per_class_suppression, a box suppresses only boxes with the same best class; if no score
// exceeds the threshold, the best box alone is selected; unused entries are 0, with index -1.
void EvalSuppression(EvalContext& context) {
  Tensor boxes = context.in("boxes"), scores = context.in("scores");
  bool last = BoxesLast(context), per_class = context.Bool("per_class_suppression");
  int64_t n = scores.dims()[0], count = scores.dims()[last ? 2 : 1];
  int64_t classes = scores.dims()[last ? 1 : 2], max_boxes = context.Int("max_boxes");
  if (count == 0 || classes == 0) context.Fail("there are no boxes");
  double overlap = context.Double("iou_threshold");
  double threshold =
      last ? -std::numeric_limits<double>::infinity() : context.Double("score_threshold");
  std::vector<double> box_values = boxes.Doubles(), score_values = scores.Doubles();
  auto at = [&](const std::vector<double>& values, int64_t width, int64_t batch, int64_t box,
                int64_t i) {
    return values[batch * count * width + (last ? i * count + box : box * width + i)];
  };
  std::vector<double> out_boxes(n * max_boxes * 4), out_scores(n * max_boxes * classes);
  Out<int32_t> indices({n, max_boxes}), selected({n});
  std::ranges::fill(indices.data, -1);
  for (int64_t batch = 0; batch < n; ++batch) {
    std::vector<Box> corners(count);
    std::vector<double> best(count);
    std::vector<int64_t> label(count), order(count), kept;
    for (int64_t b = 0; b < count; ++b) {
      double x = at(box_values, 4, batch, b, 0), y = at(box_values, 4, batch, b, 1);
      double w = at(box_values, 4, batch, b, 2) / 2, h = at(box_values, 4, batch, b, 3) / 2;
      corners[b] = {x - w, y - h, x + w, y + h};
      best[b] = at(score_values, classes, batch, b, 0);
      for (int64_t c = 1; c < classes; ++c) {
        double score = at(score_values, classes, batch, b, c);
        if (score > best[b]) {
          best[b] = score;
          label[b] = c;
        }
      }
      order[b] = b;
    }
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
      if ((best[a] != best[a]) != (best[b] != best[b])) return best[b] != best[b];
      return best[a] > best[b];
    });
    for (int64_t b : order) {
      if (static_cast<int64_t>(kept.size()) == max_boxes || !(best[b] > threshold)) break;
      bool suppressed = std::ranges::any_of(kept, [&](int64_t k) {
        return (!per_class || label[k] == label[b]) && Overlap(corners[k], corners[b]) > overlap;
      });
      if (!suppressed) kept.push_back(b);
    }
    if (kept.empty()) kept.push_back(order[0]);
    selected.data[batch] = static_cast<int32_t>(kept.size());
    for (size_t k = 0; k < kept.size(); ++k) {
      int64_t place = static_cast<int64_t>(k);
      indices.data[batch * max_boxes + place] = static_cast<int32_t>(kept[k]);
      auto copy = [&](const std::vector<double>& from, std::vector<double>& to, int64_t width) {
        for (int64_t i = 0; i < width; ++i)
          to[batch * max_boxes * width + (last ? i * max_boxes + place : place * width + i)] =
              at(from, width, batch, kept[k], i);
      };
      copy(box_values, out_boxes, 4);
      copy(score_values, out_scores, classes);
    }
  }
  context.Set(Tensor::Of(context.out_dims(0), out_boxes).Cast(boxes.dtype()));
  context.Set(Tensor::Of(context.out_dims(1), out_scores).Cast(scores.dtype()));
  context.Set(indices.tensor);
  if (!last) context.Set(selected.tensor);
}

// Results: the label with the highest probability, and a dictionary from labels to probabilities.
void InferClassify(InferContext& context) {
  const Type& classes = context.type("classes");
  DType label = classes.is_tensor()        ? classes.dtype
                : classes.elements.empty() ? DType::kNone
                                           : classes.elements[0].dtype;
  if (label != DType::kString && label != DType::kInt64)
    context.Fail("classes are {}, expected strings or int64", classes.ToString());
  Dim size = Product(context.shape("probabilities"));
  Tensor known = context.value("classes");
  if (known && size.is_constant() && size != Dim(known.size()))
    context.Fail("{} probabilities do not match {} classes", size.ToString(), known.size());
  context.Result(label, {});
  context.Result(
      {.kind = Type::Kind::kDict, .elements = {Type::Tensor(label), Type::Tensor(DType::kFp64)}});
}

// The dictionary is represented by its values in the order of the classes.
void EvalClassify(EvalContext& context) {
  std::vector<double> probabilities = context.in("probabilities").Doubles();
  Tensor classes = context.in("classes");
  int64_t count = classes.size();
  if (count == 0 || count != static_cast<int64_t>(probabilities.size()))
    context.Fail("{} probabilities do not match {} classes", probabilities.size(), count);
  int64_t best = std::ranges::max_element(probabilities) - probabilities.begin();
  context.Set(classes.dtype() == DType::kString ? Tensor::String(classes.strings()[best])
                                                : Tensor::Scalar<int64_t>(classes.Int(best)));
  context.Set(Tensor::Of({count}, probabilities));
}

// Boxes and scores of unused entries are 0, their indices -1.
Interval RangeSuppression(const RangeContext& context, int result) {
  if (result < 2) return Join(context.in(result == 0 ? "boxes" : "scores"), {0, 0});
  double boxes = std::max(context.Size("boxes", 1), context.Size("boxes", 2));
  DType dtype = context.out_dtype(result);
  return result == 2 ? Counts(-1, boxes - 1, dtype) : Counts(1, boxes, dtype);
}
Interval RangeTopk(const RangeContext& context, int result) {
  return result == 0 ? context.in("x") : RangeOfPlaces(context, result);
}

constexpr OpRow kSelectionRows[] = {
    {.name = "argsort",
     .doc = "indices that sort x along axis; the sort is stable",
     .signatures = {{{kIos15, "x:T axis:int32!=-1 ascending:bool!=false | T=fp16/fp32/int32"}}},
     .infer = InferArgsort,
     .eval = EvalArgsort,
     .range = RangeOfPlaces},
    {.name = "classify",
     .doc = "the label with the highest probability, and a dictionary of probabilities by label",
     .signatures = {{{kIos15, "probabilities:fp32 classes:list!"}}},
     .infer = InferClassify,
     .eval = EvalClassify,
     .no_range = "a label and a dictionary"},
    {.name = "non_maximum_suppression",
     .doc = "the highest-scoring boxes of each batch without overlap with a better one",
     .signatures = {{{kIos15,
                      "boxes:T scores:T iou_threshold:T! score_threshold:T! max_boxes:int32! "
                      "per_class_suppression:bool!=false | T=fp16/fp32"},
                     {kIos17,
                      "boxes:T scores:T iou_threshold:T! score_threshold:T!? max_boxes:int32! "
                      "per_class_suppression:bool!=false | T=fp16/fp32"}}},
     .infer = InferSuppression,
     .eval = EvalSuppression,
     .fp16 = {.needs = kSelections},
     .range = RangeSuppression},
    {.name = "topk",
     .doc = "the k largest (ascending: smallest) elements along axis, and their indices",
     .signatures = {{{kIos15,
                      "x:T k:int32!=1 axis:int32!=-1 ascending:bool!=false | T=fp16/fp32/int32"},
                     {kIos16,
                      "x:T k:int32!=1 axis:int32!=-1 ascending:bool!=false sort:bool!=true "
                      "return_indices:bool!=true | T=fp16/fp32/int32"},
                     {kIos17,
                      "x:T k:K!=1 axis:int32!=-1 ascending:bool!=false sort:bool!=true "
                      "return_indices:bool!=true output_indices_dtype:string!=int32 | "
                      "T=fp16/fp32/int8/int16/int32/uint8/uint16 K=int8/int16/int32"}}},
     .infer = InferTopk,
     .eval = EvalTopk,
     .fp16 = {.carries = kSelections},
     .range = RangeTopk},
};

}  // namespace

std::span<const OpRow> SelectionRows() { return kSelectionRows; }

}  // namespace mlc
