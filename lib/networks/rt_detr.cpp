#include "lib/networks/rt_detr.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/ir/arithmetic.h"

namespace mlc::networks {

namespace {

class RtDetr {
 public:
  RtDetr(const RtDetrConfig& config, const NetworkWeights& weights, Diagnostics& diagnostics)
      : config_(config),
        net_(weights, config.fine ? config.fine->backbone.picture : config.backbone.picture,
             diagnostics),
        b_(net_.b()),
        layers_(net_.layers()) {}

  Program Build() {
    Pyramid();
    SelectQueries();
    config_.fine ? DecodeFine() : Decode();
    return net_.Finish();
  }

 private:
  Value* Conv(const std::string& name, Value* x, int64_t out, PictureWindow window,
              Activation activation) {
    return net_.ConvNorm(name, x, out, window, activation, config_.batch_epsilon);
  }

  // The hybrid encoder: a transformer on the smallest maps, then sums from small to large maps and
  // back (sections 4.2 and 4.3 of the paper).
  void Pyramid() {
    std::vector<Value*> maps = config_.fine ? HgNetStages(net_, config_.fine->backbone, "backbone.")
                                            : ResidualStages(net_, config_.backbone, "backbone.");
    maps.erase(maps.begin(), maps.end() - config_.levels);
    for (size_t i = 0; i < maps.size(); ++i)
      maps[i] = net_.ConvNorm(fmt::format("project.{}", i), maps[i], config_.encoder_width, {},
                              Activation::kNone);
    for (size_t i = 0; i < config_.encoded_levels.size(); ++i) {
      Value*& map = maps[static_cast<size_t>(config_.encoded_levels[i])];
      map = Encoded(fmt::format("encoder.{}.", i), map);
    }
    const size_t last = maps.size() - 1;
    std::vector<Value*> down = maps;
    for (size_t i = last; i > 0; --i) {
      const std::string number = std::to_string(last - i);
      down[i] = Conv("lateral." + number, down[i], config_.encoder_width, {},
                     config_.fine ? Activation::kNone : config_.activation);
      Value* larger =
          b_.Make("upsample_nearest_neighbor",
                  {{"x", down[i]}, {"scale_factor_height", 2}, {"scale_factor_width", 2}});
      if (Height(larger) != Height(maps[i - 1]) || Width(larger) != Width(maps[i - 1]))
        throw Error("bad-file", "a map of {} x {} follows one of {} x {}", Height(maps[i]),
                    Width(maps[i]), Height(maps[i - 1]), Width(maps[i - 1]))
            .Expected("pictures whose sides are multiples of 32");
      down[i - 1] = Joined("fpn." + number, Concat(b_, {larger, maps[i - 1]}, 1));
    }
    levels_ = {down[0]};
    for (size_t i = 0; i < last; ++i) {
      Value* smaller = Reduced(fmt::format("reduce.{}", i), levels_.back());
      levels_.push_back(Joined(fmt::format("pan.{}", i), Concat(b_, {smaller, down[i + 1]}, 1)));
    }
    std::vector<Value*> tokens;
    for (size_t i = 0; i < levels_.size(); ++i) {
      if (!config_.fine || config_.fine->projects_maps)
        levels_[i] =
            Conv(fmt::format("level.{}", i), levels_[i], config_.width, {}, Activation::kNone);
      tokens.push_back(net_.Tokens(levels_[i]));
    }
    memory_ = Concat(b_, tokens, 1);
  }

  Value* Reduced(const std::string& name, Value* x) {
    const int64_t width = config_.encoder_width;
    if (!config_.fine) return Conv(name, x, width, {.kernel = 3, .stride = 2}, config_.activation);
    x = Conv(name + ".0", x, width, {}, Activation::kNone);
    return Conv(name + ".1", x, width, {.kernel = 3, .stride = 2, .groups = width},
                Activation::kNone);
  }

  // Reduces the channels of two joined maps.
  Value* Joined(const std::string& name, Value* x) {
    constexpr int64_t kBlocks = 3;
    if (!config_.fine) return Block(name, x, config_.encoder_width, Inner(1), kBlocks);
    // The activation of these is fixed (transformers' modeling_d_fine.py, DFineRepNCSPELAN4).
    auto conv = [&](const char* part, Value* of, int64_t out, int64_t kernel) {
      return Conv(name + part, of, out, {.kernel = kernel}, Activation::kSilu);
    };
    const int64_t width = config_.encoder_width, inner = Inner(2), blocks = config_.fine->blocks;
    x = conv(".conv1", x, 2 * width, 1);
    Value* second = SliceAlong(b_, x, 1, width, 2 * width, false);
    Value* third = conv(".conv2", Block(name + ".csp1", second, inner, inner, blocks), inner, 3);
    Value* fourth = conv(".conv3", Block(name + ".csp2", third, inner, inner, blocks), inner, 3);
    return conv(".conv4", Concat(b_, {x, third, fourth}, 1), width, 1);
  }
  int64_t Inner(int64_t part) const {
    const double inner = static_cast<double>(config_.encoder_width) * config_.expansion;
    return static_cast<int64_t>(part == 1 ? inner : std::floor(inner / static_cast<double>(part)));
  }

  // A cross-stage partial block of RepVGG blocks.
  Value* Block(const std::string& name, Value* x, int64_t out, int64_t inner, int64_t blocks) {
    Value* y = Conv(name + ".conv1", x, inner, {}, config_.activation);
    for (int64_t i = 0; i < blocks; ++i) {
      const std::string own = fmt::format("{}.bottlenecks.{}.", name, i);
      Value* wide = Conv(own + "conv1", y, inner, {.kernel = 3}, Activation::kNone);
      Value* narrow = Conv(own + "conv2", y, inner, {}, Activation::kNone);
      y = Activate(b_, config_.activation, Binary(b_, "add", wide, narrow));
    }
    y = Binary(b_, "add", y, Conv(name + ".conv2", x, inner, {}, config_.activation));
    if (inner == out) return y;
    return Conv(name + ".conv3", y, out, {}, config_.activation);
  }

  // Returns positions [1, h w, C]. Their rows run along columns first, but the tokens' along rows, as
  // in the reference (lyuwenyu/RT-DETR, hybrid_encoder.py, build_2d_sincos_position_embedding), or
  // both along rows. Squares have the same positions either way.
  Value* Positions(int64_t height, int64_t width) {
    const int64_t quarter = config_.encoder_width / 4;
    std::vector<float> positions;
    positions.reserve(static_cast<size_t>(height * width * config_.encoder_width));
    const int64_t slow = config_.positions_by_rows ? height : width,
                  fast = config_.positions_by_rows ? width : height;
    for (int64_t outer = 0; outer < slow; ++outer)
      for (int64_t inner = 0; inner < fast; ++inner)
        for (int64_t at : {outer, inner})
          for (bool cosine : {false, true})
            for (int64_t i = 0; i < quarter; ++i) {
              const double angle = static_cast<double>(at) /
                                   std::pow(config_.temperature,
                                            static_cast<double>(i) / static_cast<double>(quarter));
              positions.push_back(static_cast<float>(cosine ? std::cos(angle) : std::sin(angle)));
            }
    return b_.Const(Tensor::Of<float>({1, height * width, config_.encoder_width}, positions),
                    "positions");
  }

  Value* Encoded(const std::string& name, Value* map) {
    const int64_t height = Height(map), width = Width(map);
    Value* positions = Positions(height, width);
    Value* x = net_.Tokens(map);
    for (int64_t i = 0; i < config_.encoder_layers; ++i) {
      const std::string own = fmt::format("{}{}.", name, i);
      b_.SetName(own.substr(0, own.size() - 1));
      auto norm = [&](const char* of, Value* y) {
        return layers_.LayerNorm(own + of, y, config_.epsilon);
      };
      Value* y = config_.pre_norms ? norm("norm", x) : x;
      Value* placed = Binary(b_, "add", y, positions);
      y = net_.Attention(own + "attention", placed, placed, y, config_.encoder_heads);
      x = Binary(b_, "add", x, y);
      // In the reference's pre-norm form, the sum itself is normalised before the second branch.
      x = config_.pre_norms ? norm("last_norm", x) : norm("norm", x);
      y = Activate(b_, config_.encoder_activation,
                   layers_.Linear(own + "up", x, config_.encoder_feed_forward));
      x = Binary(b_, "add", x, layers_.Linear(own + "down", y, config_.encoder_width));
      if (!config_.pre_norms) x = norm("last_norm", x);
    }
    return net_.Map(x, height, width);
  }

  Value* Mlp(const std::string& name, Value* x, std::vector<int64_t> widths) {
    for (size_t i = 0; i < widths.size(); ++i) {
      if (i > 0) x = Activate(b_, Activation::kRelu, x);
      x = layers_.Linear(fmt::format("{}.{}", name, i), x, widths[i]);
    }
    return x;
  }

  // Every position proposes a box around its centre; the likeliest become queries.
  void SelectQueries() {
    b_.SetName("memory");
    constexpr double kSide = 0.05, kMargin = 0.01;
    // The logit of places near the border, whose sigmoid is 1.
    constexpr float kOutside = 1e4F;
    std::vector<float> anchors, inside;
    for (size_t level = 0; level < levels_.size(); ++level) {
      const int64_t height = Height(levels_[level]), width = Width(levels_[level]);
      const double side = kSide * std::exp2(static_cast<double>(level));
      for (int64_t row = 0; row < height; ++row)
        for (int64_t column = 0; column < width; ++column) {
          const double box[] = {(static_cast<double>(column) + 0.5) / static_cast<double>(width),
                                (static_cast<double>(row) + 0.5) / static_cast<double>(height),
                                side, side};
          bool is_inside = true;
          for (double part : box) is_inside &= part > kMargin && part < 1 - kMargin;
          inside.push_back(is_inside ? 1 : 0);
          for (double part : box)
            anchors.push_back(is_inside ? static_cast<float>(std::log(part / (1 - part)))
                                        : kOutside);
        }
    }
    const auto count = static_cast<int64_t>(inside.size());
    if (config_.queries > count)
      throw Error("bad-file", "the model selects {} of {} positions", config_.queries, count)
          .Expected("larger pictures");
    Value* x = Binary(b_, "mul", memory_, b_.Const(Tensor::Of<float>({1, count, 1}, inside)));
    x = layers_.LayerNorm("memory.norm", layers_.Linear("memory.dense", x, config_.width),
                          config_.epsilon);
    Value* scores = layers_.Linear("memory.classes", x, config_.labels);
    Value* boxes = Binary(b_, "add", Mlp("memory.boxes", x, {config_.width, config_.width, 4}),
                          b_.Const(Tensor::Of<float>({1, count, 4}, anchors), "anchors"));
    Value* best = mlc::Reduced(b_, "reduce_max", scores, {-1}, false);
    std::vector<Value*> top =
        b_.MakeAll("topk", {{"x", best}, {"k", config_.queries}, {"axis", 1}});
    Value* chosen = WithShape(b_, top[1], {config_.queries});
    auto rows = [&](Value* of) {
      return Expanded(b_, Rows(b_, Squeezed(b_, of, {0}), chosen), {0});
    };
    boxes_ = Activate(b_, Activation::kSigmoid, rows(boxes));
    queries_ = rows(x);
  }

  // Deformable attention (Zhu et al. 2020): each head reads the maps at points around the box.
  Value* Deformable(const std::string& name, Value* x) {
    const std::vector<int64_t>& points = config_.points;
    const int64_t heads = config_.decoder_heads, count = config_.queries,
                  all = std::accumulate(points.begin(), points.end(), int64_t{0}),
                  size = config_.width / heads;
    auto by_head = [&](Value* y, const std::vector<int64_t>& shape) {
      std::vector<int64_t> perm = {1, 0, 2};
      if (shape.size() == 4) perm.push_back(3);
      return Transposed(b_, WithShape(b_, y, shape), perm);
    };
    Value* offsets =
        by_head(layers_.Linear(name + ".offsets", x, heads * all * 2), {count, heads, all, 2});
    auto part = [&](int64_t begin) {
      return WithShape(b_, SliceAlong(b_, boxes_, 2, begin, begin + 2, false), {1, count, 1, 2});
    };
    // The scales of points are constants, which RT-DETRv2 stores.
    Value* scales = layers_.Optional(name + ".point_scales", {all});
    if (!scales) {
      std::vector<float> shares;
      for (int64_t of : points)
        shares.insert(shares.end(), static_cast<size_t>(of), 1 / static_cast<float>(of));
      scales = b_.Const(Tensor::Of<float>({all}, shares), "point_scales");
    }
    offsets = Binary(b_, "mul", offsets, WithShape(b_, scales, {1, 1, all, 1}));
    Value* reach = Binary(b_, "mul", part(2), config_.offset_scale);
    Value* places = Binary(b_, "add", part(0), Binary(b_, "mul", offsets, reach));
    places = Binary(b_, "sub", Binary(b_, "mul", places, 2.0), 1.0);
    Value* shares = by_head(layers_.Linear(name + ".weights", x, heads * all), {count, heads, all});
    shares = Expanded(b_, b_.Make("softmax", {{"x", shares}, {"axis", -1}}), {1});
    Value* values =
        config_.fine ? memory_ : layers_.Linear(name + ".value", memory_, config_.width);
    std::vector<Value*> samples;
    int64_t begin = 0, point = 0;
    for (size_t level = 0; level < levels_.size(); point += points[level++]) {
      const Value* of = levels_[level];
      const int64_t pixels = Height(of) * Width(of);
      Value* map =
          Transposed(b_, SliceAlong(b_, values, 1, begin, begin + pixels, false), {0, 2, 1});
      map = WithShape(b_, map, {heads, size, Height(of), Width(of)});
      samples.push_back(
          b_.Make("resample",
                  {{"x", map},
                   {"coordinates", SliceAlong(b_, places, 2, point, point + points[level], false)},
                   {"sampling_mode", "bilinear"},
                   {"padding_mode", "constant"},
                   {"padding_value", 0.0},
                   {"coordinates_mode", "normalized_minus_one_to_one"},
                   {"align_corners", false}}));
      begin += pixels;
    }
    Value* y = Binary(b_, "mul", Concat(b_, samples, 3), shares);
    y = WithShape(b_, mlc::Reduced(b_, "reduce_sum", y, {3}, false), {1, config_.width, count});
    y = Transposed(b_, y, {0, 2, 1});
    return config_.fine ? y : layers_.Linear(name + ".output", y, config_.width);
  }

  Value* Logit(Value* x) {
    constexpr double kEpsilon = 1e-5;
    auto log = [&](Value* of) {
      return b_.Make("log", {{"x", Binary(b_, "maximum", of, kEpsilon)}});
    };
    return Binary(b_, "sub", log(x), log(Binary(b_, "sub", 1.0, x)));
  }

  void Decode() {
    Value* x = queries_;
    for (int64_t i = 0; i < config_.decoder_layers; ++i) {
      const std::string name = fmt::format("decoder.{}.", i);
      b_.SetName(name.substr(0, name.size() - 1));
      auto added = [&](const char* norm, Value* y) {
        return layers_.LayerNorm(name + norm, Binary(b_, "add", x, y), config_.epsilon);
      };
      Value* places = Mlp("places", boxes_, {2 * config_.width, config_.width});
      Value* placed = Binary(b_, "add", x, places);
      x = added("norm",
                net_.Attention(name + "attention", placed, placed, x, config_.decoder_heads));
      x = added("cross_norm", Deformable(name + "cross", Binary(b_, "add", x, places)));
      Value* y = Activate(b_, config_.decoder_activation,
                          layers_.Linear(name + "up", x, config_.decoder_feed_forward));
      x = added("last_norm", layers_.Linear(name + "down", y, config_.width));
      Value* moved = Mlp(fmt::format("boxes.{}", i), x, {config_.width, config_.width, 4});
      boxes_ = Activate(b_, Activation::kSigmoid, Binary(b_, "add", moved, Logit(boxes_)));
    }
    b_.SetName("head");
    net_.Output("logits", layers_.Linear(fmt::format("classes.{}", config_.decoder_layers - 1), x,
                                         config_.labels));
    net_.Output("pred_boxes", boxes_);
  }

  // Returns the distance of each bin, with steps that grow from the middle (transformers'
  // modeling_d_fine.py, weighting_function). Folders store two of its numbers.
  Value* BinDistances(double scale) {
    const FineBoxes& fine = *config_.fine;
    const double reach = Stored("up", fine.reach), bound = std::abs(reach) * std::abs(scale),
                 step = std::pow(bound + 1, 2 / static_cast<double>(fine.bins - 2));
    std::vector<float> distances = {static_cast<float>(-2 * bound)};
    for (int64_t i = fine.bins / 2 - 1; i > 0; --i)
      distances.push_back(static_cast<float>(1 - std::pow(step, i)));
    distances.push_back(0);
    for (int64_t i = 1; i < fine.bins / 2; ++i)
      distances.push_back(static_cast<float>(std::pow(step, i) - 1));
    distances.push_back(static_cast<float>(2 * bound));
    return b_.Const(Tensor::Of<float>({1, fine.bins + 1}, distances), "distances");
  }
  double Stored(const std::string& name, double usual) {
    const Value* value = layers_.Optional(name, {1});
    return value ? value->constant().data<float>()[0] : usual;
  }

  // Returns boxes whose sides are this far from those of `first` (distance2bbox).
  Value* Moved(Value* first, Value* shares, Value* distances, double scale) {
    Value* sides = WithShape(b_, b_.Make("linear", {{"x", shares}, {"weight", distances}}),
                             {1, config_.queries, 4});
    auto half = [&](Value* of, int64_t begin) {
      return SliceAlong(b_, of, 2, begin, begin + 2, false);
    };
    Value *before = half(sides, 0), *behind = half(sides, 2);
    Value* unit = Binary(b_, "mul", half(first, 2), 1 / std::abs(scale));
    Value* centre = Binary(b_, "mul", Binary(b_, "sub", behind, before), 0.5);
    Value* size = Binary(b_, "add", Binary(b_, "add", before, behind), std::abs(scale));
    return Concat(b_,
                  {Binary(b_, "add", half(first, 0), Binary(b_, "mul", centre, unit)),
                   Binary(b_, "mul", size, unit)},
                  2);
  }

  void DecodeFine() {
    const FineBoxes& fine = *config_.fine;
    const int64_t width = config_.width, count = config_.queries, bins = fine.bins + 1;
    const double scale = Stored("scale", fine.scale);
    Value *distances = BinDistances(scale), *x = queries_, *first = nullptr, *corners = nullptr,
          *last = nullptr, *shares = nullptr;
    auto plus = [&](Value* a, Value* b) { return b ? Binary(b_, "add", a, b) : a; };
    for (int64_t i = 0; i < config_.decoder_layers; ++i) {
      const std::string name = fmt::format("decoder.{}.", i);
      b_.SetName(name.substr(0, name.size() - 1));
      auto norm = [&](const char* of, Value* y) {
        return layers_.LayerNorm(name + of, y, config_.epsilon);
      };
      constexpr double kMost = 10;  // of positions
      Value* places = Mlp("places", boxes_, {2 * width, width});
      places = b_.Make("clip", {{"x", places}, {"alpha", -kMost}, {"beta", kMost}});
      Value* placed = plus(x, places);
      Value* y = net_.Attention(name + "attention", placed, placed, x, config_.decoder_heads);
      x = norm("norm", plus(x, y));
      y = Deformable(name + "cross", plus(x, places));
      // Two gates weigh the tokens and what they read.
      Value* gates = layers_.Linear(name + "gate", Concat(b_, {x, y}, 2), 2 * width);
      gates = Activate(b_, Activation::kSigmoid, gates);
      auto gated = [&](Value* of, int64_t begin) {
        return Binary(b_, "mul", SliceAlong(b_, gates, 2, begin, begin + width, false), of);
      };
      constexpr double kEpsilon = 1e-5;
      x = layers_.LayerNorm(name + "gate.norm", plus(gated(x, 0), gated(y, width)), kEpsilon);
      y = Activate(b_, config_.decoder_activation,
                   layers_.Linear(name + "up", x, config_.decoder_feed_forward));
      x = norm("last_norm", plus(x, layers_.Linear(name + "down", y, width)));
      if (i == 0)
        first = Activate(b_, Activation::kSigmoid,
                         plus(Mlp("first", x, {width, width, 4}), Logit(boxes_)));
      corners =
          plus(Mlp(fmt::format("boxes.{}", i), plus(x, last), {width, width, 4 * bins}), corners);
      shares =
          b_.Make("softmax", {{"x", WithShape(b_, corners, {1, count, 4, bins})}, {"axis", -1}});
      boxes_ = Moved(first, shares, distances, scale);
      last = x;
    }
    b_.SetName("head");
    const int64_t layer = config_.decoder_layers - 1;
    Value* scores = layers_.Linear(fmt::format("classes.{}", layer), x, config_.labels);
    Value* top = b_.MakeAll("topk", {{"x", shares}, {"k", fine.likeliest}, {"axis", -1}})[0];
    Value* known = Concat(b_, {top, mlc::Reduced(b_, "reduce_mean", top, {-1}, true)}, 3);
    std::vector<int64_t> widths(static_cast<size_t>(fine.quality_layers - 1), fine.quality_width);
    widths.push_back(1);
    Value* quality = Mlp(fmt::format("quality.{}", layer),
                         WithShape(b_, known, {1, count, 4 * (fine.likeliest + 1)}), widths);
    net_.Output("logits", plus(scores, quality));
    net_.Output("pred_boxes", boxes_);
  }

  const RtDetrConfig& config_;
  PictureNetwork net_;
  Builder& b_;
  Layers& layers_;
  std::vector<Value*> levels_;  // [1, width, h, w]
  Value* memory_ = nullptr;     // their pixels [1, positions, width]
  Value* queries_ = nullptr;    // [1, queries, width]
  Value* boxes_ = nullptr;      // [1, queries, 4]
};

void CheckFine(const FineBoxes& fine) {
  CheckHgNet(fine.backbone);
  CheckPositive({{"number of blocks", fine.blocks},
                 {"number of likelihoods", fine.likeliest},
                 {"width of the quality's layers", fine.quality_width},
                 {"number of the quality's layers", fine.quality_layers}});
  constexpr int64_t kMaxBins = 1 << 12;
  if (fine.bins < 4 || fine.bins > kMaxBins || fine.bins % 2 != 0 || fine.likeliest > fine.bins ||
      fine.blocks > kMaxLayers || fine.quality_layers > kMaxLayers)
    throw Error("bad-file", "sides of boxes have {} bins, of which {} correct scores", fine.bins,
                fine.likeliest)
        .Expected("an even number from 4 to {}", kMaxBins);
  if (!(std::abs(fine.scale) > 0 && std::abs(fine.scale) < kMaxBins))
    throw Error("bad-file", "the scale of boxes is {}", fine.scale).Expected("a positive number");
}

}  // namespace

Program BuildRtDetr(const RtDetrConfig& config, const NetworkWeights& weights,
                    Diagnostics& diagnostics) {
  CheckPositive({{"width", config.width},
                 {"width of the encoder", config.encoder_width},
                 {"number of queries", config.queries},
                 {"number of encoder heads", config.encoder_heads},
                 {"number of decoder heads", config.decoder_heads},
                 {"number of decoder layers", config.decoder_layers},
                 {"size of encoder feed-forward layers", config.encoder_feed_forward},
                 {"size of decoder feed-forward layers", config.decoder_feed_forward},
                 {"number of labels", config.labels}});
  CheckPositive("numbers of points", config.points);
  if (static_cast<int64_t>(config.points.size()) != config.levels)
    throw Error("bad-file", "attention reads points on {} maps of {}", config.points.size(),
                config.levels);
  constexpr int64_t kMaxWidth = 1 << 14, kMaxPoints = 64;
  const int64_t points = *std::ranges::max_element(config.points);
  if (config.encoder_width > kMaxWidth || config.encoder_width % 4 != 0 ||
      config.width > kMaxWidth || config.width % config.decoder_heads != 0 || points > kMaxPoints)
    throw Error("bad-file", "the encoder has {} channels, the decoder {} in {} heads of {} points",
                config.encoder_width, config.width, config.decoder_heads, points)
        .Expected("up to {} channels, multiples of 4 and of the heads, and up to {} points",
                  kMaxWidth, kMaxPoints);
  const size_t stages =
      config.fine ? config.fine->backbone.stages.size() : config.backbone.depths.size();
  if (config.levels < 1 || config.levels > static_cast<int64_t>(stages))
    throw Error("bad-file", "the encoder reads {} maps of {}", config.levels, stages);
  if (config.fine) CheckFine(*config.fine);
  for (int64_t level : config.encoded_levels)
    if (level < 0 || level >= config.levels)
      throw Error("bad-file", "a transformer encodes map {} of {}", level, config.levels)
          .Expected("0 to {}", config.levels - 1);
  if (!(config.expansion > 0 && config.expansion <= 64) || !(config.temperature > 0))
    throw Error("bad-file", "the expansion of blocks is {}, the temperature of positions {}",
                config.expansion, config.temperature)
        .Expected("positive numbers");
  return RtDetr(config, weights, diagnostics).Build();
}

}  // namespace mlc::networks
