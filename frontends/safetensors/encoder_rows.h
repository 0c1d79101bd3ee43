// frontends/safetensors/encoder_rows.h - what folders of encoders have each for itself; their networks are
// rows of lib/networks/encoder_architectures.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/safetensors/config.h"
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
  std::string_view where = {};  // config.json's key that must be true; else it is another model
  std::string_view only = {};   // `architectures` must say; empty: any model with one of the heads
  bool gelu_before_lm = false;  // whatever config.json says of other layers
  bool shared_layers = false;   // groups of layers have one set of tensors
  bool norm_adds_one = false;   // scales of norms are stored less 1
};

// By config.json; null: there is none.
const EncoderRow* FindEncoderRow(const Config& config);

// What the row's folders may call one of our tensors, of which groups of layers may share theirs: the
// first that a folder has counts. Ours, where they have none.
std::vector<std::string> EncoderTensorNames(const EncoderRow& row, const std::string& ours,
                                            int64_t groups, int64_t layers);

}  // namespace mlc
