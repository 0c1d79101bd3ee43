#include "frontends/gguf/adapter.h"

#include <map>
#include <set>
#include <string>

#include "lib/support/edit_distance.h"
#include "lib/support/regular_file.h"

namespace mlc::gguf {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kDown = ".lora_a", kUp = ".lora_b";
constexpr std::string_view kTokens = "token_embd.weight";

GgufFile Opened(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw Error("bad-file", "option 'lora': \"{}\" is a folder", path.string())
        .Expected("a GGUF adapter, for a GGUF model")
        .Help("llama.cpp's convert_lora_to_gguf.py makes one from a folder of PEFT");
  return GgufFile::Open(path);
}

void CheckKeys(const GgufFile& adapter, const GgufFile& model) {
  auto require = [&](const char* key, const std::string& wanted) {
    if (const std::string found = adapter.String(key, ""); found != wanted)
      throw Error("bad-file", "{} is \"{}\"", key, found)
          .At({"", fmt::format("key \"{}\"", key)})
          .Expected("\"{}\"", wanted)
          .Help("option 'lora' takes a GGUF adapter of the same architecture as the model");
  };
  require("general.type", "adapter");
  require("adapter.type", "lora");
  require("general.architecture", model.String("general.architecture"));
  constexpr const char* kInvocation = "adapter.alora.invocation_tokens";
  if (adapter.Has(kInvocation))
    throw Error("unsupported-architecture", "the adapter changes the model only after some tokens")
        .At({"", fmt::format("key \"{}\"", kInvocation)})
        .Expected("a LoRA adapter without invocation tokens");
}

std::vector<networks::LowRank> Read(const GgufFile& adapter, const GgufFile& model, double scale,
                                    Diagnostics& diagnostics) {
  CheckKeys(adapter, model);
  std::map<std::string, std::pair<const GgufTensor*, const GgufTensor*>> parts;
  std::set<std::string> unknown, incomplete, ignored, known;
  for (const GgufTensor& tensor : adapter.tensors()) {
    const std::string_view name = tensor.name;
    if (name.ends_with(kDown))
      parts[std::string(name.substr(0, name.size() - kDown.size()))].first = &tensor;
    else if (name.ends_with(kUp))
      parts[std::string(name.substr(0, name.size() - kUp.size()))].second = &tensor;
    else
      ignored.insert(tensor.name);
  }
  if (parts.empty()) throw Error("bad-file", "the adapter has no tensors NAME.lora_a");
  if (!ignored.empty())
    diagnostics.Warn(Error("unused-tensor",
                           "tensors of the adapter are ignored, as by llama.cpp: {}",
                           Quoted({ignored.begin(), ignored.end()})));
  for (const GgufTensor& tensor : model.tensors()) known.insert(tensor.name);
  for (const auto& [name, pair] : parts) {
    if (!known.contains(name)) unknown.insert(name);
    if (!pair.first || !pair.second) incomplete.insert(name);
  }
  if (!unknown.empty())
    throw Error("bad-name", "the model lacks {} of the adapter's tensors: {}", unknown.size(),
                Quoted({unknown.begin(), unknown.end()}))
        .Note("similar names: " + Quoted(NearNames(known, *unknown.begin())))
        .Help("check that the adapter was trained on this model");
  if (!incomplete.empty())
    throw Error("missing-tensor", "the adapter has only half of the pairs of {}",
                Quoted({incomplete.begin(), incomplete.end()}))
        .Expected("NAME.lora_a and NAME.lora_b");

  // 0 means that the products are not scaled.
  const double alpha = adapter.Float("adapter.lora.alpha", 0);
  std::vector<networks::LowRank> pairs;
  for (const auto& [name, pair] : parts) {
    networks::LowRank& made = pairs.emplace_back();
    made.weight = name;
    made.down = adapter.Constant(*pair.first);
    made.up = adapter.Constant(*pair.second);
    if (name == kTokens && made.down.rank() == 2 && made.up.rank() == 2) {
      made.outputs_are_columns = true;
      std::swap(made.down, made.up);
      made.down = made.down.Transposed({1, 0});
    }
    const Dims& dims = model.FindTensor(name)->dims;
    networks::CheckLowRank(made, dims, fmt::format("tensor \"{}\" of the adapter", name));
    made.scale = alpha != 0 ? scale * alpha / static_cast<double>(made.down.dims()[0]) : scale;
  }
  return pairs;
}

}  // namespace

networks::Adapter ReadAdapter(const ImportOptions::Lora& lora, const GgufFile& model,
                              Diagnostics& diagnostics) {
  try {
    return {.pairs = Read(Opened(lora.path), model, lora.scale, diagnostics), .files = {lora.path}};
  } catch (Error& error) {
    if (!error.location().file.empty()) throw;
    throw error.At({lora.path.string(), error.location().where});
  }
}

GgufFile WithAdapters(GgufFile model, const std::vector<ImportOptions::Lora>& loras,
                      Diagnostics& diagnostics, std::vector<fs::path>& read) {
  for (const ImportOptions::Lora& lora : loras) {
    const networks::Adapter adapter = ReadAdapter(lora, model, diagnostics);
    read.insert(read.end(), adapter.files.begin(), adapter.files.end());
    model = model.With(networks::Merged(
        adapter, lora, [&](const std::string& name) { return model.Constant(name); }, diagnostics));
  }
  return model;
}

}  // namespace mlc::gguf
