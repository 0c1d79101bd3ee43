// Implements GgufTokenizerFile and IsGgufTokenizerFile.
#include <algorithm>
#include <bit>

#include "frontends/gguf/tokenizer.h"

namespace mlc::gguf {

namespace {

constexpr std::string_view kArchitecture = "general.architecture", kTokenizer = "tokenizer.",
                           kModel = "tokenizer.ggml.model";

bool Belongs(const GgufEntry& entry) {
  return entry.key == kArchitecture || entry.key.starts_with(kTokenizer);
}

template <class T>
void Put(T value, std::string& bytes) {
  static_assert(std::endian::native == std::endian::little);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

std::string GgufTokenizerFile(const GgufFile& file) {
  // Models without a text tokenizer have "none" or "no_vocab".
  const std::string model = file.Has(kModel) ? file.String(kModel) : "none";
  if (model == "none" || model == "no_vocab" || !file.Has("tokenizer.ggml.tokens")) return "";
  const std::vector<GgufEntry>& all = file.metadata();
  std::string bytes = "GGUF";
  Put<uint32_t>(3, bytes);
  Put<uint64_t>(0, bytes);  // number of tensors
  Put(static_cast<uint64_t>(std::ranges::count_if(all, Belongs)), bytes);
  for (const GgufEntry& entry : all) {
    if (!Belongs(entry)) continue;
    const GgufValue& value = entry.value;
    Put(uint64_t{entry.key.size()}, bytes);
    bytes += entry.key;
    Put(static_cast<uint32_t>(value.type), bytes);
    if (value.type == GgufType::kString) Put(value.bytes, bytes);
    if (value.type == GgufType::kArray) {
      Put(static_cast<uint32_t>(value.element), bytes);
      Put(value.count, bytes);
    }
    const size_t at = bytes.size();
    bytes.resize(at + value.bytes);
    file.files()[0]->Read(value.offset,
                          std::as_writable_bytes(std::span(bytes).subspan(at, value.bytes)));
  }
  return bytes;
}

bool IsGgufTokenizerFile(const GgufFile& file) {
  const std::vector<GgufEntry>& all = file.metadata();
  return file.tensors().empty() && file.Has(kModel) && std::ranges::all_of(all, Belongs);
}

}  // namespace mlc::gguf
