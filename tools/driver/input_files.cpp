#include "tools/driver/input_files.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "frontends/onnx/onnx.h"
#include "lib/ir/npy.h"
#include "lib/media/sound.h"
#include "lib/support/byte_window.h"
#include "lib/support/error.h"
#include "lib/support/mapped_file.h"
#include "lib/verify/compare_functions.h"
#include "tools/driver/foreign_files.h"
#include "tools/driver/supplied_tensors.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

using media::Fit;

constexpr std::string_view kSoundName = ".wav";
constexpr std::string_view kRawNames[] = {".raw", ".bin"};

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Error BadInput(const Port& port, const fs::path& path, std::string_view what) {
  Error error("bad-input", "input \"{}\": {}", verify::UserName(port), what);
  error.At({path.string(), ""});
  return error;
}

Tensor OnlyArray(const fs::path& path) {
  const std::map<std::string, Tensor> arrays = ReadNpz(path);
  if (arrays.size() == 1) return arrays.begin()->second;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : arrays) names.push_back(name);
  throw Error("bad-input", "the archive has {} arrays, where one tensor is expected", arrays.size())
      .At({path.string(), ""})
      .Note("the arrays are {}", fmt::join(names, ", "))
      .Help("pass all inputs with --inputs, or save the array in a file of its own");
}

Tensor WithChannels(const Tensor& picture, int64_t channels, const Port& port,
                    const fs::path& path) {
  const bool colour = picture.rank() == 3;
  if (colour == (channels == 3)) return picture;
  if (colour)
    throw BadInput(port, path, "the picture has colours")
        .Expected("a picture in gray")
        .Help(fmt::format("convert it: magick {} -colorspace gray OUT.png", path.string()));
  const Pin<uint8_t> gray = picture.data<uint8_t>();
  std::vector<std::byte> pixels;
  pixels.reserve(gray.span().size() * 3);
  for (const uint8_t pixel : gray.span()) pixels.insert(pixels.end(), 3, std::byte(pixel));
  return Tensor::Owned(DType::kUint8, {picture.dims()[0], picture.dims()[1], 3}, std::move(pixels));
}

Tensor FittedTo(const Tensor& picture, const Dim& height, const Dim& width, Fit fit,
                const Port& port, const fs::path& path) try {
  auto size = [&](const Dim& dim, int d) {
    return dim.is_constant() ? dim.constant() : picture.dims()[d];
  };
  return media::Fitted(picture, size(height, 0), size(width, 1), fit);
} catch (Error& error) {
  throw error.At({path.string(), ""}).Note("it is given for input \"{}\"", verify::UserName(port));
}

Tensor PictureFor(const fs::path& path, const Port& port, const Value& value, Fit fit) {
  const Tensor picture = media::ReadPicture(path);
  const Shape& shape = value.type.shape;
  if (port.feature != Port::Feature::kMultiArray && shape.size() == 4) {
    const int64_t channels = port.feature == Port::Feature::kImageGray ? 1 : 3;
    return FittedTo(WithChannels(picture, channels, port, path), shape[2], shape[3], fit, port,
                    path);
  }
  const DType declared = port.source_dtype == DType::kNone ? value.type.dtype : port.source_dtype;
  const bool batched = shape.size() == 4 || (shape.size() == 3 && picture.rank() == 2);
  const size_t rows = batched ? 1 : 0;
  const bool fits = shape.size() == rows + static_cast<size_t>(picture.rank()) &&
                    (!batched || shape[0] == Dim(1) || !shape[0].is_constant()) &&
                    (picture.rank() == 2 || shape.back() == Dim(3) || !shape.back().is_constant());
  if (declared != DType::kUint8 || !fits)
    throw BadInput(port, path,
                   fmt::format("the file is a picture, but the input takes {} of shape {}",
                               Name(declared), ToString(shape)))
        .Expected("an image input, or uint8 [height, width, channels]")
        .Help(
            fmt::format("declare an image: --image {}=rgb,SCALE,BIAS says what the model makes of "
                        "the pixels (rgb,1/255 for values in 0..1)",
                        verify::UserName(port)));
  Tensor fitted = FittedTo(picture, shape[rows], shape[rows + 1], fit, port, path);
  if (!batched) return fitted;
  Dims dims = fitted.dims();
  dims.insert(dims.begin(), 1);
  return fitted.Reshaped(std::move(dims));
}

Tensor SoundFor(const fs::path& path, const Port& port, const Value& value, Fit fit) {
  const media::Sound sound = media::ReadSound(path);
  const bool mono = sound.samples.rank() == 1;
  const int64_t channels = mono ? 1 : sound.samples.dims()[0], count = sound.samples.dims().back();
  const Shape& shape = value.type.shape;
  // The dimension of the samples is the last one that can have more than one element; that of the
  // channels comes before it.
  int samples = -1, of_channels = -1;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d)
    if (!shape[d].is_constant() || shape[d].constant() != 1) {
      of_channels = samples;
      samples = d;
    }
  auto takes = [&](int d, int64_t size) {
    return d >= 0 && (!shape[d].is_constant() || shape[d].constant() == size);
  };
  if (samples < 0)
    throw BadInput(port, path,
                   fmt::format("the file is a sound, but the input has shape {}", ToString(shape)));
  if (!mono && !takes(of_channels, channels))
    throw BadInput(port, path, fmt::format("the sound has {} channels", channels))
        .Expected("one channel, for shape {}", ToString(shape))
        .Help(fmt::format("mix them: ffmpeg -i {} -ac 1 OUT.wav", path.string()));
  int64_t wanted = shape[samples].is_constant() ? shape[samples].constant() : count;
  if (wanted != count && fit == Fit::kNone)
    throw BadInput(
        port, path,
        fmt::format("the sound has {} samples, {:.2f} s at {} Hz", count,
                    static_cast<double>(count) / static_cast<double>(sound.rate), sound.rate))
        .Expected("{} samples", wanted)
        .Help("pass --fit crop to cut it, or to fill it with silence");
  Dims dims(shape.size(), 1);
  dims[samples] = wanted;
  if (!mono) dims[of_channels] = channels;
  if (wanted == count) return sound.samples.Reshaped(std::move(dims));
  const Pin<float> given = sound.samples.data<float>();
  std::vector<float> cut;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < wanted; ++i) cut.push_back(i < count ? given.span()[c * count + i] : 0);
  return Tensor::Of(std::move(dims), cut);
}

Tensor RawFor(const fs::path& path, std::span<const std::byte> bytes, const Port& port,
              const Value& value) {
  const DType dtype = port.source_dtype == DType::kNone ? value.type.dtype : port.source_dtype;
  int64_t known = 1;
  int open = -1, count = 0;
  const Shape& shape = value.type.shape;
  Dims dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    dims.push_back(shape[d].is_constant() ? shape[d].constant() : 1);
    known *= dims.back();
    if (shape[d].is_constant()) continue;
    open = static_cast<int>(d);
    ++count;
  }
  const int64_t of_known = ByteCount(dtype, known), size = std::ssize(bytes);
  if (dtype == DType::kString || count > 1 || of_known == 0 ||
      (count == 0 ? size != of_known : size % of_known != 0 || size == 0))
    throw BadInput(port, path, fmt::format("the file has {} bytes", size))
        .Expected(count > 1    ? "a .npy file, because the sizes of the input are open"
                  : count == 1 ? fmt::format("a multiple of {} bytes: {} of shape {}", of_known,
                                             Name(dtype), ToString(shape))
                               : fmt::format("{} bytes: {} of shape {}", of_known, Name(dtype),
                                             ToString(shape)));
  if (open >= 0) dims[open] = size / of_known;
  return Tensor::Owned(dtype, std::move(dims), {bytes.begin(), bytes.end()});
}

}  // namespace

Tensor ReadTensor(const fs::path& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  constexpr std::string_view kNumpy = "\x93NUMPY", kZip = "PK\x03\x04";
  const std::string_view text = TextOf(file->bytes());
  if (text.starts_with(kNumpy)) return ReadNpy(path);
  if (text.starts_with(kZip)) return OnlyArray(path);
  if (media::IsPicture(file->bytes())) return media::ReadPicture(path);
  if (media::IsSound(file->bytes())) return media::ReadSound(path).samples;
  ByteWindow window(*file);
  RefuseForeignTensor(path, window);
  return onnx::ReadOnnxTensor(path);
}

Tensor ReadSampleArray(const fs::path& path) {
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::is_directory(path, error))
    for (const fs::directory_entry& entry : fs::directory_iterator(path))
      files.push_back(entry.path());
  else if (HasMediaName(path))
    files.push_back(path);
  else
    return ReadTensor(path);
  std::ranges::sort(files);
  Dims dims;
  DType dtype = DType::kUint8;
  std::vector<std::byte> bytes;
  for (const fs::path& file : files) {
    if (!HasMediaName(file))
      throw Error("bad-input", "the folder has a file that is neither a picture nor a sound")
          .At({file.string(), ""});
    const Tensor sample = ReadTensor(file);
    if (file != files[0] && (sample.dims() != dims || sample.dtype() != dtype))
      throw Error("bad-input", "the sample has shape [{}], and the first one [{}]",
                  fmt::join(sample.dims(), ", "), fmt::join(dims, ", "))
          .At({file.string(), ""});
    dims = sample.dims();
    dtype = sample.dtype();
    const Pin<std::byte> own = sample.bytes();
    bytes.insert(bytes.end(), own.begin(), own.end());
  }
  if (files.empty()) throw Error("bad-input", "the folder is empty").At({path.string(), ""});
  dims.insert(dims.begin(), std::ssize(files));
  return Tensor::Owned(dtype, std::move(dims), std::move(bytes));
}

bool HasMediaName(const fs::path& path) {
  return media::HasPictureName(path) || path.extension() == kSoundName;
}

bool HasInputName(const fs::path& path) {
  return path.extension() == ".npy" || path.extension() == ".pb" || HasMediaName(path) ||
         std::ranges::find(kRawNames, path.extension().string()) != std::end(kRawNames);
}

Tensor ReadInput(const fs::path& path, const Port& port, const Value& value, Fit fit) {
  const std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  const std::span<const std::byte> bytes = file->bytes();
  if (media::IsPicture(bytes)) return PictureFor(path, port, value, fit);
  if (media::IsSound(bytes)) return SoundFor(path, port, value, fit);
  if (std::ranges::find(kRawNames, path.extension().string()) != std::end(kRawNames))
    return RawFor(path, bytes, port, value);
  return ReadTensor(path);
}

Error NoImageInput(const fs::path& model, const Function& function) {
  std::string array = "INPUT";
  Error error("usage", "--picture: the model has no image input");
  for (const auto& [port, value] : InputPorts(function)) {
    if (value.type.rank() != 4 || !IsFloat(value.type.dtype)) continue;
    array = verify::UserName(port);
    error.Note("input \"{}\" takes an array of numbers, {}", array, ToString(value.type.shape));
  }
  constexpr char kProcessor[] = "preprocessor_config.json";
  std::error_code ignored;
  const bool folder = fs::is_regular_file(model / "config.json", ignored);
  if (folder && !fs::is_regular_file(model / kProcessor, ignored))
    return error.Note("the folder has no {}, which says what the model makes of pixels", kProcessor)
        .Help("add that file of the model, or declare an image: --image {}=rgb,SCALE,BIAS", array);
  return error.Help(
      "--image {}=rgb,SCALE,BIAS makes an input of a source model an image, as {} in its folder "
      "does",
      array, kProcessor);
}

std::vector<float> ReadMonoSound(const fs::path& path, int64_t rate) {
  const media::Sound sound = media::ReadSound(path);
  if (sound.rate != rate)
    throw Error("bad-input", "the sound has {} samples per second", sound.rate)
        .At({path.string(), ""})
        .Expected("{}", rate)
        .Help("convert it: ffmpeg -i {} -ar {} -ac 1 OUT.wav", path.string(), rate);
  const Pin<float> all = sound.samples.data<float>();
  const int64_t channels = sound.samples.rank() == 1 ? 1 : sound.samples.dims()[0],
                count = sound.samples.dims().back();
  std::vector<float> samples(static_cast<size_t>(count), 0);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < count; ++i)
      samples[static_cast<size_t>(i)] +=
          all[static_cast<size_t>(c * count + i)] / static_cast<float>(channels);
  return samples;
}

}  // namespace mlc::driver
