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
  const int rank = x->type.rank();
  if (rank < 2) node.Fail("bad-operand", "the input has no dimension to transform");
  const int64_t axis = node.opset() < 20  ? node.Int("axis", 1)
                       : node.HasInput(2) ? OneInteger(node, 2, "axis", -rank, rank - 1)
                                          : -2;
  std::optional<int64_t> size;
  if (node.HasInput(1)) size = OneInteger(node, 1, "dft_length", 1, lower::kGreatestTable);
  node.SetAlike(lower::DiscreteTransform(node, x, node.Axis(axis, rank), size,
                                         node.Int("inverse", 0) != 0,
                                         node.Int("onesided", 0) != 0));
}

void Stft(Node& node) {
  node.WantConstants({{1, "frame_step"}, {3, "frame_length"}});
  Value* window = node.Optional(2);
  std::optional<int64_t> length;
  if (node.HasInput(3)) length = OneInteger(node, 3, "frame_length", 1, lower::kGreatestTable);
  const int64_t step = OneInteger(node, 1, "frame_step", 1, lower::kGreatestTable);
  if (window) window = lower::AtRunTime(node, window, node.dtype(2));
  node.SetAlike(lower::ShortTimeTransform(node, node.In(0), window, length, step,
                                          node.Int("onesided", 1) != 0));
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
