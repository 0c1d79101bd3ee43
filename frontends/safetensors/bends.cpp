#include "frontends/safetensors/bends.h"

#include "lib/support/error.h"

namespace mlc {

namespace {

struct BendRow {
  std::string_view name;
  Bend bend;
};
// transformers' activations.py, ACT2FN.
constexpr BendRow kBends[] = {
    {"gelu", Bend::kGelu},
    {"gelu_fast", Bend::kGeluTanh},
    {"gelu_new", Bend::kGeluTanh},
    {"gelu_python", Bend::kGelu},
    {"gelu_pytorch_tanh", Bend::kGeluTanh},
    {"relu", Bend::kRelu},
    {"silu", Bend::kSilu},
    {"swish", Bend::kSilu},
    {"tanh", Bend::kTanh},
};

}  // namespace

Bend BendOf(const Config& config, const std::string& key) {
  const std::string name = config.Text(key);
  std::string known;
  for (const BendRow& row : kBends) {
    if (row.name == name) return row.bend;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error("unsupported-architecture", fmt::format("there is no activation \"{}\"", name))
      .At({config.file(), fmt::format("key \"{}\"", config.KeyPath(key))})
      .Expected(known);
}

}  // namespace mlc
