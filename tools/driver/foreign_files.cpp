#include "tools/driver/foreign_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "lib/support/error.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

// A format by its signature at an offset of the file. `help` may contain FILE and FOLDER.
struct Signature {
  size_t offset;
  std::string_view bytes;
  std::string_view what, help;
};

// Contents that a download or a copy can leave in place of any file.
constexpr Signature kDamaged[] = {
    {0, "version https://git-lfs", "a pointer of Git LFS instead of the file itself",
     "get the file: git lfs pull --include FILE, in its repository"},
    {0, "\x1f\x8b", "a gzip archive",
     "unpack it: gunzip FILE, or tar -xzf FILE if it is a .tar.gz"},
    {0, "BZh", "a bzip2 archive", "unpack it: bunzip2 FILE"},
    {0, std::string_view("\xfd\x37zXZ\0", 6), "an xz archive", "unpack it: unxz FILE"},
    {0, "\x28\xb5\x2f\xfd", "a zstd archive", "unpack it: unzstd FILE"},
    {0, "7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it: 7z x FILE"},
    {257, "ustar", "a tar archive", "unpack it: tar -xf FILE"},
};

// Loading a checkpoint needs the code of the network; the weights of a Hugging Face model do not.
constexpr std::string_view kSafetensors =
    "if it belongs to a Hugging Face model, make a .safetensors file beside its config.json:\n"
    "  from torch import load; from safetensors.torch import save_file\n"
    "  save_file(load(\"FILE\", map_location=\"cpu\", weights_only=True), \"model.safetensors\")\n"
    "otherwise export the network: torch.onnx.export(model, example, \"model.onnx\")";

constexpr Signature kModels[] = {
    {0, "\x89HDF", "an HDF5 file, perhaps Keras",
     "convert it: python -m tf2onnx.convert --keras FILE --output model.onnx"},
    {0, "\x80\x02", "a Python pickle, perhaps a PyTorch checkpoint", kSafetensors},
    {0, "\x80\x03", "a Python pickle, perhaps a PyTorch checkpoint", kSafetensors},
    {0, "\x80\x04", "a Python pickle, perhaps a PyTorch checkpoint", kSafetensors},
    {0, "\x80\x05", "a Python pickle, perhaps a PyTorch checkpoint", kSafetensors},
    {0, "\x93NUMPY", "a NumPy array", "pass it as an input, not as the model"},
    {4, "TFL3", "a TensorFlow Lite model",
     "convert it: python -m tf2onnx.convert --tflite FILE --output model.onnx"},
    {4, "ORTM", "an ORT-format model", "use the .onnx file that it was made from"},
    {0, "7767517\n", "the network of an ncnn model", "use the ONNX model that it was made from"},
    {0, "ggjt", "a GGML file from before GGUF",
     "convert it with llama.cpp, or download the GGUF file"},
    {0, "lmgg", "a GGML file from before GGUF", "convert it with whisper.cpp or llama.cpp to GGUF"},
};

// Archives by the name of a member; the last row matches any archive.
constexpr std::string_view kZip = "PK\x03\x04";
constexpr Signature kArchives[] = {
    {0, "constants.pkl", "a TorchScript archive",
     "export it: torch.onnx.export(torch.jit.load(\"FILE\"), example, \"model.onnx\")"},
    {0, "data.pkl", "a PyTorch checkpoint, which has weights but no network", kSafetensors},
    {0, "model.weights.h5", "a Keras archive",
     "export it: keras.models.load_model(\"FILE\").export(\"model.onnx\", format=\"onnx\")"},
    {0, "Manifest.json", "a zip archive of a .mlpackage", "unpack it: unzip FILE"},
    {0, "coremldata.bin", "a zip archive of a .mlmodelc", "unpack it: unzip FILE"},
    {0, ".onnx", "a zip archive of an ONNX model", "unpack it: unzip FILE"},
    {0, ".npy", "an archive of NumPy arrays",
     "pass it with --inputs or --reference, not as the model"},
    {0, "", "a zip archive", "unpack it: unzip FILE"},
};

// Formats without a signature, by words that all occur in the first 64 KiB.
struct Words {
  std::string_view words[3];
  std::string_view what, help;
};
constexpr Words kWords[] = {
    {{"op_role", "feed", ""},
     "a Paddle model",
     "convert it: paddle2onnx --model_dir FOLDER --model_filename FILE --save_file model.onnx"},
    {{"\"pir\"", "base_code", ""},
     "a Paddle model",
     "convert it: paddle2onnx --model_dir FOLDER --model_filename FILE --save_file model.onnx"},
    {{"Placeholder", "dtype", ""},
     "a TensorFlow graph",
     "convert it: python -m tf2onnx.convert --graphdef FILE --inputs X:0 --outputs Y:0 --output "
     "model.onnx"},
    {{"saved_model_schema_version", "", ""},
     "a TensorFlow SavedModel",
     "convert its folder: python -m tf2onnx.convert --saved-model FOLDER --output model.onnx"},
    {{"<net ", "<layers>", ""}, "an OpenVINO model", "use the ONNX model that it was made from"},
};

// After what is recognised more precisely.
constexpr Signature kOthers[] = {
    {0, "{", "JSON, which has no weights",
     "pass the folder that contains config.json and the .safetensors files"},
};

// Folders of other tools, by the name of a file in them.
constexpr Signature kFolders[] = {
    {0, "saved_model.pb", "a TensorFlow SavedModel",
     "convert it: python -m tf2onnx.convert --saved-model FILE --output model.onnx"},
    {0, "keras_metadata.pb", "a Keras model",
     "convert it: python -m tf2onnx.convert --saved-model FILE --output model.onnx"},
    {0, "inference.pdmodel", "a Paddle model",
     "convert it: paddle2onnx --model_dir FILE --model_filename inference.pdmodel "
     "--params_filename "
     "inference.pdiparams --save_file model.onnx"},
    {0, "Data/com.apple.CoreML", "a .mlpackage without its Manifest.json", "copy the whole folder"},
    {0, "model.mil", "a .mlmodelc without its coremldata.bin", "copy the whole folder"},
};

constexpr std::string_view kConvertPicture = "convert it: magick FILE OUT.png";
constexpr std::string_view kConvertSound = "convert it: ffmpeg -i FILE OUT.wav";
constexpr Signature kTensors[] = {
    {0, "GIF8", "a GIF picture", kConvertPicture},
    {8, "WEBP", "a WebP picture", kConvertPicture},
    {0, std::string_view("II*\0", 4), "a TIFF picture", kConvertPicture},
    {0, std::string_view("MM\0*", 4), "a TIFF picture", kConvertPicture},
    {4, "ftypheic", "a HEIC picture", "convert it: heif-convert FILE OUT.png"},
    {4, "ftypmif1", "a HEIC picture", "convert it: heif-convert FILE OUT.png"},
    {4, "ftypavif", "an AVIF picture", kConvertPicture},
    {4, "ftyp", "an MP4 file", kConvertSound},
    {0, "fLaC", "a FLAC sound", kConvertSound},
    {0, "OggS", "an Ogg sound", kConvertSound},
    {0, "ID3", "an MP3 sound", kConvertSound},
    {0, "\xff\xfb", "an MP3 sound", kConvertSound},
    {0, "\x80\x02", "a Python pickle", "save the array with numpy.save"},
    {0, "\x80\x03", "a Python pickle", "save the array with numpy.save"},
    {0, "\x80\x04", "a Python pickle", "save the array with numpy.save"},
    {0, "\x80\x05", "a Python pickle", "save the array with numpy.save"},
};

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[noreturn]] void Refuse(const fs::path& path, std::string_view what, std::string_view help) {
  std::string text(help);
  auto fill = [&](std::string_view name, const std::string& value) {
    for (size_t at = text.find(name); at != std::string::npos;
         at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  };
  const fs::path folder = path.parent_path();
  fill("FOLDER", folder.empty() ? "." : folder.string());
  fill("FILE", path.string());
  throw Error("unknown-format", "unsupported format: {}", what).At({path.string(), ""}).Help(text);
}

template <size_t N>
void RefuseBySignature(const fs::path& path, ByteWindow& bytes, const Signature (&table)[N]) {
  constexpr size_t kHead = 512;
  const std::string_view head = TextOf(bytes.Head(kHead));
  for (const Signature& row : table)
    if (head.size() > row.offset && head.substr(row.offset).starts_with(row.bytes))
      Refuse(path, row.what, row.help);
}

// A page that says that a file was not found, or that one must log in.
void RefusePage(const fs::path& path, ByteWindow& bytes) {
  std::string head(TextOf(bytes.Head(256)));
  std::ranges::transform(head, head.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string::npos) return;
  const std::string_view text = std::string_view(head).substr(start);
  if (text.starts_with("<!doctype html") || text.starts_with("<html"))
    Refuse(path, "an HTML page, perhaps the answer of a server instead of the file",
           "download it again, and look at the page if that does not help");
}

}  // namespace

void RefuseForeignModel(const fs::path& path, ByteWindow& bytes) {
  RefuseBySignature(path, bytes, kDamaged);
  RefusePage(path, bytes);
  RefuseBySignature(path, bytes, kModels);
  if (TextOf(bytes.Head(kZip.size())) == kZip) {
    // The names are in the archive's directory at the end of the file.
    const uint64_t directory = std::min<uint64_t>(bytes.size(), 1 << 20);
    const std::string_view text = TextOf(bytes.At(bytes.size() - directory, directory));
    for (const Signature& row : kArchives)
      if (text.find(row.bytes) != std::string_view::npos) Refuse(path, row.what, row.help);
  }
  const std::string_view head = TextOf(bytes.Head(1 << 16));
  for (const Words& row : kWords)
    if (std::ranges::all_of(row.words, [&](std::string_view word) {
          return head.find(word) != std::string_view::npos;
        }))
      Refuse(path, row.what, row.help);
  RefuseBySignature(path, bytes, kOthers);
  // Weights of Paddle have no signature at all.
  if (path.extension() == ".pdiparams" || path.extension() == ".pdmodel")
    Refuse(path, kWords[0].what, kWords[0].help);
}

void RefuseForeignFolder(const fs::path& path) {
  std::error_code error;
  for (const Signature& row : kFolders)
    if (fs::exists(path / row.bytes, error)) Refuse(path, row.what, row.help);
}

void RefuseForeignTensor(const fs::path& path, ByteWindow& bytes) {
  RefuseBySignature(path, bytes, kDamaged);
  RefusePage(path, bytes);
  RefuseBySignature(path, bytes, kTensors);
}

}  // namespace mlc::driver
