// lib/lower/signal.h - Fourier transforms as products with constant sines and cosines, and what
// goes with them.
//
// Complex numbers are pairs of a real and an imaginary part in the last dimension. Tables have at
// most 2^26 elements: Error "resource-limit" else.
#pragma once

#include "lib/ir/builder.h"

namespace mlc {

inline constexpr int64_t kGreatestTable = int64_t{1} << 26;  // elements

// The transform of `length` numbers, cut or padded to `size`.
struct Transform {
  int64_t length, size, bins;
  int64_t in = 2, out = 2;  // 2: complex numbers, 1: real ones
  bool inverse = false;     // with the factor 1 / size
  bool half = false;        // the bins that are left out mirror those given
};

// x [..., length, ..., in] transformed along `axis`, which is not the last one: [..., bins, ...,
// out].
Value* FourierTransform(Builder& b, Value* x, int axis, const Transform& t);

// Frames of signal [batch, length], [batch, length, 1] or (t.in = 2) [batch, length, 2], one every
// `step`, times the window [t.size] (null: 1), transformed: [batch, frames, bins, 2]. t.length is
// t.size.
Value* ShortTimeTransform(Builder& b, Value* signal, Value* window, const Transform& t,
                          int64_t step);

// a - b * cos(x) + c * cos(2 * x) for x from 0 to (almost, when periodic) 2 pi; the factors are
// those of ONNX's function bodies.
struct Cosines {
  double a, b, c;
};
inline constexpr Cosines kHann = {0.5, 0.5, 0}, kHamming = {25.0 / 46, 21.0 / 46, 0},
                         kBlackman = {0.42, 0.5, 0.08};
Tensor WindowOf(const Cosines& cosines, int64_t size, bool periodic);  // fp64 [size]
// The same in fp32 for a size that the run time knows, int32 of one element.
Value* WindowAtRunTime(Builder& b, const Cosines& cosines, Value* size, bool periodic);

// Triangles over the bins of a spectrum of real numbers, spaced evenly in mel between two
// frequencies in hertz, as ONNX's reference has them: fp64 [length / 2 + 1, bands]. Error
// "bad-operand" for frequencies beyond the spectrum.
Tensor MelWeights(int64_t bands, int64_t length, int64_t rate, double lowest, double highest);

}  // namespace mlc
