// lib/networks/layers.h - layers made from the weights of a network.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc::networks {

// The tensors of a network. Each network's header lists the names by which it asks for them, which
// end in .weight or .bias.
struct NetworkWeights {
  std::function<Tensor(const std::string&)> find;       // empty if the source has none
  std::function<std::string(const std::string&)> name;  // the name in the source, for messages
};

// The window of a convolution or pooling of pictures, and its padding with zeros.
struct PictureWindow {
  enum class Padding : uint8_t {
    kHalf,   // dilation * (kernel - 1) / 2 on all sides
    kNone,   //
    kSame,   // TensorFlow's: just as much as ceil(size / stride) windows need, an odd row or column
             // at the bottom or right
    kKeras,  // with a stride, one row and column less at the top and left than kHalf
  };
  int64_t kernel = 1, stride = 1, groups = 1, dilation = 1;
  Padding padding = Padding::kHalf;
};
// Returns the padding of x [1, C, H, W]: top, bottom, left, right.
std::vector<int64_t> PaddingOf(const Value* x, const PictureWindow& window);

// Makes layers from weights. A tensor that several layers use becomes one constant, which has its
// name in the source. Errors "missing-tensor" and "bad-tensor" (check_weights.h) give that name.
class Layers {
 public:
  // Both arguments must outlive the object.
  Layers(Builder& b, const NetworkWeights& weights) : b_(b), weights_(weights) {}

  bool Has(const std::string& name) const { return static_cast<bool>(weights_.find(name)); }
  // Returns a constant in fp32 with these dims, of which a leading -1 stands for any number of
  // rows; null if the source has no such tensor.
  Value* Optional(const std::string& name, Dims dims);
  Value* Needed(const std::string& name, const Dims& dims);
  // Returns the dims of a tensor, which must have this rank; a matrix is also a convolution of 1 x 1.
  Dims Sizes(const std::string& name, size_t rank);
  // Returns a vector of this size, which may be stored with further dimensions of 1.
  Value* Flat(const std::string& name, int64_t size);

  // Returns x [..., I] times name.weight [out, I], plus name.bias [out] if there is one. `out` -1:
  // any number of rows.
  Value* Linear(const std::string& name, Value* x, int64_t out);
  // Normalises the last dimension with name.weight and, if there is one, name.bias.
  Value* LayerNorm(const std::string& name, Value* x, double epsilon);
  Value* RmsNorm(const std::string& name, Value* x, double epsilon, bool scale_adds_one = false);
  // Convolves a picture x [1, C, H, W] with name.weight [out, C / groups, kernel, kernel], plus
  // name.bias [out] if there is one. `out` -1: any number of rows.
  Value* Convolution(const std::string& name, Value* x, int64_t out, const PictureWindow& window);
  // Normalises channels by the statistics name.running_mean and name.running_var, then scales them
  // by name.weight and adds name.bias.
  Value* BatchNorm(const std::string& name, Value* x, double epsilon);
  // LayerNorm of the channels of a picture x [1, C, H, W].
  Value* ChannelNorm(const std::string& name, Value* x, double epsilon);

 private:
  Value* Make(const std::string& name, const Tensor& tensor, const Dims& dims);

  Builder& b_;
  const NetworkWeights& weights_;
  std::map<std::string, Value*> made_;  // by name in the source
};

}  // namespace mlc::networks
