// lib/support/hash.h - streaming hashes as hexadecimal text: XXH3-128 for our own records, SHA for
// those of others.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace mlc {

// XXH3-128 with seed 0. Hex() returns its canonical form: 32 digits, high half first.
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

// SHA-1 and SHA-256 (FIPS 180-4), by OpenSSL, or by CommonCrypto on Apple systems. Hex() may be
// called at any time.
class Sha {
 public:
  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view text) { Update(std::as_bytes(std::span(text))); }
  std::string Hex() const;

  struct State;

 protected:
  explicit Sha(int bits);

 private:
  struct Free {
    void operator()(State* state) const;
  };
  std::unique_ptr<State, Free> state_;
};
struct Sha1 : Sha {
  Sha1() : Sha(160) {}
};
struct Sha256 : Sha {
  Sha256() : Sha(256) {}
};

// The hash of a file's contents, read in windows; Error "file-io".
std::string Xxh3OfFile(const std::filesystem::path& path);
std::string Sha1OfFile(const std::filesystem::path& path);
std::string Sha256OfFile(const std::filesystem::path& path);

}  // namespace mlc
