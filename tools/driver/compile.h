// tools/driver/compile.h - the main job as one call: source model in, package and manifest out.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/precision/measure.h"
#include "tools/driver/import.h"
#include "tools/driver/pipeline.h"
#include "tools/driver/precompile.h"

namespace mlc {

struct SourceFile;

struct CompileOptions {
  ImportOptions import;         // its target is that below
  std::optional<Opset> target;  // absent: iOS16, raised when the imported program needs more
  PassContext::Precision precision = PassContext::Precision::kFp16;
  // What fp16 does to the program is measured, where it is small enough to be run on made-up inputs.
  bool measure = true;
  std::filesystem::path calibrate;    // inputs to measure on, whatever the size; empty: made up
  std::optional<std::string> budget;  // of --precision mixed: as ParseBudgets takes it
  std::vector<std::string> fp32_ops, fp16_ops;              // see PassContext
  bool fp16_strict = false;                                 // what would stay fp32 is an error
  std::filesystem::path labels;                             // makes a classifier; empty: none
  std::optional<std::string> author, license, description;  // UTF-8
  bool manifest = true;                                     // OUTPUT.manifest.json
  bool sha256 = false;                                      // of the source, in the manifest
  std::filesystem::path save_ir;  // MIL text of the optimised program; empty: none
  std::filesystem::path stats;    // where the caller will write; checked before anything is written
  bool force = false;             // replace what is there, whatever it is and on any file system
  BundleVersions versions;        // of a .mlmodelc
  PassOptions passes;
};

struct CompileResult {
  std::filesystem::path package;
  std::filesystem::path manifest;   // empty: none was asked for
  std::filesystem::path tokenizer;  // beside the package (tokenizer_file.h); empty: there is none
  Opset target = Opset::kIos16;
  std::string precision;
  double fp16_share = 0;          // of the work on floats
  int fp16_segments = 0;          // lib/analysis/fp16_share.h
  double no_fp16_form_share = 0;  // of the work, in operations that the target has in fp32 only
  // The oldest target that has more operations in fp16; empty: none has.
  std::string fp16_target;
  std::optional<Measurement> measurement;  // absent: fp32, or none was wanted
  int64_t operations = 0;                  // non-const
  std::map<std::string, int64_t> operators;
  uint64_t weight_bytes = 0;
  std::string content_hash;                            // XXH3-128, hex
  std::vector<std::pair<std::string, double>> phases;  // name, seconds
  std::vector<PassRun> passes;
  std::shared_ptr<const Program> program;  // as it was written
  int64_t peak_memory_bytes = 0;           // of the process
};

// Compiles `model` to `output`, a .mlpackage or .mlmodelc (error "usage" for anything else).
// `known`: the source's files with their hashes, where the caller took them.
CompileResult Compile(const std::filesystem::path& model, const std::filesystem::path& output,
                      const CompileOptions& options, Diagnostics& diagnostics,
                      const std::vector<SourceFile>* known = nullptr);

}  // namespace mlc
