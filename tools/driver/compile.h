// tools/driver/compile.h - compiles a source model to a package with a manifest.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/compress/compression.h"
#include "lib/media/picture.h"
#include "lib/precision/measure.h"
#include "tools/driver/import.h"
#include "tools/driver/precompile.h"
#include "tools/driver/run_passes.h"
#include "tools/driver/tokenizer.h"

namespace mlc::driver {

struct SourceFile;

struct CompileOptions {
  ImportOptions import;         // import.target is set from `target`
  std::optional<Opset> target;  // absent: iOS16, raised when the imported program needs more
  passes::PassContext::Precision precision = passes::PassContext::Precision::kFp16;
  std::optional<analysis::Unit> optimize_for;  // the compute unit whose forms are preferred
  // Measure the effect of fp16, if the program is small enough to run on generated inputs.
  bool measure = true;
  // Inputs to measure fp16 on and to compress for, as for ReadCalibration (calibration.h); empty:
  // none.
  std::string calibrate;
  media::Fit fit = media::Fit::kNone;  // of pictures and sounds among them
  std::filesystem::path report;        // of compression (compression_page.h); empty: none
  std::filesystem::path resume;  // folder of compressed weights (stored_results.h); empty: none
  // Train compressed weights on the inputs of `calibrate` (lib/calibration/tuning.h).
  bool train = true;
  std::optional<std::string> budget;  // for --precision mixed, as accepted by ParseBudgets
  std::vector<std::string> fp32_ops, fp16_ops;  // see PassContext
  bool fp16_strict = false;                     // operations that would stay in fp32 are errors
  std::filesystem::path labels;  // class labels of a classifier; empty: not a classifier
  std::optional<std::string> author, license, description;  // UTF-8
  bool manifest = true;                                     // write OUTPUT.manifest.json
  bool sha256 = false;            // include SHA-256 hashes of the source in the manifest
  std::filesystem::path save_ir;  // MIL text of the optimised program; empty: none
  // The caller's output file; only checked for conflicts before any output is written.
  std::filesystem::path stats;
  // The place of a language model's tokenizer.
  TokenizerPlace tokenizer_place = TokenizerPlace::kBeside;
  // Replace an existing output of any kind, even if the file system cannot do so atomically.
  bool force = false;
  BundleVersions versions;  // for .mlmodelc outputs
  PassOptions passes;
  Progress progress;  // of importing, compressing and writing weights
};

struct CompileResult {
  std::filesystem::path package;
  std::filesystem::path manifest;   // empty: not requested
  std::filesystem::path tokenizer;  // the folder with the tokenizer (tokenizer.h); empty: none
  Opset target = Opset::kIos16;
  std::string precision;
  double fp16_share = 0;  // share of the floating-point work
  int fp16_segments = 0;  // lib/analysis/fp16_share.h
  // Share of the work in operations that the target supports in fp32 only.
  double no_fp16_form_share = 0;
  // The oldest target that supports more of the operations in fp16; empty: none.
  std::string fp16_target;
  std::optional<precision::Measurement> measurement;  // absent: fp32, or not requested
  std::optional<compress::Compression> compression;   // absent: not requested
  int64_t operations = 0;                             // non-const
  std::map<std::string, int64_t> operators;
  uint64_t weight_bytes = 0;
  std::string content_hash;                            // XXH3-128, hex
  std::vector<std::pair<std::string, double>> phases;  // name, seconds
  std::vector<passes::PassRun> passes;
  std::shared_ptr<const Program> program;  // the program as written
  int64_t peak_memory_bytes = 0;           // peak of the process
};

// Compiles `model` to `output`, a .mlpackage or .mlmodelc (error "usage" for anything else).
// `known`: the source's files with their hashes, if the caller has computed them.
CompileResult Compile(const std::filesystem::path& model, const std::filesystem::path& output,
                      const CompileOptions& options, Diagnostics& diagnostics,
                      const std::vector<SourceFile>* known = nullptr);

// Compiles a program that no file contains, which stays as it is. Options of importing and of the
// manifest have no effect.
CompileResult Compile(const Program& program, const std::filesystem::path& output,
                      const CompileOptions& options, Diagnostics& diagnostics);

// Returns the program that Compile would write, or the one before the pass `until`.
Program CompileProgram(const std::filesystem::path& model, const CompileOptions& options,
                       Diagnostics& diagnostics, const passes::PassDef* until = nullptr);

}  // namespace mlc::driver
