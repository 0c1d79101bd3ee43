// frontends/gguf/decoder_rows.h - the decoder architectures of GGUF files, and what llama.cpp does
// with their files beyond what the flags of the network say.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "lib/networks/decoder.h"

namespace mlc {

struct GgufDecoderRow {
  std::string_view name;                      // general.architecture
  std::string_view architecture;              // the row of lib/networks/architectures.h
  bool interleaved = false;                   // a pair of rotary embedding is two adjacent elements
  std::optional<Activation> activation = {};  // which llama.cpp computes instead
  bool parallel_without_norm = false;         // as DecoderConfig has it
  // Models of this many layers divide scores by sqrt(width / heads), which no key says (llama.cpp
  // goes by the number of layers, too: src/models/gemma3.cpp). 0: none.
  int64_t scaled_by_width_layers = 0;
  int64_t windowed_layers = 0;  // only models of this many layers have windows; 0: all have
  // What holds where a file has no such key (src/models/NAME.cpp, load_arch_hparams).
  int64_t window = 0;
  double attention_cap = 0, logit_cap = 0;
};

// Null: there is no such row.
const GgufDecoderRow* FindGgufDecoder(std::string_view name);
std::set<std::string> GgufDecoderNames();

}  // namespace mlc
