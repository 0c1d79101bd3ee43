// frontends/gguf/decoder_rows.h - the decoder architectures of GGUF files, how llama.cpp's treatment
// of them differs from the flags of the network, and the names of their tensors.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "lib/networks/decoder.h"

namespace mlc::gguf {

struct GgufDecoderRow {
  std::string_view name;          // general.architecture
  std::string_view architecture;  // the row of lib/networks/architectures.h
  bool interleaved = false;       // rotary embedding pairs two adjacent elements
  std::optional<networks::Activation> activation =
      {};                              // the activation in llama.cpp, if it differs
  bool parallel_without_norm = false;  // see DecoderConfig
  // In models with this number of layers, scores are divided by sqrt(width / heads). No key says
  // so; llama.cpp also decides by the number of layers (src/models/gemma3.cpp). 0: no such model.
  int64_t scaled_by_width_layers = 0;
  int64_t windowed_layers = 0;  // only models with this number of layers have windows; 0: all do
  // Defaults for missing keys (src/models/NAME.cpp, load_arch_hparams).
  int64_t window = 0;
  double attention_cap = 0, logit_cap = 0;
  // rope.dimension_sections are places in time, height and width, and whether their pairs alternate.
  bool rotary_sections = false, alternating_sections = false;
};

// Returns null if there is no row with this name.
const GgufDecoderRow* FindGgufDecoder(std::string_view name);
std::set<std::string> GgufDecoderNames();

// Returns a name like "blk.0.attn_q.weight"; empty if GGUF has no such tensor.
std::string GgufName(std::string_view architecture, networks::Role role, networks::Part part,
                     int64_t layer);

}  // namespace mlc::gguf
