// frontends/safetensors/picture_decoders.h - the decoders of texts that follow an encoder of pictures
// (transformers' vision-encoder-decoder), by the model_type of the nested "decoder".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontends/safetensors/config.h"
#include "frontends/safetensors/folder_weights.h"
#include "lib/networks/encoder_decoder.h"

namespace mlc::safetensors {

struct PictureDecoder {
  std::string_view model_type;
  std::string_view defaults;  // of its configuration class
  // Sets what describes the decoder; `config` has the defaults.
  void (*read)(const Config& config, networks::EncoderDecoderConfig& into);
  const std::vector<TensorName>& (*names)();
  std::string_view prefix;  // of tensors, unless that is "decoder."
  // Returns a tensor by its name in the network; null: it is stored as the network takes it.
  Tensor (*find)(FolderWeights& weights, const std::string& name) = nullptr;
};

// Throws Error "unsupported-architecture" for types without a row.
const PictureDecoder& PictureDecoderOf(const Config& decoder);

}  // namespace mlc::safetensors
