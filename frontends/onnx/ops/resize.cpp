// Resize and Upsample.
//
// Resizing along one axis is a product with a small matrix: row i holds the weights of the input
// elements for output element i (ONNX Operators.md, Resize-19, and its reference implementation).
// If a MIL operation computes the same values, it is used; otherwise a gather (if each row has a
// single weight of 1) or the matrix product. So every mode, including antialias, is exact.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {
namespace {

struct Mode {
  std::string kind = "nearest";  // nearest, linear or cubic
  std::string coordinates = "half_pixel", nearest = "round_prefer_floor";
  bool antialias = false, exclude_outside = false;
  double cubic_a = -0.75, extrapolation = 0;
};

struct Axis {
  int axis;
  int64_t in, out;
  double scale;               // the given scale, else out / in
  double start = 0, end = 1;  // for tf_crop_and_resize
};

// ONNX aligns corners using the output length before rounding down. A scale is a float, so it may
// miss an integer length slightly.
double Length(const Axis& a) {
  double length = a.scale * static_cast<double>(a.in), out = static_cast<double>(a.out);
  return std::fabs(length - out) < 1e-5 * out ? out : length;
}

// Computed in fp32, in which ONNX holds scales and regions: there, 1.5 / 0.6 - 0.5 is exactly 2.
double Source(const Mode& mode, const Axis& a, int64_t i) {
  float x = static_cast<float>(i), in = static_cast<float>(a.in), out = static_cast<float>(a.out);
  float scale = static_cast<float>(a.scale), half = (x + 0.5f) / scale;
  float start = static_cast<float>(a.start), end = static_cast<float>(a.end);
  const std::string& c = mode.coordinates;
  if (c == "align_corners") return a.out == 1 ? 0 : x * (in - 1) / (Length(a) - 1);
  if (c == "asymmetric") return x / scale;
  if (c == "tf_half_pixel_for_nn") return half;  // in opset 11 only
  if (c == "pytorch_half_pixel") return a.out > 1 ? half - 0.5f : 0;
  if (c == "tf_crop_and_resize")
    return a.out > 1 ? start * (in - 1) + x * (end - start) * (in - 1) / (out - 1)
                     : 0.5f * (start + end) * (in - 1);
  if (c == "half_pixel_symmetric") {
    float adjustment = out / (scale * in), centre = in / 2;
    return centre * (1 - adjustment) + half - 0.5f;
  }
  return half - 0.5f;  // half_pixel
}

double Cubic(double t, double a) {
  t = std::fabs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  if (t < 2) return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
  return 0;
}

struct Tap {
  int64_t index;
  double weight;
};

// The weights of output element i; empty if it lies outside and is extrapolated.
std::vector<Tap> Taps(const Mode& mode, const Axis& a, int64_t i) {
  double x = Source(mode, a, i);
  if (mode.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(a.in - 1)))
    return {};
  auto clamp = [&](double index) {
    return static_cast<int64_t>(std::clamp(index, 0.0, static_cast<double>(a.in - 1)));
  };
  if (mode.kind == "nearest") {
    bool up = mode.nearest == "ceil" || (mode.nearest == "simple" && a.scale < 1);
    double index = up                                     ? std::ceil(x)
                   : mode.nearest == "round_prefer_ceil"  ? std::floor(x + 0.5)
                   : mode.nearest == "round_prefer_floor" ? std::ceil(x - 0.5)
                                                          : std::floor(x);
    return {{clamp(index), 1}};
  }
  double support = mode.kind == "linear" ? 1 : 2;
  double narrow = mode.antialias ? std::min(a.scale, 1.0) : 1;
  double floor = std::floor(x), ratio = x - floor;
  int64_t first = static_cast<int64_t>(std::floor(-support / narrow)) + 1;
  int64_t count =
      static_cast<int64_t>(2 * support) - 2 * (first + static_cast<int64_t>(support) - 1);
  std::vector<Tap> taps;
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) {
    double t = (static_cast<double>(first + k) - ratio) * narrow;
    double weight =
        mode.kind == "linear" ? std::max(0.0, 1 - std::fabs(t)) : Cubic(t, mode.cubic_a);
    double index = floor + static_cast<double>(first + k);
    if (mode.exclude_outside && (index < 0 || index > static_cast<double>(a.in - 1))) weight = 0;
    if (weight == 0) continue;
    taps.push_back({clamp(index), weight});
    sum += weight;
  }
  if (mode.antialias || mode.exclude_outside)
    for (Tap& tap : taps) tap.weight /= sum;
  return taps;
}

// MIL's name for this coordinate transformation, or an empty string. MIL derives the scale from the
// sizes, so the scale must equal theirs.
std::string SamplingMode(const Mode& mode, const std::vector<Axis>& axes) {
  for (const Axis& a : axes) {
    double length =
        mode.coordinates == "align_corners" ? Length(a) : a.scale * static_cast<double>(a.in);
    if (length != static_cast<double>(a.out)) return "";
    if (a.out == 1) return "";
  }
  if (mode.coordinates == "align_corners") return "STRICT_ALIGN_CORNERS";
  if (mode.coordinates == "asymmetric") return "DEFAULT";
  if (mode.coordinates == "half_pixel" || mode.coordinates == "pytorch_half_pixel" ||
      mode.coordinates == "half_pixel_symmetric")
    return "UNALIGN_CORNERS";
  return "";
}

Value* SwappedWithLast(Node& node, Value* x, int axis) {
  int last = x->type.rank() - 1;
  if (axis == last) return x;
  std::vector<int64_t> perm = Consecutive(0, last + 1);
  std::swap(perm[axis], perm[last]);
  return Transposed(node, x, perm);
}

Value* AlongAxis(Node& node, Value* x, const Mode& mode, const Axis& a) {
  std::vector<std::vector<Tap>> rows(a.out);
  bool gather = true;
  for (int64_t i = 0; i < a.out; ++i) {
    rows[i] = Taps(mode, a, i);
    gather = gather && rows[i].size() == 1 && rows[i][0].weight == 1;
  }
  if (gather) {
    std::vector<int64_t> indices;
    for (const std::vector<Tap>& row : rows) indices.push_back(row[0].index);
    return node.Make("gather", {{"x", x}, {"indices", Ints(indices)}, {"axis", a.axis}});
  }
  if (!IsFloat(x->type.dtype))
    node.Unsupported("mode", "interpolation of integers is not supported");
  if (a.in * a.out > (int64_t{1} << 26))
    node.Fail("resource-limit",
              "an interpolation matrix of more than 64 Mi elements is not supported");
  // [in, out], so that the axis can be the last dimension.
  std::vector<double> matrix(static_cast<size_t>(a.in * a.out), 0.0);
  bool outside = false;
  std::vector<double> added(a.out, 0.0);
  for (int64_t i = 0; i < a.out; ++i) {
    for (const Tap& tap : rows[i]) matrix[tap.index * a.out + i] += tap.weight;
    if (rows[i].empty()) {
      outside = true;
      added[i] = mode.extrapolation;
    }
  }
  Value* weights = node.Const(Tensor::Of<double>({a.in, a.out}, matrix).Cast(x->type.dtype));
  x = node.Make("matmul", {{"x", SwappedWithLast(node, x, a.axis)}, {"y", weights}});
  if (outside) x = Binary(node, "add", x, Tensor::Of<double>({a.out}, added).Cast(x->type.dtype));
  return SwappedWithLast(node, x, a.axis);
}

// Returns whether x has rank 4 and the axes are among its last two dimensions.
bool IsImage(const Value* x, const std::vector<Axis>& axes) {
  return x->type.rank() == 4 &&
         std::ranges::all_of(axes, [](const Axis& a) { return a.axis >= 2; });
}

bool Replicates(const Mode& mode, const Axis& a) {
  if (a.out % a.in != 0) return false;
  int64_t factor = a.out / a.in;
  for (int64_t i = 0; i < a.out; ++i)
    if (std::vector<Tap> taps = Taps(mode, a, i); taps.size() != 1 || taps[0].index != i / factor)
      return false;
  return true;
}

Value* ResizeStatic(Node& node, Value* x, const Mode& mode, std::vector<Axis> axes) {
  // Axes that grow come last, which reduces the amount of computation.
  std::ranges::stable_sort(axes, [](const Axis& a, const Axis& b) {
    return static_cast<double>(a.out) / static_cast<double>(a.in) <
           static_cast<double>(b.out) / static_cast<double>(b.in);
  });
  std::erase_if(axes, [&](const Axis& a) {
    return a.in == a.out && a.scale == 1 && mode.coordinates != "tf_crop_and_resize";
  });
  if (axes.empty()) return node.Make("identity", {{"x", x}});
  bool native = IsImage(x, axes) && IsFloat(x->type.dtype);
  auto factor = [&](int axis) {
    for (const Axis& a : axes)
      if (a.axis == axis) return a.out / a.in;
    return int64_t{1};
  };
  if (native && mode.kind == "nearest" &&
      std::ranges::all_of(axes, [&](const Axis& a) { return Replicates(mode, a); }))
    return node.Make(
        "upsample_nearest_neighbor",
        {{"x", x}, {"scale_factor_height", factor(2)}, {"scale_factor_width", factor(3)}});
  // resize_bilinear takes target sizes for both height and width, so the size of an axis that is
  // not resized must be constant, too.
  if (native && mode.kind == "linear" && !mode.antialias && x->type.shape[2].is_constant() &&
      x->type.shape[3].is_constant()) {
    std::string sampling = SamplingMode(mode, axes);
    auto size = [&](int axis) {
      for (const Axis& a : axes)
        if (a.axis == axis) return a.out;
      return x->type.shape[axis].constant();
    };
    if (!sampling.empty() && size(2) > 1 && size(3) > 1)
      return node.Make("resize_bilinear", {{"x", x},
                                           {"target_size_height", size(2)},
                                           {"target_size_width", size(3)},
                                           {"sampling_mode", sampling}});
  }
  for (const Axis& a : axes) x = AlongAxis(node, x, mode, a);
  return x;
}

// An axis whose sizes are computed at run time.
struct OpenAxis {
  Axis known;       // only `scale`, `start` and `end` are valid; scale 0 means out / in
  Value *in, *out;  // int32 scalars
  Value* scale;     // fp32 scalar
};

Value* Float(Node& node, Value* x) { return node.builder().Cast(x, DType::kFp32); }
// `yes` if the integer x is greater than one, else `no`.
Value* Several(Node& node, Value* x, Value* yes, Value* no) {
  return Select(node, Binary(node, "greater", x, 1), yes, no);
}

// The run-time counterpart of Source(), for all output elements.
Value* Sources(Node& node, const Mode& mode, const OpenAxis& a) {
  Value* i = Float(node, Counting(node, a.out));
  Value *in = Float(node, a.in), *out = Float(node, a.out), *last = Binary(node, "sub", in, 1.0);
  const std::string& c = mode.coordinates;
  if (c == "asymmetric") return Binary(node, "real_div", i, a.scale);
  if (c == "align_corners") {
    Value* length = a.known.scale > 0 ? Binary(node, "mul", in, a.scale) : out;
    Value* steps = Binary(node, "maximum", Binary(node, "sub", length, 1.0), 1e-6);
    return Binary(node, "real_div", Binary(node, "mul", i, last), steps);
  }
  if (c == "tf_crop_and_resize") {
    double start = a.known.start, end = a.known.end;
    Value* steps = Binary(node, "maximum", Binary(node, "sub", out, 1.0), 1.0);
    Value* step = Binary(node, "real_div", Binary(node, "mul", last, end - start), steps);
    Value* centre = Binary(node, "mul", last, (start + end) / 2);
    Value* first = Several(node, a.out, Binary(node, "mul", last, start), centre);
    return Binary(node, "add", Binary(node, "mul", i, step), first);
  }
  Value* half = Binary(node, "real_div", Binary(node, "add", i, 0.5), a.scale);
  if (c == "tf_half_pixel_for_nn") return half;
  half = Binary(node, "sub", half, 0.5);
  if (c == "pytorch_half_pixel")
    return Binary(node, "mul", half, Float(node, Binary(node, "greater", a.out, 1)));
  if (c != "half_pixel_symmetric") return half;
  Value* whole = Binary(node, "real_div", out, Binary(node, "mul", in, a.scale));
  Value* centre = Binary(node, "mul", in, -0.5);
  Value* offset = Binary(node, "mul", Binary(node, "sub", whole, 1.0), centre);
  return Binary(node, "add", half, offset);
}

// The run-time counterpart of Cubic(), for all output elements.
Value* Cubic(Node& node, Value* t, double a) {
  t = Binary(node, "minimum", node.Make("abs", {{"x", t}}), 2.0);
  auto polynomial = [&](double c3, double c2, double c1, double c0) {
    Value* sum = Binary(node, "add", Binary(node, "mul", t, c3), c2);
    sum = Binary(node, "add", Binary(node, "mul", sum, t), c1);
    return Binary(node, "add", Binary(node, "mul", sum, t), c0);
  };
  Value* near = Float(node, Binary(node, "less_equal", t, 1.0));
  Value* far = Binary(node, "sub", Binary(node, "mul", near, -1.0), -1.0);
  far = Binary(node, "mul", polynomial(a, -5 * a, 8 * a, -4 * a), far);
  near = Binary(node, "mul", polynomial(a + 2, -(a + 3), 0, 1), near);
  return Binary(node, "add", near, far);
}

// The weight matrix [in, out]; each column holds the weights of one output element.
Value* Weights(Node& node, const Mode& mode, const OpenAxis& a, Value* x) {
  Value *in = Float(node, a.in), *last = Binary(node, "sub", in, 1.0);
  Value* j = Float(node, Counting(node, a.in));
  j = Expanded(node, j, {1});
  if (mode.kind == "linear") {
    x = Binary(node, "minimum", Binary(node, "maximum", x, 0.0), last);
    Value* far = node.Make("abs", {{"x", Binary(node, "sub", j, x)}});
    return Binary(node, "maximum", Binary(node, "add", Binary(node, "mul", far, -1.0), 1.0), 0.0);
  }
  Value* weights = Cubic(node, Binary(node, "sub", j, x), mode.cubic_a);
  if (mode.exclude_outside) {
    Value* sum = Reduced(node, "reduce_sum", weights, {0}, true);
    return Binary(node, "real_div", weights, sum);
  }
  // Two elements beyond each end replicate the elements at the ends.
  auto beyond = [&](Value* end, double step) {
    Value* sum = nullptr;
    for (double k : {step, 2 * step}) {
      Value* weight =
          Cubic(node, Binary(node, "sub", x, Binary(node, "add", end, k)), mode.cubic_a);
      sum = sum ? Binary(node, "add", sum, weight) : weight;
    }
    return Binary(node, "mul", Float(node, Binary(node, "equal", j, end)), sum);
  };
  weights = Binary(node, "add", weights, beyond(Binary(node, "mul", last, 0.0), -1));
  return Binary(node, "add", weights, beyond(last, 1));
}

Value* AlongOpenAxis(Node& node, Value* x, const Mode& mode, const OpenAxis& a) {
  Value *source = Sources(node, mode, a), *last = Binary(node, "sub", a.in, 1);
  int rank = x->type.rank(), axis = a.known.axis;
  Value* y = nullptr;
  if (mode.kind == "nearest") {
    auto rounded = [&](std::string_view op, double shift) {
      return node.Make(op, {{"x", shift == 0 ? source : Binary(node, "add", source, shift)}});
    };
    bool up = mode.nearest == "ceil" || (mode.nearest == "simple" && a.known.scale < 1);
    Value* place = up                                     ? rounded("ceil", 0)
                   : mode.nearest == "round_prefer_ceil"  ? rounded("floor", 0.5)
                   : mode.nearest == "round_prefer_floor" ? rounded("ceil", -0.5)
                                                          : rounded("floor", 0);
    place = node.builder().Cast(place, DType::kInt32);
    place = Binary(node, "maximum", Binary(node, "minimum", place, last), 0);
    y = node.Make("gather", {{"x", x}, {"indices", place}, {"axis", axis}});
  } else {
    if (!IsFloat(x->type.dtype))
      node.Unsupported("mode", "interpolation of integers is not supported");
    if (mode.antialias) node.Unsupported("antialias", "an input of constant size is required");
    Value* weights = node.builder().Cast(Weights(node, mode, a, source), x->type.dtype);
    y = node.Make("matmul", {{"x", SwappedWithLast(node, x, axis)}, {"y", weights}});
    y = SwappedWithLast(node, y, axis);
  }
  if (mode.coordinates != "tf_crop_and_resize") return y;
  Value* before = Binary(node, "less_equal", source, Float(node, last));
  Value* inside = Binary(node, "logical_and", Binary(node, "greater_equal", source, 0.0), before);
  inside = VectorAlong(node, inside, axis, rank);
  return Select(node, inside, y, Tensor::Full(y->type.dtype, {}, mode.extrapolation));
}

// Upsamples the height and width of images by integer factors; null if MIL has no operation for it.
Value* UpsampledImages(Node& node, Value* x, const Mode& mode, const std::vector<double>& scales) {
  int rank = x->type.rank();
  if (rank != 4 || scales[0] != 1 || scales[1] != 1) return nullptr;
  double height = scales[2], width = scales[3];
  if (height < 1 || width < 1 || height != std::floor(height) || width != std::floor(width))
    return nullptr;
  // Integer factors replicate elements for these combinations of modes (checked for every remainder
  // of i / factor).
  Axis probe_h{2, 5, static_cast<int64_t>(5 * height), height},
      probe_w{3, 5, static_cast<int64_t>(5 * width), width};
  if (mode.kind == "nearest" && Replicates(mode, probe_h) && Replicates(mode, probe_w))
    return node.Make("upsample_nearest_neighbor",
                     {{"x", x},
                      {"scale_factor_height", static_cast<int64_t>(height)},
                      {"scale_factor_width", static_cast<int64_t>(width)}});
  bool half = mode.coordinates == "half_pixel" || mode.coordinates == "pytorch_half_pixel" ||
              mode.coordinates == "half_pixel_symmetric";
  bool corners = mode.coordinates == "align_corners";
  if (mode.kind != "linear" || mode.antialias || (!half && !corners)) return nullptr;
  return node.Make("upsample_bilinear", {{"x", x},
                                         {"scale_factor_height", static_cast<int64_t>(height)},
                                         {"scale_factor_width", static_cast<int64_t>(width)},
                                         {"align_corners", corners},
                                         {"half_pixel_centers", half}});
}

// `sizes` are the output sizes of all axes; those that are not constant are elements of `size_of`.
Value* Apply(Node& node, const Mode& mode, const std::vector<double>& scales,
             const std::vector<Dim>& sizes, const std::vector<double>& roi,
             const std::function<Value*(int axis)>& size_of = {}) {
  Value* x = node.In(0);
  int rank = x->type.rank();
  const Shape shape = x->type.shape;
  std::vector<Axis> axes, open;
  std::vector<double> factors(rank, 1.0);  // 0: unknown
  for (int i = 0; i < rank; ++i) {
    Axis a{i, 0, 0, scales.empty() ? 0 : scales[i]};
    if (!roi.empty()) {
      a.start = roi[i];
      a.end = roi[rank + i];
    }
    if (!scales.empty() && !(scales[i] > 0 && scales[i] < 1e6))
      node.Fail("bad-attribute", "invalid scale {} for axis {}", scales[i], i);
    if (shape[i].is_constant() && (sizes.empty() || sizes[i].is_constant())) {
      a.in = shape[i].constant();
      a.out = sizes.empty()
                  ? static_cast<int64_t>(std::floor(static_cast<double>(a.in) * scales[i]))
                  : sizes[i].constant();
      if (a.in < 1 || a.out < 1)
        node.Fail("empty-tensor", "axis {} is empty: its size is {} and would become {}", i, a.in,
                  a.out);
      if (a.out != a.in && a.out > (int64_t{1} << 20))
        node.Fail("resource-limit", "axis {} would become too large: {} elements", i, a.out);
      if (scales.empty()) a.scale = static_cast<double>(a.out) / static_cast<double>(a.in);
      factors[i] = a.scale;
      axes.push_back(a);
      continue;
    }
    factors[i] = a.scale;
    if (!sizes.empty())
      if (std::optional<Dim> factor = DivideExactly(sizes[i], shape[i]);
          factor && factor->is_constant())
        factors[i] = static_cast<double>(factor->constant());
    if (factors[i] != 1 || mode.coordinates == "tf_crop_and_resize") open.push_back(a);
  }
  if (open.empty()) return ResizeStatic(node, x, mode, axes);
  if (Value* y = UpsampledImages(node, x, mode, factors)) return y;
  x = ResizeStatic(node, x, mode, axes);
  for (const Axis& a : open) {
    OpenAxis axis{a, DimOf(node, x, a.axis), nullptr, nullptr};
    Value* in = Float(node, axis.in);
    if (sizes.empty()) {
      axis.scale = node.Const(Tensor::Scalar(static_cast<float>(a.scale)));
      axis.out = node.builder().Cast(
          node.Make("floor", {{"x", Binary(node, "mul", in, axis.scale)}}), DType::kInt32);
    } else {
      axis.out = size_of(a.axis);
      axis.scale = Binary(node, "real_div", Float(node, axis.out), in);
    }
    x = AlongOpenAxis(node, x, mode, axis);
  }
  return x;
}

Mode ReadMode(Node& node) {
  Mode mode;
  mode.kind = node.String("mode", "nearest");
  if (mode.kind == "bilinear") mode.kind = "linear";
  if (mode.kind != "nearest" && mode.kind != "linear" && mode.kind != "cubic")
    node.Unsupported("mode", "unknown value \"{}\"", mode.kind);
  return mode;
}

// Upsample and Resize-10 take element i of the result from i / scale, rounded down; rounded up when
// downsampling, as in the data of test_resize_downsample_scales_nearest of that opset.
Mode OldMode(Node& node) {
  Mode mode = ReadMode(node);
  mode.coordinates = "asymmetric";
  mode.nearest = "simple";
  return mode;
}

// Resize-10 is the last form of Upsample.
void Upsample(Node& node) {
  Mode mode = OldMode(node);
  std::vector<double> scales;
  if (node.opset() >= 9) {
    scales = node.Constant(1, "scales").Doubles();
  } else if (node.opset() >= 7) {
    scales = node.Floats("scales");
  } else {
    scales = {1, 1, node.Float("height_scale"), node.Float("width_scale")};
  }
  if (static_cast<int>(scales.size()) != node.rank(0))
    node.Fail("bad-attribute", "the number of scales is not the rank of the input");
  node.Set(Apply(node, mode, scales, {}, {}));
}

void Resize(Node& node) {
  Mode mode = ReadMode(node);
  mode.coordinates = node.String("coordinate_transformation_mode", "half_pixel");
  mode.nearest = node.String("nearest_mode", "round_prefer_floor");
  static constexpr std::array kNearest = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil"};
  if (std::ranges::find(kNearest, mode.nearest) == kNearest.end())
    node.Unsupported("nearest_mode", "unknown value \"{}\"", mode.nearest);
  mode.cubic_a = node.Float("cubic_coeff_a", -0.75);
  mode.exclude_outside = node.Int("exclude_outside", 0) != 0;
  mode.extrapolation = node.Float("extrapolation_value", 0.0);
  mode.antialias = node.Int("antialias", 0) != 0 && mode.kind != "nearest";
  static constexpr std::array kCoordinates = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",  "align_corners",
      "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn"};
  if (std::ranges::find(kCoordinates, mode.coordinates) == kCoordinates.end())
    node.Unsupported("coordinate_transformation_mode", "unknown value \"{}\"", mode.coordinates);
  int rank = node.rank(0);
  std::vector<int64_t> axes = Consecutive(0, rank);
  if (node.Has("axes")) {
    axes = node.Ints("axes");
    for (int64_t& axis : axes) axis = node.Axis(axis, rank);
  }
  // Expands lists over `axes` to all axes.
  auto spread = [&](const auto& values, auto fill) {
    std::vector<std::decay_t<decltype(values[0])>> all(rank, fill);
    if (values.size() != axes.size())
      node.Fail("bad-operand", "{} scales or sizes are given for {} axes", values.size(),
                axes.size());
    for (size_t i = 0; i < axes.size(); ++i) all[axes[i]] = values[i];
    return all;
  };
  bool has_scales = node.HasInput(2);
  if (has_scales) {
    Tensor scales = node.ConstantOrNone(2);
    if (scales && scales.size() == 0)
      has_scales = false;  // in opsets 11 and 12, empty means omitted
  }
  std::vector<Node::Wanted> wanted;
  if (mode.coordinates == "tf_crop_and_resize") wanted.push_back({1, "roi"});
  if (has_scales)
    wanted.push_back({2, "scales"});
  else if (!node.Elements(3))
    wanted.push_back({3, "sizes"});
  node.WantConstants(wanted);
  std::vector<double> roi;
  if (mode.coordinates == "tf_crop_and_resize") {
    std::vector<double> given = node.Constant(1, "roi").Doubles();
    if (given.size() != 2 * axes.size())
      node.Fail("bad-operand", "the length of roi does not match the number of axes");
    roi.assign(2 * rank, 0.0);
    for (int i = 0; i < rank; ++i) roi[rank + i] = 1.0;
    for (size_t i = 0; i < axes.size(); ++i) {
      roi[axes[i]] = given[i];
      roi[rank + axes[i]] = given[axes.size() + i];
    }
  }
  std::string policy = node.String("keep_aspect_ratio_policy", "stretch");
  if (has_scales)
    return node.Set(Apply(node, mode, spread(node.Constant(2, "scales").Doubles(), 1.0), {}, roi));
  std::optional<std::vector<Dim>> sizes = node.Elements(3);
  if (!sizes) sizes.emplace(ToShape(node.ConstantInts(3, "sizes")));
  if (policy != "stretch") {
    // The smaller (or larger) factor applies to all axes; sizes are rounded half up (Resize-18).
    if (policy != "not_larger" && policy != "not_smaller")
      node.Unsupported("keep_aspect_ratio_policy", "unknown value \"{}\"", policy);
    double factor = policy == "not_larger" ? INFINITY : 0;
    if (sizes->size() != axes.size())
      node.Fail("bad-operand", "the number of sizes does not match the number of axes");
    for (size_t i = 0; i < axes.size(); ++i) {
      const Dim& in = node.shape(0)[axes[i]];
      if (!in.is_constant() || !(*sizes)[i].is_constant())
        node.Unsupported("keep_aspect_ratio_policy", "constant sizes are required");
      double f = static_cast<double>((*sizes)[i].constant()) / static_cast<double>(in.constant());
      factor = policy == "not_larger" ? std::min(factor, f) : std::max(factor, f);
    }
    for (size_t i = 0; i < axes.size(); ++i)
      (*sizes)[i] = static_cast<int64_t>(
          std::floor(factor * static_cast<double>(node.shape(0)[axes[i]].constant()) + 0.5));
    std::vector<double> scales(axes.size(), factor);
    std::vector<Dim> all(node.shape(0));
    for (size_t i = 0; i < axes.size(); ++i) all[axes[i]] = (*sizes)[i];
    return node.Set(Apply(node, mode, spread(scales, 1.0), all, roi));
  }
  std::vector<Dim> all(node.shape(0));
  if (sizes->size() != axes.size())
    node.Fail("bad-operand", "the number of sizes does not match the number of axes");
  for (size_t i = 0; i < axes.size(); ++i) all[axes[i]] = (*sizes)[i];
  node.Set(Apply(node, mode, {}, all, roi, [&](int axis) {
    if (all[axis].is_constant())
      return node.Const(Tensor::Scalar(static_cast<int32_t>(all[axis].constant())));
    int64_t at = std::ranges::find(axes, axis) - axes.begin();
    return Element(node, lower::AtRunTime(node, node.In(3), DType::kInt64), at, 0);
  }));
}

constexpr std::array kResizeRows = {
    NodeRow("Resize", Upsample, 10, 10).Direct(),
    NodeRow("Resize", Resize, 11).Direct(),
    NodeRow("Upsample", Upsample, 1, 9).Direct(),
};

}  // namespace

std::span<const NodeRow> ResizeRows() { return kResizeRows; }

}  // namespace mlc::onnx
