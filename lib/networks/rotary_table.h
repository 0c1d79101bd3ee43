// lib/networks/rotary_table.h - the angles of rotary position embedding by position, and their
// scaling for contexts longer than in training.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc::networks {

enum class RotaryScaling : uint8_t { kNone, kLinear, kYarn };

struct Rotary {
  bool used = true;
  bool interleaved = false;  // a pair is two adjacent elements; otherwise one of each half
  int64_t size = 0;          // number of rotated dimensions of a head, which come first
  double base = 10000;
  RotaryScaling scaling = RotaryScaling::kNone;
  double factor = 1;             // the extension factor of the context
  int64_t original_context = 0;  // kYarn: the training context
  double fast = 32, slow = 1;    // kYarn: beta_fast and beta_slow
  double magnitude = 1;          // factor of cosine and sine
  // Base for layers with a window, which then ignore `factors`; 0: same as for other layers.
  double local_base = 0;
  RotaryScaling local_scaling = RotaryScaling::kNone;
  double local_magnitude = 1;
};

struct RotaryTable {
  Tensor cosine, sine;  // fp32 [positions, size / 2]
};
// `factors` are divisors of the frequencies (empty: none). `local` selects layers with a window.
RotaryTable MakeRotaryTable(const Rotary& rotary, int64_t positions,
                            const std::vector<double>& factors, bool local);

}  // namespace mlc::networks
