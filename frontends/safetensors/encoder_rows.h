// frontends/safetensors/encoder_rows.h - the encoders that are known, a row of flags and names each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lib/networks/encoder.h"

namespace mlc {

// What a folder calls a tensor of lib/networks/encoder.h: with its .weight or .bias, or without. {} is
// the layer.
struct EncoderName {
  std::string_view ours, theirs;
};

// transformers' models/*/modeling_*.py; nomic_bert is that of nomic-ai/contrastors, models/huggingface.
struct EncoderRow {
  std::string_view model_type;  // of config.json
  std::string_view prefix;      // of the base model's tensors, which those of a base model lack
  std::span<const EncoderName> names, heads;  // before those of BERT; heads have no prefix
  EncoderConfig flags = {};
  bool gelu_before_lm = false;  // whatever config.json says of other layers
  bool shared_layers = false;   // groups of layers have one set of tensors
};

std::span<const EncoderRow> EncoderRows();                      // sorted by model_type
const EncoderRow* FindEncoderRow(std::string_view model_type);  // null: there is none

// The name of one of our tensors in the row's folders. `layer` goes for that of the name where layers
// share tensors. Ours, where there is none.
std::string EncoderTensorName(const EncoderRow& row, const std::string& ours, int64_t groups,
                              int64_t layers);

}  // namespace mlc
