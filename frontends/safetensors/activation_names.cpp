#include "frontends/safetensors/activation_names.h"

#include "lib/support/error.h"

namespace mlc {

namespace {

struct ActivationRow {
  std::string_view name;
  Activation activation;
};
// The names are those of transformers' activations.py, ACT2FN.
constexpr ActivationRow kActivations[] = {
    {"gelu", Activation::kGelu},
    {"gelu_fast", Activation::kGeluTanh},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_python", Activation::kGelu},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"relu", Activation::kRelu},
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"tanh", Activation::kTanh},
};

}  // namespace

Activation ActivationOf(const Config& config, const std::string& key) {
  const std::string name = config.Text(key);
  std::string known;
  for (const ActivationRow& row : kActivations) {
    if (row.name == name) return row.activation;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error("unsupported-architecture", fmt::format("unsupported activation \"{}\"", name))
      .At({config.file(), fmt::format("key \"{}\"", config.KeyPath(key))})
      .Expected(known);
}

}  // namespace mlc
