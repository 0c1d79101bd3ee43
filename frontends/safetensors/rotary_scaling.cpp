#include "frontends/safetensors/rotary_scaling.h"

#include <cmath>
#include <numbers>

namespace mlc::safetensors {

namespace {

// Llama 3.1 divides low frequencies by the factor, keeps high ones, and interpolates between them.
std::vector<double> Llama3Factors(const Config& scaling, const networks::Rotary& rotary) {
  double factor = scaling.Number("factor"), low = scaling.Number("low_freq_factor"),
         high = scaling.Number("high_freq_factor"),
         length = scaling.Number("original_max_position_embeddings");
  if (!(factor > 0 && length > 0 && low < high))
    throw Error("bad-file",
                "the RoPE scaling has factor {}, low_freq_factor {} and high_freq_factor {}",
                factor, low, high)
        .At({scaling.file(), scaling.KeyPath("factor")})
        .Expected("a positive factor, and low_freq_factor below high_freq_factor");
  std::vector<double> factors;
  for (int64_t i = 0; i < rotary.size / 2; ++i) {
    double turn =
        std::pow(rotary.base, -2.0 * static_cast<double>(i) / static_cast<double>(rotary.size));
    double turns = length * turn / (2 * std::numbers::pi);
    double stays = (turns - low) / (high - low);
    factors.push_back(turns > high ? 1 : turns < low ? factor : 1 / ((1 - stays) / factor + stays));
  }
  return factors;
}

void ReadYarn(const Config& scaling, networks::Rotary& rotary) {
  rotary.scaling = networks::RotaryScaling::kYarn;
  rotary.factor = scaling.Number("factor");
  rotary.original_context =
      scaling.Int("original_max_position_embeddings", rotary.original_context);
  for (const char* key : {"mscale", "mscale_all_dim"})
    if (scaling.has(key) && !scaling.has("attention_factor"))
      throw Error("unsupported-architecture", "{} is not supported", key)
          .At({scaling.file(), scaling.KeyPath(key)});
  if (!scaling.Bool("truncate", true))
    throw Error("unsupported-architecture", "RoPE scaling without truncation is not supported")
        .At({scaling.file(), scaling.KeyPath("truncate")});
  rotary.fast = scaling.Number("beta_fast", rotary.fast);
  rotary.slow = scaling.Number("beta_slow", rotary.slow);
  rotary.magnitude =
      scaling.Number("attention_factor", rotary.factor > 1 ? 1 + 0.1 * std::log(rotary.factor) : 1);
}

}  // namespace

int64_t RotaryDims(const Config& json, const std::string& key, int64_t head) {
  const double share = json.Number(key, 1);
  if (!(share >= 0 && share <= 1))
    throw Error("unsupported-architecture", "rotary embedding covers {} of a head", share)
        .At({json.file(), json.KeyPath(key)})
        .Expected("a fraction from 0 to 1");
  return Truncated(static_cast<double>(head) * share);
}

RotaryFactors ReadRotaryScaling(const Config& json, networks::DecoderConfig& config) {
  networks::Rotary& rotary = config.rotary;
  rotary.original_context = json.Int("original_max_position_embeddings", config.context);
  const char* key = json.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (!json.has(key)) return {};
  Config scaling = json.Object(key);
  // Layers with and without windows may have separate parameters.
  if (scaling.has("sliding_attention"))
    rotary.local_base = scaling.Object("sliding_attention").Number("rope_theta", rotary.local_base);
  if (scaling.has("full_attention")) scaling = scaling.Object("full_attention");
  rotary.base = scaling.Number("rope_theta", rotary.base);
  if (scaling.has("partial_rotary_factor"))
    rotary.size = RotaryDims(scaling, "partial_rotary_factor", config.head_dim);
  const std::string way = scaling.Text("rope_type", scaling.Text("type", "default"));
  RotaryFactors factors;
  if (way == "linear") {
    rotary.scaling = networks::RotaryScaling::kLinear;
    rotary.factor = scaling.Number("factor");
  } else if (way == "llama3") {
    factors.factors = Llama3Factors(scaling, rotary);
  } else if (way == "yarn") {
    ReadYarn(scaling, rotary);
  } else if (way == "longrope" || way == "su") {
    rotary.original_context =
        scaling.Int("original_max_position_embeddings", rotary.original_context);
    factors.long_factors = scaling.Numbers("long_factor");
    factors.short_factors = scaling.Numbers("short_factor");
    double original = static_cast<double>(rotary.original_context);
    double half_window = scaling.Number("factor", static_cast<double>(config.context) / original);
    double magnitude =
        half_window > 1 ? std::sqrt(1 + std::log(half_window) / std::log(original)) : 1;
    rotary.magnitude = scaling.Number("attention_factor", magnitude);
  } else if (way != "default" && way != "mrope") {
    throw Error("unsupported-architecture", "unsupported RoPE scaling \"{}\"", way)
        .At({json.file(), json.KeyPath(key)})
        .Expected("default, linear, llama3, yarn or longrope");
  }
  return factors;
}

}  // namespace mlc::safetensors
