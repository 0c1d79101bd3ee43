#include "frontends/safetensors/activation_names.h"

#include "lib/support/error.h"

namespace mlc::safetensors {

namespace {

struct ActivationRow {
  std::string_view name;
  networks::Activation activation;
};
// The names are those of transformers' activations.py, ACT2FN.
constexpr ActivationRow kActivations[] = {
    {"gelu", networks::Activation::kGelu},
    {"gelu_fast", networks::Activation::kGeluTanh},
    {"gelu_new", networks::Activation::kGeluTanh},
    {"gelu_python", networks::Activation::kGelu},
    {"gelu_pytorch_tanh", networks::Activation::kGeluTanh},
    {"quick_gelu", networks::Activation::kQuickGelu},
    {"hardswish", networks::Activation::kHardSwish},
    {"relu", networks::Activation::kRelu},
    {"relu6", networks::Activation::kRelu6},
    {"sigmoid", networks::Activation::kSigmoid},
    {"silu", networks::Activation::kSilu},
    {"swish", networks::Activation::kSilu},
    {"tanh", networks::Activation::kTanh},
};

}  // namespace

networks::Activation ActivationOf(const Config& config, const std::string& key) {
  const std::string name = config.Text(key);
  std::string known;
  for (const ActivationRow& row : kActivations) {
    if (row.name == name) return row.activation;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error("unsupported-architecture", "unsupported activation \"{}\"", name)
      .At({config.file(), fmt::format("key \"{}\"", config.KeyPath(key))})
      .Expected(known);
}

}  // namespace mlc::safetensors
