#include <algorithm>
#include <cmath>
#include <optional>

#include "lib/ops/narrow_result.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"

namespace mlc {

namespace {

// The sampling positions along an axis of a resized image; names and formulas follow coremltools'
// documentation of resize_bilinear.
enum class Sampling {
  kStrictAlignCorners,
  kAlignCorners,
  kUnalignCorners,
  kDefault,
  kOffsetCorners
};

Sampling ReadSampling(const OpContext& context) {
  std::string mode = context.String("sampling_mode");
  if (mode == "STRICT_ALIGN_CORNERS") return Sampling::kStrictAlignCorners;
  if (mode == "ALIGN_CORNERS") return Sampling::kAlignCorners;
  if (mode == "UNALIGN_CORNERS") return Sampling::kUnalignCorners;
  if (mode == "DEFAULT") return Sampling::kDefault;
  if (mode == "OFFSET_CORNERS") return Sampling::kOffsetCorners;
  context.Fail("unknown sampling_mode \"{}\"", mode);
}

// The position of point i of `out` points along an axis of `in` elements (a real number for boxes),
// before clamping to [0, in - 1].
double GridPoint(Sampling sampling, double in, int64_t out, int64_t i) {
  double n = static_cast<double>(out), at = static_cast<double>(i);
  switch (sampling) {
    case Sampling::kStrictAlignCorners:
      return out == 1 ? 0 : at * (in - 1) / (n - 1);
    case Sampling::kAlignCorners:
      return out == 1 ? (in - 1) / 2 : at * (in - 1) / (n - 1);
    case Sampling::kUnalignCorners:
      return (at + 0.5) * in / n - 0.5;
    case Sampling::kDefault:
      return at * in / n;
    case Sampling::kOffsetCorners:
      return (at + 0.5) * std::max(1.0, in - 1) / n;
  }
  return 0;
}

// One output element along an axis: (1 - weight) * x[low] + weight * x[high].
struct Tap {
  int64_t low, high;
  double weight;
};

Tap LinearTap(double point, int64_t in) {
  point = std::clamp(point, 0.0, static_cast<double>(in - 1));
  int64_t low = static_cast<int64_t>(point);
  return {low, std::min(low + 1, in - 1), point - static_cast<double>(low)};
}

// DEFAULT selects the element that contains the point, the other modes the nearest one. Computed in
// integers, because quotients such as 3 * (1 / 3) must not fall below an integer.
int64_t NearestIndex(Sampling sampling, int64_t in, int64_t out, int64_t i) {
  int64_t index = 0;
  switch (sampling) {
    case Sampling::kDefault:
      index = i * in / out;
      break;
    case Sampling::kUnalignCorners:
      index = (2 * i + 1) * in / (2 * out);
      break;
    case Sampling::kOffsetCorners:
      index = ((2 * i + 1) * std::max<int64_t>(1, in - 1) + out) / (2 * out);
      break;
    case Sampling::kStrictAlignCorners:
    case Sampling::kAlignCorners:
      if (out > 1)
        index = (2 * i * (in - 1) + out - 1) / (2 * (out - 1));
      else if (sampling == Sampling::kAlignCorners)
        index = in / 2;
  }
  return std::min(index, in - 1);
}

std::vector<Tap> Taps(Sampling sampling, bool nearest, int64_t in, int64_t out) {
  std::vector<Tap> taps(out);
  for (int64_t i = 0; i < out; ++i) {
    if (nearest) {
      int64_t index = NearestIndex(sampling, in, out, i);
      taps[i] = {index, index, 0};
    } else {
      taps[i] = LinearTap(GridPoint(sampling, static_cast<double>(in), out, i), in);
    }
  }
  return taps;
}

double Interpolate(double low, double high, double weight) {
  return weight == 0 ? low : (1 - weight) * low + weight * high;
}

// Resizes the last axes of x, one at a time, starting with the last.
void ResizeTo(EvalContext& context, Sampling sampling, bool nearest) {
  Tensor x = context.in("x");
  Dims dims = x.dims(), out = context.out_dims();
  std::vector<double> values = x.Doubles();
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    if (dims[axis] == out[axis]) {
      bool same = nearest || sampling != Sampling::kOffsetCorners;
      if (same) continue;
    }
    std::vector<Tap> taps = Taps(sampling, nearest, dims[axis], out[axis]);
    int64_t inner = ElementCount(Dims(dims.begin() + axis + 1, dims.end()));
    int64_t outer = ElementCount(Dims(dims.begin(), dims.begin() + axis)), in = dims[axis];
    std::vector<double> next(static_cast<size_t>(outer * out[axis] * inner));
    double* to = next.data();
    for (int64_t o = 0; o < outer; ++o)
      for (const Tap& tap : taps) {
        const double *low = &values[(o * in + tap.low) * inner],
                     *high = &values[(o * in + tap.high) * inner];
        for (int64_t i = 0; i < inner; ++i) *to++ = Interpolate(low[i], high[i], tap.weight);
      }
    values = std::move(next);
    dims[axis] = out[axis];
  }
  context.Set(Store(context.out_dtype(), out, values));
}

void CheckImage(const OpContext& context) {
  if (context.rank("x") < 3)
    context.Fail("x has {} dimensions, expected at least 3", context.rank("x"));
}

Dim TargetSize(const OpContext& context, std::string_view name) {
  int64_t size = context.Int(name);
  if (size < 1 || size > INT32_MAX)
    context.Fail("{} is {}, expected a positive number", name, size);
  return size;
}

void InferResizeTarget(InferContext& context) {
  CheckImage(context);
  Shape shape = context.shape("x");
  shape[shape.size() - 2] = TargetSize(context, "target_size_height");
  shape.back() = TargetSize(context, "target_size_width");
  context.Result(context.dtype("x"), std::move(shape));
}

void InferResizeBilinear(InferContext& context) {
  ReadSampling(context);
  InferResizeTarget(context);
}
// Samples at pixel centres, like TensorFlow's ResizeNearestNeighbor with half_pixel_centers, which
// coremltools lowers to this operator; it lowers the variant without half_pixel_centers to
// upsample_nearest_neighbor (frontend/tensorflow/ops.py).
void EvalResizeNearest(EvalContext& context) { ResizeTo(context, Sampling::kUnalignCorners, true); }

// floor(size * factor). A float is a fraction whose denominator is a power of two, so the result is
// exact for symbols as well.
Dim Scaled(const OpContext& context, const Dim& size, std::string_view name) {
  double factor = context.Double(name);
  if (!(factor > 0) || factor > 1 << 16)
    context.Fail("{} is {}, expected a positive number of at most 65536", name, factor);
  int64_t denominator = 1;
  for (; factor != std::floor(factor) && denominator < int64_t{1} << 24; denominator *= 2)
    factor *= 2;
  int64_t numerator = static_cast<int64_t>(factor);
  if (size.is_constant() && size.constant() > INT32_MAX / 256)
    context.Fail("x is too large for scaling");
  Dim scaled = FloorDiv(size * numerator, denominator);
  if (scaled.is_constant() && (scaled.constant() < 1 || scaled.constant() > INT32_MAX))
    context.Fail("{} results in a size of {}", name, scaled.constant());
  return scaled;
}

void InferUpsample(InferContext& context) {
  CheckImage(context);
  Shape shape = context.shape("x");
  Dim &height = shape[shape.size() - 2], &width = shape.back();
  height = Scaled(context, height, "scale_factor_height");
  width = Scaled(context, width, "scale_factor_width");
  context.Result(context.dtype("x"), std::move(shape));
}

void EvalUpsampleBilinear(EvalContext& context) {
  bool align = context.Bool("align_corners");
  bool half_pixel = context.has("half_pixel_centers") ? context.Bool("half_pixel_centers") : !align;
  ResizeTo(context,
           align        ? Sampling::kStrictAlignCorners
           : half_pixel ? Sampling::kUnalignCorners
                        : Sampling::kDefault,
           false);
}

bool IsNearest(const OpContext& context) {
  std::string mode = context.String("interpolation_mode");
  if (mode != "LINEAR" && mode != "NEAREST_NEIGHBOR")
    context.Fail("interpolation_mode \"{}\" is not LINEAR or NEAREST_NEIGHBOR", mode);
  return mode == "NEAREST_NEIGHBOR";
}

void InferResize(InferContext& context) {
  ReadSampling(context);
  IsNearest(context);
  Shape shape = context.shape("x");
  int64_t rank = static_cast<int64_t>(shape.size()), resized = context.Int("resized_dims");
  if (context.rank("shape") != 1) context.Fail("shape is not a vector");
  const Dim& given = context.shape("shape")[0];
  if (!given.is_constant()) context.Fail("the length of shape is unknown");
  if (resized < 0 || resized > given.constant() || given.constant() > rank)
    context.Fail(
        "resized_dims ({}) must not exceed the length of shape ({}), nor that the rank of x ({})",
        resized, given.constant(), rank);
  std::optional<std::vector<Dim>> elements = context.Elements("shape");
  for (int64_t i = 0; i < resized; ++i) {
    Dim& size = shape[rank - resized + i];
    if (!elements) {
      size = context.Fresh("size");
      continue;
    }
    const Dim& wanted = (*elements)[given.constant() - resized + i];
    if (wanted.is_constant() && (wanted.constant() < 0 || wanted.constant() > INT32_MAX))
      context.Fail("invalid size {} in shape", wanted.constant());
    if (!(wanted == Dim(0))) size = wanted;
  }
  context.Result(context.dtype("x"), std::move(shape));
}

void EvalResize(EvalContext& context) {
  Sampling sampling = ReadSampling(context);
  bool nearest = IsNearest(context);
  if (nearest && sampling == Sampling::kDefault)
    sampling = Sampling::kUnalignCorners;  // like resize_nearest_neighbor
  ResizeTo(context, sampling, nearest);
}

std::array<int64_t, 2> CropAmounts(const OpContext& context, std::string_view name) {
  std::vector<int64_t> amounts = context.Ints(name);
  if (amounts.size() != 2 || amounts[0] < 0 || amounts[1] < 0 ||
      std::max(amounts[0], amounts[1]) > INT32_MAX)
    context.Fail("{} must be two nonnegative numbers", name);
  return {amounts[0], amounts[1]};
}

void InferCrop(InferContext& context) {
  CheckImage(context);
  Shape shape = context.shape("x");
  for (auto [back, name] : {std::pair{2, "crop_height"}, std::pair{1, "crop_width"}}) {
    auto [before, after] = CropAmounts(context, name);
    Dim& size = shape[shape.size() - back];
    size = size - before - after;
    if (size.is_constant() && size.constant() < 1)
      context.Fail("{} removes all elements of x", name);
  }
  context.Result(context.dtype("x"), std::move(shape));
}

void EvalCrop(EvalContext& context) {
  Tensor x = context.in("x");
  Dims out = context.out_dims(), strides = StridesOf(x.dims());
  size_t rank = out.size();
  int64_t offset = CropAmounts(context, "crop_height")[0] * strides[rank - 2] +
                   CropAmounts(context, "crop_width")[0] * strides[rank - 1];
  Dispatch(x.dtype(), [&]<class T>(T) {
    Out<T> y(out);
    Pin<T> pinned = x.data<T>();
    const T* from = pinned.data() + offset;
    T* to = y.data.data();
    Walk<1>(out, {strides}, [&](int64_t i) { *to++ = from[i]; });
    context.Set(y.tensor);
  });
}

// The values outside the image, for a single axis; axes are independent.
enum class Padding { kConstant, kBorder, kReflection, kSymmetric };

double Reflect(double point, double low, double span) {
  if (span <= 0) return low;
  point = std::fmod(std::fabs(point - low), 2 * span);
  return low + (point > span ? 2 * span - point : point);
}

double Inside(double point, int64_t size, Padding padding) {
  double last = static_cast<double>(size - 1);
  if (padding == Padding::kReflection) point = Reflect(point, 0, last);
  if (padding == Padding::kSymmetric) point = Reflect(point, -0.5, last + 1);
  return point >= 0 ? std::min(point, last) : 0;  // also for NaN
}

// Converts a coordinate to a pixel position.
double PixelOf(double coordinate, int64_t size, const std::string& mode, bool align_corners) {
  double n = static_cast<double>(size);
  if (mode == "unnormalized") return coordinate;
  double unit = mode == "normalized_zero_to_one" ? coordinate : (coordinate + 1) / 2;
  return align_corners ? unit * (n - 1) : unit * n - 0.5;
}

struct Image {
  const double* data;
  int64_t height, width;
  double At(int64_t y, int64_t x, double outside) const {
    return y < 0 || x < 0 || y >= height || x >= width ? outside : data[y * width + x];
  }
  double Bilinear(double y, double x, double outside) const {
    if (!(y > -1 && x > -1 && y < static_cast<double>(height) && x < static_cast<double>(width)))
      return outside;
    double top = std::floor(y), left = std::floor(x);
    int64_t i = static_cast<int64_t>(top), j = static_cast<int64_t>(left);
    double upper = Interpolate(At(i, j, outside), At(i, j + 1, outside), x - left);
    double lower = Interpolate(At(i + 1, j, outside), At(i + 1, j + 1, outside), x - left);
    return Interpolate(upper, lower, y - top);
  }
  double Nearest(double y, double x, double outside) const {
    if (!(y > -1 && x > -1 && y < static_cast<double>(height) && x < static_cast<double>(width)))
      return outside;
    return At(static_cast<int64_t>(std::nearbyint(y)), static_cast<int64_t>(std::nearbyint(x)),
              outside);
  }
};

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string OneOf(const OpContext& context, std::string_view name,
                  std::initializer_list<std::string_view> allowed) {
  std::string value = Lower(context.String(name));
  if (std::ranges::find(allowed, value) == allowed.end())
    context.Fail("{} \"{}\" is not supported", name, value);
  return value;
}

Padding ReadPadding(const OpContext& context) {
  std::string mode =
      OneOf(context, "padding_mode", {"constant", "border", "reflection", "symmetric"});
  if (mode == "border") return Padding::kBorder;
  if (mode == "reflection") return Padding::kReflection;
  return mode == "symmetric" ? Padding::kSymmetric : Padding::kConstant;
}

void CheckRank(const OpContext& context, std::string_view name, int rank) {
  if (context.rank(name) != rank)
    context.Fail("{} has {} dimensions, expected {}", name, context.rank(name), rank);
}

void InferResample(InferContext& context) {
  CheckRank(context, "x", 4);
  CheckRank(context, "coordinates", 4);
  OneOf(context, "sampling_mode", {"bilinear", "nearest"});
  OneOf(context, "coordinates_mode",
        {"unnormalized", "normalized_minus_one_to_one", "normalized_zero_to_one"});
  ReadPadding(context);
  Shape shape = context.shape("x");
  const Shape& coordinates = context.shape("coordinates");
  if (shape[0].is_constant() && coordinates[0].is_constant() && !(shape[0] == coordinates[0]))
    context.Fail("x and coordinates have different batch sizes");
  if (coordinates[3].is_constant() && !(coordinates[3] == Dim(2)))
    context.Fail("the last dimension of coordinates must be 2");
  shape[2] = coordinates[1];
  shape[3] = coordinates[2];
  context.Result(context.dtype("x"), std::move(shape));
}

// Samples x [b, c, h, w] at points(b, y, x) = {pixel y, pixel x}.
template <class F>
void SampleAt(EvalContext& context, bool nearest, Padding padding, double outside, F&& points) {
  Tensor x = context.in("x");
  Dims in = x.dims(), out = context.out_dims();
  std::vector<double> values = x.Doubles(), y(ElementCount(out));
  double* to = y.data();
  for (int64_t b = 0; b < out[0]; ++b)
    for (int64_t c = 0; c < out[1]; ++c) {
      Image image{values.data() + (b * in[1] + c) * in[2] * in[3], in[2], in[3]};
      for (int64_t i = 0; i < out[2]; ++i)
        for (int64_t j = 0; j < out[3]; ++j) {
          auto [row, column] = points(b, i, j);
          if (padding != Padding::kConstant) {
            row = Inside(row, in[2], padding);
            column = Inside(column, in[3], padding);
          }
          *to++ =
              nearest ? image.Nearest(row, column, outside) : image.Bilinear(row, column, outside);
        }
    }
  context.Set(Store(context.out_dtype(), out, y));
}

void EvalResample(EvalContext& context) {
  Dims in = context.in("x").dims(), out = context.out_dims();
  std::string mode = Lower(context.String("coordinates_mode"));
  bool align = context.Bool("align_corners");
  std::vector<double> coordinates = context.in("coordinates").Doubles();
  SampleAt(
      context, Lower(context.String("sampling_mode")) == "nearest", ReadPadding(context),
      context.Double("padding_value"), [&](int64_t b, int64_t i, int64_t j) {
        const double* at = &coordinates[((b * out[2] + i) * out[3] + j) * 2];
        return std::pair{PixelOf(at[1], in[2], mode, align), PixelOf(at[0], in[3], mode, align)};
      });
}

void InferAffine(InferContext& context) {
  CheckRank(context, "x", 4);
  CheckRank(context, "transform_matrix", 2);
  OneOf(context, "sampling_mode", {"bilinear"});
  OneOf(context, "coordinates_mode", {"normalized_minus_one_to_one"});
  OneOf(context, "padding_mode", {"constant"});
  if (context.Double("padding_value") != 0) context.Fail("padding_value must be 0");
  if (!context.Bool("align_corners")) context.Fail("align_corners must be true");
  Shape shape = context.shape("x");
  const Shape& matrix = context.shape("transform_matrix");
  if (matrix[1].is_constant() && !(matrix[1] == Dim(6)))
    context.Fail("the last dimension of transform_matrix must be 6");
  if (matrix[0].is_constant() && shape[0].is_constant() && !(matrix[0] == Dim(1)) &&
      !(matrix[0] == shape[0]))
    context.Fail("transform_matrix and x have different batch sizes");
  shape[2] = TargetSize(context, "output_height");
  shape[3] = TargetSize(context, "output_width");
  context.Result(context.dtype("x"), std::move(shape));
}

void EvalAffine(EvalContext& context) {
  Dims in = context.in("x").dims(), out = context.out_dims();
  Tensor matrix = context.in("transform_matrix");
  std::vector<double> transforms = matrix.Doubles();
  auto unit = [](int64_t i, int64_t n) {
    return n == 1 ? -1.0 : 2.0 * static_cast<double>(i) / static_cast<double>(n - 1) - 1;
  };
  const std::string mode = "normalized_minus_one_to_one";
  SampleAt(context, false, Padding::kConstant, 0, [&](int64_t b, int64_t i, int64_t j) {
    const double* a = &transforms[matrix.dims()[0] == 1 ? 0 : b * 6];
    double x = unit(j, out[3]), y = unit(i, out[2]);
    return std::pair{PixelOf(a[3] * x + a[4] * y + a[5], in[2], mode, true),
                     PixelOf(a[0] * x + a[1] * y + a[2], in[3], mode, true)};
  });
}

// Boxes are `boxes` [n, 4] and `box_indices` [n] since iOS17, and `roi` [n, 1, 4 or 5, 1, 1]
// before.
void InferCropResize(InferContext& context) {
  CheckRank(context, "x", 4);
  ReadSampling(context);
  OneOf(context, "box_coordinate_mode",
        {"corners_height_first", "corners_width_first", "center_size_height_first",
         "center_size_width_first"});
  const Shape& x = context.shape("x");
  Dim height = TargetSize(context, "target_height"), width = TargetSize(context, "target_width");
  if (context.has("roi")) {
    CheckRank(context, "roi", 5);
    const Shape& roi = context.shape("roi");
    if (!(roi[2] == Dim(4)) && !(roi[2] == Dim(5)))
      context.Fail("the third dimension of roi must be 4 or 5");
    return context.Result(context.dtype("x"),
                          {roi[0], roi[2] == Dim(4) ? x[0] : Dim(1), x[1], height, width});
  }
  CheckRank(context, "boxes", 2);
  const Shape& boxes = context.shape("boxes");
  if (boxes[1].is_constant() && !(boxes[1] == Dim(4)))
    context.Fail("boxes must have the shape [n, 4]");
  if (context.has("box_indices")) {
    CheckRank(context, "box_indices", 1);
    const Dim& count = context.shape("box_indices")[0];
    if (count.is_constant() && boxes[0].is_constant() && !(count == boxes[0]))
      context.Fail("boxes and box_indices have different lengths");
  }
  context.Result(context.dtype("x"), {boxes[0], x[1], height, width});
}

Tensor CropResizeDefault(const OpContext& context, std::string_view) {
  if (!context.has("boxes") || context.rank("boxes") != 2 ||
      !context.shape("boxes")[0].is_constant())
    return {};
  int64_t count = context.shape("boxes")[0].constant();
  if (count > 1 << 20) return {};
  std::vector<int32_t> indices(count);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i);
  return Tensor::Vector(indices);
}

void EvalCropResize(EvalContext& context) {
  Tensor x = context.in("x");
  Dims in = x.dims(), out = context.out_dims();
  bool legacy = context.has("roi");
  Sampling sampling = ReadSampling(context);
  std::string mode = Lower(context.String("box_coordinate_mode"));
  bool normalized = context.Bool("normalized_coordinates");
  double scale = context.Double("spatial_scale"), outside = context.Double("pad_value");
  std::vector<double> numbers = context.in(legacy ? "roi" : "boxes").Doubles(),
                      values = x.Doubles();
  int64_t per_box = legacy ? context.in("roi").dims()[2] : 4;
  std::vector<int64_t> indices;
  if (!legacy) indices = context.in("box_indices").Ints();
  int64_t rows = out[out.size() - 2], columns = out.back(), images = legacy ? out[1] : 1;
  std::vector<double> y(ElementCount(out));
  double* to = y.data();
  for (int64_t n = 0; n < out[0]; ++n) {
    const double* box = &numbers[n * per_box + per_box - 4];
    double h0 = box[0], w0 = box[1], h1 = box[2], w1 = box[3];
    if (mode.ends_with("width_first")) {
      std::swap(h0, w0);
      std::swap(h1, w1);
    }
    if (mode.starts_with("center")) {
      double height = h1, width = w1;
      h1 = h0 + height / 2, h0 -= height / 2;
      w1 = w0 + width / 2, w0 -= width / 2;
    }
    double by_height = scale * (normalized ? static_cast<double>(in[2] - 1) : 1);
    double by_width = scale * (normalized ? static_cast<double>(in[3] - 1) : 1);
    h0 *= by_height, h1 *= by_height, w0 *= by_width, w1 *= by_width;
    // The grid spans the box in pixels; the end of a box may precede its start.
    auto grid = [&](double start, double end, int64_t count, int64_t i) {
      double point = GridPoint(sampling, end - start + 1, count, i);
      bool aligned =
          sampling == Sampling::kStrictAlignCorners || sampling == Sampling::kAlignCorners;
      return start + (aligned ? point : std::max(0.0, std::min(point, end - start)));
    };
    for (int64_t m = 0; m < images; ++m) {
      int64_t image = legacy ? (per_box == 5 ? static_cast<int64_t>(box[-1]) : m) : indices[n];
      if (image < 0 || image >= in[0])
        context.Fail("box {} refers to image {} of {}", n, image, in[0]);
      for (int64_t c = 0; c < in[1]; ++c) {
        Image plane{values.data() + (image * in[1] + c) * in[2] * in[3], in[2], in[3]};
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j) {
            double row = grid(h0, h1, rows, i), column = grid(w0, w1, columns, j);
            bool inside = row >= 0 && column >= 0 && row <= static_cast<double>(in[2] - 1) &&
                          column <= static_cast<double>(in[3] - 1);
            *to++ = inside ? plane.Bilinear(row, column, outside) : outside;
          }
      }
    }
  }
  context.Set(Store(context.out_dtype(), out, y));
}

// Positions outside of x have a constant value.
template <const std::string_view& kOutside>
Interval RangeWithOutside(const RangeContext& context, int) {
  return Join(context.in("x"), context.in(kOutside));
}
constexpr std::string_view kPadValue = "pad_value", kPaddingValue = "padding_value";

constexpr std::string_view kResample =
    "x:T coordinates:U sampling_mode:string! padding_mode:string! padding_value:T! "
    "coordinates_mode:string! align_corners:bool!";

constexpr OpRow kImageRows[] = {
    {.name = "affine",
     .doc = "bilinear samples of x [b, c, h, w] at output positions mapped by transform_matrix [b "
            "or 1, 6]",
     .signatures = {{{kIos15,
                      "x:T transform_matrix:T output_height:int32! output_width:int32! "
                      "sampling_mode:string! padding_mode:string! padding_value:T! "
                      "coordinates_mode:string! align_corners:bool! | T=fp16/fp32"}}},
     .infer = InferAffine,
     .eval = EvalAffine,
     .range = RangeWithOutside<kPaddingValue>},
    {.name = "crop",
     .doc = "x with rows and columns cropped from the last two dimensions",
     .signatures = {{{kIos15, "x:T crop_height:int32! crop_width:int32! | T=fp16/fp32"}}},
     .infer = InferCrop,
     .eval = EvalCrop,
     .moves = Moves::kView,
     .range = RangeOfX},
    {.name = "crop_resize",
     .doc = "boxes cropped from x [b, c, h, w], each resized bilinearly",
     .signatures =
         {{{kIos15,
            "x:T roi:T target_height:int32!=1 target_width:int32!=1 "
            "normalized_coordinates:bool!=false spatial_scale:fp32!=1.0 "
            "box_coordinate_mode:string!=CORNERS_HEIGHT_FIRST sampling_mode:string!=DEFAULT | "
            "T=fp16/fp32"},
           {kIos16,
            "x:T roi:T target_height:int32!=1 target_width:int32!=1 "
            "normalized_coordinates:bool!=false spatial_scale:fp32!=1.0 "
            "box_coordinate_mode:string!=CORNERS_HEIGHT_FIRST sampling_mode:string!=DEFAULT "
            "pad_value:T!=0.0 | T=fp16/fp32"},
           {kIos17,
            "x:T boxes:B? box_indices:I=* target_height:int32!=1 target_width:int32!=1 "
            "normalized_coordinates:bool!=false spatial_scale:fp32!=1.0 "
            "box_coordinate_mode:string!=CORNERS_HEIGHT_FIRST sampling_mode:string!=DEFAULT "
            "pad_value:T!=0.0 roi:T? | T=fp16/fp32 B=fp16/fp32/uint16 I=uint16/int32"}}},
     .infer = InferCropResize,
     .eval = EvalCropResize,
     .default_value = CropResizeDefault,
     .fp16 = {.wide = {"boxes", "roi"}},
     .range = RangeWithOutside<kPadValue>},
    {.name = "resample",
     .doc = "samples of x [b, c, h, w] at coordinates [b, h2, w2, 2], given as (x, y)",
     .signatures = {{{kIos15, kResample, "T=fp16/fp32 U=int32/fp32"},
                     {kIos16, kResample, "T=fp16/fp32 U=int32/fp16/fp32"},
                     {kIos17, kResample, "T=fp16/fp32 U=int8/uint8/int16/uint16/int32/fp16/fp32"}}},
     .infer = InferResample,
     .eval = EvalResample,
     .fp16 = {.wide = {"coordinates"}},
     .range = RangeWithOutside<kPaddingValue>},
    {.name = "resize",
     .doc = "x with its last resized_dims dimensions resized to the last elements of shape; 0 "
            "keeps the size",
     .signatures =
         {{{kIos17,
            "x:T shape:U resized_dims:uint32! interpolation_mode:string!=LINEAR "
            "sampling_mode:string!=DEFAULT | T=fp16/fp32/int32 U=int32/int16/uint16/uint32"}}},
     .infer = InferResize,
     .eval = EvalResize,
     .range = RangeOfX},
    {.name = "resize_bilinear",
     .doc = "x with its last two dimensions resized bilinearly to a given size",
     .signatures = {{{kIos15,
                      "x:T target_size_height:int32!=1 target_size_width:int32!=1 "
                      "sampling_mode:string!=DEFAULT | T=fp16/fp32"}}},
     .infer = InferResizeBilinear,
     .eval = [](EvalContext& context) { ResizeTo(context, ReadSampling(context), false); },
     .range = RangeOfX},
    {.name = "resize_nearest_neighbor",
     .doc = "x with its last two dimensions resized to a given size by nearest-neighbour sampling",
     .signatures = {{{kIos15,
                      "x:T target_size_height:int32! target_size_width:int32! | T=fp16/fp32"}}},
     .infer = InferResizeTarget,
     .eval = EvalResizeNearest,
     .range = RangeOfX},
    {.name = "upsample_bilinear",
     .doc = "x with its last two dimensions scaled bilinearly",
     .signatures =
         {{{kIos15,
            "x:T scale_factor_height:U!=1 scale_factor_width:U!=1 align_corners:bool!=true | "
            "T=fp16/fp32 U=int32/fp32"},
           {kIos16,
            "x:T scale_factor_height:U!=1 scale_factor_width:U!=1 align_corners:bool!=true "
            "half_pixel_centers:bool!? | T=fp16/fp32 U=int32/fp32"}}},
     .infer = InferUpsample,
     .eval = EvalUpsampleBilinear,
     .range = RangeOfX},
    {.name = "upsample_nearest_neighbor",
     .doc = "x with its last two dimensions scaled by repeating elements",
     .signatures =
         {{{kIos15,
            "x:T scale_factor_height:U!=1 scale_factor_width:U!=1 | T=fp16/fp32 U=fp32/int32"}}},
     .infer = InferUpsample,
     .eval = [](EvalContext& context) { ResizeTo(context, Sampling::kDefault, true); },
     .range = RangeOfX},
};

}  // namespace

std::span<const OpRow> ImageRows() { return kImageRows; }

}  // namespace mlc
