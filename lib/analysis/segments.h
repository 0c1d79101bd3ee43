// lib/analysis/segments.h - groups the operations of a block into the fewest stretches that one
// device can execute without another device in between.
#pragma once

#include <functional>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::analysis {

// The place of an operation: on the device, elsewhere, or on either, with its neighbours.
enum class Side : uint8_t { kEither, kDevice, kElsewhere };

struct Segment {
  Side side;
  std::vector<const Operation*>
      operations;  // in execution order; nested operations belong to theirs
};

// Returns the segments of the block in execution order. Operations elsewhere are executed as early
// as possible, so that all operations on the device that do not depend on later ones form one
// segment, and so on: no execution order has fewer segments on the device. `side_of` is asked once
// for each operation of the block itself.
std::vector<Segment> SegmentsOf(const Block& block,
                                const std::function<Side(const Operation&)>& side_of);

}  // namespace mlc::analysis
