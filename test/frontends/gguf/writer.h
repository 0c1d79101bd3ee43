// test/frontends/gguf/writer.h - writes valid and invalid GGUF files for tests.
//
//   GgufWriter file;
//   file.Key<uint32_t>("llama.block_count", gguf::GgufType::kUint32, 2);
//   file.Tensor("w", {64, 4}, 2, std::string(4 * 2 * 18, 'x'));  // ggml's order: [4, 64], Q4_0
//   std::string bytes = file.Bytes();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "frontends/gguf/file.h"

namespace mlc::test {

template <class T>
std::string Raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
inline std::string Raw(gguf::GgufType type) { return Raw(static_cast<uint32_t>(type)); }
inline std::string GgufText(std::string_view text) {
  return Raw(static_cast<uint64_t>(text.size())) + std::string(text);
}

struct GgufWriter {
  uint32_t version = 3, alignment = 32;
  std::string keys, tensors, data;
  uint64_t key_count = 0, tensor_count = 0;

  // Adds a value in the encoding of the file.
  void Value(std::string_view key, gguf::GgufType type, const std::string& raw) {
    keys += GgufText(key) + Raw(type) + raw;
    ++key_count;
  }
  template <class T>
  void Key(std::string_view key, gguf::GgufType type, T value) {
    Value(key, type, Raw(value));
  }
  void Key(std::string_view key, std::string_view text) {
    Value(key, gguf::GgufType::kString, GgufText(text));
  }
  void Array(std::string_view key, gguf::GgufType element, uint64_t count, const std::string& raw) {
    Value(key, gguf::GgufType::kArray, Raw(element) + Raw(count) + raw);
  }
  // Takes dimensions in ggml's order, innermost first.
  void Entry(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
             uint64_t offset) {
    tensors += GgufText(name) + Raw(static_cast<uint32_t>(dims.size()));
    for (uint64_t size : dims) tensors += Raw(size);
    tensors += Raw(type) + Raw(offset);
    ++tensor_count;
  }
  void Tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
              const std::string& bytes) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    Entry(name, dims, type, data.size());
    data += bytes;
  }
  std::string Bytes() const {
    std::string bytes = "GGUF" + Raw(version) + Raw(tensor_count) + Raw(key_count) + keys + tensors;
    if (tensor_count == 0) return bytes;
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return bytes + data;
  }
};

}  // namespace mlc::test
