#include "lib/networks/relative_position_buckets.h"

#include "test/catch.h"

using namespace mlc;
using namespace mlc::networks;

namespace {
// Returns the bucket of query - key.
int64_t At(const Tensor& buckets, int64_t distance) {
  return buckets.Int((buckets.size() - 1) / 2 + distance);
}
}  // namespace

// Calculated by hand from the definition: there are 16 buckets on each side, of which 8 are for one
// distance each; the bucket of a larger distance is 8 + floor(log(distance / 8) / log(128 / 8) *
// 8), at most 15.
TEST_CASE("distances: T5's buckets") {
  Tensor buckets = BiasBuckets(200, 32, 128);
  CHECK(buckets.dims() == Dims{399});
  for (auto [distance, bucket] : {std::pair{0, 0},
                                  {1, 1},
                                  {7, 7},
                                  {8, 8},
                                  {11, 8},
                                  {12, 9},
                                  {15, 9},
                                  {16, 10},
                                  {31, 11},
                                  {32, 12},
                                  {64, 14},
                                  {127, 15},
                                  {128, 15},
                                  {199, 15}}) {
    INFO(distance);
    CHECK(At(buckets, distance) == bucket);
    if (distance > 0) CHECK(At(buckets, -distance) == 16 + bucket);
  }
}

// Calculated likewise: buckets up to 8 are for one distance each, then 8 + ceil(log(distance / 8) /
// log(511 / 8) * 7). Distance 0 is in the middle of the table.
TEST_CASE("distances: DeBERTa's buckets") {
  Tensor buckets = DisentangledBuckets(512, 16, 512, 16);
  CHECK(buckets.dims() == Dims{1023});
  for (auto [distance, bucket] : {std::pair{0, 0},
                                  {1, 1},
                                  {8, 8},
                                  {9, 9},
                                  {14, 9},
                                  {15, 10},
                                  {26, 10},
                                  {27, 11},
                                  {90, 13},
                                  {511, 15}}) {
    INFO(distance);
    CHECK(At(buckets, distance) == 16 + bucket);
    CHECK(At(buckets, -distance) == 16 - bucket);
  }
  // Without buckets, each distance has a separate place, up to the size of the table.
  Tensor each = DisentangledBuckets(10, 0, 4, 4);
  CHECK(each.Ints() ==
        std::vector<int64_t>{0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7, 7});
}
