#include "lib/support/hash.h"

#include <fmt/format.h>
#include <unistd.h>
#ifdef __APPLE__
#include <CommonCrypto/CommonDigest.h>
#else
#include <openssl/evp.h>
#endif
#include <unistd.h>
#ifdef MLC_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>  // replaces xxhash.h and renames its functions
#else
#include <xxhash.h>
#endif

#include <algorithm>
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

namespace {
std::string HexOf(std::span<const unsigned char> digest) {
  std::string hex;
  for (unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}
}  // namespace

#ifdef __APPLE__
struct Sha::State {
  int bits;
  CC_SHA1_CTX sha1;
  CC_SHA256_CTX sha256;
};
Sha::Sha(int bits) : state_(new State{bits, {}, {}}) {
  CC_SHA1_Init(&state_->sha1);
  CC_SHA256_Init(&state_->sha256);
}
void Sha::Free::operator()(State* state) const { delete state; }
void Sha::Update(std::span<const std::byte> bytes) {
  constexpr size_t kMost = 1 << 30;  // CommonCrypto lengths have 32 bits
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(kMost, bytes.size()))) {
    auto size = static_cast<CC_LONG>(std::min(kMost, bytes.size()));
    if (state_->bits == 160)
      CC_SHA1_Update(&state_->sha1, bytes.data(), size);
    else
      CC_SHA256_Update(&state_->sha256, bytes.data(), size);
  }
}
std::string Sha::Hex() const {
  State end = *state_;
  unsigned char digest[CC_SHA256_DIGEST_LENGTH];
  if (end.bits == 160)
    CC_SHA1_Final(digest, &end.sha1);
  else
    CC_SHA256_Final(digest, &end.sha256);
  return HexOf(std::span(digest, static_cast<size_t>(end.bits / 8)));
}
#else
struct Sha::State {
  EVP_MD_CTX* context;
};
Sha::Sha(int bits) : state_(new State{EVP_MD_CTX_new()}) {
  if (!state_->context) throw std::bad_alloc();
  MLC_CHECK(EVP_DigestInit_ex(state_->context, bits == 160 ? EVP_sha1() : EVP_sha256(), nullptr),
            "OpenSSL does not provide SHA with {} bits", bits);
}
void Sha::Free::operator()(State* state) const {
  EVP_MD_CTX_free(state->context);
  delete state;
}
void Sha::Update(std::span<const std::byte> bytes) {
  MLC_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()), "SHA");
}
std::string Sha::Hex() const {
  Sha end(EVP_MD_CTX_get_size(state_->context) * 8);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  MLC_CHECK(EVP_MD_CTX_copy_ex(end.state_->context, state_->context) &&
                EVP_DigestFinal_ex(end.state_->context, digest, &size),
            "SHA");
  return HexOf(std::span(digest, size));
}
#endif

namespace {
template <class Hash>
std::string OfFile(const std::filesystem::path& path) {
  // Read rather than mapped: copying through a buffer that stays in the processor's cache is
  // cheaper than page faults, and does not contend with threads that map the same file.
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
    throw Error("file-io", "cannot read \"{}\": {}", path.string(), std::strerror(failed));
  return hash.Hex();
}
}  // namespace

std::string Xxh3OfFile(const std::filesystem::path& path) { return OfFile<Xxh3>(path); }
std::string Sha1OfFile(const std::filesystem::path& path) { return OfFile<Sha1>(path); }
std::string Sha256OfFile(const std::filesystem::path& path) { return OfFile<Sha256>(path); }

}  // namespace mlc
