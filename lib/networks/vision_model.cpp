#include "lib/networks/vision_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/networks/attention.h"
#include "lib/networks/heads.h"
#include "lib/networks/norms.h"
#include "lib/ops/row.h"
#include "lib/support/edit_distance.h"

namespace mlc::networks {

namespace {

using VisionHead = VisionModelConfig::Head;
using Pooler = VisionModelConfig::Pooler;
using Features = VisionModelConfig::Features;

class VisionModel {
 public:
  VisionModel(VisionModelConfig config, const NetworkWeights& weights, Diagnostics& diagnostics)
      : config_(std::move(config)),
        program_(&Ops()),
        main_(program_.Add("main")),
        b_(main_->body, diagnostics),
        layers_(b_, weights) {}

  Program Build() {
    main_->opset = Opset::kIos15;
    if (config_.text) {
      // A text comes first, as in transformers' signatures.
      ids_ = AddTokenInput(*main_, "input_ids", config_.tokens);
    }
    if (config_.vision) MakeVision();
    if (config_.text) text_ = TextTower(b_, layers_, *config_.text, ids_);
    b_.SetName("head");
    AddHead();
    SetOutputs();
    return std::move(program_);
  }

 private:
  const VisionConfig& vision() const { return *config_.vision; }
  int64_t width() const { return vision().layer.width; }

  void MakeVision() {
    config_.picture.size = vision().picture;
    config_.picture.channels = vision().channels;
    Value* pixels = AddPictureInput(b_, *main_, config_.picture);
    states_ = VisionTower(b_, layers_, vision(), pixels);
    if (config_.head == VisionHead::kDepth || config_.head == VisionHead::kSegments) return;
    b_.SetName("pooler");
    hidden_ = states_.back();
    if (config_.normed) hidden_ = VisionNorm(layers_, vision(), hidden_);
    pooled_ = Pooled();
  }

  Value* First() { return Element(b_, hidden_, 0, 1); }
  Value* MeanOfPatches() {
    return Reduced(b_, "reduce_mean", PatchTokens(b_, vision(), hidden_), {1}, false);
  }
  Value* Pooled() {
    switch (config_.pooler) {
      case Pooler::kNone:
        return nullptr;
      case Pooler::kFirst:
        return First();
      case Pooler::kFirstTwo:
        return Reduced(b_, "reduce_mean", SliceAlong(b_, hidden_, 1, 0, 2, false), {1}, false);
      case Pooler::kNormedFirst:
        return VisionNorm(layers_, vision(), First());
      case Pooler::kDense:
        return Activate(b_, config_.pooler_activation,
                        Biased(layers_, "vision.pooler", First(), -1));
      case Pooler::kMean:
        return Normed(layers_, vision().layer, "vision.pooler_norm", MeanOfPatches());
      case Pooler::kPatches:
        return MeanOfPatches();
      case Pooler::kAttention:
        return AttentionPooled();
    }
    return nullptr;
  }
  // Returns one of the parts of a linear layer whose weights join several.
  Value* PartOf(const std::string& name, Value* x, int64_t parts, int64_t index) {
    const int64_t w = width();
    Value* weight = layers_.Needed(name + ".weight", {parts * w, w});
    Value* bias = layers_.Needed(name + ".bias", {parts * w});
    auto rows = [&](Value* all) {
      return parts == 1 ? all : SliceAlong(b_, all, 0, index * w, (index + 1) * w, false);
    };
    return b_.Make("linear", {{"x", x}, {"weight", rows(weight)}, {"bias", rows(bias)}});
  }
  // Follows transformers' modeling_siglip.py, SiglipMultiheadAttentionPoolingHead, and timm's
  // AttentionPoolLatent.
  Value* AttentionPooled() {
    const TransformerLayer& layer = vision().layer;
    const std::string own = "vision.head.";
    const int64_t w = width();
    // Weights of queries are apart from those of keys and values, or all are joined.
    const bool apart = layers_.Has(own + "query.weight");
    auto part = [&](Value* x, int64_t index) {
      const std::string name = !apart       ? own + "qkv"
                               : index == 0 ? own + "query"
                                            : own + "key_value";
      const int64_t parts = !apart ? 3 : index == 0 ? 1 : 2;
      return PartOf(name, x, parts, apart ? std::max<int64_t>(index - 1, 0) : index);
    };
    Value* probe = layers_.Needed(own + "probe", {1, 1, w});
    Value* patches = config_.pools_all ? hidden_ : PatchTokens(b_, vision(), hidden_);
    const double scale = 1 / std::sqrt(static_cast<double>(w / layer.heads));
    AttentionParts parts{.q = Binary(b_, "mul", Heads(b_, part(probe, 0), layer.heads), scale),
                         .k = Heads(b_, part(patches, 1), layer.heads),
                         .v = Heads(b_, part(patches, 2), layer.heads)};
    Value* x = Biased(layers_, own + "attention", Joined(b_, Attend(b_, parts).y), w);
    Value* y = layers_.LayerNorm(own + "norm", x, layer.epsilon);
    x = Binary(b_, "add", x, FeedForwardOf(b_, layers_, layer, own, y));
    return WithShape(b_, x, {1, w});
  }

  void Offer(std::string name, Value* value, bool usual = true) {
    if (value) offers_.push_back({std::move(name), value, usual});
  }

  void AddHead() {
    switch (config_.head) {
      case VisionHead::kHidden:
        Offer("last_hidden_state", config_.vision ? hidden_ : text_.hidden);
        return Offer("pooler_output", config_.vision ? pooled_ : text_.pooled);
      case VisionHead::kEmbedding:
        if (config_.vision)
          Offer("image_embeds", layers_.Linear("vision.projection", pooled_, -1));
        else
          Offer("text_embeds", layers_.Linear("text.projection", text_.pooled, -1));
        return Offer("last_hidden_state", config_.vision ? hidden_ : text_.hidden);
      case VisionHead::kClassifier:
        return Offer("logits", layers_.Linear("classifier", FeaturesOf(), -1));
      case VisionHead::kTwoTeachers: {
        Value* first = Biased(layers_, "classifier", First(), -1);
        Value* second = Biased(layers_, "teacher", Element(b_, hidden_, 1, 1), -1);
        Offer("logits", Binary(b_, "mul", Binary(b_, "add", first, second), 0.5));
        Offer("cls_logits", first);
        return Offer("distillation_logits", second);
      }
      case VisionHead::kDetection: {
        const int64_t count = vision().detection_tokens, tokens = vision().tokens();
        Value* x = SliceAlong(b_, hidden_, 1, tokens - count, tokens, false);
        Offer("logits", Perceptron("detection.class.", x, -1));
        Offer("pred_boxes", b_.Make("sigmoid", {{"x", Perceptron("detection.box.", x, 4)}}));
        return Offer("last_hidden_state", hidden_);
      }
      case VisionHead::kContrast:
        return Contrast();
      case VisionHead::kDepth:
        return Offer(config_.depth.segments > 0 ? "logits" : "predicted_depth",
                     Depth(b_, layers_, config_.depth, vision(), states_));
      case VisionHead::kSegments:
        return Offer("logits", UperNet(b_, layers_, config_.segments, Pyramid()));
    }
  }

  // Returns maps of the hidden states: four times as large, twice, as large as they are, and half
  // (transformers' modeling_beit.py).
  std::vector<Value*> Pyramid() {
    std::vector<Value*> maps;
    for (int64_t state : config_.states)
      maps.push_back(
          PatchImage(b_, vision(), PatchTokens(b_, vision(), states_[static_cast<size_t>(state)])));
    constexpr double kNormEpsilon = 1e-5;
    maps[0] = layers_.BatchNorm("pyramid.0.norm", Doubled("pyramid.0", maps[0]), kNormEpsilon);
    maps[0] = Doubled("pyramid.0.second", Activate(b_, Activation::kGelu, maps[0]));
    maps[1] = Doubled("pyramid.1", maps[1]);
    maps[3] = b_.Make("max_pool", {{"x", maps[3]},
                                   {"kernel_sizes", Ints({2, 2})},
                                   {"strides", Ints({2, 2})},
                                   {"pad_type", "valid"}});
    return maps;
  }
  Value* Doubled(const std::string& name, Value* x) {
    return b_.Make("conv_transpose",
                   {{"x", x},
                    {"weight", layers_.Needed(name + ".weight", {width(), width(), 2, 2})},
                    {"bias", layers_.Needed(name + ".bias", {width()})},
                    {"strides", Ints({2, 2})},
                    {"pad_type", "valid"}});
  }

  Value* FeaturesOf() {
    switch (config_.features) {
      case Features::kFirst:
        return First();
      case Features::kFirstAndMean:
        return Concat(b_, {First(), MeanOfPatches()}, 1);
      case Features::kMean:
        return MeanOfPatches();
      case Features::kPooled:
        return pooled_;
    }
    return nullptr;
  }
  Value* Perceptron(const std::string& name, Value* x, int64_t out) {
    for (const char* layer : {"0", "1"})
      x = Activate(b_, Activation::kRelu, Biased(layers_, name + layer, x, width()));
    return Biased(layers_, name + "2", x, out);
  }

  Value* OfUnitLength(Value* x) {
    return Binary(b_, "real_div", x, Reduced(b_, "reduce_l2_norm", x, {-1}, true));
  }
  Value* Projected(const std::string& name, Value* x) {
    if (x && layers_.Has(name + ".weight")) x = layers_.Linear(name, x, -1);
    return x ? OfUnitLength(x) : nullptr;
  }
  void Contrast() {
    Value* image = Projected("vision.projection", pooled_);
    Value* text = Projected("text.projection", text_.pooled);
    if (image && text) {
      if (image->type.shape != text->type.shape)
        throw Error("bad-file", "embeddings of pictures are {}, those of texts {}",
                    ToString(image->type.shape), ToString(text->type.shape));
      Value* y = b_.Make("matmul", {{"x", text}, {"y", image}, {"transpose_y", true}});
      Value* scale = layers_.Needed("logit_scale", {1});
      y = Binary(b_, "mul", y, b_.Make("exp", {{"x", scale}}));
      if (config_.logit_bias) y = Binary(b_, "add", y, layers_.Needed("logit_bias", {1}));
      Offer("logits_per_image", Transposed(b_, y, {1, 0}));
      Offer("logits_per_text", y);
    }
    Offer("text_embeds", text);
    Offer("image_embeds", image);
    Offer("vision_last_hidden_state", hidden_, false);
    Offer("vision_pooler_output", pooled_, false);
    Offer("text_last_hidden_state", text_.hidden, false);
    Offer("text_pooler_output", text_.pooled, false);
  }

  struct Output {
    std::string name;
    Value* value;
    bool usual;
  };
  void SetOutputs() {
    std::vector<std::string> names = config_.outputs, known;
    for (const Output& offer : offers_) known.push_back(offer.name);
    if (names.empty())
      for (const Output& offer : offers_)
        if (offer.usual) names.push_back(offer.name);
    std::vector<Value*> outputs;
    for (const std::string& name : names) {
      const auto offer = std::ranges::find(offers_, name, &Output::name);
      if (offer == offers_.end())
        throw Error("bad-name", "option 'outputs' {}: the model has no output with this name{}",
                    name, DidYouMean(known, name))
            .Expected("{}", fmt::join(known, ", "));
      // A value is one output only.
      Value* value = std::ranges::count(outputs, offer->value) == 0
                         ? offer->value
                         : b_.Make("identity", {{"x", offer->value}});
      AddOutput(*main_, value, name);
      outputs.push_back(value);
    }
    main_->body.SetOutputs(outputs);
  }

  VisionModelConfig config_;
  Program program_;
  Function* main_;
  Builder b_;
  Layers layers_;
  Value* ids_ = nullptr;
  std::vector<Value*> states_;
  Value *hidden_ = nullptr, *pooled_ = nullptr;  // of pictures
  TextStates text_{};
  std::vector<Output> offers_;
};

bool Needs(const std::vector<std::string>& outputs, std::string_view kind,
           std::string_view embeds) {
  return outputs.empty() || std::ranges::any_of(outputs, [&](const std::string& name) {
           return name.starts_with("logits") || name.starts_with(kind) || name == embeds;
         });
}

}  // namespace

bool NeedsVision(const std::vector<std::string>& outputs) {
  return Needs(outputs, "vision_", "image_embeds");
}
bool NeedsText(const std::vector<std::string>& outputs) {
  return Needs(outputs, "text_", "text_embeds");
}

Program BuildVisionModel(VisionModelConfig config, const NetworkWeights& weights,
                         Diagnostics& diagnostics) {
  if (config.vision) CheckVision(*config.vision);
  if (config.text) CheckText(*config.text);
  if (config.head == VisionHead::kDepth) CheckDepth(config.depth, *config.vision);
  if (config.head == VisionHead::kSegments) {
    CheckUperNet(config.segments);
    const GridSize grid = config.vision->grid();
    if (config.states.size() != 4 || grid.height < 2 || grid.width < 2)
      throw Error("bad-file", "the head takes {} hidden states of {} x {} patches",
                  config.states.size(), grid.height, grid.width)
          .Expected("four hidden states of at least 2 x 2 patches");
    for (int64_t state : config.states)
      if (state < 0 || state > config.vision->layers)
        throw Error("bad-file", "the head takes hidden state {}", state)
            .Expected("0 to {}, the number of layers", config.vision->layers);
  }
  const bool pictures = NeedsVision(config.outputs), texts = NeedsText(config.outputs);
  if (config.head == VisionHead::kContrast && pictures != texts) {
    if (pictures) config.text.reset();
    if (texts) config.vision.reset();
  }
  return VisionModel(std::move(config), weights, diagnostics).Build();
}

}  // namespace mlc::networks
