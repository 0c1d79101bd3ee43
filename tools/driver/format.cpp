#include "tools/driver/format.h"

#include <algorithm>

#include "frontends/coreml/import.h"
#include "frontends/onnx/onnx.h"
#include "frontends/safetensors/file.h"
#include "lib/support/byte_window.h"
#include "lib/support/regular_file.h"

namespace fs = std::filesystem;

namespace mlc {

std::string_view Name(Format format) {
  switch (format) {
    case Format::kOnnx:
      return "onnx";
    case Format::kGguf:
      return "gguf";
    case Format::kHuggingFace:
      return "safetensors";
    case Format::kPackage:
      return "mlpackage";
    case Format::kBundle:
      return "mlmodelc";
    case Format::kMlmodel:
      return "mlmodel";
    case Format::kMilText:
      return "mil";
  }
  return "";
}

bool IsSource(Format format) {
  return format == Format::kOnnx || format == Format::kGguf || format == Format::kHuggingFace;
}

namespace {

constexpr std::string_view kGguf = "GGUF";

// Formats that are known but not read: what stands at their beginning, or behind the first four
// bytes (FlatBuffers), what they are, the way out.
struct ForeignRow {
  std::string_view magic, what, help;
};
constexpr std::string_view kExportTorch =
    "load the model in PyTorch and export it: torch.onnx.export(model, example, \"model.onnx\")";
constexpr ForeignRow kForeign[] = {
    {"\x89HDF", "an HDF5 file, perhaps Keras",
     "convert it: python -m tf2onnx.convert --keras model.h5 --output model.onnx"},
    {"\x80\x02", "a Python pickle", kExportTorch},
    {"\x80\x03", "a Python pickle", kExportTorch},
    {"\x80\x04", "a Python pickle", kExportTorch},
    {"\x80\x05", "a Python pickle", kExportTorch},
    {"TFL3", "a TensorFlow Lite model",
     "convert it: python -m tf2onnx.convert --tflite model.tflite --output model.onnx"},
    {"ORTM", "an ORT-format model", "use the .onnx file that it was made from"},
};

// Archives, by a name in them; the last row is any.
constexpr std::string_view kZip = "PK\x03\x04";
constexpr ForeignRow kArchives[] = {
    {"constants.pkl", "a TorchScript archive",
     "export it: torch.onnx.export(torch.jit.load(\"FILE\"), example, \"model.onnx\")"},
    {"data.pkl", "a PyTorch checkpoint, which holds weights without a network", kExportTorch},
    {"model.weights.h5", "a Keras archive",
     "export it: keras.models.load_model(\"FILE\").export(\"model.onnx\", format=\"onnx\")"},
    {"Manifest.json", "a zip archive of a .mlpackage", "unpack it"},
    {"coremldata.bin", "a zip archive of a .mlmodelc", "unpack it"},
    {".onnx", "a zip archive of an ONNX model", "unpack it"},
    {".npy", "an archive of NumPy arrays", "it belongs to --reference, not where a model is"},
    {"", "a zip archive", "unpack it"},
};

// Folders of other tools, by a file in them.
constexpr ForeignRow kFolders[] = {
    {"saved_model.pb", "a TensorFlow SavedModel",
     "convert it: python -m tf2onnx.convert --saved-model FOLDER --output model.onnx"},
    {"Data/com.apple.CoreML", "a .mlpackage without its Manifest.json", "copy the whole folder"},
    {"model.mil", "a .mlmodelc without its coremldata.bin", "copy the whole folder"},
};

[[noreturn]] void Refuse(const fs::path& path, const ForeignRow& row) {
  throw Error("unknown-format", fmt::format("this is {}, which mlc does not read", row.what))
      .At({path.string(), ""})
      .Help(std::string(row.help));
}

bool Contains(ByteWindow& bytes, size_t offset, std::string_view text) {
  return bytes.size() >= offset + text.size() && AsText(bytes.At(offset, text.size())) == text;
}

}  // namespace

Format DetectFormat(const fs::path& path) {
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw Error("file-io", fmt::format("there is no file \"{}\"", path.string()))
        .Help("check the path");
  if (fs::is_directory(status)) {
    CoremlFormat format = DetectCoreml(path);
    if (format == CoremlFormat::kPackage) return Format::kPackage;
    if (format == CoremlFormat::kBundle) return Format::kBundle;
    if (fs::exists(path / "config.json", error)) return Format::kHuggingFace;
    for (const ForeignRow& row : kFolders)
      if (fs::exists(path / row.magic, error)) Refuse(path, row);
    throw Error("unknown-format", "this folder is no .mlpackage, .mlmodelc or Hugging Face folder")
        .At({path.string(), ""})
        .Expected(
            "a folder with a Manifest.json, a coremldata.bin or a config.json, or a model file");
  }
  std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  ByteWindow bytes(*file);
  if (bytes.size() == 0)
    throw Error("bad-file", "the file is empty")
        .At({path.string(), ""})
        .Help("download or export the model again");
  if (Contains(bytes, 0, kGguf)) return Format::kGguf;
  for (const ForeignRow& row : kForeign)
    if (Contains(bytes, 0, row.magic) || (row.magic.size() == 4 && Contains(bytes, 4, row.magic)))
      Refuse(path, row);
  if (Contains(bytes, 0, kZip)) {
    // The names stand at the end, in the archive's directory.
    uint64_t directory = std::min<uint64_t>(bytes.size(), 1 << 20);
    std::string_view text = AsText(bytes.At(bytes.size() - directory, directory));
    for (const ForeignRow& row : kArchives)
      if (text.find(row.magic) != std::string_view::npos) Refuse(path, row);
  }
  if (LooksLikeSafetensors(bytes.Head(16))) return Format::kHuggingFace;
  CoremlFormat coreml = DetectCoreml(path);
  if (coreml == CoremlFormat::kText) return Format::kMilText;
  if (coreml == CoremlFormat::kModel) return Format::kMlmodel;
  if (LooksLikeOnnx(bytes)) return Format::kOnnx;
  throw Error("unknown-format", "this is no model that mlc knows")
      .At({path.string(), ""})
      .Expected(
          "ONNX, GGUF, a Hugging Face folder or .safetensors, a .mlpackage or .mlmodelc folder, a "
          ".mlmodel or MIL text");
}

fs::path ModelFolder(const fs::path& path) {
  Format format = DetectFormat(path);
  if (format == Format::kBundle) return path;
  if (format == Format::kPackage) return CoremlModelPath(path).parent_path();
  return path.parent_path();
}

}  // namespace mlc
