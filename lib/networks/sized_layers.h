// lib/networks/sized_layers.h - layers whose channels, kernels and groups are those of their tensors,
// for networks whose variants differ in these alone.
//
// x is a picture or map [1, C, H, W] unless said.
#pragma once

#include <string>
#include <vector>

#include "lib/networks/picture_network.h"

namespace mlc::networks {

// A sliding window; the kernel of a convolution is that of its weight.
struct Stride {
  int64_t stride = 1, dilation = 1;
  PictureWindow::Padding padding = PictureWindow::Padding::kHalf;
};

class SizedLayers {
 public:
  // `net` must outlive the object.
  explicit SizedLayers(PictureNetwork& net) : net_(net), b_(net.b()), layers_(net.layers()) {}

  PictureNetwork& net() { return net_; }
  Builder& b() { return b_; }
  Layers& layers() { return layers_; }
  // Returns whether name.weight is there.
  bool Has(const std::string& name) const { return layers_.Has(name + ".weight"); }
  // Counts the N for which a tensor name.N + `part` is there, from 0 on.
  int64_t Count(const std::string& name, const std::string& part = ".weight") const;

  // Convolves x with name.weight, plus name.bias if there is one.
  Value* Conv(const std::string& name, Value* x, const Stride& window = {});
  // The same with weights that are standardised for each channel of the output, then multiplied by
  // `scale`, and by name.gain [C, 1, 1, 1] if there is one.
  Value* StandardConv(const std::string& name, Value* x, const Stride& window, double epsilon,
                      double scale);
  // The same with so many zeros on all sides.
  Value* PaddedConv(const std::string& name, Value* x, int64_t stride, int64_t pad);
  // A batch norm and an activation.
  Value* Norm(const std::string& name, Value* x, Activation activation = Activation::kNone,
              double epsilon = 1e-5);
  // A convolution, a batch norm, and an activation.
  Value* ConvNorm(const std::string& conv, const std::string& norm, Value* x, const Stride& window,
                  Activation activation, double epsilon = 1e-5);
  // Convolution name.conv and batch norm name.bn.
  Value* Unit(const std::string& name, Value* x, const Stride& window, Activation activation,
              double epsilon = 1e-5) {
    return ConvNorm(name + ".conv", name + ".bn", x, window, activation, epsilon);
  }
  Value* Linear(const std::string& name, Value* x) { return layers_.Linear(name, x, -1); }
  // Squeeze and excitation by convolutions name.fc1 and name.fc2.
  Value* Squeezed(const std::string& name, Value* x, Activation activation = Activation::kRelu,
                  Activation gate = Activation::kSigmoid);
  // Scales channels by a convolution name.conv of their means along the channels (ECA-Net).
  Value* ScaledAlong(const std::string& name, Value* x);
  // One of the two, if name.fc1 or name.conv is there; else x.
  Value* Excited(const std::string& name, Value* x);
  // A block of ResNet: convolutions name.convN with norms name.bnN, two or three of them, plus the
  // shortcut; null: x itself, or name.downsample.0 and .1 of it.
  Value* Residual(const std::string& name, Value* x, int64_t stride, Value* shortcut = nullptr);
  // Multiplies x [..., C, H, W] by the vector `name` [C] along the channels, or returns x if there is
  // none; tokens: x is [..., C].
  Value* Scaled(const std::string& name, Value* x);
  Value* ScaledTokens(const std::string& name, Value* x);
  // Normalises all channels and positions of a group at once.
  Value* MapNorm(const std::string& name, Value* x, double epsilon = 1e-5, int64_t groups = 1);

  // Pooling; a mean counts positions of the padding only if `counts_padding`.
  Value* MaxPool(Value* x, int64_t kernel, int64_t stride, int64_t pad);
  Value* MeanPool(Value* x, int64_t kernel, int64_t stride, int64_t pad,
                  bool counts_padding = true);
  // Pooling whose last window may begin inside of the map and end beyond it (ceil_mode of torch).
  Value* MaxPoolBeyond(Value* x, int64_t kernel, int64_t stride);
  Value* MeanPoolBeyond(Value* x, int64_t kernel, int64_t stride);

  // Resizes x by repeating its elements.
  Value* Nearest(Value* x, int64_t height, int64_t width);
  // Attention of heads: queries and keys [1, N, S, H], values [1, N, S, V] -> [1, S, N * V]. Scores are
  // divided by the root of H; a bias is added.
  Value* Attended(Value* q, Value* k, Value* v, Value* bias = nullptr);
  // The biases [1, N, Q, K] of heads by the distance in both directions of places in a grid: rows of the
  // tensor `name` [N, height * width]. Queries are at each `stride`-th place.
  Value* DistanceBias(const std::string& name, int64_t heads, GridSize grid, int64_t stride = 1);

  Value* Add(Value* x, Value* y);
  Value* Mul(Value* x, Value* y);
  // The channels [begin, end).
  Value* Channels(Value* x, int64_t begin, int64_t end);

  // The outputs: logits by a linear layer of `pooled` [1, C], or without labels last_hidden_state and
  // pooler_output.
  void Classify(const std::string& name, Value* map, Value* pooled, int64_t labels);
  // The same with the mean of two classifiers, head and head_dist.
  void ClassifyTwice(Value* map, Value* pooled, int64_t labels);
  // Those of the mean of x.
  void ClassifyMean(const std::string& name, Value* x, int64_t labels);

 private:
  Value* Conv(const std::string& name, Value* x, const Stride& window,
              const std::vector<int64_t>& pad, Value* weight = nullptr);
  std::vector<int64_t> Padding(const std::string& name, const Value* x, const Stride& window);
  Value* Pool(const char* op, Value* x, int64_t kernel, int64_t stride,
              const std::vector<int64_t>& pad, bool counts_padding);

  PictureNetwork& net_;
  Builder& b_;
  Layers& layers_;
};

}  // namespace mlc::networks
