// lib/support/philox.h - Philox4x32-10: a counter-based random generator, so that any element of a
// stream can be computed independently and is the same on every platform.
//
// J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); the test checks the
// authors' known answers.
#pragma once

#include <array>
#include <cstdint>

namespace mlc {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxCounter Philox(PhiloxCounter c, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {uint32_t(b >> 32) ^ c[1] ^ key[0], uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ key[1],
         uint32_t(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c;
}

// Block `index` of a stream: four 32-bit words.
constexpr PhiloxCounter Philox(uint64_t seed, uint64_t stream, uint64_t index) {
  return Philox({uint32_t(index), uint32_t(index >> 32), uint32_t(stream), uint32_t(stream >> 32)},
                {uint32_t(seed), uint32_t(seed >> 32)});
}

}  // namespace mlc
