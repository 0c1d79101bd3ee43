// tools/mlc/compile_model.h - the main job as one call: source model in, package and manifest out.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/passes/pass.h"
#include "tools/mlc/command.h"

namespace mlc {

struct SourceFile;

struct CompileResult {
  std::filesystem::path package;
  std::filesystem::path manifest;  // empty: none was asked for
  Opset target = Opset::kIos16;
  std::string precision;
  int64_t operations = 0;  // non-const
  std::map<std::string, int64_t> operators;
  uint64_t weight_bytes = 0;
  std::string content_hash;                            // XXH3-128, hex
  std::vector<std::pair<std::string, double>> phases;  // name, seconds
  std::vector<PassRun> passes;
  std::shared_ptr<const Program> program;  // as it was written
  int64_t peak_memory_bytes = 0;
};

// The flags of `mlc compile` but MODEL, -o and --json.
const std::vector<Flag>& CompileFlags();
// Compiles `model` as the flags in `invocation` say to `output` (a .mlpackage). Diagnostics go to
// invocation.diagnostics. `known`: the source's files with their hashes, where the caller took
// them.
CompileResult CompileModel(const std::filesystem::path& model, const std::filesystem::path& output,
                           const Invocation& invocation,
                           const std::vector<SourceFile>* known = nullptr);

// --compiler-version and --mil-version.
const std::vector<Flag>& BundleFlags();
// The value of one of them, "" by default. Error "usage".
std::string BundleVersion(const Invocation& invocation, std::string_view flag);
inline constexpr std::string_view kExperimental =
    "experimental: made without Core ML's own compiler";
// Writes the compiled bundle of a package; `name` is what its stem says of the model.
// `take_weights`: the package may lose its weight files.
void Precompile(const std::filesystem::path& package, const std::filesystem::path& output,
                const std::filesystem::path& name, bool take_weights, const Invocation& invocation);
// The folder that "@model_path" means in a Core ML model of any format.
std::filesystem::path ModelFolder(const std::filesystem::path& path);

// Flags and options of the pass pipeline, shared by compile and opt.
const std::vector<Flag>& PipelineFlags();
PipelineOptions ParsePipelineOptions(const Invocation& invocation);
// Error "usage" for anything but fp16, fp32 and mixed.
PassContext::Precision ParsePrecision(const std::string& text);
// Runs the passes on `program`. Where one breaks a promise of ours, `again` makes the program anew
// and the passes before the broken one run; the InternalError says in which file the program before
// it is (MIL text in the folder for temporary files) and how to rerun.
std::vector<PassRun> RunPipeline(Program& program, const std::function<Program()>& again,
                                 const std::vector<const PassDef*>& passes, PassContext& context,
                                 const PipelineOptions& options);
void PrintPassTimes(const std::vector<PassRun>& runs);  // --time-passes, to stderr

}  // namespace mlc
