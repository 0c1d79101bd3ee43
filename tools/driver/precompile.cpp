#include "tools/driver/precompile.h"

#include "backends/coreml/bundle.h"
#include "frontends/coreml/import.h"
#include "tools/driver/format.h"

namespace fs = std::filesystem;

namespace mlc {

void Precompile(const fs::path& package, const fs::path& output, const PrecompileOptions& options,
                Diagnostics& diagnostics) {
  Format format = DetectFormat(package);
  if (format == Format::kBundle)
    throw Error("usage", fmt::format("\"{}\" is a compiled bundle already", package.string()))
        .Expected("a .mlpackage");
  if (format != Format::kPackage && format != Format::kMlmodel)
    throw Error("usage", fmt::format("\"{}\" is a .{}", package.string(), Name(format)))
        .Expected("a .mlpackage")
        .Help("mlc compile makes one of a source model");
  if (output.extension() != ".mlmodelc")
    throw Error("usage", fmt::format("-o: \"{}\" does not end in .mlmodelc", output.string()));
  MakeBundle(package, output, package, false, options, diagnostics);
}

void MakeBundle(const fs::path& package, const fs::path& output, const fs::path& name,
                bool take_weights, const PrecompileOptions& options, Diagnostics& diagnostics) {
  Program program = ImportCoreml(package, diagnostics);
  WriteBundle(program, ModelFolder(package), output,
              {.class_name = name.stem().string(),
               .compiler_version = options.versions.compiler,
               .mil_version = options.versions.mil,
               .force = options.force,
               .take_weights = take_weights},
              diagnostics);
}

}  // namespace mlc
