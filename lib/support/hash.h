// lib/support/hash.h - streaming hashes, as hexadecimal text: XXH3-128 for our own records, SHA-256
// for those of others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace mlc {

// XXH3-128 with seed 0; Hex() is its canonical form: 32 digits, high half first.
class Xxh3 {
 public:
  Xxh3();
  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view text) { Update(std::as_bytes(std::span(text))); }
  std::string Hex() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

// FIPS 180-4; 64 digits. Hex() may be asked for at any time.
class Sha256 {
 public:
  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view text) { Update(std::as_bytes(std::span(text))); }
  std::string Hex() const;

 private:
  void Block(const std::byte* block);
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_ = {};
  uint64_t length_ = 0;
};

// The hash of a file's bytes, read in windows; Error "file-io".
std::string Xxh3OfFile(const std::filesystem::path& path);
std::string Sha256OfFile(const std::filesystem::path& path);

}  // namespace mlc
