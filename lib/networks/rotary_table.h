// lib/networks/rotary_table.h - the angles of rotary position embedding by position, with the ways in
// which models reach beyond the context that they were trained for.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

enum class RotaryScaling : uint8_t { kNone, kLinear, kYarn };

struct Rotary {
  bool used = true;
  bool interleaved = false;  // pairs are neighbours; else one of each half
  int64_t size = 0;          // elements of a head that turn, from the first on
  double base = 10000;
  RotaryScaling scaling = RotaryScaling::kNone;
  double factor = 1;             // of the context
  int64_t original_context = 0;  // kYarn: that of the training
  double fast = 32, slow = 1;    // kYarn: turns in it, above and below which ...
  double magnitude = 1;          // of cosine and sine
  // Of layers that have a window, to which no `factors` hold then; base 0: they are as others.
  double local_base = 0;
  RotaryScaling local_scaling = RotaryScaling::kNone;
  double local_magnitude = 1;
};

struct RotaryTable {
  Tensor cosine, sine;  // fp32 [positions, size / 2]
};
// `factors` divide frequencies, one each (empty: none). `local`: of layers that have a window.
RotaryTable MakeRotaryTable(const Rotary& rotary, int64_t positions,
                            const std::vector<double>& factors, bool local);

}  // namespace mlc
