#include "tools/driver/import.h"

#include "frontends/coreml/import.h"
#include "frontends/safetensors/encoders.h"
#include "lib/analysis/open_sizes.h"
#include "tools/driver/format.h"

namespace fs = std::filesystem;

namespace mlc {

Program Import(const fs::path& path, const ImportOptions& options, Diagnostics& diagnostics,
               OnnxFacts* facts) {
  Format format = DetectFormat(path);
  if (format == Format::kOnnx) {
    Program program = ImportOnnx(path, options, diagnostics, facts);
    for (const auto& function : program.functions) NarrowOpenSizes(*function, diagnostics);
    return program;
  }
  if (format == Format::kHuggingFace) {
    Folder folder = Folder::Open(path);
    if (IsEncoder(folder.model_type())) return ImportEncoder(folder, diagnostics);
    throw Error("unknown-format", "mlc builds no network from safetensors yet")
        .At({path.string(), ""})
        .Help("export it: optimum-cli export onnx --model FOLDER out");
  }
  if (!options.shapes.empty() || !options.dims.empty() || !options.constants.empty() ||
      !options.outputs.empty() || !options.replacements.empty() || !options.images.empty() ||
      !options.data_root.empty())
    throw Error(
        "usage",
        fmt::format("--shape, --dim, --const, --outputs, --replace, --image and --data-root "
                    "need a source model, this is a .{}",
                    Name(format)));
  return ImportCoreml(path, diagnostics);
}

}  // namespace mlc
