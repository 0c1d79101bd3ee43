// Fourier transforms and window functions.
#include "lib/lower/signal.h"

#include "frontends/onnx/row.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

int64_t OneInteger(Node& node, int input, std::string_view name, int64_t low, int64_t high) {
  Tensor tensor = node.Constant(input, name);
  if (tensor.size() != 1 || !IsInteger(tensor.dtype()))
    node.Fail("bad-operand", "{} must be a single integer", name);
  int64_t value = tensor.Int(0);
  if (value < low || value > high)
    node.Fail("bad-operand", "{} is {}, expected {} to {}", name, value, low, high);
  return value;
}

void Dft(Node& node) {
  if (node.opset() < 20)
    node.WantConstants({{1, "dft_length"}});
  else
    node.WantConstants({{1, "dft_length"}, {2, "axis"}});
  Value* x = node.In(0);
  int rank = x->type.rank();
  bool inverse = node.Int("inverse", 0) != 0, onesided = node.Int("onesided", 0) != 0;
  if (rank < 2) node.Fail("bad-operand", "the input has no dimension to transform");
  int64_t at = node.opset() < 20  ? node.Int("axis", 1)
               : node.HasInput(2) ? OneInteger(node, 2, "axis", -rank, rank - 1)
                                  : -2;
  int axis = node.Axis(at, rank);
  const Shape shape = x->type.shape;
  if (axis == rank - 1)
    node.Fail("bad-attribute",
              "axis must not be the last dimension, which holds real and imaginary parts");
  if (shape[rank - 1] != Dim(1) && shape[rank - 1] != Dim(2))
    node.Fail("bad-operand",
              "the input is {}, expected a last dimension of 1 (real) or 2 (complex)",
              ToString(shape));
  if (!shape[axis].is_constant())
    node.Fail("dynamic-shape", "the transformed dimension must be constant");
  lower::Transform t;
  t.length = shape[axis].constant();
  t.in = shape[rank - 1].constant();
  t.inverse = inverse;
  bool to_real = inverse && onesided;  // a onesided inverse transform gives a real signal
  t.size = node.HasInput(1) ? OneInteger(node, 1, "dft_length", 1, lower::kGreatestTable)
           : to_real        ? 2 * (t.length - 1)
                            : t.length;
  if (t.size < 1 || t.length < 1) node.Fail("empty-tensor", "the transformed dimension is empty");
  t.bins = onesided && !inverse ? t.size / 2 + 1 : t.size;
  t.half = to_real;
  t.out = to_real ? 1 : 2;

  node.SetAlike(lower::FourierTransform(node, x, axis, t));
}

void Stft(Node& node) {
  node.WantConstants({{1, "frame_step"}, {3, "frame_length"}});
  Value* x = node.In(0);
  bool onesided = node.Int("onesided", 1) != 0;
  int rank = x->type.rank();
  int64_t parts = rank == 3 && x->type.shape[2] == Dim(2) ? 2 : 1;
  if (rank < 2 || rank > 3 || (rank == 3 && parts == 1 && x->type.shape[2] != Dim(1)))
    node.Fail("bad-operand", "signal is {}, expected [batch, length, 1 or 2]",
              ToString(x->type.shape));
  Value* window = node.Optional(2);
  if (!window && !node.HasInput(3)) node.Fail("bad-graph", "window or frame_length must be given");
  if (window && (window->type.rank() != 1 || !window->type.shape[0].is_constant()))
    node.Fail("bad-operand", "window is {}, expected a vector of constant length",
              ToString(window->type.shape));
  lower::Transform t;
  t.size = node.HasInput(3) ? OneInteger(node, 3, "frame_length", 1, lower::kGreatestTable)
                            : window->type.shape[0].constant();
  if (window && window->type.shape[0] != Dim(t.size))
    node.Fail("bad-operand", "window has {} elements, but frame_length is {}",
              window->type.shape[0].ToString(), t.size);
  t.length = t.size;
  t.bins = onesided ? t.size / 2 + 1 : t.size;
  t.in = parts;
  if (parts == 2 && onesided)
    node.Unsupported("onesided", "onesided=1 is not allowed for complex signals");
  int64_t step = OneInteger(node, 1, "frame_step", 1, lower::kGreatestTable);

  if (window) window = lower::AtRunTime(node, window, node.dtype(2));
  node.SetAlike(lower::ShortTimeTransform(node, x, window, t, step));
}

DType ResultType(Node& node) {
  DType dtype = ToDType(static_cast<int>(node.Int("output_datatype", 1)));
  node.RequireRunTimeType(dtype, "results");
  return dtype;
}

template <const lower::Cosines& kCosines>
void Window(Node& node) {
  DType dtype = ResultType(node);
  bool periodic = node.Int("periodic", 1) != 0;
  if (!node.ConstantOrNone(0) && !node.Elements(0)) {
    if (Product(node.shape(0)) != Dim(1)) node.Fail("bad-operand", "size must be a single integer");
    Value* window = lower::WindowAtRunTime(node, kCosines, node.In(0), periodic);
    return node.Set(lower::Convert(node, window, DType::kFp32, dtype), dtype);
  }
  int64_t size = OneInteger(node, 0, "size", 0, lower::kGreatestTable);
  node.Set(node.Const(lower::WindowOf(kCosines, size, periodic).Cast(dtype)), dtype);
}

void MelWeightMatrix(Node& node) {
  DType dtype = ResultType(node);
  node.WantConstants({{0, "num_mel_bins"},
                      {1, "dft_length"},
                      {2, "sample_rate"},
                      {3, "lower_edge_hertz"},
                      {4, "upper_edge_hertz"}},
                     "the output shape depends on data");
  int64_t bands = OneInteger(node, 0, "num_mel_bins", 1, 1 << 16),
          length = OneInteger(node, 1, "dft_length", 1, 1 << 24),
          rate = OneInteger(node, 2, "sample_rate", 1, 1 << 30);
  double edges[2];
  for (int i = 0; i < 2; ++i) {
    Tensor tensor = node.Constant(3 + i, i ? "upper_edge_hertz" : "lower_edge_hertz");
    if (tensor.size() != 1 || !IsFloat(tensor.dtype()))
      node.Fail("bad-operand",
                "lower_edge_hertz and upper_edge_hertz must be single floating-point numbers");
    edges[i] = tensor.Double(0);
  }
  Tensor weights = lower::MelWeights(bands, length, rate, edges[0], edges[1]);
  node.Set(node.Const(weights.Cast(dtype)), dtype);
}

constexpr NodeRow kSignalRows[] = {
    {"BlackmanWindow", Window<lower::kBlackman>, 17},
    {"DFT", Dft, 17},
    {"HammingWindow", Window<lower::kHamming>, 17},
    {"HannWindow", Window<lower::kHann>, 17},
    NodeRow("MelWeightMatrix", MelWeightMatrix, 17).Folded(),
    {"STFT", Stft, 17},
};

}  // namespace

std::span<const NodeRow> SignalRows() { return kSignalRows; }

}  // namespace mlc::onnx
