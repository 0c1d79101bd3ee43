// frontends/safetensors/encoder_decoder_rows.h - the encoder-decoders of Hugging Face folders by
// model_type: flags, names of tensors, and the defaults of transformers' configuration classes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "frontends/safetensors/config.h"
#include "frontends/safetensors/folder_weights.h"
#include "lib/networks/encoder_decoder.h"

namespace mlc::safetensors {

enum class SequenceFamily : uint8_t {
  kT5,
  kBart,
  kWhisper,
  kMoonshine,
  kPictures,
  kBlip,
  kFlorence,
};

struct EncoderDecoderRow {
  std::string_view model_type;
  SequenceFamily family;
  // Flags only; numbers are read from config.json.
  networks::EncoderDecoderConfig::Input input = networks::EncoderDecoderConfig::Input::kTokens;
  networks::EncoderDecoderConfig::Positions positions =
      networks::EncoderDecoderConfig::Positions::kTable;
  int64_t position_offset = 0;
  bool pre_norms = true, final_norms = true, normed_embeddings = false;
  bool takes_scale = true;  // scale_embedding multiplies embeddings by the root of the width
  bool classifies = false;  // has classes such as ...ForSequenceClassification
  bool wraps =
      false;  // their decoders begin with the last token (modeling_mbart.py, shift_tokens_right)
  bool positions_after_norm = false, own_distances = false;
  std::string_view defaults;
};

// Returns null if there is no row for this config.json.
const EncoderDecoderRow* FindEncoderDecoderRow(const Config& config);
std::span<const EncoderDecoderRow> EncoderDecoderRows();
// The defaults of Florence-2's tower and of its language model, which is a BART.
extern const std::string_view kFlorenceVisionDefaults, kFlorenceTextDefaults;
const std::vector<TensorName>& EncoderDecoderNames(SequenceFamily family);

}  // namespace mlc::safetensors
