// frontends/gguf/mmproj.h - mmproj files: the tower and projector with which a language model in another
// GGUF file reads pictures (architecture "clip" of llama.cpp, tools/mtmd/clip.cpp).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "frontends/gguf/file.h"
#include "lib/ir/import_options.h"
#include "lib/ir/program.h"
#include "lib/networks/decoder.h"
#include "lib/support/error.h"

namespace mlc::gguf {

class Mmproj {
 public:
  // Opens the file of ImportOptions::mmproj. Error "bad-file" for a file of another architecture,
  // "unsupported-architecture" for a projector without a row.
  static Mmproj Open(const std::filesystem::path& path);
  ~Mmproj();
  Mmproj(Mmproj&&) noexcept;

  const std::filesystem::path& path() const;
  // Sets what the functions for pictures need in the language model.
  void Adapt(networks::DecoderConfig& config) const;
  // Adds the function `vision` to the language model of `text`, and the metadata that
  // frontends/safetensors/vision_language.h describes. Errors, with the path of this file: those of
  // AddVision, "unused-tensor".
  void AddVision(Program& program, const GgufFile& text, const networks::DecoderConfig& config,
                 const ImportOptions& options, Diagnostics& diagnostics) const;

 private:
  struct State;
  explicit Mmproj(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Returns the only file of this kind in the folder of a model, if there is one; empty otherwise.
std::filesystem::path MmprojBeside(const std::filesystem::path& model);

}  // namespace mlc::gguf
