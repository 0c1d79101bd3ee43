// lib/networks/position_grid.h - tables with one row per patch of a picture, resized for pictures of
// other sizes.
#pragma once

#include <cstdint>

#include "lib/ir/tensor.h"

namespace mlc::networks {

// The numbers of torch.nn.functional.interpolate, with align_corners=False unless said.
enum class Resizing : uint8_t {
  kBicubic,           // a = -0.75
  kBicubicAntialias,  // a = -0.5, and a wider kernel when shrinking
  kBilinear,
  kBilinearAntialias,
  kBilinearCorners,  // align_corners=True
};

struct GridSize {
  int64_t height = 0, width = 0;
  int64_t count() const { return height * width; }
  bool operator==(const GridSize&) const = default;
};

// Resizes a table fp32 [from.count(), W] whose rows are the places of a grid, row by row, to
// [to.count(), W].
Tensor ResizedGrid(const Tensor& table, GridSize from, GridSize to, Resizing resizing);

}  // namespace mlc::networks
