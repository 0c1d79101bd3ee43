#include "lib/lower/signal.h"

#include <cmath>
#include <numbers>

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"

namespace mlc::lower {

namespace {

// The transform of `length` numbers, truncated or padded to `size`.
struct Transform {
  int64_t length, size, bins;
  int64_t in = 2, out = 2;  // 2: complex, 1: real
  bool inverse = false;     // includes the factor 1 / size
  bool half = false;        // one-sided spectrum: omitted bins are conjugates of those present
};

// The dtype of tables for run-time values of the dtype of x.
DType TableType(const Value* x) {
  return x->type.dtype == DType::kFp16 ? DType::kFp16 : DType::kFp32;
}

// [length * in, bins * out]
Tensor TableOf(const Transform& t, DType dtype) {
  int64_t columns = t.bins * t.out;
  if (t.size > kGreatestTable || t.length * t.in > kGreatestTable / std::max<int64_t>(columns, 1))
    throw Error("resource-limit", "a Fourier transform of {} numbers to {} bins is too large",
                t.length, t.bins);
  std::vector<float> table(static_cast<size_t>(t.length * t.in * columns));
  for (int64_t n = 0; n < std::min(t.length, t.half ? t.size / 2 + 1 : t.size); ++n)
    for (int64_t k = 0; k < t.bins; ++k) {
      double angle =
          2 * std::numbers::pi * static_cast<double>(n * k % t.size) / static_cast<double>(t.size);
      double re = std::cos(angle), im = t.inverse ? std::sin(angle) : -std::sin(angle);
      // A bin and its mirror image are conjugates: their sum is twice the real part.
      double scale = t.inverse ? 1 / static_cast<double>(t.size) : 1;
      if (t.half && n > 0 && 2 * n != t.size) scale *= 2;
      float* row = &table[static_cast<size_t>(n * t.in * columns + k * t.out)];
      row[0] = static_cast<float>(re * scale);
      if (t.out == 2) row[1] = static_cast<float>(im * scale);
      if (t.in == 1) continue;
      row[columns] = static_cast<float>(-im * scale);
      if (t.out == 2) row[columns + 1] = static_cast<float>(re * scale);
    }
  return Tensor::Of({t.length * t.in, columns}, table).Cast(dtype);
}

// Transforms x [..., length, ..., in] along `axis`: [..., bins, ..., out].
Value* FourierTransform(Builder& b, Value* x, int axis, const Transform& t) {
  int rank = x->type.rank();
  // Moves the transformed dimension and the complex parts to the end, adjacent to each other.
  std::vector<int64_t> perm;
  for (int i = 0; i < rank - 1; ++i)
    if (i != axis) perm.push_back(i);
  perm.push_back(axis);
  perm.push_back(rank - 1);
  bool moved = axis != rank - 2;
  if (moved) x = Transposed(b, x, perm);
  Sizes flat(b), back(b);
  for (int i = 0; i < rank - 2; ++i) {
    flat.AddDim(x, i);
    back.AddDim(x, i);
  }
  flat.Add(t.length * t.in);
  back.Add({t.bins, t.out});
  x = b.Make("reshape", {{"x", x}, {"shape", flat.Make()}});
  x = Binary(b, "matmul", x, TableOf(t, TableType(x)));
  x = b.Make("reshape", {{"x", x}, {"shape", back.Make()}});
  if (!moved) return x;
  std::vector<int64_t> undo(rank);
  for (int i = 0; i < rank; ++i) undo[perm[i]] = i;
  return Transposed(b, x, undo);
}

}  // namespace

Value* DiscreteTransform(Builder& b, Value* x, int axis, std::optional<int64_t> size, bool inverse,
                         bool onesided) {
  const int last = x->type.rank() - 1;
  const Shape& shape = x->type.shape;
  if (last < 1) throw Error("bad-operand", "the input has no dimension to transform");
  if (axis == last)
    throw Error("bad-attribute",
                "axis must not be the last dimension, which holds real and imaginary parts");
  if (shape[last] != Dim(1) && shape[last] != Dim(2))
    throw Error("bad-operand",
                "the input is {}, expected a last dimension of 1 (real) or 2 (complex)",
                ToString(shape));
  if (!shape[axis].is_constant())
    throw Error("dynamic-shape", "the transformed dimension must be constant");
  Transform t{.length = shape[axis].constant(), .size = 0, .bins = 0};
  t.in = shape[last].constant();
  t.inverse = inverse;
  const bool to_real = inverse && onesided;
  t.size = size.value_or(to_real ? 2 * (t.length - 1) : t.length);
  if (t.size < 1 || t.length < 1) throw Error("empty-tensor", "the transformed dimension is empty");
  t.bins = onesided && !inverse ? t.size / 2 + 1 : t.size;
  t.half = to_real;
  t.out = to_real ? 1 : 2;
  return FourierTransform(b, x, axis, t);
}

// A convolution with the rows of the transform, multiplied by the window, as filters.
Value* ShortTimeTransform(Builder& b, Value* x, Value* window, std::optional<int64_t> length,
                          int64_t step, bool onesided) {
  const int rank = x->type.rank();
  const int64_t parts = rank == 3 && x->type.shape[2] == Dim(2) ? 2 : 1;
  if (rank < 2 || rank > 3 || (rank == 3 && parts == 1 && x->type.shape[2] != Dim(1)))
    throw Error("bad-operand", "signal is {}, expected [batch, length, 1 or 2]",
                ToString(x->type.shape));
  if (!window && !length) throw Error("bad-graph", "window or frame_length must be given");
  if (window && (window->type.rank() != 1 || !window->type.shape[0].is_constant()))
    throw Error("bad-operand", "window is {}, expected a vector of constant length",
                ToString(window->type.shape));
  Transform t{.length = 0, .size = 0, .bins = 0};
  t.size = length ? *length : window->type.shape[0].constant();
  if (window && window->type.shape[0] != Dim(t.size))
    throw Error("bad-operand", "window has {} elements, but frame_length is {}",
                window->type.shape[0].ToString(), t.size);
  if (t.size < 1) throw Error("empty-tensor", "the frames are empty");
  t.length = t.size;
  t.bins = onesided ? t.size / 2 + 1 : t.size;
  t.in = parts;
  if (parts == 2 && onesided)
    throw Error("unsupported-attribute", "onesided=1 is not allowed for complex signals");
  // [frame, parts, bins * 2] to filters [bins * 2, parts, frame].
  Tensor table = TableOf(t, TableType(x));
  Value* filters = b.Const(table.Reshaped({t.size, t.in, t.bins * 2}).Transposed({2, 1, 0}));
  if (window) filters = Binary(b, "mul", filters, window);
  Value* signal = x->type.rank() == 3 ? Transposed(b, x, {0, 2, 1}) : Expanded(b, x, {1});
  Value* frames = b.Make("conv", {{"x", signal}, {"weight", filters}, {"strides", Ints({step})}});
  frames = Transposed(b, frames, {0, 2, 1});
  Sizes sizes(b);
  sizes.AddDim(frames, 0);
  sizes.AddDim(frames, 1);
  sizes.Add({t.bins, 2});
  return b.Make("reshape", {{"x", frames}, {"shape", sizes.Make()}});
}

Tensor WindowOf(const Cosines& cosines, int64_t size, bool periodic) {
  std::vector<double> window(static_cast<size_t>(size));
  for (size_t i = 0; i < window.size(); ++i) {
    double x = 2 * std::numbers::pi * static_cast<double>(i) /
               static_cast<double>(periodic ? size : std::max<int64_t>(size - 1, 1));
    window[i] = cosines.a - cosines.b * std::cos(x) + cosines.c * std::cos(2 * x);
  }
  return Tensor::Vector(window);
}

Value* WindowAtRunTime(Builder& b, const Cosines& cosines, Value* size, bool periodic) {
  if (size->type.rank() > 0) size = Squeezed(b, size, {0});
  Value* last = periodic ? size : Binary(b, "sub", size, 1);
  last = b.Cast(Binary(b, "maximum", last, 1), DType::kFp32);
  Value* places = b.Cast(Counting(b, size), DType::kFp32);
  Value* x = Binary(b, "real_div", places, last);
  auto term = [&](double factor, double turns) {
    Value* angle = Binary(b, "mul", x, turns * 2 * std::numbers::pi);
    return Binary(b, "mul", b.Make("cos", {{"x", angle}}), factor);
  };
  Value* window = Binary(b, "sub", cosines.a, term(cosines.b, 1));
  return cosines.c == 0 ? window : Binary(b, "add", window, term(cosines.c, 2));
}

Tensor MelWeights(int64_t bands, int64_t length, int64_t rate, double lowest, double highest) {
  auto mel_of = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double low_mel = mel_of(lowest), high_mel = mel_of(highest);
  int64_t bins = length / 2 + 1;
  if (bins > kGreatestTable / bands)
    throw Error("resource-limit", "a matrix of {} x {} is too large", bins, bands);
  std::vector<int64_t> points;
  for (int64_t i = 0; i < bands + 2; ++i) {
    double mel =
        low_mel + static_cast<double>(i) * (high_mel - low_mel) / static_cast<double>(bands + 2);
    double hertz = 700 * (std::pow(10, mel / 2595) - 1);
    double point = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(point >= 0 && point < static_cast<double>(bins)))
      throw Error("bad-operand", "{} Hz is outside the spectrum", hertz);
    points.push_back(static_cast<int64_t>(point));
  }
  std::vector<double> matrix(static_cast<size_t>(bins * bands));
  for (int64_t i = 0; i < bands; ++i) {
    int64_t low = points[i], centre = points[i + 1], high = points[i + 2];
    auto at = [&](int64_t bin) -> double& { return matrix[static_cast<size_t>(bin * bands + i)]; };
    if (low == centre) at(centre) = 1;
    for (int64_t bin = low; low < centre && bin <= centre; ++bin)
      at(bin) = static_cast<double>(bin - low) / static_cast<double>(centre - low);
    for (int64_t bin = centre; bin < high; ++bin)
      at(bin) = static_cast<double>(high - bin) / static_cast<double>(high - centre);
  }
  return Tensor::Of({bins, bands}, matrix);
}

}  // namespace mlc::lower
