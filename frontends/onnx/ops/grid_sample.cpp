// GridSample, AffineGrid, RoiAlign, MaxRoiPool and DeformConv.
//
// MIL's resample covers the simple cases. Otherwise the image is laid out as rows, one row of
// all channels per pixel, and each tap of the interpolation kernel gathers rows. This supports any
// rank, kernel and padding mode.
#include <fmt/ranges.h>

#include <array>
#include <functional>
#include <limits>
#include <numeric>

#include "frontends/onnx/ops/window.h"
#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"

namespace mlc::onnx {

namespace {

enum class Kernel { kNearest, kLinear, kCubic };
enum class Outside { kZeros, kBorder, kReflection };

// The pixel coordinates along one axis and the padding mode beyond them.
struct Axis {
  int64_t size;
  Outside outside = Outside::kZeros;
  double low = 0, high = 0;  // bounds of reflection
};

// A tap: the pixel at `index`, an int32 value in [0, size), with `weight`; null means 1.
struct Tap {
  Value *index, *weight;
};

class Maker {
 public:
  explicit Maker(Node& node) : node_(node) {}
  Value* Clamp(Value* x, double low, double high) const {
    return Binary(node_, "minimum", Binary(node_, "maximum", x, low), high);
  }

  // Reflects x at low and high until it lies between them.
  Value* Fold(Value* x, const Axis& axis) const {
    double range = axis.high - axis.low;
    if (range == 0) return Binary(node_, "mul", x, 0.0);
    Value* along = Binary(node_, "mod", Binary(node_, "sub", x, axis.low), 2 * range);
    Value* back = node_.Make("abs", {{"x", Binary(node_, "sub", along, range)}});
    return Binary(node_, "sub", axis.low + range, back);
  }

  // Evaluates c[3] x^3 + c[2] x^2 + c[1] x + c[0].
  Value* Polynomial(Value* x, const std::array<double, 4>& c) const {
    Value* y = Binary(node_, "add", Binary(node_, "mul", x, c[3]), c[2]);
    y = Binary(node_, "add", Binary(node_, "mul", y, x), c[1]);
    return Binary(node_, "add", Binary(node_, "mul", y, x), c[0]);
  }

  // Weights of the pixels around a location at distance t in [0, 1) from pixel 0, starting with
  // pixel `first`.
  std::vector<Value*> Weights(Kernel kernel, Value* t, int64_t& first) const {
    first = 0;
    if (kernel == Kernel::kNearest) return {nullptr};
    if (kernel == Kernel::kLinear) return {Binary(node_, "sub", 1.0, t), t};
    first = -1;
    constexpr double a = -0.75;
    std::array<double, 4> near = {1, 0, -(a + 3), a + 2}, far = {-4 * a, 8 * a, -5 * a, a};
    return {Polynomial(Binary(node_, "add", t, 1.0), far), Polynomial(t, near),
            Polynomial(Binary(node_, "sub", 1.0, t), near),
            Polynomial(Binary(node_, "sub", 2.0, t), far)};
  }

  // Out-of-range pixel indices are padded one by one, as in PyTorch and onnxruntime.
  std::vector<Tap> Taps(Value* at, const Axis& axis, Kernel kernel) const {
    double last = static_cast<double>(axis.size - 1);
    if (kernel == Kernel::kNearest) at = node_.Make("round", {{"x", at}});
    Value* pixel = kernel == Kernel::kNearest ? at : node_.Make("floor", {{"x", at}});
    int64_t first = 0;
    std::vector<Tap> taps;
    Value* behind = kernel == Kernel::kNearest ? nullptr : Binary(node_, "sub", at, pixel);
    for (Value* weight : Weights(kernel, behind, first)) {
      Value* place = first ? Binary(node_, "add", pixel, static_cast<double>(first)) : pixel;
      ++first;
      if (axis.outside == Outside::kZeros) {
        Value* before = Binary(node_, "less_equal", place, last);
        Value* inside =
            Binary(node_, "logical_and", Binary(node_, "greater_equal", place, 0.0), before);
        Value* one = node_.builder().Cast(inside, at->type.dtype);
        weight = weight ? Binary(node_, "mul", weight, one) : one;
      } else if (axis.outside == Outside::kReflection) {
        place = Fold(place, axis);
      }
      place = Clamp(place, 0, last);
      taps.push_back({node_.builder().Cast(place, DType::kInt32), weight});
    }
    return taps;
  }

  // Combines the weighted taps of all axes over `rows` [pixels, channels], by addition by default.
  // The sample locations broadcast to the leading dimensions of the result. `first` holds the row
  // of each image's first pixel, or is null.
  Value* Sample(Value* rows, const std::vector<std::vector<Tap>>& axes,
                const std::vector<int64_t>& sizes, Value* first,
                std::string_view together = "add") const {
    Value* sum = nullptr;
    std::function<void(size_t, Value*, Value*)> add = [&](size_t axis, Value* row, Value* weight) {
      if (axis < axes.size()) {
        int64_t stride = std::accumulate(sizes.begin() + static_cast<int64_t>(axis) + 1,
                                         sizes.end(), int64_t{1}, std::multiplies<>());
        for (const Tap& tap : axes[axis]) {
          Value* step = stride == 1 ? tap.index : Binary(node_, "mul", tap.index, stride);
          Value* both = weight && tap.weight ? Binary(node_, "mul", weight, tap.weight)
                                             : (weight ? weight : tap.weight);
          add(axis + 1, row ? Binary(node_, "add", row, step) : step, both);
        }
        return;
      }
      Value* seen = node_.Make("gather", {{"x", rows}, {"indices", row}, {"axis", 0}});
      if (weight) {
        if (weight->type.dtype != seen->type.dtype)
          weight = node_.builder().Cast(weight, seen->type.dtype);
        seen = Binary(node_, "mul", seen, Expanded(node_, weight, {-1}));
      }
      sum = sum ? Binary(node_, together, sum, seen) : seen;
    };
    add(0, first, nullptr);
    return sum;
  }

  // Reshapes [n, c, spatial...] to rows [n * spatial, c].
  Value* Rows(Value* x) const {
    Dims dims = StaticDims(x->type.shape);
    int64_t pixels = ElementCount(dims) / (dims[0] * dims[1]);
    Value* flat = WithShape(node_, x, {dims[0], dims[1], pixels});
    Value* last = Transposed(node_, flat, {0, 2, 1});
    return WithShape(node_, last, {dims[0] * pixels, dims[1]});
  }

  // The first row of each of n images, [n, 1]; null for a single image.
  Value* FirstRows(int64_t n, int64_t pixels) const {
    if (n == 1) return nullptr;
    std::vector<int64_t> first;
    for (int64_t i = 0; i < n; ++i) first.push_back(i * pixels);
    return node_.Const(Tensor::Of({n, 1}, first).Cast(DType::kInt32));
  }

 private:
  Node& node_;
};

// Selects element i of the last dimension and removes that dimension.
Value* LastElement(Node& node, Value* x, int64_t i) {
  return Element(node, x, i, x->type.rank() - 1);
}

void NeedsKnownSizes(Node& node, const Shape& shape, std::string_view what) {
  if (!IsStatic(shape))
    node.Fail("dynamic-shape", "{} is {}, but its dimensions must be constant", what,
              ToString(shape));
  for (const Dim& dim : shape)
    if (dim == Dim(0)) node.Fail("empty-tensor", "{} is empty: {}", what, ToString(shape));
}

// The grid [n, locations..., k] holds coordinates in x [n, c, k sizes] from -1 to 1, last axis
// first.
void GridSample(Node& node) {
  std::string mode = node.String("mode", node.opset() < 20 ? "bilinear" : "linear");
  std::string padding = node.String("padding_mode", "zeros");
  bool align = node.Int("align_corners", 0) != 0;
  int rank = node.rank(0), k = rank - 2;
  if (k < 1 || node.rank(1) != rank || node.shape(1).back() != Dim(k))
    node.Fail("bad-operand", "the shapes of X, {}, and grid, {}, do not match",
              ToString(node.shape(0)), ToString(node.shape(1)));
  Kernel kernel = Kernel::kLinear;
  if (mode == "nearest")
    kernel = Kernel::kNearest;
  else if (mode == "bicubic" || mode == "cubic")
    kernel = Kernel::kCubic;
  else if (mode != "bilinear" && mode != "linear")
    node.Unsupported("mode", "unknown mode \"{}\"", mode);
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    node.Unsupported("padding_mode", "unknown padding_mode \"{}\"", padding);
  if (kernel != Kernel::kNearest && !IsFloat(node.dtype()))
    node.Fail("unsupported-dtype", "interpolation of {} is not supported", Name(node.dtype()));

  Value *x = node.In(0), *grid = node.In(1);
  bool rounds_first = kernel == Kernel::kNearest && padding == "reflection";
  if (k == 2 && kernel != Kernel::kCubic && !rounds_first && IsFloat(x->type.dtype)) {
    const char* outside = padding == "zeros"    ? "constant"
                          : padding == "border" ? "border"
                          : align               ? "reflection"
                                                : "symmetric";
    return node.SetAlike(node.Make(
        "resample", {{"x", x},
                     {"coordinates", grid},
                     {"sampling_mode", kernel == Kernel::kLinear ? "bilinear" : "nearest"},
                     {"padding_mode", outside},
                     {"padding_value", 0.0},
                     {"coordinates_mode", "normalized_minus_one_to_one"},
                     {"align_corners", align}}));
  }

  NeedsKnownSizes(node, node.shape(0), "X");
  NeedsKnownSizes(node, node.shape(1), "the grid");
  Maker make(node);
  Dims dims = StaticDims(node.shape(0)), places = StaticDims(node.shape(1));
  std::vector<int64_t> sizes(dims.begin() + 2, dims.end());
  grid = WithShape(node, grid, {places[0], -1, k});
  std::vector<std::vector<Tap>> taps;
  for (int i = 0; i < k; ++i) {
    double size = static_cast<double>(sizes[i]);
    Axis axis{sizes[i], Outside::kZeros, align ? 0 : -0.5, align ? size - 1 : size - 0.5};
    if (padding == "border") axis.outside = Outside::kBorder;
    if (padding == "reflection") axis.outside = Outside::kReflection;
    double scale = align ? (size - 1) / 2 : size / 2;
    Value* at = Binary(node, "mul", LastElement(node, grid, k - 1 - i), scale);
    taps.push_back(make.Taps(Binary(node, "add", at, (size - 1) / 2), axis, kernel));
  }
  Value* first = make.FirstRows(dims[0], ElementCount(sizes));
  Value* samples = make.Sample(make.Rows(x), taps, sizes, first);
  samples = Transposed(node, samples, {0, 2, 1});
  std::vector<int64_t> shape = {dims[0], dims[1]};
  shape.insert(shape.end(), places.begin() + 1, places.end() - 1);
  node.SetAlike(WithShape(node, samples, shape));
}

// Divides each region [r, 4] (x1, y1, x2, y2) of x [n, c, h, w] into bins. Each bin is the mean or
// maximum of samples on a grid inside it.
void RoiAlign(Node& node) {
  bool half = node.String("coordinate_transformation_mode",
                          node.opset() < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  std::string mode = node.String("mode", "avg");
  int64_t height = node.Int("output_height", 1), width = node.Int("output_width", 1);
  int64_t ratio = node.Int("sampling_ratio", 0);
  double scale = node.Float("spatial_scale", 1.0);
  if (mode != "avg" && mode != "max") node.Unsupported("mode", "unknown mode \"{}\"", mode);
  if (ratio < 1)
    node.Unsupported(
        "sampling_ratio",
        "sampling_ratio=0, for which the number of samples depends on data, is not supported");
  if (height < 1 || width < 1 || height * ratio > 1 << 15 || width * ratio > 1 << 15)
    node.Fail("bad-attribute", "invalid size: {} x {} bins with sampling_ratio {}", height, width,
              ratio);
  if (node.rank(0) != 4 || node.rank(1) != 2 || node.rank(2) != 1)
    node.Fail("bad-operand", "expected X [n, c, h, w], rois [r, 4] and batch_indices [r]");
  NeedsKnownSizes(node, node.shape(0), "X");
  Dims dims = StaticDims(node.shape(0));
  Maker make(node);
  Value *rois = node.In(1), *places = node.In(2);
  RequireEqualSize(node, rois, 0, places, 0, "numbers of rois and batch_indices");
  Value* below = Binary(node, "less", places, dims[0]);
  Value* in_batch = Binary(node, "logical_and", Binary(node, "greater_equal", places, 0), below);
  Tensor known = in_batch->constant();
  for (int64_t i = 0; known && i < known.size(); ++i)
    if (!known.Bool(i))
      node.Fail("bad-operand", "an element of batch_indices is out of range; the batch size is {}",
                dims[0]);
  if (!known) rois = Guarded(node, rois, in_batch);
  // The samples along one axis, of shape [r, samples, 1] or [r, 1, samples].
  auto taps = [&](int64_t low, int64_t bins, int64_t size, int64_t other) {
    auto edge = [&](int64_t i) {
      Value* at = Binary(node, "mul", LastElement(node, rois, i), scale);
      return half ? Binary(node, "sub", at, 0.5) : at;
    };
    Value* start = edge(low);
    Value* length = Binary(node, "sub", edge(low + 2), start);
    if (!half) length = Binary(node, "maximum", length, 1.0);
    std::vector<double> steps;
    for (int64_t i = 0; i < bins * ratio; ++i)
      steps.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(bins * ratio));
    Value* step = node.Const(Tensor::Vector(steps).Cast(start->type.dtype));
    auto column = [&](Value* x) { return Expanded(node, x, {1}); };
    Value* along = Binary(node, "mul", column(length), step);
    Value* at = Binary(node, "add", column(start), along);
    at = Expanded(node, at, {other});
    // Samples up to one pixel beyond the edge take the edge's value; samples farther out are zero.
    Value* before = Binary(node, "less_equal", at, static_cast<double>(size));
    Value* inside = Binary(node, "logical_and", Binary(node, "greater_equal", at, -1.0), before);
    inside = node.builder().Cast(inside, at->type.dtype);
    at = make.Clamp(at, 0, static_cast<double>(size - 1));
    Axis axis{size, Outside::kBorder};
    std::vector<Tap> taps = make.Taps(at, axis, Kernel::kLinear);
    for (Tap& tap : taps) tap.weight = Binary(node, "mul", tap.weight, inside);
    return taps;
  };
  int64_t pixels = dims[2] * dims[3];
  Value* first = nullptr;
  if (dims[0] > 1) {
    first = Binary(node, "mul", node.builder().Cast(places, DType::kInt32), pixels);
    first = Expanded(node, first, {1, 2});
  }
  std::vector<std::vector<Tap>> axes = {taps(1, height, dims[2], 2), taps(0, width, dims[3], 1)};
  // In ONNX, the maximum is taken over weighted pixels (test_roialign_mode_max).
  Value* samples = make.Sample(make.Rows(node.In(0)), axes, {dims[2], dims[3]}, first,
                               mode == "avg" ? "add" : "maximum");
  samples = Transposed(node, samples, {0, 3, 1, 2});
  Builder::Args pool = {{"x", samples},
                        {"kernel_sizes", Ints({ratio, ratio})},
                        {"strides", Ints({ratio, ratio})},
                        {"pad_type", "valid"}};
  node.SetAlike(node.Make(mode == "avg" ? "avg_pool" : "max_pool", std::move(pool)));
}

// The maximum of x [n, c, h, w] in each bin of the regions [r, 5] (image, x1, y1, x2, y2; integer
// pixel coordinates). Bins overlap where they do not divide the region evenly; an empty bin is 0.
// Each bin is expressed as a mask along either axis.
void MaxRoiPool(Node& node) {
  std::vector<int64_t> bins = node.Ints("pooled_shape");
  double scale = node.Float("spatial_scale", 1.0);
  if (node.rank(0) != 4 || node.rank(1) != 2 || node.shape(1)[1] != Dim(5))
    node.Fail("bad-operand", "X is {} and rois is {}, expected [n, c, h, w] and [r, 5]",
              ToString(node.shape(0)), ToString(node.shape(1)));
  if (bins.size() != 2 || bins[0] < 1 || bins[1] < 1)
    node.Fail("bad-attribute", "pooled_shape is [{}], expected two positive sizes",
              fmt::join(bins, ", "));
  NeedsKnownSizes(node, node.shape(0), "X");
  Dims dims = StaticDims(node.shape(0));
  constexpr double kMostElements = 1 << 28;
  double elements = static_cast<double>(Greatest(node, node.shape(1)[0])) *
                    static_cast<double>(dims[1] * dims[3]) *
                    static_cast<double>(std::max(bins[0] * dims[2], bins[0] * bins[1]));
  if (elements > kMostElements)
    node.Fail("resource-limit", "too many intermediate elements: {}", elements);
  Maker make(node);
  Value* rois = node.builder().Cast(node.In(1), DType::kFp32);
  auto pixel = [&](int64_t i) {  // rounds halves away from 0
    Value* at = Binary(node, "mul", LastElement(node, rois, i), scale);
    Value* size =
        node.Make("floor", {{"x", Binary(node, "add", node.Make("abs", {{"x", at}}), 0.5)}});
    return node.builder().Cast(Binary(node, "mul", node.Make("sign", {{"x", at}}), size),
                               DType::kInt32);
  };
  auto counted = [&](int64_t from, int64_t count) {
    std::vector<int32_t> values(count);
    std::iota(values.begin(), values.end(), static_cast<int32_t>(from));
    return Tensor::Vector(values);
  };
  struct Masks {
    Value *inside, *any;  // shapes [r, bins, pixels] and [r, bins]
  };
  auto masks = [&](int64_t low, int64_t count, int64_t size) {
    Value *start = pixel(low), *end = pixel(low + 2);
    Value* length = Binary(node, "add", Binary(node, "sub", end, start), 1);
    length = Expanded(node, Binary(node, "maximum", length, 1), {1});
    auto edge = [&](int64_t from, int64_t up) {  // exact in integers
      Value* at = Binary(node, "mul", length, counted(from, count));
      at = Binary(node, "floor_div", up ? Binary(node, "add", at, up) : at, count);
      at = Binary(node, "add", at, Expanded(node, start, {1}));
      return Binary(node, "minimum", Binary(node, "maximum", at, 0), size);
    };
    Value *first = edge(0, 0), *last = edge(1, count - 1);
    Value* before = Binary(node, "greater", Expanded(node, last, {2}), counted(0, size));
    Value* behind = Binary(node, "less_equal", Expanded(node, first, {2}), counted(0, size));
    Value* inside = Binary(node, "logical_and", behind, before);
    return Masks{inside, Binary(node, "less", first, last)};
  };
  Masks rows = masks(2, bins[0], dims[2]), columns = masks(1, bins[1], dims[3]);
  Value* image = node.builder().Cast(LastElement(node, rois, 0), DType::kInt32);
  Value* x = node.Make("gather", {{"x", node.In(0)}, {"indices", image}, {"axis", 0}});
  double lowest = x->type.dtype == DType::kFp16 ? -65504.0 : std::numeric_limits<float>::lowest();
  auto greatest = [&](Value* values, Value* inside, int64_t axis) {
    Value* seen = Select(node, inside, values, Tensor::Full(values->type.dtype, {}, lowest));
    return Reduced(node, "reduce_max", seen, {axis}, false);
  };
  Value* in_rows = Expanded(node, rows.inside, {1, 4});
  x = greatest(Expanded(node, x, {2}), in_rows, 3);
  Value* in_columns = Expanded(node, columns.inside, {1, 2});
  x = greatest(Expanded(node, x, {3}), in_columns, 4);
  Value* any_column = Expanded(node, columns.any, {1, 2});
  Value* any = Binary(node, "logical_and", Expanded(node, rows.any, {1, 3}), any_column);
  node.SetAlike(Select(node, any, x, Tensor::Full(x->type.dtype, {}, 0)));
}

// A convolution whose sampling locations are shifted by `offset` [n, groups * taps * 2, h, w] and
// weighted by `mask` [n, groups * taps, h, w].
void DeformConv(Node& node) {
  Value *x = node.In(0), *weight = node.In(1), *offset = node.In(2);
  if (node.rank(0) != 4 || node.rank(1) != 4 || node.rank(2) != 4)
    node.Fail("rank-limit", "only images [n, c, h, w] are supported");
  for (int i : {0, 1, 2}) NeedsKnownSizes(node, node.shape(i), i ? "a weight or offset" : "X");
  Dims in = StaticDims(node.shape(0)), kernel = StaticDims(node.shape(1)),
       out = StaticDims(node.shape(2));
  int64_t groups = node.Int("group", 1), sets = node.Int("offset_group", 1);
  std::vector<int64_t> shape =
      node.Ints("kernel_shape", std::vector(kernel.begin() + 2, kernel.end()));
  std::vector<int64_t> strides = node.Ints("strides", std::vector<int64_t>(2, 1)),
                       dilations = node.Ints("dilations", std::vector<int64_t>(2, 1)),
                       pads = node.Ints("pads", std::vector<int64_t>(4, 0));
  int64_t taps = kernel[2] * kernel[3], places = out[2] * out[3];
  bool fits = groups > 0 && sets > 0 && in[1] % groups == 0 && in[1] % sets == 0 &&
              kernel[0] % groups == 0 && kernel[1] == in[1] / groups && strides.size() == 2 &&
              dilations.size() == 2 && pads.size() == 4 && out[0] == in[0] &&
              out[1] == sets * taps * 2 &&
              shape == std::vector<int64_t>(kernel.begin() + 2, kernel.end());
  if (!fits) node.Fail("bad-operand", "the shapes of the inputs and the attributes do not match");
  Maker make(node);
  // Each coordinate as [n, sets, taps * locations].
  Value* all = WithShape(node, offset, {in[0], sets * taps, 2, places});
  auto coordinate = [&](int axis) {
    std::vector<double> usual;
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t place = 0; place < places; ++place) {
        int64_t at = axis ? place % out[3] : place / out[3];
        int64_t step = axis ? tap % kernel[3] : tap / kernel[3];
        usual.push_back(
            static_cast<double>(at * strides[axis] - pads[axis] + step * dilations[axis]));
      }
    Value* part = SliceOfSize(node, all, {0, 0, axis, 0}, {-1, -1, 1, -1});
    part = WithShape(node, part, {in[0], sets, taps * places});
    return Binary(node, "add", part, Tensor::Vector(usual).Cast(part->type.dtype));
  };
  std::vector<std::vector<Tap>> axes = {make.Taps(coordinate(0), {in[2]}, Kernel::kLinear),
                                        make.Taps(coordinate(1), {in[3]}, Kernel::kLinear)};
  // Rows with the channels of one set, ordered by image and then by set.
  int64_t channels = in[1] / sets, pixels = in[2] * in[3];
  Value* images = WithShape(node, x, {in[0] * sets, channels, pixels});
  images = Transposed(node, images, {0, 2, 1});
  Value* rows = WithShape(node, images, {-1, channels});
  Value* first = make.FirstRows(in[0] * sets, pixels);
  if (first) first = WithShape(node, first, {in[0], sets, 1});
  Value* samples = make.Sample(rows, axes, {in[2], in[3]}, first);
  if (Value* mask = node.Optional(4)) {
    mask = WithShape(node, mask, {in[0], sets, taps * places, 1});
    samples = Binary(node, "mul", samples, mask);
  }
  // [n, sets, taps * locations, channels] -> [n, groups, channels per group * taps, locations].
  samples = Transposed(node, samples, {0, 1, 3, 2});
  samples = WithShape(node, samples, {in[0], groups, kernel[1] * taps, places});
  weight = WithShape(node, weight, {1, groups, kernel[0] / groups, kernel[1] * taps});
  Value* y = node.Make("matmul", {{"x", weight}, {"y", samples}});
  y = WithShape(node, y, {in[0], kernel[0], out[2], out[3]});
  if (Value* bias = node.Optional(3)) {
    RequireEqualSize(node, y, 1, bias, 0, "number of output channels and length of the bias");
    y = Binary(node, "add", y, WithShape(node, bias, {1, -1, 1, 1}));
  }
  node.SetAlike(y);
}

// The normalized coordinates (from -1 to 1) of all pixels of size [n, c, sizes], transformed by
// theta [n, k, k + 1].
void AffineGrid(Node& node) {
  std::vector<int64_t> size = node.ConstantInts(1, "size");
  bool align = node.Int("align_corners", 0) != 0;
  int64_t k = static_cast<int64_t>(size.size()) - 2;
  if ((k != 2 && k != 3) || node.rank(0) != 3 || node.shape(0)[1] != Dim(k))
    node.Fail("bad-operand", "theta is {}, which does not match a size of {} dimensions",
              ToString(node.shape(0)), size.size());
  int64_t pixels = 1;
  for (int64_t i = 2; i < k + 2; ++i) {
    if (size[i] < 1 || size[i] > 1 << 24) node.Fail("bad-operand", "invalid size {}", size[i]);
    pixels *= size[i];
    if (pixels > 1 << 26)
      node.Fail("resource-limit", "a grid of more than 64 Mi pixels is not supported");
  }
  std::vector<double> grid;  // [pixels, k + 1]: coordinates with the last axis first, then 1
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    int64_t rest = pixel;
    for (int64_t i = k + 1; i >= 2; rest /= size[i], --i) {
      double at = static_cast<double>(rest % size[i]), n = static_cast<double>(size[i]);
      grid.push_back(!align ? (2 * at + 1) / n - 1 : n == 1 ? 0 : 2 * at / (n - 1) - 1);
    }
    grid.push_back(1);
  }
  Value* theta = node.In(0);
  Value* places = node.Const(Tensor::Of({pixels, k + 1}, grid).Cast(theta->type.dtype));
  Value* y = node.Make("matmul", {{"x", places}, {"y", theta}, {"transpose_y", true}});
  std::vector<int64_t> shape = {size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(k);
  node.SetAlike(WithShape(node, y, shape));
}

constexpr NodeRow kGridSampleRows[] = {
    NodeRow("AffineGrid", AffineGrid, 20).When("size is constant"),
    NodeRow("DeformConv", DeformConv, 19).When("the sizes of all inputs are constant"),
    NodeRow("GridSample", GridSample, 16).Direct(),
    NodeRow("MaxRoiPool", MaxRoiPool).When("X has a constant shape"),
    NodeRow("RoiAlign", RoiAlign, 10).When("sampling_ratio is at least 1; X has a constant shape"),
};

}  // namespace

std::span<const NodeRow> GridSampleRows() { return kGridSampleRows; }

}  // namespace mlc::onnx
