// frontends/safetensors/names.h - what Hugging Face calls the tensors of a decoder, and how it lays
// them out.
#pragma once

#include <string>
#include <string_view>

#include "lib/networks/decoder.h"

namespace mlc {

enum class Arrangement : uint8_t {
  kPlain,
  kTransposed,  // a matrix is [in, out]
  kByHead,      // of queries, keys and values in one: those of a head are together
  kSeveral,     // a tensor for each expert
  kBehindTwo,   // rows from the third on
};

struct HuggingFaceName {
  Role role;
  std::string_view name;             // {} is the layer, a second one the expert; without ".weight"
  std::string_view model_type = {};  // alone; empty: all that have no row of their own
  Arrangement arrangement = Arrangement::kPlain;
};
// Null: there is no such tensor.
const HuggingFaceName* FindHuggingFaceName(std::string_view model_type, Role role);
// "model.layers.0.mlp.experts.7.up_proj.weight"
std::string NameOf(const HuggingFaceName& row, Part part, int64_t layer, int64_t expert = 0);
// Of no use to anybody: tables that older versions of transformers saved with the weights.
bool IsLeftOver(std::string_view name);

}  // namespace mlc
