// lib/lower/signal.h - Fourier transforms as products with constant sine and cosine tables, and
// related functions.
//
// Complex numbers are stored as pairs of real and imaginary part in the last dimension. Tables have
// at most 2^26 elements: Error "resource-limit" beyond.
#pragma once

#include <optional>

#include "lib/ir/builder.h"

namespace mlc::lower {

inline constexpr int64_t kGreatestTable = int64_t{1} << 26;  // elements

// The discrete Fourier transform of x along `axis`, which is not the last dimension: [..., length,
// ..., 1 or 2] to [..., bins, ..., 2]. The signal is truncated or padded to `size` numbers
// (default: all). `onesided` omits the bins that are conjugates of others; an inverse transform
// then gives real numbers, [..., size, ..., 1]. The inverse includes the factor 1 / size. Error
// "bad-operand" for another last dimension, "dynamic-shape" if the length is not constant,
// "empty-tensor".
Value* DiscreteTransform(Builder& b, Value* x, int axis, std::optional<int64_t> size, bool inverse,
                         bool onesided);

// Short-time Fourier transform of a signal [batch, length], [batch, length, 1] or, of complex
// numbers, [batch, length, 2], with frames at a distance of `step`, multiplied by a window, a
// vector (null: 1): [batch, frames, bins, 2]. `length` is that of the frames (default: of the
// window). Error "bad-operand" for other shapes, "unsupported-attribute" for the one-sided
// transform of complex numbers.
Value* ShortTimeTransform(Builder& b, Value* signal, Value* window, std::optional<int64_t> length,
                          int64_t step, bool onesided);

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
