// Tests that the loops for every supported instruction set are bit-identical to scalar code.
#include "lib/engine/weight_decoding.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "lib/support/half.h"
#include "test/catch.h"

namespace mlc::test {
using namespace engine;
namespace {

TEST_CASE("scale_levels is equal to scaling the elements") {
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
                expected.push_back(-1.0f);  // the end of the output is not overwritten
                CHECK(scaled == expected);
                if (!loops.scale_levels) continue;
                loops.scale_levels(bytes.data(), first, has_sign ? kSignedLevels : kUnsignedLevels,
                                   how, count, levels.data());
                CHECK(levels == expected);
              }
}

TEST_CASE("dot_blocks is equal to a dot product of decoded elements") {
  std::mt19937 random(11);
  constexpr int64_t kElements = 384, kMost = 192;
  std::vector<uint8_t> bytes(kElements / 2);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  std::vector<float> x(kMost), split(kMost);
  for (float& value : x) value = static_cast<float>(random() % 2001) / 1000.0f - 1;
  SplitPairs(x.data(), kMost, split.data());
  std::vector<Half> usual, unusual;
  for (int i = 0; i < kElements / kInBlock; ++i) {
    usual.push_back(Half(static_cast<float>(random() % 4001) / 77.0f - 25));
    // Subnormal scales, scales with subnormal levels, and levels that reach the largest number.
    for (float scale : {6e-8f, -3e-6f, 5e-5f, 0.0f, -8188.0f, 4000.0f})
      unusual.push_back(Half(scale));
  }
  for (const DecodingLoops& loops : AvailableDecodingLoops())
    for (const std::vector<Half>& scales : {usual, unusual})
      for (bool has_sign : {false, true})
        for (bool rounds : {false, true})
          for (int64_t block : {32, 64, 96, 384})
            for (int64_t first : {0, 32, 96, 192})
              for (int64_t count : {32, 64, 160, 192}) {
                if (!loops.dot_blocks) continue;
                INFO(has_sign << rounds << " blocks of " << block << ", " << first << " +"
                              << count);
                double expected = 0, size = 0;
                for (int64_t i = first; i < first + count; ++i) {
                  const int element = bytes[i / 2] >> i % 2 * 4 & 15,
                            value = has_sign && element > 7 ? element - 16 : element;
                  const float scale = static_cast<float>(scales[i / block]);
                  float weight = scale * static_cast<float>(value);
                  if (rounds) weight = static_cast<float>(Half(weight));
                  expected += static_cast<double>(weight) * x[i - first];
                  size += std::fabs(static_cast<double>(weight) * x[i - first]);
                }
                if (std::isinf(size)) continue;  // the order of infinities is unspecified
                const PackedBlocks blocks{bytes.data(), scales.data(), block, has_sign, rounds};
                CHECK(std::fabs(loops.dot_blocks(blocks, first, split.data(), count) - expected) <=
                      1e-6 * size);
              }
}

}  // namespace
}  // namespace mlc::test
