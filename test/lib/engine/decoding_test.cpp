// Loops of every instruction set of this processor give the bits of scalar code.
#include "lib/engine/decoding.h"

#include <cstring>
#include <random>
#include <vector>

#include "lib/support/half.h"
#include "test/catch.h"

namespace mlc::test {
namespace {

TEST_CASE("a block's levels are those of its elements") {
  std::mt19937 random(7);
  constexpr int64_t kElements = 600;
  std::vector<uint8_t> bytes(kElements / 2);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  std::vector<float> scales, offsets;
  for (int i = 0; i <= kElements; ++i) {
    scales.push_back(static_cast<float>(random() % 1000) / 777.0f);
    offsets.push_back(static_cast<float>(random() % 16));
  }
  for (const DecodingLoops& loops : AvailableDecodingLoops())
    for (bool has_sign : {false, true})
      for (bool rounds : {false, true})
        for (int64_t block : {1, 5, 16, 24, 32, 1000})
          for (int64_t first : {0, 1, 6, 15})
            for (int64_t count : {1, 2, 15, 16, 17, 31, 33, 500})
              for (int64_t used : {int64_t{0}, block - 1}) {
                INFO(has_sign << rounds << " blocks of " << block << " after " << used << ", "
                              << first << " +" << count);
                std::vector<uint8_t> small(count);
                std::vector<float> expected(count), scaled(count + 1, -1.0f), levels = scaled;
                for (int64_t i = 0; i < count; ++i) {
                  const int element = bytes[(first + i) / 2] >> (first + i) % 2 * 4 & 15,
                            value = has_sign && element > 7 ? element - 16 : element;
                  const int64_t cell = (i + used) / block;
                  small[i] = static_cast<uint8_t>(value);
                  expected[i] = (static_cast<float>(value) - offsets[cell]) * scales[cell];
                  if (rounds) expected[i] = static_cast<float>(Half(expected[i]));
                }
                const Scaling how{scales.data(), offsets.data(), block, used, rounds};
                if (has_sign)
                  loops.scale_signed(reinterpret_cast<const int8_t*>(small.data()), how, count,
                                     scaled.data());
                else
                  loops.scale_unsigned(small.data(), how, count, scaled.data());
                expected.push_back(-1.0f);  // nothing is written behind
                CHECK(scaled == expected);
                if (!loops.scale_levels) continue;
                loops.scale_levels(bytes.data(), first, has_sign ? kSignedLevels : kUnsignedLevels,
                                   how, count, levels.data());
                CHECK(levels == expected);
              }
}

}  // namespace
}  // namespace mlc::test
