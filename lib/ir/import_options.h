// lib/ir/import_options.h - import options that are common to all source formats.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

// A value of ImportOptions::runtime.
inline constexpr const char* kWhisperKit = "whisperkit";

struct ImportOptions {
  std::map<std::string, Dims> shapes;  // full input shapes, by input name
  std::map<std::string, Symbol> dims;  // bounds by symbol name (low == high: fixed)
  // Inputs to replace by constants. The declared dtype of an input must represent its constant
  // exactly.
  std::map<std::string, Tensor> constants;
  std::vector<std::string>
      outputs;  // names of source values to return; empty: the outputs of the model
  struct Replacement {
    std::string op, attribute,
        value;  // restricts each source operator `op`; a list is written 1,2,3
  };
  std::vector<Replacement> replacements;
  // Marks an input as an image; the model receives pixel * scale + bias.
  struct Image {
    Port::Feature feature = Port::Feature::kImageRgb;
    std::vector<float> scale = {1}, bias = {0};  // one, or one per channel
  };
  std::map<std::string, Image> images;
  // The dtype of float inputs and outputs; kNone: as in the source. Does not apply to images.
  DType io = DType::kNone;
  // Inputs and outputs stay tensors where the source describes images and classes.
  bool arrays = false;
  // The deployment target. Newer operators are replaced by an equivalent of older ones where
  // possible. nullopt: no restriction.
  std::optional<Opset> target;
  // The folder in which external data is looked up if it is not beside the model, and into which
  // symbolic links may point. Empty: none.
  std::filesystem::path data_root;
  // Language models and Whisper only: the runtime that the package is built for ("swift" means
  // swift-transformers, kWhisperKit WhisperKit), and the context length in tokens. nullopt: 2048, or the model's own limit
  // if that is lower.
  std::string runtime = "swift";
  std::optional<int64_t> context;
  // How the weights of the imported program are compressed (lib/compress/rules.h), which the tools
  // do after importing; empty: not at all. `requant` is a rule for language models only.
  std::string compress, requant;
  // Adapters of low rank for a language model or another network with weights by name: folders of
  // PEFT, or GGUF adapters. Their changes are multiplied by `scale`, and merged into the weights, except
  // for those of `apart`.
  struct Lora {
    std::filesystem::path path;
    double scale = 1;
    std::set<std::string> apart = {};  // names in the source of weights that others change
  };
  std::vector<Lora> loras;
  // The tower and projector with which a language model in a GGUF file reads pictures; empty: none.
  std::filesystem::path mmproj;
  // Height and width of the picture that the model is going to read: the size of pictures follows from it
  // where a model reads any size. Absent: a usual size.
  std::optional<std::pair<int64_t, int64_t>> picture;
  // The tools apply these to the imported program (tools/driver/adapters.h).
  bool lora_inputs = false, lora_functions = false;
  bool compress_in_fp32 = false;  // the weights are for a package in fp32
};

}  // namespace mlc
