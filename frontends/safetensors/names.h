// frontends/safetensors/names.h - Hugging Face's names and layouts for the tensors of a decoder.
#pragma once

#include <string>
#include <string_view>

#include "lib/networks/decoder.h"

namespace mlc::safetensors {

enum class Arrangement : uint8_t {
  kPlain,
  kTransposed,   // a matrix is [in, out]
  kByHead,       // fused queries, keys and values are grouped by head
  kPerExpert,    // one tensor per expert
  kSkipTwoRows,  // the first two rows are skipped
};

struct HuggingFaceName {
  networks::Role role;
  std::string_view name;             // {} is the layer, a second {} the expert; without ".weight"
  std::string_view model_type = {};  // empty: all families without a specific row
  Arrangement arrangement = Arrangement::kPlain;
};
// Returns null if Hugging Face has no such tensor.
const HuggingFaceName* FindHuggingFaceName(std::string_view model_type, networks::Role role);
// Returns a name like "model.layers.0.mlp.experts.7.up_proj.weight".
std::string NameOf(const HuggingFaceName& row, networks::Part part, int64_t layer,
                   int64_t expert = 0);
// Returns whether a tensor is a table that older versions of transformers saved with the weights
// but that is not needed.
bool IsLeftOver(std::string_view name);

}  // namespace mlc::safetensors
