// test/frontends/safetensors/make.h - safetensors files of a test.
#pragma once

#include <cstring>
#include <fstream>
#include <string>

#include "test/backends/coreml/package_files.h"

namespace mlc::test {

inline void Put(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// A file of a header and data; `length` is what it says of the header, unless negative.
inline std::string Packed(const std::string& header, const std::string& data, int64_t length = -1) {
  uint64_t size = length < 0 ? header.size() : static_cast<uint64_t>(length);
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes + header + data;
}

}  // namespace mlc::test
