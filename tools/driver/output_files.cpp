#include "tools/driver/output_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lib/ir/npy.h"
#include "lib/media/picture.h"
#include "lib/support/atomic_install.h"
#include "lib/support/edit_distance.h"
#include "lib/support/error.h"
#include "lib/support/float_text.h"
#include "lib/verify/compare_functions.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

std::optional<double> ParseScale(std::string_view text) {
  const size_t slash = text.find('/');
  const std::optional<double> value = ParseNumber(text.substr(0, slash));
  if (slash == std::string_view::npos || !value) return value;
  const std::optional<double> divisor = ParseNumber(text.substr(slash + 1));
  if (!divisor || *divisor == 0) return std::nullopt;
  return *value / *divisor;
}

bool IsChannels(int64_t size) { return size == 1 || size == 3; }

// Returns [height, width, channels], or an empty tensor if it is no picture.
Tensor Interleaved(const Tensor& tensor, const Port& port) {
  Tensor picture = tensor;
  Dims dims = tensor.dims();
  if (dims.size() == 4 && dims[0] == 1) dims.erase(dims.begin());
  if (dims.size() == 2) dims.push_back(1);
  if (dims.size() != 3 || tensor.dtype() == DType::kString) return {};
  picture = tensor.Reshaped(dims);
  if (IsChannels(dims[0]) && (!IsChannels(dims[2]) || port.feature != Port::Feature::kMultiArray))
    return picture.Transposed({1, 2, 0});
  return IsChannels(dims[2]) ? picture : Tensor();
}

Tensor PictureOf(const OutputToFile& file, const Tensor& tensor) {
  const std::string name = verify::UserName(*file.port);
  const Tensor values = Interleaved(tensor, *file.port);
  if (!values)
    throw Error("bad-input", "output \"{}\" has shape [{}], which is no picture", name,
                fmt::join(tensor.dims(), ", "))
        .Expected("[height, width], or [channels, height, width] with 1 or 3 channels")
        .Help("write it as .npy");
  const std::vector<double> numbers = values.Doubles();
  double most = 0;
  for (const double number : numbers) {
    if (!std::isfinite(number))
      throw Error("bad-input", "output \"{}\" has values that are not finite", name)
          .Help("write it as .npy");
    most = std::max(most, number);
  }
  if (most > 0 && most <= 1 && file.scale == 1 && IsFloat(tensor.dtype()))
    throw Error("bad-input", "output \"{}\" has values up to {:.4g}, which would be black", name,
                most)
        .Expected("values in 0..255")
        .Help("scale them: --output {}={},255", name, file.path.string());
  const int64_t channels = values.dims()[2];
  const bool reversed = file.port->feature == Port::Feature::kImageBgr && channels == 3;
  std::vector<std::byte> pixels;
  pixels.reserve(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t c = i % static_cast<size_t>(channels);
    const double value = numbers[reversed ? i - c + 2 - c : i] * file.scale;
    pixels.push_back(std::byte(static_cast<uint8_t>(std::clamp(std::round(value), 0.0, 255.0))));
  }
  Dims dims = values.dims();
  if (channels == 1) dims.pop_back();
  return Tensor::Owned(DType::kUint8, std::move(dims), std::move(pixels));
}

}  // namespace

OutputToFile ParseOutputFile(const std::string& text, const Function& function) {
  std::vector<std::string> names;
  OutputToFile file;
  size_t length = 0;
  // Both names and paths may contain '='; the longest matching name is used.
  for (const Port& port : function.outputs)
    for (const std::string& name : {port.source_name, port.name}) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      if (!text.starts_with(name + "=") || (file.port && name.size() <= length)) continue;
      file.port = &port;
      length = name.size();
    }
  const size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw Error("usage", "--output: \"{}\" is not of the form NAME=FILE", text);
  if (!file.port)
    throw Error("bad-name", "--output: the model has no output \"{}\"{}", text.substr(0, equals),
                DidYouMean(names, text.substr(0, equals)))
        .Expected("{}", fmt::join(names, ", "));
  std::string rest = text.substr(length + 1);
  if (const size_t comma = rest.rfind(','); comma != std::string::npos)
    if (const auto scale = ParseScale(std::string_view(rest).substr(comma + 1))) {
      file.scale = *scale;
      rest.resize(comma);
    }
  file.path = rest;
  const bool picture = media::HasPictureName(file.path);
  if (!picture && file.path.extension() != ".npy")
    throw Error("usage", "--output: \"{}\" is neither a .npy file nor a picture", rest)
        .Expected(".npy, .png, .jpg, .ppm or .pgm");
  if (!picture && file.scale != 1)
    throw Error("usage", "--output: only pictures have a scale, \"{}\" has none", rest);
  Staging(file.path, Staging::kFile);  // reports conflicts early
  return file;
}

void Write(const OutputToFile& file, const Tensor& tensor) {
  if (media::HasPictureName(file.path))
    media::WritePicture(file.path, PictureOf(file, tensor));
  else
    WriteNpy(file.path, tensor);
}

}  // namespace mlc::driver
