// frontends/safetensors/config_defaults.h - for each model family, the defaults of its
// configuration class in transformers, its windows and its biases.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/safetensors/config.h"

namespace mlc::safetensors {

// The layers in which a query sees at most `sliding_window` keys.
enum class Windows : uint8_t {
  kNone,       // sliding_window is ignored
  kAll,        // all layers, or those of the architecture's pattern, if sliding_window is not null
  kBehind,     // layers from max_window_layers on, if use_sliding_window is true
  kNotWanted,  // rejected if use_sliding_window is true: no architecture row has such windows
};

// A rule that decides whether a family's network has certain biases.
struct BiasRule {
  std::string_view where;     // substring of the names of such tensors
  std::string_view key = {};  // key of config.json that enables the biases; empty: there are none
  bool there = false;         // default if config.json lacks the key
};

struct Family {
  std::string_view model_type;
  Windows windows = Windows::kNone;
  // The first matching rule applies; without one there is a bias.
  std::span<const BiasRule> biases = {};
  std::string_view defaults = "{}";  // members of config.json, as a JSON object
};

// Returns null for an unknown family.
const Family* FindFamily(std::string_view model_type);
// Returns a copy in which missing members have the defaults of the config's model_type; null
// members do not count as missing.
Config WithFamilyDefaults(const Config& config);
// Returns the names of biases that the network of the config's family does not have; transformers
// calls them unexpected and ignores them.
std::vector<std::string> UnexpectedBiases(const Config& config,
                                          const std::vector<std::string>& names);
// Returns the keys of config.json that enable biases of which no tensor is stored; transformers
// calls these missing and initialises them with zeros.
std::vector<std::string> MissingBiases(const Config& config, const std::vector<std::string>& names);

}  // namespace mlc::safetensors
