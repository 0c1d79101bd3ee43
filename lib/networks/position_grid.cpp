#include "lib/networks/position_grid.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/support/error.h"

namespace mlc::networks {

namespace {

// The weights of the elements from `first` on for one element of the result.
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;
};

// The cubic convolution kernel of Keys (1981), with his parameter a.
double Cubic(double x, double a) {
  x = std::fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}
double Triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }

// The first and last elements keep their places.
std::vector<Taps> CornerTaps(int64_t from, int64_t to) {
  std::vector<Taps> all;
  const double step = to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0;
  for (int64_t i = 0; i < to; ++i) {
    const double place = step * static_cast<double>(i);
    const auto low = std::min<int64_t>(static_cast<int64_t>(place), from - 1);
    const double rest = place - static_cast<double>(low);
    all.push_back({low, {1 - rest}});
    if (low + 1 < from) all.back().weights.push_back(rest);
  }
  return all;
}

// As in PyTorch, aten/src/ATen/native/cpu/UpSampleKernel.cpp: without antialiasing, taps outside of
// the grid repeat its edge; with it, they are left out and the others are scaled to the sum 1.
std::vector<Taps> TapsOf(int64_t from, int64_t to, Resizing resizing) {
  if (resizing == Resizing::kBilinearCorners) return CornerTaps(from, to);
  const bool cubic = resizing == Resizing::kBicubic || resizing == Resizing::kBicubicAntialias,
             antialias = resizing == Resizing::kBicubicAntialias ||
                         resizing == Resizing::kBilinearAntialias;
  const double ratio = static_cast<double>(from) / static_cast<double>(to);
  const double stretch = antialias ? std::max(ratio, 1.0) : 1.0;
  const double reach = (cubic ? 2 : 1) * stretch;
  auto kernel = [&](double x) {
    return cubic ? Cubic(x / stretch, antialias ? -0.5 : -0.75) : Triangle(x / stretch);
  };
  std::vector<Taps> all;
  for (int64_t i = 0; i < to; ++i) {
    const double center = ratio * (static_cast<double>(i) + 0.5) - 0.5;
    int64_t low = static_cast<int64_t>(std::ceil(center - reach)),
            high = static_cast<int64_t>(std::floor(center + reach));
    Taps taps{.first = std::clamp<int64_t>(low, 0, from - 1)};
    const int64_t last = std::clamp<int64_t>(high, 0, from - 1);
    taps.weights.assign(static_cast<size_t>(last - taps.first + 1), 0);
    double sum = 0;
    for (int64_t j = low; j <= high; ++j) {
      if (antialias && (j < 0 || j >= from)) continue;
      const double weight = kernel(static_cast<double>(j) - center);
      taps.weights[static_cast<size_t>(std::clamp<int64_t>(j, 0, from - 1) - taps.first)] += weight;
      sum += weight;
    }
    for (double& weight : taps.weights) weight /= sum;
    all.push_back(std::move(taps));
  }
  return all;
}

// Resizes dimension 1 of x [outer, from, inner].
std::vector<double> Along(const std::vector<double>& x, int64_t outer, int64_t from, int64_t inner,
                          const std::vector<Taps>& taps) {
  const auto to = static_cast<int64_t>(taps.size());
  std::vector<double> y(static_cast<size_t>(outer * to * inner), 0);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < to; ++i) {
      double* out = y.data() + (o * to + i) * inner;
      const double* in = x.data() + (o * from + taps[i].first) * inner;
      for (const double weight : taps[i].weights) {
        for (int64_t e = 0; e < inner; ++e) out[e] += weight * in[e];
        in += inner;
      }
    }
  return y;
}

}  // namespace

Tensor ResizedGrid(const Tensor& table, GridSize from, GridSize to, Resizing resizing) {
  MLC_CHECK(table.rank() == 2 && table.dims()[0] == from.count(), "a table of {} rows for {} x {}",
            table.rank() ? table.dims()[0] : 0, from.height, from.width);
  if (from == to) return table;
  const int64_t width = table.dims()[1];
  const Pin<float> data = table.data<float>();
  std::vector<double> x(data.begin(), data.end());
  x = Along(x, from.height, from.width, width, TapsOf(from.width, to.width, resizing));
  x = Along(x, 1, from.height, to.width * width, TapsOf(from.height, to.height, resizing));
  return Tensor::Of<float>({to.count(), width}, std::vector<float>(x.begin(), x.end()))
      .ComputedFrom(table);
}

}  // namespace mlc::networks
