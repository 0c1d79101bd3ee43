// lib/networks/picture_network.h - the frame of networks that read one picture: ports, and the
// layers that they share.
//
//   input    pixel_values [1, C, H, W] (model_ports.h)
//   outputs  of classifiers: logits fp32 [1, labels]; of others: see each network
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "lib/ir/program.h"
#include "lib/networks/activation.h"
#include "lib/networks/layers.h"
#include "lib/networks/model_ports.h"
#include "lib/support/error.h"

namespace mlc::networks {

// Throws Error "bad-file" for numbers below 1, and for those above INT32_MAX.
void CheckPositive(std::initializer_list<std::pair<const char*, int64_t>> numbers);
void CheckPositive(const char* name, const std::vector<int64_t>& numbers);
// The largest number of layers, blocks or heads in a list.
inline constexpr int64_t kMaxLayers = 1024;

// Scales the channels of x [1, C, H, W] by a function of their means (squeeze and excitation):
// convolutions name.reduce, to any number of channels, and name.expand.
Value* SqueezedAndExcited(Builder& b, Layers& layers, const std::string& name, Value* x,
                          Activation activation, Activation gate = Activation::kSigmoid);

// Builds a program with the function `main`.
class PictureNetwork {
 public:
  // `weights` must outlive the object. Error "bad-file" for sizes of pictures that are not positive,
  // "resource-limit" for large ones.
  PictureNetwork(const NetworkWeights& weights, const PictureInput& picture,
                 Diagnostics& diagnostics);

  Builder& b() { return b_; }
  Layers& layers() { return layers_; }
  Value* pixels() const { return pixels_; }

  // Convolution name.conv, batch norm name.norm and an activation.
  Value* ConvNorm(const std::string& name, Value* x, int64_t out, const PictureWindow& window,
                  Activation activation, double epsilon = 1e-5);
  Value* Squeezed(const std::string& name, Value* x, Activation activation,
                  Activation gate = Activation::kSigmoid);
  // Returns the mean of all positions of x [1, C, H, W]: [1, C, 1, 1], or [1, C].
  Value* Pooled(Value* x, bool keep_dims);
  // Returns tokens [1, H W, C] of x [1, C, H, W], and the inverse.
  Value* Tokens(Value* x);
  Value* Map(Value* tokens, int64_t height, int64_t width);
  // Resizes x [1, C, H, W] bilinearly; corners are not aligned.
  Value* Resized(Value* x, int64_t height, int64_t width);
  // Multi-head attention from queries, keys and values [1, tokens, width], by their projections
  // name.query, name.key, name.value and name.output. Biases are added to the scores.
  Value* Attention(const std::string& name, Value* queries, Value* keys, Value* values,
                   int64_t heads, std::vector<Value*> biases = {});

  void Output(const char* name, Value* y);
  Program Finish();

 private:
  Program program_;
  Function* main_;
  Builder b_;
  Layers layers_;
  Value* pixels_;
  std::vector<Value*> outputs_;
};

// The sizes of a map [1, C, H, W], and of any dimension; they must be known.
int64_t SizeAlong(const Value* x, size_t axis);
int64_t Height(const Value* x);
int64_t Width(const Value* x);
int64_t Channels(const Value* x);

}  // namespace mlc::networks
