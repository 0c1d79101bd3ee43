// backends/coreml/manifest.h - OUT.manifest.json: what was compiled from what, how, and what came
// out.
//
// The format is manifests/manifest.schema.json. What nobody measured is absent from the file: empty
// texts and lists, zero sizes. The same compilation has the same bytes: nothing in it depends on
// times, threads, folders or the machine.
#pragma once

#include <filesystem>
#include <map>
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
    std::string name;      // of the file or folder
    std::string format;    // "onnx", "gguf", ...
    std::string xxh3_128;  // hex, of all files
    std::string sha256;    // hex, when asked for
    struct File {
      std::string name;  // in the folder of the source
      uint64_t bytes;
      std::string xxh3_128, sha256;
    };
    std::vector<File> files;  // where there are several
    std::vector<std::pair<std::string, std::string>>
        facts;  // what the frontend knows: opset, producer, ...
  } source;

  std::string precision;  // "fp16", "fp32", "mixed"
  // The error of outputs that are beyond the budget of fp16, on these inputs, in the measure of
  // `mlc verify`; and the share of the work in fp32 with which --precision mixed meets it, 0: not known.
  struct Exceeded {
    std::string output;
    double error, allowed;
  };
  std::vector<Exceeded> exceeded = {};
  std::string measured_on;  // "made-up inputs: pictures in -1..1"; empty: nothing was run
  double mixed_share = 0;
  double fp16_share = 0;          // of the work on floats
  int fp16_segments = 0;          // lib/analysis/fp16_share.h
  double no_fp16_form_share = 0;  // of the work, in operations that the target has in fp32 only
  // Every option that was given, with its values; a switch has none.
  std::vector<std::pair<std::string, std::vector<std::string>>> options;
  PackageResult package;
  struct Tokenizer {
    std::string format;  // "gguf", "json"; empty: none lies beside the package
    uint64_t bytes = 0;
    std::string xxh3_128;
  } tokenizer = {};
  std::vector<PassRun> passes;  // without their times
  // How decisions, warnings and notes name options.
  std::string (*text)(std::string_view) = [](std::string_view text) { return std::string(text); };

  struct Parity {
    std::string output;
    double max_error, rmse;  // see lib/verify; infinite and NaN become null
    double max_error_budget, rmse_budget;
    bool passed;
  };
  std::vector<Parity> parity;
};

// The JSON text. Ports and operators come from the program as it was written; decisions, warnings
// and notes from diagnostics.
std::string ManifestJson(const Manifest& manifest, const Program& program,
                         const Diagnostics& diagnostics);

// "out/model.mlpackage" -> "out/model.manifest.json".
std::filesystem::path ManifestPath(const std::filesystem::path& package);

// What the manifest beside a package states. Nothing where there is none, or it is of another package.
struct Stated {
  std::string precision, source_format;
  std::map<std::string, double> exceeded;                   // Manifest::Exceeded: errors by output
  std::map<std::string, std::vector<std::string>> options;  // as given, by name
};
std::optional<Stated> StatedOf(const std::filesystem::path& package);
std::optional<std::string> StatedPrecision(const std::filesystem::path& package);

// What WriteManifest will find in its way: Error "overwrites-input", "file-io", or "file-exists"
// for anything but a manifest of mlc's, unless `force`.
void CheckManifestTarget(const std::filesystem::path& package, bool force);

// Writes the text beside the package, atomically; an existing manifest is replaced. Error
// "file-io".
void WriteManifest(const std::filesystem::path& package, const Manifest& manifest,
                   const Program& program, const Diagnostics& diagnostics);

}  // namespace mlc
