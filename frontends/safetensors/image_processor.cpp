#include "frontends/safetensors/image_processor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "frontends/safetensors/config.h"
#include "lib/support/edit_distance.h"
#include "lib/support/error.h"

namespace mlc::safetensors {

namespace fs = std::filesystem;

namespace {

using networks::GridSize;

// The defaults of transformers' classes, models/*/image_processing_*.py. `name` is the class without
// ImageProcessor, ImageProcessorFast or FeatureExtractor.
struct ProcessorRow {
  std::string_view name, defaults;
  bool number_is_shortest = false;  // a single number as `size` is that of the shorter side
};
constexpr ProcessorRow kProcessors[] = {
    {"Beit",
     R"({"size": {"height": 256, "width": 256}, "resample": 3, "do_center_crop": true, "crop_size": {"height": 224, "width": 224}, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})"},
    {"Bit",
     R"({"size": {"shortest_edge": 224}, "resample": 3, "do_center_crop": true, "crop_size": {"height": 224, "width": 224}, "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]})",
     true},
    {"Blip",
     R"({"size": {"height": 384, "width": 384}, "resample": 3, "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]})"},
    {"CLIP",
     R"({"size": {"shortest_edge": 224}, "resample": 3, "do_center_crop": true, "crop_size": {"height": 224, "width": 224}, "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]})",
     true},
    {"ConvNext",
     R"({"size": {"shortest_edge": 384}, "resample": 2, "crop_pct": 0.875, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})",
     true},
    {"DINOv3ViT",
     R"({"size": {"height": 224, "width": 224}, "resample": 2, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})"},
    {"DPT",
     R"({"size": {"height": 384, "width": 384}, "resample": 3, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})"},
    {"DeiT",
     R"({"size": {"height": 256, "width": 256}, "resample": 3, "do_center_crop": true, "crop_size": {"height": 224, "width": 224}, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})"},
    {"Detr",
     R"({"size": {"shortest_edge": 800, "longest_edge": 1333}, "resample": 2, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})",
     true},
    {"EfficientNet",
     R"({"size": {"height": 346, "width": 346}, "resample": 0, "rescale_offset": false, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})"},
    {"Gemma3",
     R"({"size": {"height": 224, "width": 224}, "resample": 2, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})"},
    {"MobileNetV2",
     R"({"size": {"shortest_edge": 256}, "resample": 2, "do_center_crop": true, "crop_size": {"height": 224, "width": 224}, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})",
     true},
    {"MobileViT",
     R"({"size": {"shortest_edge": 224}, "resample": 2, "do_center_crop": true, "crop_size": {"height": 256, "width": 256}, "do_normalize": false, "do_flip_channel_order": true})",
     true},
    {"RTDetr",
     R"({"size": {"height": 640, "width": 640}, "resample": 2, "do_normalize": false, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})"},
    {"Sam",
     R"({"size": {"longest_edge": 1024}, "resample": 2, "do_pad": true, "pad_size": {"height": 1024, "width": 1024}, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})"},
    {"Segformer",
     R"({"size": {"height": 512, "width": 512}, "resample": 2, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})"},
    {"Siglip",
     R"({"size": {"height": 224, "width": 224}, "resample": 3, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})"},
    {"Siglip2",
     R"({"size": null, "resample": 2, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})"},
    {"ViT",
     R"({"size": {"height": 224, "width": 224}, "resample": 2, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})"},
    {"Yolos",
     R"({"size": {"shortest_edge": 800, "longest_edge": 1333}, "resample": 2, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})",
     true},
};

std::string NameOfClass(const Config& config) {
  std::string name = config.Text("image_processor_type", config.Text("feature_extractor_type", ""));
  for (std::string_view suffix : {"Fast", "ImageProcessor", "FeatureExtractor"})
    if (name.ends_with(suffix)) name = name.substr(0, name.size() - suffix.size());
  return name;
}

std::string SizeText(GridSize size) { return fmt::format("{} x {}", size.height, size.width); }

class ProcessorReader {
 public:
  explicit ProcessorReader(const Config& config) : config_(config) {
    const std::string name = NameOfClass(config);
    for (const ProcessorRow& row : kProcessors)
      if (row.name == name) {
        config_ = config.WithDefaults(row.defaults);
        shortest_ = row.number_is_shortest;
        crops_part_ = name == "ConvNext";
      }
  }

  ImageProcessor Read() {
    ReadNumbers();
    if (config_.Bool("do_resize", true)) ReadSize();
    if (config_.Bool("do_center_crop", false) && config_.has("crop_size"))
      Crop(SizeOf("crop_size"));
    if (config_.Bool("do_pad", false) && config_.has("pad_size")) {
      made_.size = SizeOf("pad_size");
      Say("fill them with zeros at the right and the bottom to {}", SizeText(*made_.size));
    }
    if (steps_.empty()) return made_;
    std::string text = fmt::format("{}", fmt::join(steps_, "; then "));
    text[0] = static_cast<char>(std::toupper(text[0]));
    made_.description = text + ".";
    return made_;
  }

 private:
  template <class... T>
  void Say(fmt::format_string<T...> format, T&&... arguments) {
    steps_.push_back(fmt::format(format, std::forward<T>(arguments)...));
  }
  int64_t Pixels(const Config& config, const std::string& key) const {
    constexpr int64_t kMaxPixels = 1 << 14;
    const int64_t pixels = config.Int(key);
    if (pixels < 1 || pixels > kMaxPixels)
      throw Error("bad-file", "\"{}\" is {}", config.KeyPath(key), pixels)
          .At({config.file(), fmt::format("key \"{}\"", config.KeyPath(key))})
          .Expected("1 to {}", kMaxPixels);
    return pixels;
  }
  // A number of pixels of a whole picture: the first of the keys that the file or its size has.
  int64_t PixelsFor(std::initializer_list<const char*> keys, const Config& size,
                    int64_t otherwise) const {
    constexpr int64_t kMost = int64_t{1} << 28;
    for (const Config* config : {&config_, &size})
      for (const char* key : keys)
        if (config->has(key)) {
          const int64_t pixels = config->Int(key);
          if (pixels < 1 || pixels > kMost)
            throw Error("bad-file", "\"{}\" is {}", config->KeyPath(key), pixels)
                .At({config->file(), fmt::format("key \"{}\"", config->KeyPath(key))})
                .Expected("1 to {}", kMost);
          return pixels;
        }
    return otherwise;
  }

  // Returns the size that a number, a list of two or an object with height and width gives.
  GridSize SizeOf(const std::string& key) const {
    if (config_.kind(key) == Config::Kind::kList) {
      const std::vector<int64_t> both = config_.Ints(key);
      if (both.size() != 2 || both[0] < 1 || both[1] < 1) config_.Refuse(key, "[height, width]");
      return {both[0], both[1]};
    }
    if (config_.kind(key) != Config::Kind::kObject) {
      const int64_t side = Pixels(config_, key);
      return {side, side};
    }
    const Config size = config_.Object(key);
    if (size.has("shortest_edge")) {
      const int64_t side = Pixels(size, "shortest_edge");
      return {side, side};
    }
    return {Pixels(size, "height"), Pixels(size, "width")};
  }

  // Returns the numbers for the channels, of which there may be one for all.
  std::vector<double> Channels(const std::string& key) const {
    if (config_.kind(key) == Config::Kind::kNumber || config_.kind(key) == Config::Kind::kInt)
      return {config_.Number(key)};
    const std::vector<double> numbers = config_.Numbers(key);
    if (numbers.size() != 1 && numbers.size() != 3) config_.Refuse(key, "one number, or three");
    return numbers;
  }

  void ReadNumbers() {
    if (config_.Bool("do_flip_channel_order", false))
      made_.image.feature = Port::Feature::kImageBgr;
    const double factor =
        config_.Bool("do_rescale", true) ? config_.Number("rescale_factor", 1.0 / 255) : 1.0;
    std::vector<double> mean = {0}, deviation = {1};
    if (config_.Bool("do_normalize", true) && config_.has("image_mean")) {
      mean = Channels("image_mean");
      deviation = Channels("image_std");
    }
    for (double number : deviation)
      if (number == 0) config_.Refuse("image_std", "numbers other than 0");
    const double shift = config_.Bool("rescale_offset", false) ? 1 : 0;
    made_.image.scale.clear();
    made_.image.bias.clear();
    const size_t count = std::max(mean.size(), deviation.size());
    auto of = [](const std::vector<double>& numbers, size_t channel) {
      return numbers.size() == 1 ? numbers[0] : numbers[channel];
    };
    for (size_t c = 0; c < count; ++c) {
      const double scale = factor / of(deviation, c),
                   bias = -(of(mean, c) + shift) / of(deviation, c);
      if (!std::isfinite(static_cast<float>(scale)) || !std::isfinite(static_cast<float>(bias)))
        config_.Refuse("image_std", "numbers that pixels can be divided by");
      made_.image.scale.push_back(static_cast<float>(scale));
      made_.image.bias.push_back(static_cast<float>(bias));
    }
  }

  std::string Filter() const {
    constexpr std::string_view kNames[] = {"nearest neighbour", "Lanczos", "bilinear",
                                           "bicubic",           "box",     "Hamming"};
    const int64_t filter = config_.Int("resample", 2);
    if (filter < 0 || filter >= std::ssize(kNames))
      config_.Refuse("resample", "0 to 5, a filter of Pillow");
    return std::string(kNames[filter]);
  }

  void ReadSize() {
    if (!config_.has("size") && !config_.has("max_pixels")) return;
    const bool object = config_.kind("size") == Config::Kind::kObject;
    const Config size = object ? config_.Object("size") : Config();
    // Qwen's processors bound the number of pixels.
    if (config_.has("max_pixels") || size.has("max_pixels") || config_.has("merge_size")) {
      const int64_t unit = Pixels(config_, "patch_size") * Pixels(config_, "merge_size");
      made_.pixels = {PixelsFor({"min_pixels", "shortest_edge"}, size, 56 * 56),
                      PixelsFor({"max_pixels", "longest_edge"}, size, 28 * 28 * 1280)};
      return Say(
          "scale pictures to the size of the input, whose sides are multiples of {} pixels ({})",
          unit, Filter());
    }
    const bool shortest = object ? size.has("shortest_edge")
                                 : shortest_ && config_.kind("size") != Config::Kind::kList;
    if (shortest) return ReadShortest(size);
    if (size.has("longest_edge")) {
      Say("scale pictures so that the longer side has {} pixels ({})", Pixels(size, "longest_edge"),
          Filter());
      return;
    }
    made_.size = SizeOf("size");
    if (config_.Bool("keep_aspect_ratio", false)) {
      const int64_t multiple = config_.Int("ensure_multiple_of", 1);
      Say("scale pictures to about {} pixels, keeping their proportions ({}){}",
          SizeText(*made_.size), Filter(),
          multiple > 1 ? fmt::format(", to multiples of {} pixels", multiple) : "");
      return;
    }
    Say("resize pictures to {} pixels, whatever their proportions ({})", SizeText(*made_.size),
        Filter());
  }
  void ReadShortest(const Config& size) {
    const GridSize given = SizeOf("size");
    constexpr int64_t kWhole = 384;  // ConvNext crops smaller pictures only
    if (crops_part_ && given.height >= kWhole) {
      made_.size = given;
      return Say("resize pictures to {} pixels, whatever their proportions ({})", SizeText(given),
                 Filter());
    }
    int64_t side = given.height;
    if (crops_part_) {
      const double part = config_.Number("crop_pct");
      if (!(part > 0 && part <= 1)) config_.Refuse("crop_pct", "more than 0 and at most 1");
      side = Truncated(static_cast<double>(side) / part);
    }
    const std::string limit = size.has("longest_edge") ? fmt::format(", and the longer at most {}",
                                                                     Pixels(size, "longest_edge"))
                                                       : "";
    Say("scale pictures so that the shorter side has {} pixels{} ({})", side, limit, Filter());
    if (crops_part_) Crop(given);
  }
  void Crop(GridSize size) {
    made_.size = size;
    Say("cut out their centre of {} pixels", SizeText(size));
  }

  Config config_;
  bool shortest_ = false, crops_part_ = false;
  ImageProcessor made_;
  std::vector<std::string> steps_;
};

}  // namespace

std::optional<ImageProcessor> ReadImageProcessor(const fs::path& folder,
                                                 std::vector<fs::path>* read) {
  std::error_code ignored;
  for (const auto& [file, member] :
       {std::pair{"preprocessor_config.json", ""}, {"processor_config.json", "image_processor"}}) {
    const fs::path path = folder / file;
    if (!fs::exists(path, ignored)) continue;
    Config config = Config::Read(path);
    if (*member && !config.has(member)) continue;
    if (read) read->push_back(path);
    return ProcessorReader(*member ? config.Object(member) : config).Read();
  }
  return std::nullopt;
}

// Follows transformers' image_processing_qwen2_vl.py, smart_resize.
GridSize KeptProportions(GridSize picture, int64_t unit, std::pair<int64_t, int64_t> pixels) {
  constexpr int64_t kMostRatio = 200;
  const int64_t longer = std::max(picture.height, picture.width),
                shorter = std::max<int64_t>(1, std::min(picture.height, picture.width));
  if (longer / shorter > kMostRatio)
    throw Error("bad-input", "the picture has {} x {} pixels", picture.width, picture.height)
        .Expected("a side of at most {} times the other", kMostRatio);
  const auto height = static_cast<double>(picture.height),
             width = static_cast<double>(picture.width), step = static_cast<double>(unit);
  // Halves are rounded to even numbers, as in Python.
  auto sized = [&](double (*round)(double), double by) {
    auto side = [&](double size) {
      return std::max<int64_t>(1, Truncated(round(size * by / step))) * unit;
    };
    return GridSize{side(height), side(width)};
  };
  const GridSize near = sized([](double x) { return std::nearbyint(x); }, 1);
  if (near.count() > pixels.second)
    return sized([](double x) { return std::floor(x); },
                 std::sqrt(static_cast<double>(pixels.second) / (height * width)));
  if (near.count() < pixels.first)
    return sized([](double x) { return std::ceil(x); },
                 std::sqrt(static_cast<double>(pixels.first) / (height * width)));
  return near;
}

networks::PictureInput PictureInputOf(const std::optional<ImageProcessor>& processor, GridSize own,
                                      int64_t channels, const ImportOptions& options) {
  networks::PictureInput picture{.size = own, .channels = channels};
  if (processor && processor->size) picture.size = *processor->size;
  auto check_name = [&](std::string_view option, const std::string& name) {
    if (name != picture.name)
      throw Error("bad-name", "option '{}' {}: the model has no picture of this name{}", option,
                  name, DidYouMean(std::array{picture.name}, name))
          .Expected(picture.name);
  };
  for (const auto& [name, dims] : options.shapes) {
    check_name("shape", name);
    if (dims.size() != 4 || dims[0] != 1 || dims[1] != channels || dims[2] < 1 || dims[3] < 1)
      throw Error("input-shape", "option 'shape' {}: the shape is [{}]", name,
                  fmt::join(dims, ", "))
          .Expected("[1, {}, height, width]", channels);
    picture.size = {dims[2], dims[3]};
  }
  if (processor) {
    picture.description = processor->description;
    if (processor->size != picture.size)
      picture.description +=
          fmt::format("{}This model takes pictures of {} pixels.",
                      picture.description.empty() ? "" : " ", SizeText(picture.size));
  }
  for (const auto& [name, image] : options.images) {
    check_name("image", name);
    picture.image = image;
  }
  if (!picture.image && processor && !options.arrays && (channels == 3))
    picture.image = processor->image;
  const bool gray = picture.image && picture.image->feature == Port::Feature::kImageGray;
  if (picture.image && channels != (gray ? 1 : 3))
    throw Error("input-shape", "option 'image' {}: the model takes {} channels", picture.name,
                channels)
        .Expected(gray ? "1 channel" : "3 channels");
  return picture;
}

void DescribePictures(Program& program, const networks::PictureInput& picture) {
  if (picture.description.empty()) return;
  program.interface.metadata.emplace_back(fmt::format("mlc.picture.{}", picture.name),
                                          picture.description);
  std::ranges::sort(program.interface.metadata);
}

std::vector<std::string> LabelsOf(const Config& config) {
  if (config.kind("id2label") != Config::Kind::kObject) return {};
  std::map<int64_t, std::string> labels;
  bool numbered = true;
  for (const auto& [key, label] : config.TextMap("id2label")) {
    int64_t id = -1;
    const auto [end, failed] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (failed != std::errc() || end != key.data() + key.size() || id < 0) return {};
    labels[id] = label;
    numbered = numbered && label == fmt::format("LABEL_{}", id);
  }
  std::vector<std::string> all;
  std::map<std::string, int> times;
  for (const auto& [id, label] : labels) {
    if (id != static_cast<int64_t>(all.size())) return {};
    all.push_back(label);
    ++times[label];
  }
  if (numbered) return {};
  for (size_t id = 0; id < all.size(); ++id)
    if (all[id].empty() || times[all[id]] > 1) all[id] += fmt::format(" ({})", id);
  return all;
}

}  // namespace mlc::safetensors
