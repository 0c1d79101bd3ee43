// frontends/safetensors/encoder_rows.h - the encoders that Hugging Face folders may have, by
// model_type, and how transformers stores them.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/safetensors/config.h"
#include "lib/networks/encoder.h"

namespace mlc {

// A folder's name for a tensor of lib/networks/encoder.h, with .weight or .bias or without. {} is
// the layer.
struct EncoderName {
  std::string_view ours, theirs;
};

// transformers' models/*/modeling_*.py; nomic_bert is that of nomic-ai/contrastors,
// models/huggingface.
struct EncoderRow {
  std::string_view model_type;    // of config.json
  std::string_view architecture;  // the row of lib/networks/encoder_architectures.h
  std::string_view prefix;        // of the tensors of the base model, where the model has a head
  std::span<const EncoderName> names, heads;  // take precedence over BERT's; heads have no prefix
  std::string_view where = {};                // a key of config.json that must be true
  std::string_view only = {};   // the required value of `architectures`; empty: any of the heads
  bool gelu_before_lm = false;  // whatever activation config.json gives
  bool shared_layers = false;   // groups of layers have one set of tensors
  bool norm_adds_one = false;   // scales of norms are stored less 1
};

// Null: there is no row for this config.json.
const EncoderRow* FindEncoderRow(const Config& config);
std::set<std::string> EncoderModelTypes();

// Returns the names that a folder may have for one of our tensors, the preferred one first; layers
// are divided into `groups` that share tensors. Our name where there is none.
std::vector<std::string> EncoderTensorNames(const EncoderRow& row, const std::string& ours,
                                            int64_t groups, int64_t layers);

}  // namespace mlc
