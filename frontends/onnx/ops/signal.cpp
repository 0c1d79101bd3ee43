// Fourier transforms as products with constant sines and cosines, and the windows that go with
// them.
#include <cmath>
#include <numbers>

#include "frontends/onnx/row.h"
#include "lib/ir/sizes.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

constexpr int64_t kGreatestTable = int64_t{1} << 26;  // elements of a table

int64_t OneInteger(Node& node, int input, std::string_view name, int64_t low, int64_t high) {
  Tensor tensor = node.Constant(input, name);
  if (tensor.size() != 1 || !IsInteger(tensor.dtype()))
    node.Fail("bad-operand", fmt::format("{} must be one integer", name));
  int64_t value = tensor.Int(0);
  if (value < low || value > high)
    node.Fail("bad-operand", fmt::format("{} is {}, expected {} to {}", name, value, low, high));
  return value;
}

// Core ML's type for tables beside run-time values of x's type.
DType TableType(const Value* x) {
  return x->type.dtype == DType::kFp16 ? DType::kFp16 : DType::kFp32;
}

// The transform of `length` numbers, cut or padded to `size`, as a table [length * in, bins * out]
// of pairs: `in` and `out` are 2 for complex numbers, 1 for real ones.
struct Transform {
  int64_t length, size, bins, in = 2, out = 2;
  bool inverse = false, half = false;  // half: the bins that are left out mirror those given

  Tensor Table(Node& node, DType dtype) const {
    int64_t columns = bins * out;
    if (size > kGreatestTable || length * in > kGreatestTable / std::max<int64_t>(columns, 1))
      node.Fail("resource-limit", fmt::format("a transform of {} numbers to {}", length, bins));
    std::vector<float> table(static_cast<size_t>(length * in * columns));
    for (int64_t n = 0; n < std::min(length, half ? size / 2 + 1 : size); ++n)
      for (int64_t k = 0; k < bins; ++k) {
        double angle =
            2 * std::numbers::pi * static_cast<double>(n * k % size) / static_cast<double>(size);
        double re = std::cos(angle), im = inverse ? std::sin(angle) : -std::sin(angle);
        // A bin and its mirror image are conjugate: together twice the real part.
        double scale = inverse ? 1 / static_cast<double>(size) : 1;
        if (half && n > 0 && 2 * n != size) scale *= 2;
        float* row = &table[static_cast<size_t>(n * in * columns + k * out)];
        row[0] = static_cast<float>(re * scale);
        if (out == 2) row[1] = static_cast<float>(im * scale);
        if (in == 1) continue;
        row[columns] = static_cast<float>(-im * scale);
        if (out == 2) row[columns + 1] = static_cast<float>(re * scale);
      }
    return Tensor::Of({length * in, columns}, table).Cast(dtype);
  }
};

void Dft(Node& node) {
  if (node.opset() < 20)
    node.WantConstants({{1, "dft_length"}});
  else
    node.WantConstants({{1, "dft_length"}, {2, "axis"}});
  Value* x = node.In(0);
  int rank = x->type.rank();
  bool inverse = node.Int("inverse", 0) != 0, onesided = node.Int("onesided", 0) != 0;
  if (rank < 2) node.Fail("bad-operand", "its input has no dimension for the transform");
  int64_t at = node.opset() < 20  ? node.Int("axis", 1)
               : node.HasInput(2) ? OneInteger(node, 2, "axis", -rank, rank - 1)
                                  : -2;
  int axis = node.Axis(at, rank);
  const Shape shape = x->type.shape;
  if (axis == rank - 1) node.Fail("bad-attribute", "axis is that of the real and imaginary parts");
  if (shape[rank - 1] != Dim(1) && shape[rank - 1] != Dim(2))
    node.Fail("bad-operand", fmt::format("its input is {}, expected 1 or 2 parts of a number last",
                                         ToString(shape)));
  if (!shape[axis].is_constant())
    node.Fail("dynamic-shape", "the length of the transformed dimension is not known");
  Transform t;
  t.length = shape[axis].constant();
  t.in = shape[rank - 1].constant();
  t.inverse = inverse;
  bool to_real = inverse && onesided;  // the half that is given stands for a real signal's spectrum
  t.size = node.HasInput(1) ? OneInteger(node, 1, "dft_length", 1, kGreatestTable)
           : to_real        ? 2 * (t.length - 1)
                            : t.length;
  if (t.size < 1 || t.length < 1) node.Fail("empty-tensor", "a transform of nothing");
  t.bins = onesided && !inverse ? t.size / 2 + 1 : t.size;
  t.half = to_real;
  t.out = to_real ? 1 : 2;

  // Transformed dimension and parts last, side by side.
  std::vector<int64_t> perm;
  for (int i = 0; i < rank - 1; ++i)
    if (i != axis) perm.push_back(i);
  perm.push_back(axis);
  perm.push_back(rank - 1);
  bool moved = axis != rank - 2;
  if (moved) x = node.Make("transpose", {{"x", x}, {"perm", Ints(perm)}});
  Sizes flat(node), back(node);
  for (int i = 0; i < rank - 2; ++i) {
    flat.AddDim(x, i);
    back.AddDim(x, i);
  }
  flat.Add(t.length * t.in);
  back.Add({t.bins, t.out});
  x = node.Make("reshape", {{"x", x}, {"shape", flat.Make()}});
  x = node.Make("matmul", {{"x", x}, {"y", t.Table(node, TableType(x))}});
  x = node.Make("reshape", {{"x", x}, {"shape", back.Make()}});
  if (moved) {
    std::vector<int64_t> undo(rank);
    for (int i = 0; i < rank; ++i) undo[perm[i]] = i;
    x = node.Make("transpose", {{"x", x}, {"perm", Ints(undo)}});
  }
  node.Set(x, node.dtype());
}

// A convolution whose filters are the rows of the transform, times the window.
void Stft(Node& node) {
  node.WantConstants({{1, "frame_step"}, {3, "frame_length"}});
  Value* x = node.In(0);
  bool onesided = node.Int("onesided", 1) != 0;
  int rank = x->type.rank();
  int64_t parts = rank == 3 && x->type.shape[2] == Dim(2) ? 2 : 1;
  if (rank < 2 || rank > 3 || (rank == 3 && parts == 1 && x->type.shape[2] != Dim(1)))
    node.Fail("bad-operand", fmt::format("signal is {}, expected [batch, length, 1 or 2]",
                                         ToString(x->type.shape)));
  Value* window = node.Optional(2);
  if (!window && !node.HasInput(3)) node.Fail("bad-graph", "has no window and no frame_length");
  if (window && (window->type.rank() != 1 || !window->type.shape[0].is_constant()))
    node.Fail("bad-operand", fmt::format("window is {}, expected a vector of known length",
                                         ToString(window->type.shape)));
  Transform t;
  t.size = node.HasInput(3) ? OneInteger(node, 3, "frame_length", 1, kGreatestTable)
                            : window->type.shape[0].constant();
  if (window && window->type.shape[0] != Dim(t.size))
    node.Fail("bad-operand", fmt::format("window has {} elements, a frame {}",
                                         window->type.shape[0].ToString(), t.size));
  t.length = t.size;
  t.bins = onesided ? t.size / 2 + 1 : t.size;
  t.in = parts;
  if (parts == 2 && onesided) node.Unsupported("onesided", "onesided=1 with complex numbers");
  int64_t step = OneInteger(node, 1, "frame_step", 1, kGreatestTable);

  // [frame, parts, bins * 2] to filters [bins * 2, parts, frame].
  Tensor table = t.Table(node, TableType(x));
  Value* filters = node.Const(table.Reshaped({t.size, parts, t.bins * 2}).Transposed({2, 1, 0}));
  if (window)
    filters = node.Make("mul", {{"x", filters}, {"y", AtRunTime(node, window, node.dtype(2))}});
  Value* signal = rank == 3 ? node.Make("transpose", {{"x", x}, {"perm", Ints({0, 2, 1})}})
                            : node.Make("expand_dims", {{"x", x}, {"axes", Ints({1})}});
  Value* frames =
      node.Make("conv", {{"x", signal}, {"weight", filters}, {"strides", Ints({step})}});
  frames = node.Make("transpose", {{"x", frames}, {"perm", Ints({0, 2, 1})}});
  Sizes sizes(node);
  sizes.AddDim(frames, 0);
  sizes.AddDim(frames, 1);
  sizes.Add({t.bins, 2});
  node.Set(node.Make("reshape", {{"x", frames}, {"shape", sizes.Make()}}), node.dtype());
}

DType TableOf(Node& node) {
  DType dtype = ToDType(static_cast<int>(node.Int("output_datatype", 1)));
  if (RuntimeType(dtype) == DType::kNone)
    node.Fail("unsupported-dtype", fmt::format("a result of {}", Name(dtype)));
  return dtype;
}

// a - b * cos(x) + c * cos(2 * x) for x from 0 to (almost, when periodic) 2 pi; the factors are
// those of the operators' function bodies.
struct Cosines {
  double a, b, c;
};
constexpr Cosines kHann = {0.5, 0.5, 0}, kHamming = {25.0 / 46, 21.0 / 46, 0},
                  kBlackman = {0.42, 0.5, 0.08};

// A window whose size the run time knows.
Value* WindowAtRunTime(Node& node, const Cosines& cosines, bool periodic) {
  Value* size = node.In(0);
  if (size->type.rank() > 0) size = node.Make("squeeze", {{"x", size}, {"axes", Ints({0})}});
  Value* last = periodic ? size : node.Make("sub", {{"x", size}, {"y", 1}});
  last = node.builder().Cast(node.Make("maximum", {{"x", last}, {"y", 1}}), DType::kFp32);
  Value* places = node.builder().Cast(
      node.Make("range_1d", {{"end", size}, {"start", 0}, {"step", 1}}), DType::kFp32);
  Value* x = node.Make("real_div", {{"x", places}, {"y", last}});
  auto term = [&](double factor, double turns) {
    Value* angle = node.Make("mul", {{"x", x}, {"y", turns * 2 * std::numbers::pi}});
    return node.Make("mul", {{"x", node.Make("cos", {{"x", angle}})}, {"y", factor}});
  };
  Value* window = node.Make("sub", {{"x", cosines.a}, {"y", term(cosines.b, 1)}});
  return cosines.c == 0 ? window : node.Make("add", {{"x", window}, {"y", term(cosines.c, 2)}});
}

template <const Cosines& kCosines>
void Window(Node& node) {
  DType dtype = TableOf(node);
  bool periodic = node.Int("periodic", 1) != 0;
  if (!node.ConstantOrNone(0) && !node.Elements(0)) {
    if (Product(node.shape(0)) != Dim(1)) node.Fail("bad-operand", "size must be one integer");
    Value* window = WindowAtRunTime(node, kCosines, periodic);
    return node.Set(Convert(node, window, DType::kFp32, dtype), dtype);
  }
  int64_t size = OneInteger(node, 0, "size", 0, kGreatestTable);
  std::vector<double> window(static_cast<size_t>(size));
  for (size_t i = 0; i < window.size(); ++i) {
    double x = 2 * std::numbers::pi * static_cast<double>(i) /
               static_cast<double>(periodic ? size : std::max<int64_t>(size - 1, 1));
    window[i] = kCosines.a - kCosines.b * std::cos(x) + kCosines.c * std::cos(2 * x);
  }
  node.Set(node.Const(Tensor::Vector(window).Cast(dtype)), dtype);
}

// Triangles over the bins of a spectrum, spaced evenly in mel, as the operator's reference has
// them.
void MelWeightMatrix(Node& node) {
  DType dtype = TableOf(node);
  node.WantConstants({{0, "num_mel_bins"},
                      {1, "dft_length"},
                      {2, "sample_rate"},
                      {3, "lower_edge_hertz"},
                      {4, "upper_edge_hertz"}},
                     "the result's shape depends on data");
  int64_t bands = OneInteger(node, 0, "num_mel_bins", 1, 1 << 16),
          length = OneInteger(node, 1, "dft_length", 1, 1 << 24),
          rate = OneInteger(node, 2, "sample_rate", 1, 1 << 30);
  double edges[2];
  for (int i = 0; i < 2; ++i) {
    Tensor tensor = node.Constant(3 + i, i ? "upper_edge_hertz" : "lower_edge_hertz");
    if (tensor.size() != 1 || !IsFloat(tensor.dtype()))
      node.Fail("bad-operand", "an edge must be one floating-point number");
    edges[i] = 2595 * std::log10(1 + tensor.Double(0) / 700);
  }
  int64_t bins = length / 2 + 1;
  if (bins > kGreatestTable / bands)
    node.Fail("resource-limit", fmt::format("a matrix of {} by {}", bins, bands));
  std::vector<int64_t> points;
  for (int64_t i = 0; i < bands + 2; ++i) {
    double mel =
        edges[0] + static_cast<double>(i) * (edges[1] - edges[0]) / static_cast<double>(bands + 2);
    double hertz = 700 * (std::pow(10, mel / 2595) - 1);
    double point = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(point >= 0 && point < static_cast<double>(bins)))
      node.Fail("bad-operand", fmt::format("{} Hz is outside the spectrum", hertz));
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
  node.Set(node.Const(Tensor::Of({bins, bands}, matrix).Cast(dtype)), dtype);
}

constexpr NodeRow kRows[] = {
    {"BlackmanWindow", Window<kBlackman>, 17},
    {"DFT", Dft, 17},
    {"HammingWindow", Window<kHamming>, 17},
    {"HannWindow", Window<kHann>, 17},
    NodeRow("MelWeightMatrix", MelWeightMatrix, 17).Folded(),
    {"STFT", Stft, 17},
};

}  // namespace

std::span<const NodeRow> SignalRows() { return kRows; }

}  // namespace mlc::onnx
