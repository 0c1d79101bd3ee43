#include "lib/networks/levit.h"

#include "lib/ir/arithmetic.h"
#include "lib/networks/sized_layers.h"

namespace mlc::networks {

namespace {

class Levit {
 public:
  Levit(SizedLayers& layers, const LevitConfig& config)
      : config_(config), layers_(layers), b_(layers.b()) {}

  Value* Map(Value* x) {
    for (int64_t i = 1; i == 1 || layers_.Has(fmt::format("stem.conv{}.linear", i)); ++i) {
      if (i > 1) x = Activate(b_, config_.activation, x);
      x = Layer(fmt::format("stem.conv{}", i), x, {.stride = 2});
    }
    for (size_t stage = 0; stage < config_.heads.size(); ++stage) {
      const std::string name = fmt::format("stages.{}.", stage);
      if (stage > 0) {
        x = Down(name + "downsample.attn_downsample", x);
        x = Fed(name + "downsample.mlp", x);
      }
      for (int64_t i = 0; i == 0 || Has(fmt::format("{}blocks.{}.attn.qkv", name, i)); ++i) {
        const std::string block = fmt::format("{}blocks.{}.", name, i);
        x = layers_.Add(x, Attention(block + "attn", x, config_.heads[stage],
                                     config_.keys.empty() ? config_.key : config_.keys[stage]));
        x = Fed(block + "mlp", x);
      }
    }
    return x;
  }

  Value* Classified(const std::string& name, Value* mean, int64_t labels) {
    Value* x = WithShape(b_, layers_.Norm(name + ".bn", mean), {1, Channels(mean)});
    return layers_.layers().Linear(name + ".linear", x, labels);
  }

 private:
  bool Has(const std::string& name) const { return layers_.Has(name + ".linear"); }
  Value* Layer(const std::string& name, Value* x, const Stride& window = {}) {
    return layers_.ConvNorm(name + ".linear", name + ".bn", x, window, Activation::kNone);
  }
  Value* Fed(const std::string& name, Value* x) {
    Value* y = Activate(b_, config_.activation, Layer(name + ".ln1", x));
    return layers_.Add(x, Layer(name + ".ln2", y));
  }

  // Splits a map [1, N (K + ... + V), h, w] into heads [1, N, h w, K or V]; the last part has the rest.
  std::vector<Value*> Heads(Value* x, int64_t heads, size_t keys, int64_t key) {
    const int64_t each = Channels(x) / heads;
    std::vector<int64_t> sizes(keys, key);
    if (const int64_t rest = each - static_cast<int64_t>(keys) * key; rest != 0)
      sizes.push_back(rest);
    x = WithShape(b_, x, {1, heads, each, Height(x) * Width(x)});
    return Parts(b_, Transposed(b_, x, {0, 1, 3, 2}), sizes, 3);
  }
  Value* Projected(const std::string& name, Value* tokens, GridSize grid) {
    Value* x = layers_.net().Map(tokens, grid.height, grid.width);
    return Layer(name + ".proj.ln", Activate(b_, config_.attention_activation, x));
  }

  Value* Attention(const std::string& name, Value* x, int64_t heads, int64_t key) {
    const GridSize grid = {Height(x), Width(x)};
    const std::vector<Value*> parts = Heads(Layer(name + ".qkv", x), heads, 2, key);
    Value* bias = layers_.DistanceBias(name + ".attention_biases", heads, grid);
    return Projected(name, layers_.Attended(parts[0], parts[1], parts.back(), bias), grid);
  }
  Value* Down(const std::string& name, Value* x) {
    const GridSize grid = {Height(x), Width(x)};
    const int64_t heads = std::max<int64_t>(Channels(x) / config_.key, 1);
    Value* q = Layer(name + ".q.ln", layers_.MeanPool(x, 1, 2, 0));
    const GridSize to = {Height(q), Width(q)};
    const std::vector<Value*> parts = Heads(Layer(name + ".kv", x), heads, 1, config_.key);
    Value* bias = layers_.DistanceBias(name + ".attention_biases", heads, grid, 2);
    q = Heads(q, heads, 1, config_.key)[0];
    return Projected(name, layers_.Attended(q, parts[0], parts.back(), bias), to);
  }

  const LevitConfig& config_;
  SizedLayers& layers_;
  Builder& b_;
};

}  // namespace

Program BuildLevit(const LevitConfig& config, const NetworkWeights& weights,
                   Diagnostics& diagnostics) {
  CheckPositive("heads", config.heads);
  CheckPositive({{"dimensions of a key", config.key}});
  if (!config.keys.empty()) CheckPositive("dimensions of keys", config.keys);
  if (!config.keys.empty() && config.keys.size() != config.heads.size())
    throw Error("bad-file", "{} stages have heads, but {} have sizes of keys", config.heads.size(),
                config.keys.size());
  PictureNetwork net(weights, config.picture, diagnostics);
  SizedLayers layers(net);
  Levit levit(layers, config);
  Value* x = levit.Map(net.pixels());
  net.b().SetName("head");
  Value* mean = net.Pooled(x, true);
  if (config.labels > 0) {
    Value* first = levit.Classified("head", mean, config.labels);
    if (!layers.Has("head_dist.linear")) {
      net.Output("logits", first);
      return net.Finish();
    }
    Value* second = levit.Classified("head_dist", mean, config.labels);
    net.Output("logits", Binary(net.b(), "mul", layers.Add(first, second), 0.5));
    if (config.both_logits) {
      net.Output("cls_logits", first);
      net.Output("distillation_logits", second);
    }
  } else {
    net.Output("last_hidden_state", config.tokens ? net.Tokens(x) : x);
    net.Output("pooler_output", WithShape(net.b(), mean, {1, Channels(x)}));
  }
  return net.Finish();
}

}  // namespace mlc::networks
