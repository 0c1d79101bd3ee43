#include "lib/networks/picture_network.h"

#include <algorithm>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/networks/attention.h"
#include "lib/networks/heads.h"
#include "lib/ops/row.h"

namespace mlc::networks {

void CheckPositive(std::initializer_list<std::pair<const char*, int64_t>> numbers) {
  for (const auto& [name, number] : numbers)
    if (number < 1 || number > INT32_MAX)
      throw Error("bad-file", "the {} is {}", name, number).Expected("1 to {}", INT32_MAX);
}

void CheckPositive(const char* name, const std::vector<int64_t>& numbers) {
  if (numbers.empty() || static_cast<int64_t>(numbers.size()) > kMaxLayers)
    throw Error("bad-file", "the list of {} has {} members", name, numbers.size())
        .Expected("1 to {}", kMaxLayers);
  for (int64_t number : numbers)
    if (number < 1 || number > INT32_MAX)
      throw Error("bad-file", "a member of the list of {} is {}", name, number)
          .Expected("1 to {}", INT32_MAX);
}

int64_t SizeAlong(const Value* x, size_t axis) { return x->type.shape[axis].constant(); }
int64_t Height(const Value* x) { return SizeAlong(x, 2); }
int64_t Width(const Value* x) { return SizeAlong(x, 3); }
int64_t Channels(const Value* x) { return SizeAlong(x, 1); }

PictureNetwork::PictureNetwork(const NetworkWeights& weights, const PictureInput& picture,
                               Diagnostics& diagnostics)
    : program_(&Ops()),
      main_(program_.Add("main")),
      b_(main_->body, diagnostics),
      layers_(b_, weights) {
  constexpr int64_t kMaxChannels = 1024, kMaxSide = 1 << 14;
  const GridSize size = picture.size;
  CheckPositive({{"number of channels of a picture", picture.channels},
                 {"height of a picture", size.height},
                 {"width of a picture", size.width}});
  if (picture.channels > kMaxChannels || size.height > kMaxSide || size.width > kMaxSide)
    throw Error("resource-limit", "pictures have {} channels and {} x {} pixels", picture.channels,
                size.height, size.width)
        .Expected("at most {} channels and {} x {} pixels", kMaxChannels, kMaxSide, kMaxSide);
  main_->opset = Opset::kIos15;
  pixels_ = AddPictureInput(b_, *main_, picture);
}

Value* PictureNetwork::ConvNorm(const std::string& name, Value* x, int64_t out,
                                const PictureWindow& window, Activation activation,
                                double epsilon) {
  b_.SetName(name);
  x = layers_.Convolution(name + ".conv", x, out, window);
  return Activate(b_, activation, layers_.BatchNorm(name + ".norm", x, epsilon));
}

Value* SqueezedAndExcited(Builder& b, Layers& layers, const std::string& name, Value* x,
                          Activation activation, Activation gate) {
  Value* mean = Reduced(b, "reduce_mean", x, {2, 3}, true);
  mean = Activate(b, activation, layers.Convolution(name + ".reduce", mean, -1, {}));
  mean = layers.Convolution(name + ".expand", mean, Channels(x), {});
  return Binary(b, "mul", x, Activate(b, gate, mean));
}

Value* PictureNetwork::Squeezed(const std::string& name, Value* x, Activation activation,
                                Activation gate) {
  return SqueezedAndExcited(b_, layers_, name, x, activation, gate);
}

Value* PictureNetwork::Pooled(Value* x, bool keep_dims) {
  return Reduced(b_, "reduce_mean", x, {2, 3}, keep_dims);
}

Value* PictureNetwork::Tokens(Value* x) {
  return Transposed(b_, WithShape(b_, x, {1, Channels(x), -1}), {0, 2, 1});
}

Value* PictureNetwork::Map(Value* tokens, int64_t height, int64_t width) {
  return WithShape(b_, Transposed(b_, tokens, {0, 2, 1}),
                   {1, tokens->type.shape[2].constant(), height, width});
}

Value* PictureNetwork::Resized(Value* x, int64_t height, int64_t width) {
  if (Height(x) == height && Width(x) == width) return x;
  return b_.Make("resize_bilinear", {{"x", x},
                                     {"target_size_height", height},
                                     {"target_size_width", width},
                                     {"sampling_mode", "UNALIGN_CORNERS"}});
}

Value* PictureNetwork::Attention(const std::string& name, Value* queries, Value* keys,
                                 Value* values, int64_t heads, std::vector<Value*> biases) {
  const int64_t width = queries->type.shape.back().constant();
  if (heads < 1 || width % heads != 0)
    throw Error("bad-file", "the width {} is not a multiple of the number of heads ({})", width,
                heads);
  auto split = [&](const char* part, Value* x) {
    return Heads(b_, layers_.Linear(name + part, x, width), heads);
  };
  Value* q = Binary(b_, "mul", split(".query", queries),
                    1 / std::sqrt(static_cast<double>(width / heads)));
  Value* k = split(".key", keys);
  AttentionParts parts{.q = q, .k = k, .v = split(".value", values)};
  parts.biases = std::move(biases);
  return layers_.Linear(name + ".output", Joined(b_, Attend(b_, parts).y), width);
}

void PictureNetwork::Output(const char* name, Value* y) {
  if (std::ranges::find(outputs_, y) != outputs_.end() || y == pixels_)
    y = b_.Make("identity", {{"x", y}});
  AddOutput(*main_, y, name);
  outputs_.push_back(y);
}

Program PictureNetwork::Finish() {
  main_->body.SetOutputs(outputs_);
  return std::move(program_);
}

}  // namespace mlc::networks
