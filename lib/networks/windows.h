// lib/networks/windows.h - maps as square windows, in which layers attend.
#pragma once

#include "lib/ir/builder.h"
#include "lib/networks/position_grid.h"

namespace mlc::networks {

// Returns the windows [n, side, side, C] of a map [1, H, W, C], row by row; zeros fill those at the
// bottom and at the right.
Value* Windows(Builder& b, Value* map, int64_t side);
// Returns the map [1, size.height, size.width, C] that such windows cover.
Value* FromWindows(Builder& b, Value* windows, GridSize size);

}  // namespace mlc::networks
