#include "lib/networks/mixers.h"

#include <algorithm>

#include "lib/networks/delta_net.h"
#include "lib/networks/mamba.h"
#include "lib/networks/short_convolution.h"

namespace mlc {

namespace {

int64_t Width(const DecoderConfig& config) { return config.width; }
int64_t Inner(const DecoderConfig& config) { return config.recurrent.inner; }
// What is written, with its keys and queries.
int64_t InnerAndKeys(const DecoderConfig& config) {
  const MixerSizes& sizes = config.recurrent;
  return sizes.inner + 2 * sizes.groups * sizes.state;
}

constexpr MixerRow kRows[] = {
    {Mixer::kShortConvolution, ShortConvolution, Width, [](const MixerSizes&) { return Dims(); }},
    {Mixer::kMamba, Mamba, Inner,
     [](const MixerSizes& sizes) {
       return Dims{1, 1, sizes.state, sizes.inner};
     }},
    {Mixer::kMamba2, Mamba2, InnerAndKeys,
     [](const MixerSizes& sizes) {
       return Dims{sizes.groups, sizes.heads / sizes.groups, sizes.state,
                   sizes.inner / sizes.heads};
     }},
    {Mixer::kDeltaNet, DeltaNet, InnerAndKeys,
     [](const MixerSizes& sizes) {
       return Dims{sizes.heads / sizes.groups, sizes.groups, sizes.state,
                   sizes.inner / sizes.heads};
     }},
};

}  // namespace

const MixerRow& RowOf(Mixer mixer) {
  auto row = std::find_if(std::begin(kRows), std::end(kRows),
                          [&](const MixerRow& each) { return each.mixer == mixer; });
  MLC_CHECK(row != std::end(kRows), "attention has no row");
  return *row;
}

void CheckMixer(const DecoderConfig& config) {
  // Of one number, and of the products that become sizes of tensors.
  constexpr int64_t kMost = 1 << 24;
  const MixerSizes& sizes = config.recurrent;
  auto fail = [](const std::string& text) { throw Error("bad-file", text); };
  auto check = [&](int64_t number, const char* name) {
    if (number < 1 || number > kMost) fail(fmt::format("the model has {} {}", number, name));
  };
  if (sizes.taps < 2 || sizes.taps > kMost)
    fail(fmt::format("a convolution sees {} tokens, expected 2 or more", sizes.taps));
  const Mixer mixer = config.mixer;
  if (mixer == Mixer::kShortConvolution) return;
  check(sizes.inner, "channels of a recurrent state");
  check(sizes.state, "numbers of a channel in a recurrent state");
  if (mixer == Mixer::kMamba) return check(sizes.rank, "elements of a projection to time steps");
  check(sizes.heads, "heads of a recurrent state");
  check(sizes.groups, "groups of heads of a recurrent state");
  if (sizes.heads % sizes.groups != 0)
    fail(fmt::format("{} heads of a recurrent state cannot be {} groups", sizes.heads,
                     sizes.groups));
  if (sizes.inner % sizes.heads != 0)
    fail(fmt::format("{} channels of a recurrent state cannot be {} heads", sizes.inner,
                     sizes.heads));
}

}  // namespace mlc
