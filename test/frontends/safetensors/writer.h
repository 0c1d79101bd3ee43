// test/frontends/safetensors/writer.h - writes safetensors files for tests.
#pragma once

#include <cstring>
#include <fstream>
#include <string>

#include "test/backends/coreml/package_files.h"

namespace mlc::test {

inline void Put(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Returns a file of a header and data; a non-negative `length` replaces the header's true length.
inline std::string Packed(const std::string& header, const std::string& data, int64_t length = -1) {
  uint64_t size = length < 0 ? header.size() : static_cast<uint64_t>(length);
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes + header + data;
}

}  // namespace mlc::test
