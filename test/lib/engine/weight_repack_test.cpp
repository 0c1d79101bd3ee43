#include "lib/engine/weight_repack.h"

#include <algorithm>
#include <numeric>

#include "test/catch.h"
#include "test/lib/ir/encodings.h"

namespace mlc::test {
using namespace engine;
namespace {

// Lays out `height` rows of `width` weights with a row distance of width + `more`, and checks each
// position.
void CheckLaying(int64_t height, int64_t width, int64_t more, const RepackPlan& placement) {
  FixedDraw draw;
  const int64_t row = width + more, first = 3;
  Tensor tensor = draw.Floats({first + height * row}, DType::kFp16);
  Pin<float> values = tensor.Cast(DType::kFp32).data<float>();
  std::vector<float> expected(static_cast<size_t>(placement.size), 0.0f);
  for (int64_t i = 0; i < height; ++i)
    for (int64_t j = 0; j < width; ++j)
      expected[placement.rows[i] + placement.columns[j]] = values[first + i * row + j];
  for (int threads : {1, 2, 5}) {
    INFO(height << " rows of " << width << " and " << more << ", threads " << threads);
    std::vector<float> out(expected.size(), 99.0f);
    RepackWeights(Weights::AsTheyAre(tensor), first, row, placement, threads, out.data());
    CHECK(out == expected);
  }
}

std::vector<int32_t> Places(int64_t count, auto&& place) {
  std::vector<int32_t> places(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) places[i] = static_cast<int32_t>(place(i));
  return places;
}

// Below and above the block sizes for reading and transposing, and the size for several threads.
TEST_CASE("Lay writes weights to their positions") {
  for (int64_t height : {1, 7, 8, 9, 16, 41})
    for (int64_t width : {1, 7, 8, 40, 511, 512, 513, 1100})
      for (int64_t more : {0, 5}) {
        const int64_t padded = (height + 15) / 16 * 16;
        // Columns of 16 rows; permuted columns; contiguous rows; single elements.
        CheckLaying(height, width, more,
                    {Places(height, [&](int64_t i) { return i / 16 * 16 * width + i % 16; }),
                     Places(width, [](int64_t j) { return j * 16; }), padded * width});
        CheckLaying(
            height, width, more,
            {Places(height, [&](int64_t i) { return i; }),
             Places(width, [&](int64_t j) { return (width - 1 - j) * height; }), height * width});
        CheckLaying(height, width, more,
                    {Places(height, [&](int64_t i) { return i * 64; }),
                     Places(width, [&](int64_t j) { return j / 64 * 64 * height + j % 64; }),
                     (width + 63) / 64 * 64 * height});
        CheckLaying(height, width, more,
                    {Places(height, [&](int64_t i) { return i * 2; }),
                     Places(width, [&](int64_t j) { return j * height * 2; }), height * width * 2});
      }
}

}  // namespace
}  // namespace mlc::test
