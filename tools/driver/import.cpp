#include "tools/driver/import.h"

#include "frontends/coreml/import.h"
#include "frontends/gguf/gguf.h"
#include "frontends/safetensors/safetensors.h"
#include "lib/analysis/open_sizes.h"
#include "tools/driver/format.h"

namespace fs = std::filesystem;

namespace mlc {

namespace {

void RefuseOptions(const ImportOptions& options, Format format) {
  // The tokens of an encoder are a dimension.
  bool onnx = !options.shapes.empty() || !options.constants.empty() || !options.outputs.empty() ||
              !options.replacements.empty() || !options.images.empty() ||
              !options.data_root.empty() || (!options.dims.empty() && !IsSource(format));
  if (onnx && format != Format::kOnnx) {
    Error error("usage",
                fmt::format("--shape, --dim, --const, --outputs, --replace, --image and "
                            "--data-root need {}, this is a .{}",
                            IsSource(format) ? "an ONNX model" : "a source model", Name(format)));
    if (IsSource(format))
      error.Help(
          "--context N says how many tokens a language model is for, --dim tokens=N those of an "
          "encoder");
    throw error;
  }
  if (options.context && (format == Format::kOnnx || !IsSource(format)))
    throw Error("usage",
                fmt::format("--context is for language models, this is a .{}", Name(format)));
  if (!options.requant.empty() && (format == Format::kOnnx || !IsSource(format)))
    throw Error("usage",
                fmt::format("--requant is for language models, this is a .{}", Name(format)));
}

}  // namespace

void AddParts(const fs::path& model, const std::vector<fs::path>& parts, OnnxFacts* facts) {
  std::error_code ignored;
  const fs::path folder = fs::is_directory(model, ignored) ? model : model.parent_path();
  for (const fs::path& part : parts)
    if (facts && !fs::equivalent(part, model, ignored))
      facts->data.push_back({part.lexically_relative(folder).generic_string(), part});
}

Program Import(const fs::path& path, const ImportOptions& options, Diagnostics& diagnostics,
               OnnxFacts* facts) {
  Format format = DetectFormat(path);
  RefuseOptions(options, format);
  if (format == Format::kOnnx) {
    Program program = ImportOnnx(path, options, diagnostics, facts);
    for (const auto& function : program.functions) NarrowOpenSizes(*function, diagnostics);
    return program;
  }
  if (IsSource(format)) {
    std::vector<fs::path> parts;
    auto import = format == Format::kGguf ? ImportGguf : ImportHuggingFace;
    Program program = import(path, options, diagnostics, &parts);
    AddParts(path, parts, facts);
    return program;
  }
  return ImportCoreml(path, diagnostics);
}

}  // namespace mlc
