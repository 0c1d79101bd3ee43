#include "tools/driver/frontends.h"

#include <fmt/ranges.h>

#include "frontends/coreml/coreml.h"
#include "frontends/gguf/adapter.h"
#include "frontends/gguf/decoder_rows.h"
#include "frontends/gguf/encoders.h"
#include "frontends/gguf/file.h"
#include "frontends/gguf/gguf.h"
#include "frontends/gguf/tokenizer.h"
#include "frontends/onnx/library_versions.h"
#include "frontends/onnx/onnx.h"
#include "frontends/safetensors/adapter.h"
#include "frontends/safetensors/file.h"
#include "frontends/safetensors/folder.h"
#include "frontends/safetensors/safetensors.h"
#include "frontends/safetensors/tokenizer.h"
#include "frontends/safetensors/tokenizer_writer.h"
#include "lib/analysis/valid_sizes.h"
#include "lib/support/byte_window.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "tools/driver/foreign_files.h"
#include "tools/driver/operators.h"
#include "tools/driver/text_inputs.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

constexpr std::string_view kOnnxOptions[] = {"--shape",   "--dim",       "--const",
                                             "--outputs", "--replace",   "--image",
                                             "--io",      "--data-root", "--compress"};
// The number of an encoder's tokens is a dimension.
constexpr std::string_view kNetworkOptions[] = {
    "--shape",    "--dim",     "--io",   "--context",     "--mmproj",
    "--compress", "--requant", "--lora", "--lora-inputs", "--functions"};
constexpr std::string_view kFolderOptions[] = {
    "--shape",   "--dim",      "--outputs", "--image", "--io",          "--context",
    "--runtime", "--compress", "--requant", "--lora",  "--lora-inputs", "--functions"};
// Weights of any program can be compressed.
constexpr std::string_view kCoremlOptions[] = {"--compress"};

bool Contains(ByteWindow& bytes, size_t offset, std::string_view text) {
  return bytes.size() >= offset + text.size() && AsText(bytes.At(offset, text.size())) == text;
}

template <coreml::CoremlFormat format>
bool IsCoreml(const fs::path& path, ByteWindow*) {
  return coreml::DetectCoreml(path) == format;
}

SourceFacts FactsOf(const onnx::OnnxFacts& onnx) {
  SourceFacts facts;
  facts.metadata.emplace_back("ir_version", std::to_string(onnx.ir_version));
  if (!onnx.producer.empty()) facts.metadata.emplace_back("producer", onnx.producer);
  for (const auto& [domain, version] : onnx.opsets)
    facts.metadata.emplace_back(fmt::format("opset {}", domain.empty() ? "ai.onnx" : domain),
                                std::to_string(version));
  for (const onnx::OnnxFacts::File& file : onnx.data) facts.files.push_back({file.name, file.path});
  return facts;
}

Program FromOnnx(const fs::path& path, const ImportOptions& options, Diagnostics& diagnostics,
                 SourceFacts* facts) {
  onnx::OnnxFacts onnx;
  Program program = onnx::ImportOnnx(path, options, diagnostics, &onnx);
  if (facts) *facts = FactsOf(onnx);
  for (const auto& function : program.functions) analysis::NarrowOpenSizes(*function, diagnostics);
  return program;
}

Program FromCoreml(const fs::path& path, const ImportOptions&, Diagnostics& diagnostics,
                   SourceFacts*) {
  return coreml::ImportCoreml(path, diagnostics);
}

// The constants of MIL text state where weights are stored.
Program FromText(const fs::path& path, const ImportOptions&, Diagnostics& diagnostics,
                 SourceFacts* facts) {
  Program program = coreml::ImportCoreml(path, diagnostics);
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (!facts || !op->val) return;
      if (const MappedFile* file = op->val.origin().held.file_view().file)
        facts->Add(path, file->path());
    });
  return program;
}

constexpr std::string_view kGgufTitle =
    "# GGUF architectures\n\nValues of general.architecture that `mlc` compiles.\n\n";
constexpr std::string_view kHuggingFaceTitle =
    "# Hugging Face architectures\n\nValues of model_type in config.json that `mlc` compiles.\n\n";

constexpr Frontend kFrontends[] = {
    {.name = "gguf",
     .what = "a GGUF file",
     .detect = [](const fs::path&, ByteWindow* file) { return file && Contains(*file, 0, "GGUF"); },
     .import = gguf::ImportGguf,
     .options = kNetworkOptions,
     .facts =
         [](const fs::path& path, const fs::path&) {
           SourceFacts facts;
           const gguf::GgufFile file = gguf::GgufFile::Open(path);
           for (const auto& part : file.files()) facts.Add(path, part->path());
           return facts;
         },
     .tokenizer =
         [](const fs::path& path, std::vector<fs::path>&) {
           const gguf::GgufFile file = gguf::GgufFile::Open(path);
           if (!gguf::HasTokenizer(file)) return safetensors::HuggingFaceTexts();
           const text::Tokenizer tokenizer(gguf::ReadGgufTokenizer(file));
           safetensors::HuggingFaceTexts texts =
               safetensors::WriteHuggingFaceTokenizer(tokenizer.spec());
           texts.model = gguf::HuggingFaceConfig(file);
           return texts;
         },
     .adapter =
         [](const fs::path& path, const ImportOptions::Lora& lora, Diagnostics& diagnostics) {
           return gguf::ReadAdapter(lora, gguf::GgufFile::Open(path), diagnostics);
         },
     .listing =
         [] {
           return ListArchitectures(kGgufTitle, {{"decoder", gguf::GgufDecoderNames()},
                                                 {"encoder", gguf::GgufEncoderNames()}});
         }},
    {.name = "mlpackage",
     .what = "a package",
     .format = Format::kPackage,
     .detect = IsCoreml<coreml::CoremlFormat::kPackage>,
     .import = FromCoreml,
     .options = kCoremlOptions},
    {.name = "mlmodelc",
     .what = "a compiled bundle",
     .format = Format::kBundle,
     .detect = IsCoreml<coreml::CoremlFormat::kBundle>,
     .import = FromCoreml,
     .options = kCoremlOptions},
    {.name = "safetensors",
     .what = "a Hugging Face folder",
     .detect =
         [](const fs::path& path, ByteWindow* file) {
           std::error_code ignored;
           return file ? safetensors::LooksLikeSafetensors(file->Head(16))
                       : fs::exists(path / "config.json", ignored);
         },
     .import = safetensors::ImportHuggingFace,
     .options = kFolderOptions,
     .facts =
         [](const fs::path& path, const fs::path&) {
           SourceFacts facts;
           for (const fs::path& file : safetensors::Folder::Open(path).paths())
             facts.Add(path, file);
           return facts;
         },
     .tokenizer =
         [](const fs::path& path, std::vector<fs::path>& read) {
           std::error_code ignored;
           return safetensors::ReadHuggingFaceTexts(
               fs::is_directory(path, ignored) ? path : path.parent_path(), read);
         },
     .adapter =
         [](const fs::path& path, const ImportOptions::Lora& lora, Diagnostics& diagnostics) {
           return safetensors::ReadAdapter(lora, safetensors::Folder::Open(path), diagnostics);
         },
     .listing =
         [] { return ListArchitectures(kHuggingFaceTitle, safetensors::HuggingFaceModelTypes()); }},
    {.name = "mil",
     .what = "MIL text",
     .format = Format::kMilText,
     .detect = IsCoreml<coreml::CoremlFormat::kText>,
     .import = FromText,
     .options = kCoremlOptions,
     .facts =
         [](const fs::path& path, const fs::path&) {
           SourceFacts facts;
           Diagnostics ignored;
           FromText(path, {}, ignored, &facts);
           return facts;
         }},
    {.name = "mlmodel",
     .what = "a Core ML model file",
     .format = Format::kMlmodel,
     .detect = IsCoreml<coreml::CoremlFormat::kModel>,
     .import = FromCoreml,
     .options = kCoremlOptions},
    // ONNX is last, because a protobuf message has no distinctive signature.
    {.name = "onnx",
     .what = "an ONNX model",
     .detect = [](const fs::path&, ByteWindow* file) { return file && onnx::LooksLikeOnnx(*file); },
     .import = FromOnnx,
     .options = kOnnxOptions,
     .facts =
         [](const fs::path& path, const fs::path& data_root) {
           return FactsOf(onnx::ReadOnnxFacts(path, data_root));
         },
     .tokenizer =
         [](const fs::path& path, std::vector<fs::path>& read) {
           const fs::path folder = FolderWith(path, "tokenizer.json");
           if (folder.empty()) return safetensors::HuggingFaceTexts();
           // The folder may have other models.
           const onnx::OnnxFacts facts = onnx::ReadOnnxFacts(path, {});
           const bool reads_text = std::ranges::count(facts.inputs, "input_ids") > 0;
           return reads_text ? safetensors::ReadHuggingFaceTexts(folder, read)
                             : safetensors::HuggingFaceTexts();
         },
     .listing = ListOnnxOperators,
     .libraries = onnx::OnnxLibraries},
};

}  // namespace

std::span<const Frontend> Frontends() { return kFrontends; }

std::string FormatsText(const std::function<bool(const Frontend&)>& chosen) {
  std::vector<std::string_view> all;
  for (const Frontend& row : kFrontends)
    if (chosen(row)) all.push_back(row.what);
  if (all.size() < 2) return fmt::format("{}", fmt::join(all, ""));
  const std::string_view last = all.back();
  all.pop_back();
  return fmt::format("{} or {}", fmt::join(all, ", "), last);
}

const Frontend& FrontendOf(const fs::path& path) {
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw Error("file-io", "\"{}\" does not exist", path.string()).Help("check the path");
  if (fs::is_directory(status)) {
    for (const Frontend& row : kFrontends)
      if (row.detect(path, nullptr)) return row;
    RefuseForeignFolder(path);
    throw Error("unknown-format", "unrecognised model folder")
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
  for (const Frontend& row : kFrontends)
    if (row.detect(path, &bytes)) return row;
  RefuseForeignModel(path, bytes);
  throw Error("unknown-format", "unrecognised model format")
      .At({path.string(), ""})
      .Expected(FormatsText([](const Frontend&) { return true; }));
}

fs::path ModelFolder(const fs::path& path) {
  const Format format = FrontendOf(path).format;
  if (format == Format::kBundle) return path;
  if (format == Format::kPackage) return coreml::CoremlModelPath(path).parent_path();
  return path.parent_path();
}

}  // namespace mlc::driver
