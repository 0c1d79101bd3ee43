#include "frontends/gguf/gguf_model.h"

#include <algorithm>

#include "lib/networks/check_weights.h"
#include "lib/support/error.h"
#include "lib/support/utf8.h"

namespace mlc::gguf {

namespace {

// Keys of gguf-py (gguf/constants.py, class Keys.LLM and others) that do not affect the results.
constexpr std::string_view kNoEffect[] = {"vocab_size", "tensor_data_layout",
                                          "rope.scaling.finetuned"};

// Returns the "owner/name" of a page of Hugging Face's hub, or an empty string for another URL.
std::string Repository(std::string_view url) {
  constexpr std::string_view kHub = "https://huggingface.co/";
  return std::string(url.starts_with(kHub) ? url.substr(kHub.size()) : "");
}

}  // namespace

std::string GgufModel::Key(std::string_view key) const {
  return *asked_.insert(fmt::format("{}.{}", architecture_, key)).first;
}

int64_t GgufModel::OfAllLayers(std::string_view key, int64_t otherwise) const {
  if (!Has(key)) return otherwise;
  if (file_.Find(Key(key))->type != GgufType::kArray) return Int(key);
  return OneOf(key, file_.Ints(Key(key)));
}

int64_t GgufModel::OneOf(std::string_view key, const std::vector<int64_t>& each) const {
  if (each.empty()) throw Error("bad-file", "key \"{}\" is empty", Key(key));
  for (int64_t one : each)
    if (one != each[0])
      throw Error("unsupported-architecture", "key \"{}\" differs between layers: {} and {}",
                  Key(key), each[0], one)
          .Expected("one number for all layers");
  return each[0];
}

void GgufModel::Refuse(std::string_view key, std::string_view has) const {
  throw Error("unsupported-architecture", "the model has {}", has)
      .At({"", fmt::format("key \"{}\"", Key(key))});
}

int64_t GgufModel::RowsOf(const std::string& name, int64_t otherwise) const {
  const GgufTensor* tensor = file_.FindTensor(name);
  if (!tensor || tensor->dims.empty()) return otherwise;
  return tensor->dims.size() == 1 ? 1 : tensor->dims.end()[-2];
}

Tensor GgufModel::Take(const std::string& name) {
  const GgufTensor* tensor = file_.FindTensor(name);
  if (!tensor) return {};
  taken_.insert(name);
  return file_.Constant(*tensor);
}

void GgufModel::CheckAllTaken() const {
  std::vector<std::string> names;
  for (const GgufTensor& tensor : file_.tensors()) names.push_back(tensor.name);
  networks::CheckAllUsed(fmt::format("architecture \"{}\"", architecture_), names, taken_);
  for (const GgufEntry& entry : file_.metadata()) {
    if (!entry.key.starts_with(architecture_ + ".") || asked_.contains(entry.key)) continue;
    const std::string_view key = std::string_view(entry.key).substr(architecture_.size() + 1);
    if (std::ranges::find(kNoEffect, key) != std::end(kNoEffect)) continue;
    diagnostics_.Warn(
        Error("unread-key", "key \"{}\" is not read", entry.key)
            .Help(
                "if the key changes what the model computes, the package is wrong; compare it with "
                "logits of the program that made the file (verify option 'reference')"));
  }
}

void GgufModel::Describe(Program& program, std::string_view task) const {
  for (const char* key : {"general.name", "general.author", "general.license", "general.version"})
    RequireUtf8(file_.String(key, ""), "bad-file", fmt::format("key \"{}\"", key));
  Interface& interface = program.interface;
  std::string name = file_.String("general.name", "");
  interface.short_description = name;
  interface.author = file_.String("general.author", "");
  interface.license = file_.String("general.license", "");
  interface.version = file_.String("general.version", "");
  // swift-transformers loads the tokenizer of this repository from Hugging Face's hub.
  std::string id = file_.String("general.source.huggingface.repository", "");
  if (id.empty()) id = Repository(file_.String("general.source.repo_url", ""));
  if (id.empty()) id = Repository(file_.String("general.base_model.0.repo_url", ""));
  interface.metadata.emplace_back("co.huggingface.exporters.name", id.empty() ? name : id);
  interface.metadata.emplace_back("co.huggingface.exporters.task", task);
  std::ranges::sort(interface.metadata);
}

}  // namespace mlc::gguf
