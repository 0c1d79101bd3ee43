#include "lib/networks/mel_spectrogram.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/networks/convolution_1d.h"

namespace mlc::networks {

namespace {

// The mel scale of Slaney's Auditory Toolbox: linear up to 1 kHz, then logarithmic.
constexpr double kLinear = 200.0 / 3, kBreak = 1000, kBreakMel = kBreak / kLinear;
double LogStep() { return std::log(6.4) / 27; }
double ToMel(double hertz) {
  return hertz < kBreak ? hertz / kLinear : kBreakMel + std::log(hertz / kBreak) / LogStep();
}
double ToHertz(double mel) {
  return mel < kBreakMel ? mel * kLinear : kBreak * std::exp((mel - kBreakMel) * LogStep());
}

int64_t Bins(const MelSpectrogram& how) {
  return (how.transform > 0 ? how.transform : how.window) / 2 + 1;
}

// The windowed cosines, then the sines, of all frequencies: [2 * bins, 1, window].
Tensor Waves(const MelSpectrogram& how) {
  const int64_t bins = Bins(how), period = how.transform > 0 ? how.transform : how.window;
  const auto size = static_cast<double>(how.symmetric ? how.window - 1 : how.window);
  std::vector<float> waves;
  for (const bool sine : {false, true})
    for (int64_t k = 0; k < bins; ++k)
      for (int64_t n = 0; n < how.window; ++n) {
        const double hann =
            0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(n) / size);
        const double angle = 2 * std::numbers::pi * static_cast<double>((k * n) % period) /
                             static_cast<double>(period);
        waves.push_back(static_cast<float>(hann * (sine ? -std::sin(angle) : std::cos(angle))));
      }
  return Tensor::Of<float>({2 * bins, 1, how.window}, waves);
}

// Triangles of area 1 over the frequencies: [bands, bins].
Tensor Bands(const MelSpectrogram& how) {
  const int64_t bins = Bins(how);
  const double highest = static_cast<double>(how.rate) / 2;
  std::vector<double> edges;
  for (int64_t i = 0; i < how.bands + 2; ++i)
    edges.push_back(
        ToHertz(ToMel(highest) * static_cast<double>(i) / static_cast<double>(how.bands + 1)));
  std::vector<float> bands;
  for (size_t band = 0; band < static_cast<size_t>(how.bands); ++band)
    for (int64_t k = 0; k < bins; ++k) {
      const double at = highest * static_cast<double>(k) / static_cast<double>(bins - 1),
                   up = (at - edges[band]) / (edges[band + 1] - edges[band]),
                   down = (edges[band + 2] - at) / (edges[band + 2] - edges[band + 1]);
      bands.push_back(static_cast<float>(std::max(0.0, std::min(up, down)) * 2 /
                                         (edges[band + 2] - edges[band])));
    }
  return Tensor::Of<float>({how.bands, bins}, bands);
}

// Returns the power of the bands [1, bands, N / hop + 1] in samples [1, N], padded by half a window.
Value* BandPowers(Builder& b, Value* samples, const MelSpectrogram& how, const char* padding) {
  const int64_t half = how.window / 2, bins = Bins(how);
  Value* x = b.Make(
      "pad", {{"x", Expanded(b, samples, {1})}, {"pad", Ints({half, half})}, {"mode", padding}});
  x = Convolved(b, b.Const(Waves(how), "waves"), nullptr, x,
                {.channels = 2 * bins, .taps = how.window, .stride = how.hop});
  x = Binary(b, "mul", x, x);
  std::vector<Value*> parts = Parts(b, x, {bins, bins}, 1);
  return Binary(b, "matmul", b.Const(Bands(how), "bands"), Binary(b, "add", parts[0], parts[1]));
}

Value* WithoutLastFrame(Builder& b, Value* x) {
  return SliceBetween(b, x, {0, 0, 0}, {0, 0, -1}, {true, true, false});
}

}  // namespace

Value* WhisperMel(Builder& b, Value* samples, const MelSpectrogram& how) {
  constexpr double kFloor = 1e-10, kRange = 8;
  b.SetName("mel");
  Value* x = WithoutLastFrame(b, BandPowers(b, samples, how, "reflect"));
  x = b.Make("log", {{"x", Binary(b, "maximum", x, kFloor)}});
  x = Binary(b, "mul", x, 1 / std::numbers::ln10);
  Value* most = Reduced(b, "reduce_max", x, {1, 2}, true);
  x = Binary(b, "maximum", x, Binary(b, "sub", most, kRange));
  return Binary(b, "mul", Binary(b, "add", x, 4.0), 0.25);
}

Value* ParakeetMel(Builder& b, Value* samples, const MelSpectrogram& how) {
  constexpr double kFloor = 0x1p-24, kLeastDeviation = 1e-5;
  b.SetName("mel");
  if (how.preemphasis != 0) {
    Value* before = b.Make(
        "pad",
        {{"x", samples}, {"pad", Ints({0, 0, 1, 0})}, {"mode", "constant"}, {"constant_val", 0.0}});
    before = SliceBetween(b, before, {0, 0}, {0, -1}, {true, false});
    samples = Binary(b, "sub", samples, Binary(b, "mul", before, how.preemphasis));
  }
  // The transform is centred on the window, so that its phase does not count.
  Value* x = WithoutLastFrame(b, BandPowers(b, samples, how, "constant"));
  x = Transposed(b, b.Make("log", {{"x", Binary(b, "add", x, kFloor)}}), {0, 2, 1});
  x = Binary(b, "sub", x, Reduced(b, "reduce_mean", x, {1}, true));
  Value* squares = Reduced(b, "reduce_sum", Binary(b, "mul", x, x), {1}, true);
  Value* count = b.Cast(Binary(b, "sub", DimOf(b, x, 1), 1), DType::kFp32);
  Value* deviation = b.Make("sqrt", {{"x", Binary(b, "real_div", squares, count)}});
  return Binary(b, "real_div", x, Binary(b, "add", deviation, kLeastDeviation));
}

}  // namespace mlc::networks
