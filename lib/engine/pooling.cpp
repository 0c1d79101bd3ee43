// Pooling of floats, one row of results at a time, so that the innermost loop runs over adjacent
// windows.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "lib/engine/fp32_view.h"
#include "lib/engine/kernels.h"
#include "lib/engine/layout.h"
#include "lib/ops/sliding_window.h"

namespace mlc::engine {

namespace {

// The results [first, last) of a row for which element k of the window lies inside the input.
struct Range {
  int64_t first, last;
};
Range Inside(const Geometry& g, int64_t k) {
  int64_t s = g.stride[2], at = k * g.dilation[2] - g.before[2];
  int64_t first = at >= 0 ? 0 : (-at + s - 1) / s;
  int64_t last = at >= g.in[2] ? 0 : (g.in[2] - 1 - at) / s + 1;
  return {std::min(first, g.out[2]),
          std::clamp<int64_t>(last, std::min(first, g.out[2]), g.out[2])};
}

// Applies row[o] = step(row[o], x[element k of window o]) for all windows of a row of results.
template <class Step>
void PoolRow(const Geometry& g, const float* plane, int64_t o0, int64_t o1, float* row, Step step) {
  auto [b0, e0] = g.Taps(0, o0);
  auto [b1, e1] = g.Taps(1, o1);
  for (int64_t k0 = b0; k0 < e0; ++k0)
    for (int64_t k1 = b1; k1 < e1; ++k1) {
      const float* from = plane + (g.In(0, o0, k0) * g.in[1] + g.In(1, o1, k1)) * g.in[2];
      for (int64_t k = 0; k < g.kernel[2]; ++k) {
        auto [first, last] = Inside(g, k);
        const float* x = from + g.In(2, 0, k);
        if (g.stride[2] == 1)
          for (int64_t o = first; o < last; ++o) row[o] = step(row[o], x[o]);
        else
          for (int64_t o = first; o < last; ++o) row[o] = step(row[o], x[o * g.stride[2]]);
      }
    }
}

// Applies pixel[c] = step(pixel[c], x[c of the pixels in window o]) for contiguous channels.
template <class Step>
void PoolPixel(const Geometry& g, const float* image, int64_t channels, const Geometry::Spatial& o,
               float* pixel, Step step) {
  auto [b0, e0] = g.Taps(0, o[0]);
  auto [b1, e1] = g.Taps(1, o[1]);
  auto [b2, e2] = g.Taps(2, o[2]);
  for (int64_t k0 = b0; k0 < e0; ++k0)
    for (int64_t k1 = b1; k1 < e1; ++k1)
      for (int64_t k2 = b2; k2 < e2; ++k2) {
        const float* x = image + ((g.In(0, o[0], k0) * g.in[1] + g.In(1, o[1], k1)) * g.in[2] +
                                  g.In(2, o[2], k2)) *
                                     channels;
        for (int64_t c = 0; c < channels; ++c) pixel[c] = step(pixel[c], x[c]);
      }
}

// `divisor(window, g, o0, o1, o2)` returns the divisor of a result; null means no division.
template <class Step, class Divisor>
void Pool(EvalContext& context, float start, Step step, Divisor divisor) {
  Tensor tensor = context.in("x");
  ImageLayout layout = ImageLayout::Of(tensor);
  Fp32View x(layout.Laid(tensor));
  Dims out = context.out_dims();
  Fp32Result y(context.out_dtype(), layout.Laid(out));
  Window window = ReadWindow(context);
  Geometry g(window, StaticDims(context.shape("x")), out);
  int64_t in_plane = g.in[0] * g.in[1] * g.in[2];
  // `inner` is the number of channels per pixel of a channels-last image, otherwise 1.
  int64_t outer = layout.channels_last() ? out[0] : out[0] * out[1],
          inner = layout.channels_last() ? out[1] : 1;
  float* to = y.data();
  for (int64_t p = 0; p < outer; ++p)
    for (int64_t o0 = 0; o0 < g.out[0]; ++o0)
      for (int64_t o1 = 0; o1 < g.out[1]; ++o1, to += g.out[2] * inner) {
        std::fill_n(to, g.out[2] * inner, start);
        const float* image = x.data() + p * in_plane * inner;
        if (layout.channels_last())
          for (int64_t o2 = 0; o2 < g.out[2]; ++o2)
            PoolPixel(g, image, inner, {o0, o1, o2}, to + o2 * inner, step);
        else
          PoolRow(g, image, o0, o1, to, step);
        if constexpr (!std::is_null_pointer_v<Divisor>)
          for (int64_t o2 = 0; o2 < g.out[2]; ++o2) {
            float by = divisor(window, g, o0, o1, o2);
            for (int64_t c = 0; c < inner; ++c) to[o2 * inner + c] /= by;
          }
      }
  context.Set(layout.Shown(y.Take()));
}

void MaxPool(EvalContext& context) {
  Pool(
      context, -std::numeric_limits<float>::infinity(),
      [](float a, float b) { return a >= b || a != a ? a : b; }, nullptr);
}

void AvgPool(EvalContext& context) {
  bool exclude = context.Bool("exclude_padding_from_average");
  Pool(
      context, 0.0f, [](float a, float b) { return a + b; },
      [&](const Window& window, const Geometry& g, int64_t o0, int64_t o1, int64_t o2) {
        auto count = [&](int i, int64_t o) {
          if (!exclude)
            return window.PaddedTaps(i - (3 - window.spatial()), g.in[i], g.In(i, o, 0));
          auto [begin, end] = g.Taps(i, o);
          return end - begin;
        };
        return static_cast<float>(count(0, o0) * count(1, o1) * count(2, o2));
      });
}

constexpr KernelRow kRows[] = {
    {.op = "avg_pool", .prepare = OfFloatX<AvgPool>, .any_layout = true, .takes_wide = true},
    {.op = "max_pool",
     .prepare = OfFloatX<MaxPool>,
     .reproducible = true,
     .any_layout = true,
     .takes_wide = true},
};

}  // namespace

std::span<const KernelRow> PoolKernels() { return kRows; }

}  // namespace mlc::engine
