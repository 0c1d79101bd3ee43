// Pools on floats: one row of results at a time, so that the innermost loop runs over neighbouring
// windows.
#include <algorithm>
#include <limits>

#include "lib/engine/floats.h"
#include "lib/engine/kernels.h"
#include "lib/ops/window.h"

namespace mlc {

namespace {

// Results [first, last) of a row whose window's element k lies inside the input.
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

// row[o] = step(row[o], x[element k of window o]), over all windows of a row of results.
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

template <class Step, class Finish>
void Pool(EvalContext& context, float start, Step step, Finish finish) {
  Floats x(context.in("x"));
  Dims out = context.out_dims();
  FloatResult y(context.out_dtype(), out);
  Window window = ReadWindow(context);
  Geometry g(window, StaticDims(context.shape("x")), out);
  float* row = y.data();
  for (int64_t p = 0; p < out[0] * out[1]; ++p)
    for (int64_t o0 = 0; o0 < g.out[0]; ++o0)
      for (int64_t o1 = 0; o1 < g.out[1]; ++o1, row += g.out[2]) {
        std::fill_n(row, g.out[2], start);
        PoolRow(g, x.data() + p * g.in[0] * g.in[1] * g.in[2], o0, o1, row, step);
        finish(window, g, o0, o1, row);
      }
  context.Set(y.Take());
}

void MaxPool(EvalContext& context) {
  Pool(
      context, -std::numeric_limits<float>::infinity(),
      [](float a, float b) { return a >= b || a != a ? a : b; }, [](auto&&...) {});
}

void AvgPool(EvalContext& context) {
  bool exclude = context.Bool("exclude_padding_from_average");
  Pool(
      context, 0.0f, [](float a, float b) { return a + b; },
      [&](const Window& window, const Geometry& g, int64_t o0, int64_t o1, float* row) {
        auto count = [&](int i, int64_t o) {
          if (!exclude)
            return window.PaddedTaps(i - (3 - window.spatial()), g.in[i], g.In(i, o, 0));
          auto [begin, end] = g.Taps(i, o);
          return end - begin;
        };
        int64_t rows = count(0, o0) * count(1, o1);
        for (int64_t o = 0; o < g.out[2]; ++o) row[o] /= static_cast<float>(rows * count(2, o));
      });
}

template <void (*kRun)(EvalContext&)>
Kernel OfFloatX(const KernelSite& site) {
  return IsKernelFloat(site.context.dtype("x")) ? Kernel(kRun) : Kernel();
}

constexpr KernelRow kRows[] = {
    {"avg_pool", OfFloatX<AvgPool>},
    {"max_pool", OfFloatX<MaxPool>},
};

}  // namespace

std::span<const KernelRow> PoolKernels() { return kRows; }

}  // namespace mlc
