#include "lib/support/hash.h"

#include <fmt/format.h>
#include <unistd.h>
#ifdef MLC_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>  // stands for xxhash.h, and renames its functions
#else
#include <xxhash.h>
#endif

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "lib/support/error.h"
#include "lib/support/regular_file.h"

namespace mlc {

Xxh3::Xxh3() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}
void Xxh3::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }
void Xxh3::Update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}
std::string Xxh3::Hex() const {
  XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

void Sha256::Block(const std::byte* block) {
  // The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS
  // 180-4, 4.2.2).
  static constexpr uint32_t kRound[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
      0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
      0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
      0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
      0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
      0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
      0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
      0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
      0xc67178f2};
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) {
    auto byte = [&](int k) { return static_cast<uint32_t>(block[i * 4 + k]); };
    w[i] = byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
  }
  for (int i = 16; i < 64; ++i) {
    uint32_t x = w[i - 15], y = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3) + w[i - 7] +
           (std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                  ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const uint32_t rows[] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state_[i] += rows[i];
}

void Sha256::Update(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  size_t held = length_ % 64;
  length_ += bytes.size();
  if (held > 0) {
    size_t n = std::min(bytes.size(), 64 - held);
    std::memcpy(pending_.data() + held, bytes.data(), n);
    bytes = bytes.subspan(n);
    if (held + n < 64) return;
    Block(pending_.data());
  }
  for (; bytes.size() >= 64; bytes = bytes.subspan(64)) Block(bytes.data());
  if (!bytes.empty()) std::memcpy(pending_.data(), bytes.data(), bytes.size());
}

std::string Sha256::Hex() const {
  Sha256 end = *this;
  std::byte padding[72] = {std::byte{0x80}};
  size_t zeros = (119 - length_ % 64) % 64;  // up to the length in the last eight bytes
  for (int i = 0; i < 8; ++i)
    padding[1 + zeros + i] = static_cast<std::byte>(length_ * 8 >> (56 - 8 * i));
  end.Update(std::span(padding, 1 + zeros + 8));
  std::string hex;
  for (uint32_t word : end.state_) hex += fmt::format("{:08x}", word);
  return hex;
}

namespace {
template <class Hash>
std::string OfFile(const std::filesystem::path& path) {
  // Read rather than mapped: a copy that stays in the processor's cache costs less than the faults,
  // and leaves the threads that map the same file alone.
  constexpr size_t kWindow = 1 << 19;
  int file = OpenRegular(path);
  std::vector<std::byte> window(kWindow);
  Hash hash;
  ssize_t count;
  while ((count = read(file, window.data(), kWindow)) > 0 || (count < 0 && errno == EINTR))
    hash.Update(std::span(window).first(static_cast<size_t>(std::max<ssize_t>(count, 0))));
  int failed = count < 0 ? errno : 0;
  close(file);
  if (failed != 0)
    throw Error("file-io",
                fmt::format("cannot read \"{}\": {}", path.string(), std::strerror(failed)));
  return hash.Hex();
}
}  // namespace

std::string Xxh3OfFile(const std::filesystem::path& path) { return OfFile<Xxh3>(path); }
std::string Sha256OfFile(const std::filesystem::path& path) { return OfFile<Sha256>(path); }

}  // namespace mlc
