#include "tools/driver/image_inputs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "lib/ir/input_conversion.h"
#include "lib/support/mapped_file.h"

namespace mlc::driver {

namespace {

// Parses "0.5" or "1/255"; nothing if the text is not a finite number.
std::optional<double> Number(const std::string& text) {
  double values[2] = {0, 1};
  const char* at = text.c_str();
  for (double& value : values) {
    char* end = nullptr;
    value = std::strtod(at, &end);
    if (end == at || std::isspace(static_cast<unsigned char>(*at))) return std::nullopt;
    at = end;
    if (*at != '/') break;
    if (&value == &values[0]) ++at;
  }
  double number = values[0] / values[1];
  return *at == '\0' && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

// The number for a channel; a single number applies to all channels.
double At(const std::vector<double>& numbers, size_t channel) {
  return numbers.size() == 1 ? numbers[0] : numbers[channel];
}

ImportOptions::Image ParseImage(const std::string& text) {
  auto fail = [&](std::string what) {
    return Error("usage", "--image: \"{}\" {}", text, what)
        .Expected(
            "LAYOUT,SCALE,BIAS (pixel * SCALE + BIAS) or LAYOUT,mean=M,std=S ((pixel / 255 - M) / "
            "S), where LAYOUT is rgb, bgr or gray; e.g. rgb,1/255,0")
        .Help("SCALE, BIAS, M and S are each one number, or three numbers for rgb and bgr");
  };
  ImportOptions::Image image;
  std::vector<std::string> parts = SplitAtCommas(text);
  const std::string& layout = parts[0];
  if (layout == "bgr")
    image.feature = Port::Feature::kImageBgr;
  else if (layout == "gray")
    image.feature = Port::Feature::kImageGray;
  else if (layout != "rgb")
    throw fail("does not begin with a layout");
  const size_t channels = layout == "gray" ? 1 : 3;

  // Numbers before the first key are the scales and biases.
  std::map<std::string, std::vector<double>> given;
  std::vector<double> plain, *numbers = &plain;
  for (size_t i = 1; i < parts.size(); ++i) {
    std::string part = parts[i];
    if (size_t equals = part.find('='); equals != std::string::npos) {
      std::string key = part.substr(0, equals);
      if (key != "scale" && key != "bias" && key != "mean" && key != "std")
        throw fail(fmt::format("has the unknown key \"{}\"", key));
      if (given.contains(key)) throw fail(fmt::format("has {} twice", key));
      numbers = &given[key];
      part.erase(0, equals + 1);
    }
    std::optional<double> number = Number(part);
    if (!number) throw fail("has a value that is not a number");
    numbers->push_back(*number);
  }
  if (!plain.empty()) {
    size_t count = plain.size(), scales = count == 2 * channels ? channels : 1;
    if (count > 2 && count != scales + channels) throw fail(fmt::format("has {} numbers", count));
    if (given.contains("scale") || (count > scales && given.contains("bias")))
      throw fail("has scale or bias twice");
    given["scale"].assign(plain.begin(), plain.begin() + static_cast<ptrdiff_t>(scales));
    if (count > scales)
      given["bias"].assign(plain.begin() + static_cast<ptrdiff_t>(scales), plain.end());
  }
  for (const auto& [key, values] : given)
    if (values.size() != 1 && values.size() != channels)
      throw fail(fmt::format("has {} numbers for {}", values.size(), key));
  bool normalised = given.contains("mean") || given.contains("std");
  if (normalised && given.contains("bias")) throw fail("has both a bias and a mean or std");

  auto values = [&](const char* key, double otherwise) {
    auto it = given.find(key);
    return it == given.end() ? std::vector<double>{otherwise} : it->second;
  };
  std::vector<double> mean = values("mean", 0), deviation = values("std", 1);
  if (std::ranges::count(deviation, 0.0) > 0) throw fail("has a std of 0");
  // Means and deviations apply to values from 0 to 1, unless one above 1 implies pixel units.
  auto above_one = [](double x) { return std::fabs(x) > 1; };
  bool of_pixels =
      std::ranges::any_of(mean, above_one) || std::ranges::any_of(deviation, above_one);
  std::vector<double> scale = values("scale", normalised && !of_pixels ? 1.0 / 255 : 1),
                      bias = values("bias", 0);
  size_t count = std::max({scale.size(), bias.size(), mean.size(), deviation.size()});
  image.scale.clear();
  image.bias.clear();
  for (size_t c = 0; c < count; ++c) {
    image.scale.push_back(static_cast<float>(At(scale, c) / At(deviation, c)));
    image.bias.push_back(static_cast<float>(At(bias, c) - At(mean, c) / At(deviation, c)));
  }
  auto all_equal = [](const std::vector<float>& list) {
    return std::ranges::all_of(list, [&](float x) { return x == list[0]; });
  };
  for (std::vector<float>* list : {&image.scale, &image.bias})
    if (all_equal(*list)) list->resize(1);
  return image;
}

// Returns [1, channels, height, width] for an image input; open sizes are taken from the given
// tensor.
Dims PixelDims(const Shape& shape, int64_t channels, const Dims& given) {
  size_t height = given.size() == 4 ? (given[1] == channels ? 2 : 1)
                  : given.size() == 3 && channels == 1 && given[0] == 1 ? 1
                                                                        : 0;
  Dims dims = {1, channels};
  for (size_t d = 2; d < 4; ++d) {
    size_t from = height + d - 2;
    dims.push_back(shape[d].is_constant() ? shape[d].constant()
                   : from < given.size()  ? given[from]
                                          : 0);
  }
  return dims;
}

}  // namespace

std::pair<std::string, ImportOptions::Image> ParseImageOption(const std::string& text) {
  size_t at = std::string::npos;
  // Names and values may contain '='; the last '=' before a layout separates them.
  for (std::string_view layout : {"rgb", "bgr", "gray"})
    for (size_t from = text.find('='); from != std::string::npos; from = text.find('=', from + 1)) {
      size_t end = from + 1 + layout.size();
      if (from > 0 && text.compare(from + 1, layout.size(), layout) == 0 &&
          (end == text.size() || text[end] == ','))
        at = at == std::string::npos ? from : std::max(at, from);
    }
  if (at == std::string::npos) at = text.find('=');
  if (at == std::string::npos || at == 0)
    throw Error("usage", "--image: \"{}\" is not of the form NAME=VALUE", text);
  return {text.substr(0, at), ParseImage(text.substr(at + 1))};
}

std::string ImageOption(const std::string& name, const ImportOptions::Image& image) {
  std::string_view layout = image.feature == Port::Feature::kImageGray  ? "gray"
                            : image.feature == Port::Feature::kImageBgr ? "bgr"
                                                                        : "rgb";
  return fmt::format("{}={},scale={},bias={}", name, layout, fmt::join(image.scale, ","),
                     fmt::join(image.bias, ","));
}

Tensor ToPixels(const Tensor& tensor, const Value& input, const Port& port) {
  const int64_t channels = port.feature == Port::Feature::kImageGray ? 1 : 3;
  Dims dims = tensor.dims(), want = PixelDims(input.type.shape, channels, dims);
  const int64_t height = want[2], width = want[3];
  // Core ML's images have 8 bits per channel.
  Tensor pixels;
  try {
    pixels = ConvertInput(tensor, DType::kUint8, DType::kFp32,
                          {"bad-input", fmt::format("image \"{}\"", port.source_name)});
  } catch (Error& error) {
    throw error.Help(
        "an image input takes pixels, whole numbers from 0 to 255; the model scales them itself. "
        "--io tensor makes the input of a Hugging Face folder an array instead");
  }
  if (dims == want) return pixels;
  Tensor picture = pixels;
  if (channels == 1 && (dims == Dims{height, width} || dims == Dims{1, height, width}))
    picture = pixels.Reshaped({height, width, 1});
  else if (dims == Dims{1, height, width, channels})
    picture = pixels.Reshaped({height, width, channels});
  if (picture.dims() != Dims{height, width, channels})
    throw Error("bad-input", "image \"{}\" has shape [{}]", port.source_name, fmt::join(dims, ", "))
        .Expected("[{0}, {1}, {2}] or [1, {2}, {0}, {1}]", height, width, channels);
  Pin<float> planes = picture.Transposed({2, 0, 1}).data<float>();
  std::vector<float> ordered;
  for (int64_t c = 0; c < channels; ++c) {
    int64_t plane = port.feature == Port::Feature::kImageBgr ? channels - 1 - c : c;
    std::span<const float> data = planes.span().subspan(plane * height * width, height * width);
    ordered.insert(ordered.end(), data.begin(), data.end());
  }
  return Tensor::Of(want, ordered);
}

}  // namespace mlc::driver
