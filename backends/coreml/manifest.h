// backends/coreml/manifest.h - OUT.manifest.json: what was compiled from what, how, and what came
// out.
//
// The format is manifests/manifest.schema.json. What nobody measured is absent from the file: empty
// texts and lists, zero sizes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/coreml/package.h"
#include "lib/passes/pass.h"

namespace mlc {

struct Manifest {
  std::string mlc_version;

  struct Source {
    std::string path;      // as the user gave it
    std::string format;    // "onnx", "gguf", ...
    std::string xxh3_128;  // hex, of the source's bytes
    std::string sha256;    // hex, when asked for
    std::vector<std::pair<std::string, std::string>>
        facts;  // what the frontend knows: opset, producer, ...
  } source;

  std::string precision;      // "fp16", "fp32", "mixed"
  std::string compression;    // as the user gave it
  std::string compute_units;  // "ane", "gpu", "cpu"
  PackageResult package;
  std::vector<PassRun> passes;

  struct Parity {
    std::string output;
    double max_error, rmse;  // see lib/verify; infinite and NaN become null
    double max_error_budget, rmse_budget;
    bool passed;
  };
  std::vector<Parity> parity;
  std::vector<std::pair<std::string, double>> phases;  // name, seconds
  int64_t peak_memory_bytes = 0;
};

// The JSON text. Ports and operators come from the program as it was written; decisions, warnings
// and notes from diagnostics.
std::string ManifestJson(const Manifest& manifest, const Program& program,
                         const Diagnostics& diagnostics);

// "out/model.mlpackage" -> "out/model.manifest.json".
std::filesystem::path ManifestPath(const std::filesystem::path& package);

// What WriteManifest will find in its way: Error "overwrites-input", "file-io", or "file-exists"
// for anything but a manifest of mlc's, unless `force`.
void CheckManifestTarget(const std::filesystem::path& package, bool force);

// Writes the text beside the package, atomically; an existing manifest is replaced. Error
// "file-io".
void WriteManifest(const std::filesystem::path& package, const Manifest& manifest,
                   const Program& program, const Diagnostics& diagnostics);

}  // namespace mlc
