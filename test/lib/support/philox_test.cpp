#include "lib/support/philox.h"

#include "test/catch.h"

// From Random123's kat_vectors, lines "philox4x32 10".
TEST_CASE("Philox4x32-10 known answers") {
  using mlc::Philox;
  using Counter = mlc::PhiloxCounter;
  constexpr uint32_t kOnes = 0xFFFFFFFF;
  CHECK(Philox(Counter{0, 0, 0, 0}, {0, 0}) ==
        Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox(Counter{kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
        Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox(Counter{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}
