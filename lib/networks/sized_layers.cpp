#include "lib/networks/sized_layers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "lib/ir/arithmetic.h"
#include "lib/networks/attention.h"
#include "lib/networks/heads.h"
#include "lib/networks/norms.h"

namespace mlc::networks {

int64_t SizedLayers::Count(const std::string& name, const std::string& part) const {
  int64_t count = 0;
  while (count < kMaxLayers && layers_.Has(fmt::format("{}.{}{}", name, count, part))) ++count;
  return count;
}

Value* SizedLayers::Conv(const std::string& name, Value* x, const Stride& window,
                         const std::vector<int64_t>& pad, Value* weight) {
  b_.SetName(name);
  const Dims sizes = layers_.Sizes(name + ".weight", 4);
  const int64_t channels = networks::Channels(x), in = sizes[1];
  if (channels % in != 0 || sizes[0] % (channels / in) != 0)
    throw Error("bad-tensor", "tensor \"{}.weight\" is [{}], for {} channels", name,
                fmt::join(sizes, ", "), channels)
        .Expected("groups of equal size");
  Builder::Args args = {{"x", x},
                        {"weight", weight ? weight : layers_.Needed(name + ".weight", sizes)},
                        {"strides", Ints({window.stride, window.stride})},
                        {"pad_type", "custom"},
                        {"pad", Ints(pad)},
                        {"dilations", Ints({window.dilation, window.dilation})},
                        {"groups", channels / in}};
  if (Value* bias = layers_.Optional(name + ".bias", {sizes[0]})) args.emplace_back("bias", bias);
  return b_.Make("conv", std::move(args));
}

std::vector<int64_t> SizedLayers::Padding(const std::string& name, const Value* x,
                                          const Stride& window) {
  const Dims sizes = layers_.Sizes(name + ".weight", 4);
  std::vector<int64_t> pad;
  for (size_t axis : {size_t{2}, size_t{3}}) {
    const std::vector<int64_t> all = PaddingOf(x, {.kernel = sizes[axis],
                                                   .stride = window.stride,
                                                   .dilation = window.dilation,
                                                   .padding = window.padding});
    pad.insert(pad.end(), {all[2 * axis - 4], all[2 * axis - 3]});
  }
  return pad;
}

Value* SizedLayers::Conv(const std::string& name, Value* x, const Stride& window) {
  return Conv(name, x, window, Padding(name, x, window));
}

Value* SizedLayers::PaddedConv(const std::string& name, Value* x, int64_t stride, int64_t pad) {
  return Conv(name, x, {.stride = stride}, {pad, pad, pad, pad});
}

Value* SizedLayers::StandardConv(const std::string& name, Value* x, const Stride& window,
                                 double epsilon, double scale) {
  const Dims sizes = layers_.Sizes(name + ".weight", 4);
  const Tensor stored = layers_.Needed(name + ".weight", sizes)->constant();
  const Pin<float> weight = stored.data<float>();
  const Value* gain = layers_.Optional(name + ".gain", {sizes[0], 1, 1, 1});
  const auto row = static_cast<size_t>(sizes[1] * sizes[2] * sizes[3]);
  std::vector<float> standard(weight.size());
  std::vector<double> factors(static_cast<size_t>(sizes[0]), scale);
  if (gain) {
    const Pin<float> gains = gain->constant().data<float>();
    for (size_t out = 0; out < factors.size(); ++out) factors[out] *= gains[out];
  }
  for (size_t out = 0; out < factors.size(); ++out) {
    const size_t begin = out * row;
    double mean = 0, variance = 0;
    for (size_t i = begin; i < begin + row; ++i) mean += weight[i];
    mean /= static_cast<double>(row);
    for (size_t i = begin; i < begin + row; ++i)
      variance += (weight[i] - mean) * (weight[i] - mean);
    const double factor = factors[out] / std::sqrt(variance / static_cast<double>(row) + epsilon);
    for (size_t i = begin; i < begin + row; ++i)
      standard[i] = static_cast<float>((weight[i] - mean) * factor);
  }
  Value* made = b_.Const(Tensor::Of<float>(sizes, standard).ComputedFrom(stored), name + ".weight");
  return Conv(name, x, window, Padding(name, x, window), made);
}

Value* SizedLayers::Norm(const std::string& name, Value* x, Activation activation, double epsilon) {
  return Activate(b_, activation, layers_.BatchNorm(name, x, epsilon));
}

Value* SizedLayers::ConvNorm(const std::string& conv, const std::string& norm, Value* x,
                             const Stride& window, Activation activation, double epsilon) {
  return Norm(norm, Conv(conv, x, window), activation, epsilon);
}

Value* SizedLayers::Squeezed(const std::string& name, Value* x, Activation activation,
                             Activation gate) {
  Value* mean = Activate(b_, activation, Conv(name + ".fc1", net_.Pooled(x, true)));
  return Mul(x, Activate(b_, gate, Conv(name + ".fc2", mean)));
}

Value* SizedLayers::ScaledAlong(const std::string& name, Value* x) {
  const int64_t channels = networks::Channels(x);
  const Dims sizes = layers_.Sizes(name + ".conv.weight", 3);
  Value* mean = WithShape(b_, net_.Pooled(x, false), {1, 1, channels});
  mean = b_.Make("conv", {{"x", mean},
                          {"weight", layers_.Needed(name + ".conv.weight", sizes)},
                          {"pad_type", "custom"},
                          {"pad", Ints({sizes[2] / 2, sizes[2] / 2})}});
  return Mul(x, WithShape(b_, Activate(b_, Activation::kSigmoid, mean), {1, channels, 1, 1}));
}

Value* SizedLayers::Excited(const std::string& name, Value* x) {
  if (Has(name + ".fc1")) return Squeezed(name, x);
  return Has(name + ".conv") ? ScaledAlong(name, x) : x;
}

Value* SizedLayers::Residual(const std::string& name, Value* x, int64_t stride, Value* shortcut) {
  const bool three = Has(name + ".conv3");
  auto unit = [&](int i, Value* y, const Stride& window, Activation activation) {
    return ConvNorm(fmt::format("{}.conv{}", name, i), fmt::format("{}.bn{}", name, i), y, window,
                    activation);
  };
  if (!shortcut) {
    shortcut = x;
    if (Has(name + ".downsample.0"))
      shortcut = ConvNorm(name + ".downsample.0", name + ".downsample.1", x, {.stride = stride},
                          Activation::kNone);
  }
  Value* y = unit(1, x, {.stride = three ? 1 : stride}, Activation::kRelu);
  y = unit(2, y, {.stride = three ? stride : 1}, three ? Activation::kRelu : Activation::kNone);
  if (three) y = unit(3, y, {}, Activation::kNone);
  return Activate(b_, Activation::kRelu, Add(y, shortcut));
}

Value* SizedLayers::Scaled(const std::string& name, Value* x) {
  const int64_t channels = networks::Channels(x);
  if (!layers_.Has(name)) return x;
  return Mul(x, WithShape(b_, layers_.Flat(name, channels), {1, channels, 1, 1}));
}

Value* SizedLayers::ScaledTokens(const std::string& name, Value* x) {
  return layers_.Has(name) ? Mul(x, layers_.Flat(name, x->type.shape.back().constant())) : x;
}

Value* SizedLayers::MapNorm(const std::string& name, Value* x, double epsilon, int64_t groups) {
  const int64_t channels = networks::Channels(x);
  x = GroupNorm(b_, x, groups, epsilon);
  auto each = [&](Value* part) { return WithShape(b_, part, {1, channels, 1, 1}); };
  x = Mul(x, each(layers_.Needed(name + ".weight", {channels})));
  Value* bias = layers_.Optional(name + ".bias", {channels});
  return bias ? Add(x, each(bias)) : x;
}

Value* SizedLayers::Pool(const char* op, Value* x, int64_t kernel, int64_t stride,
                         const std::vector<int64_t>& pad, bool counts_padding) {
  Builder::Args args = {{"x", x},
                        {"kernel_sizes", Ints({kernel, kernel})},
                        {"strides", Ints({stride, stride})},
                        {"pad_type", "custom"},
                        {"pad", Ints(pad)}};
  if (op == std::string_view("avg_pool"))
    args.emplace_back("exclude_padding_from_average", !counts_padding);
  return b_.Make(op, std::move(args));
}

Value* SizedLayers::MaxPool(Value* x, int64_t kernel, int64_t stride, int64_t pad) {
  return Pool("max_pool", x, kernel, stride, {pad, pad, pad, pad}, true);
}
Value* SizedLayers::MeanPool(Value* x, int64_t kernel, int64_t stride, int64_t pad,
                             bool counts_padding) {
  return Pool("avg_pool", x, kernel, stride, {pad, pad, pad, pad}, counts_padding);
}

namespace {
// Returns the padding with which the last windows end behind the map.
std::vector<int64_t> Beyond(const Value* x, int64_t kernel, int64_t stride) {
  std::vector<int64_t> pad;
  for (int64_t size : {Height(x), Width(x)}) {
    const int64_t windows = (std::max<int64_t>(size - kernel, 0) + stride - 1) / stride;
    pad.push_back(0);
    pad.push_back(std::max<int64_t>(windows * stride + kernel - size, 0));
  }
  return pad;
}
}  // namespace

Value* SizedLayers::MaxPoolBeyond(Value* x, int64_t kernel, int64_t stride) {
  return Pool("max_pool", x, kernel, stride, Beyond(x, kernel, stride), true);
}
Value* SizedLayers::MeanPoolBeyond(Value* x, int64_t kernel, int64_t stride) {
  return Pool("avg_pool", x, kernel, stride, Beyond(x, kernel, stride), false);
}

Value* SizedLayers::Nearest(Value* x, int64_t height, int64_t width) {
  const GridSize from = {Height(x), Width(x)};
  if (height % from.height == 0 && width % from.width == 0) {
    if (height == from.height && width == from.width) return x;
    return b_.Make("upsample_nearest_neighbor",
                   {{"x", x},
                    {"scale_factor_height", static_cast<double>(height / from.height)},
                    {"scale_factor_width", static_cast<double>(width / from.width)}});
  }
  for (auto [axis, size, old] :
       {std::tuple{2, height, from.height}, std::tuple{3, width, from.width}}) {
    std::vector<int32_t> places;
    for (int64_t i = 0; i < size; ++i) places.push_back(static_cast<int32_t>(i * old / size));
    x = b_.Make(
        "gather",
        {{"x", x}, {"indices", b_.Const(Tensor::Of<int32_t>({size}, places))}, {"axis", axis}});
  }
  return x;
}

Value* SizedLayers::Attended(Value* q, Value* k, Value* v, Value* bias) {
  const double size = static_cast<double>(q->type.shape.back().constant());
  AttentionParts parts{.q = Binary(b_, "mul", q, 1 / std::sqrt(size)), .k = k, .v = v};
  if (bias) parts.biases = {bias};
  return Joined(b_, Attend(b_, parts).y);
}

Value* SizedLayers::DistanceBias(const std::string& name, int64_t heads, GridSize grid,
                                 int64_t stride) {
  const int64_t places = grid.count(), rows = (grid.height + stride - 1) / stride,
                across = (grid.width + stride - 1) / stride;
  if (heads * rows * across * places > (int64_t{1} << 28))
    throw Error("resource-limit", "biases of {} heads for {} places have too many elements", heads,
                places);
  const Tensor table = layers_.Needed(name, {heads, places})->constant();
  const Pin<float> numbers = table.data<float>();
  std::vector<float> biases;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t q = 0; q < rows * across; ++q)
      for (int64_t k = 0; k < places; ++k) {
        const int64_t y = std::abs(q / across * stride - k / grid.width),
                      x = std::abs(q % across * stride - k % grid.width);
        biases.push_back(numbers[static_cast<size_t>(head * places + y * grid.width + x)]);
      }
  return b_.Const(Tensor::Of<float>({1, heads, rows * across, places}, biases).ComputedFrom(table),
                  "distances");
}

Value* SizedLayers::Add(Value* x, Value* y) { return Binary(b_, "add", x, y); }
Value* SizedLayers::Mul(Value* x, Value* y) { return Binary(b_, "mul", x, y); }

Value* SizedLayers::Channels(Value* x, int64_t begin, int64_t end) {
  return SliceAlong(b_, x, 1, begin, end, false);
}

void SizedLayers::Classify(const std::string& name, Value* map, Value* pooled, int64_t labels) {
  if (labels > 0) {
    net_.Output("logits", layers_.Linear(name, pooled, labels));
  } else {
    net_.Output("last_hidden_state", map);
    net_.Output("pooler_output", pooled);
  }
}

void SizedLayers::ClassifyTwice(Value* map, Value* pooled, int64_t labels) {
  if (labels == 0 || !Has("head_dist")) return Classify("head", map, pooled, labels);
  Value* sum =
      Add(layers_.Linear("head", pooled, labels), layers_.Linear("head_dist", pooled, labels));
  net_.Output("logits", Binary(b_, "mul", sum, 0.5));
}

void SizedLayers::ClassifyMean(const std::string& name, Value* x, int64_t labels) {
  b_.SetName("head");
  Classify(name, x, net_.Pooled(x, false), labels);
}

}  // namespace mlc::networks
