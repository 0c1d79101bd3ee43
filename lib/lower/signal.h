// lib/lower/signal.h - Fourier transforms as products with constant sine and cosine tables, and
// related functions.
//
// Complex numbers are stored as pairs of real and imaginary part in the last dimension. Tables have
// at most 2^26 elements: Error "resource-limit" beyond.
#pragma once

#include "lib/ir/builder.h"

namespace mlc::lower {

inline constexpr int64_t kGreatestTable = int64_t{1} << 26;  // elements

// The transform of `length` numbers, truncated or padded to `size`.
struct Transform {
  int64_t length, size, bins;
  int64_t in = 2, out = 2;  // 2: complex, 1: real
  bool inverse = false;     // includes the factor 1 / size
  bool half = false;        // one-sided spectrum: omitted bins are conjugates of those present
};

// Transforms x [..., length, ..., in] along `axis`, which is not the last: [..., bins, ..., out].
Value* FourierTransform(Builder& b, Value* x, int axis, const Transform& t);

// Short-time Fourier transform of a signal [batch, length], [batch, length, 1] or (t.in = 2)
// [batch, length, 2], with frames at a distance of `step`, multiplied by window [t.size] (null: 1):
// [batch, frames, bins, 2]. t.length equals t.size.
Value* ShortTimeTransform(Builder& b, Value* signal, Value* window, const Transform& t,
                          int64_t step);

// a - b * cos(x) + c * cos(2 * x) for x from 0 to 2 pi (exclusive if periodic); the coefficients
// are those of ONNX's function bodies.
struct Cosines {
  double a, b, c;
};
inline constexpr Cosines kHann = {0.5, 0.5, 0}, kHamming = {25.0 / 46, 21.0 / 46, 0},
                         kBlackman = {0.42, 0.5, 0.08};
Tensor WindowOf(const Cosines& cosines, int64_t size, bool periodic);  // fp64 [size]
// The same in fp32 for a run-time size (int32, one element).
Value* WindowAtRunTime(Builder& b, const Cosines& cosines, Value* size, bool periodic);

// Triangular filters over the bins of a real spectrum, spaced evenly on the mel scale between two
// frequencies in hertz, as in ONNX's reference implementation: fp64 [length / 2 + 1, bands]. Error
// "bad-operand" for frequencies beyond the spectrum.
Tensor MelWeights(int64_t bands, int64_t length, int64_t rate, double lowest, double highest);

}  // namespace mlc::lower
