// frontends/safetensors/encoder_rows.h - the encoders of Hugging Face folders by model_type, and
// how transformers stores them.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/safetensors/config.h"
#include "lib/networks/encoder.h"

namespace mlc::safetensors {

// The name in a folder for a tensor of lib/networks/encoder.h. The names may include .weight or
// .bias. {} is the layer.
struct EncoderName {
  std::string_view ours, theirs;
};

// Rows follow transformers' models/*/modeling_*.py; nomic_bert follows nomic-ai/contrastors,
// models/huggingface.
struct EncoderRow {
  std::string_view model_type;    // in config.json
  std::string_view architecture;  // the row of lib/networks/encoder_architectures.h
  std::string_view prefix;        // prefix of the base model's tensors in models with a head
  std::span<const EncoderName> names, heads;  // override BERT's names; heads have no prefix
  std::string_view where = {};                // a key of config.json that must be true
  std::string_view only = {};   // the required value of `architectures`; empty: any head
  bool gelu_before_lm = false;  // regardless of the activation in config.json
  bool shared_layers = false;   // layers in a group share one set of tensors
  bool norm_adds_one = false;   // scales of norms are stored minus 1
};

// Returns null if there is no row for this config.json.
const EncoderRow* FindEncoderRow(const Config& config);
std::set<std::string> EncoderModelTypes();

// Returns the possible names in a folder for one of our tensors, the preferred one first; our name
// if there is no other. Layers are divided into `groups` that share tensors.
std::vector<std::string> EncoderTensorNames(const EncoderRow& row, const std::string& ours,
                                            int64_t groups, int64_t layers);

}  // namespace mlc::safetensors
