// backends/coreml/manifest.h - OUT.manifest.json, which records the source, the options and the
// result of a compilation.
//
// The format is manifests/manifest.schema.json. Unknown and unmeasured values (empty texts and
// lists, zero sizes) are omitted. Equal compilations give equal bytes: the file does not depend on
// times, threads, folders or the machine.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/coreml/write_package.h"
#include "lib/compress/compression.h"
#include "lib/passes/pass.h"

namespace mlc::coreml {

struct Manifest {
  std::string mlc_version;

  struct Source {
    std::string name;      // name of the file or folder
    std::string format;    // "onnx", "gguf", ...
    std::string xxh3_128;  // hex, over all files
    std::string sha256;    // hex, on request
    struct File {
      std::string name;  // relative to the folder of the source
      uint64_t bytes;
      std::string xxh3_128, sha256;
    };
    std::vector<File> files;  // if there are several
    std::vector<std::pair<std::string, std::string>>
        facts;  // from the frontend: opset, producer, ...
  } source;

  std::string precision;  // "fp16", "fp32", "mixed"
  // Outputs that exceed the fp16 budget, with their errors on these inputs as measured by `mlc
  // verify`, and the share of the work in fp32 with which --precision mixed meets the budget; 0 if
  // unknown.
  struct Exceeded {
    std::string output;
    double error, allowed;
  };
  std::vector<Exceeded> exceeded = {};
  std::string measured_on;  // "generated inputs: pictures in -1..1"; empty if nothing was run
  double mixed_share = 0;
  double fp16_share = 0;  // share of the floating-point work
  int fp16_segments = 0;  // lib/analysis/fp16_share.h
  double no_fp16_form_share =
      0;  // share of the work in operations that the target only has in fp32
  // Every given option with its values; a switch has none.
  std::vector<std::pair<std::string, std::vector<std::string>>> options;
  PackageResult package;
  struct Tokenizer {
    std::string format;  // "gguf", "json"; empty if there is none beside the package
    uint64_t bytes = 0;
    std::string xxh3_128;
  } tokenizer = {};
  std::vector<passes::PassRun> passes;                 // without durations
  const compress::Compression* compression = nullptr;  // null: weights were not compressed
  // Renders the names of options in decisions, warnings and notes.
  std::string (*text)(std::string_view) = [](std::string_view text) { return std::string(text); };

  struct Parity {
    std::string output;
    double max_error, rmse;  // see lib/verify; infinity and NaN are written as null
    double max_error_budget, rmse_budget;
    bool passed;
  };
  std::vector<Parity> parity;
};

// Returns the JSON text. Ports and operators come from the written program; decisions, warnings and
// notes from the diagnostics.
std::string ManifestJson(const Manifest& manifest, const Program& program,
                         const Diagnostics& diagnostics);

// "out/model.mlpackage" -> "out/model.manifest.json".
std::filesystem::path ManifestPath(const std::filesystem::path& package);

// Reads the manifest beside a package; returns nothing if there is none or it belongs to another
// package.
struct Stated {
  std::string precision, source_format;
  std::string source_sha256 = {};          // empty: not computed
  std::map<std::string, double> exceeded;  // Manifest::Exceeded: errors by output
  // Largest errors by output of compression for inputs, which the source is not compressed for.
  std::map<std::string, double> lost;
  std::map<std::string, std::vector<std::string>> options;  // given options, by name
  std::vector<Decision> decisions;
};
std::optional<Stated> StatedOf(const std::filesystem::path& package);

// Checks for obstacles to WriteManifest: Error "overwrites-input", "file-io", or "file-exists" if
// the path holds anything except a manifest of mlc, unless `force`.
void CheckManifestTarget(const std::filesystem::path& package, bool force);

// Writes the manifest beside the package atomically, and replaces an existing one. Error "file-io".
void WriteManifest(const std::filesystem::path& package, const Manifest& manifest,
                   const Program& program, const Diagnostics& diagnostics);

}  // namespace mlc::coreml
