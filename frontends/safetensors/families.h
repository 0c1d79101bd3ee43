// frontends/safetensors/families.h - what transformers' configuration class of each family says where
// config.json is silent.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/safetensors/config.h"

namespace mlc {

// Which layers see no more than `sliding_window` keys.
enum class Windows : uint8_t {
  kNone,       // the number may be there, and nobody reads it
  kAll,        // all, or those of the architecture's pattern, where the number is not null
  kBehind,     // those from max_window_layers on, where use_sliding_window says so
  kNotWanted,  // others, where use_sliding_window says so: no row has those
};

// Whether the network of a family has a bias.
struct BiasRule {
  std::string_view where;     // what the names of such tensors contain
  std::string_view key = {};  // of config.json, which says whether; empty: none does
  bool there = false;         // where config.json is silent
};

struct Family {
  std::string_view model_type;
  Windows windows = Windows::kNone;
  std::string_view defaults = "{}";       // as config.json would have them
  std::span<const BiasRule> biases = {};  // the first that fits counts; none fits: there is one
};

// Null: a family of which nothing is known.
const Family* FindFamily(std::string_view model_type);
// The same, with the defaults of its model_type for members that it lacks; null is not lacking.
Config WithFamilyDefaults(const Config& config);
// The names of biases that the network of the config's family does not have: transformers calls them
// unexpected and leaves them out.
std::vector<std::string> UnexpectedBiases(const Config& config,
                                          const std::vector<std::string>& names);
// Returns the keys of config.json that enable biases of which no tensor is stored. transformers
// reports them as missing and initialises them with zeros.
std::vector<std::string> MissingBiases(const Config& config, const std::vector<std::string>& names);

}  // namespace mlc
