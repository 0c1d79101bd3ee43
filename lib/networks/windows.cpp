#include "lib/networks/windows.h"

#include "lib/ir/arithmetic.h"
#include "lib/networks/picture_network.h"

namespace mlc::networks {

namespace {

int64_t Count(int64_t size, int64_t side) { return (size + side - 1) / side; }

}  // namespace

Value* Windows(Builder& b, Value* map, int64_t side) {
  const int64_t height = SizeAlong(map, 1), width = SizeAlong(map, 2), channels = SizeAlong(map, 3),
                down = Count(height, side), across = Count(width, side);
  const int64_t below = down * side - height, right = across * side - width;
  if (below > 0 || right > 0)
    map = b.Make("pad", {{"x", map},
                         {"pad", Ints({0, 0, 0, below, 0, right, 0, 0})},
                         {"mode", "constant"},
                         {"constant_val", 0.0}});
  map = Transposed(b, WithShape(b, map, {down, side, across, side, channels}), {0, 2, 1, 3, 4});
  return WithShape(b, map, {down * across, side, side, channels});
}

Value* FromWindows(Builder& b, Value* windows, GridSize size) {
  const int64_t side = SizeAlong(windows, 1), channels = SizeAlong(windows, 3),
                down = Count(size.height, side), across = Count(size.width, side);
  Value* map = WithShape(b, windows, {down, across, side, side, channels});
  map =
      WithShape(b, Transposed(b, map, {0, 2, 1, 3, 4}), {1, down * side, across * side, channels});
  if (down * side == size.height && across * side == size.width) return map;
  return SliceOfSize(b, map, {0, 0, 0, 0}, {1, size.height, size.width, channels});
}

}  // namespace mlc::networks
