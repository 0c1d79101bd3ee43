#include "lib/networks/token_mixer_table.h"

#include <algorithm>

namespace mlc::networks {

namespace {

int64_t OwnWidth(const DecoderConfig& config) { return config.width; }
int64_t Inner(const DecoderConfig& config) { return config.recurrent.inner; }
// Returns the number of channels of values, keys and queries.
int64_t InnerAndKeys(const DecoderConfig& config) {
  const TokenMixerSizes& sizes = config.recurrent;
  return sizes.inner + 2 * sizes.groups * sizes.state;
}

constexpr TokenMixerRow kRows[] = {
    {TokenMixer::kShortConvolution, ShortConvolution, OwnWidth,
     [](const TokenMixerSizes&) { return Dims(); }},
    {TokenMixer::kMamba, Mamba, Inner,
     [](const TokenMixerSizes& sizes) {
       return Dims{1, 1, sizes.state, sizes.inner};
     }},
    {TokenMixer::kMamba2, Mamba2, InnerAndKeys,
     [](const TokenMixerSizes& sizes) {
       return Dims{sizes.groups, sizes.heads / sizes.groups, sizes.state,
                   sizes.inner / sizes.heads};
     }},
    {TokenMixer::kDeltaNet, DeltaNet, InnerAndKeys,
     [](const TokenMixerSizes& sizes) {
       return Dims{sizes.heads / sizes.groups, sizes.groups, sizes.state,
                   sizes.inner / sizes.heads};
     }},
};

}  // namespace

const TokenMixerRow& RowOf(TokenMixer token_mixer) {
  auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const TokenMixerRow& each) {
    return each.token_mixer == token_mixer;
  });
  MLC_CHECK(row != std::end(kRows), "attention has no row");
  return *row;
}

void CheckTokenMixer(const DecoderConfig& config) {
  // Limits each number, so that products of them are valid tensor sizes.
  constexpr int64_t kMost = 1 << 24;
  const TokenMixerSizes& sizes = config.recurrent;
  auto check = [&](int64_t number, const char* name) {
    if (number < 1 || number > kMost) throw Error("bad-file", "the model has {} {}", number, name);
  };
  if (sizes.taps < 2 || sizes.taps > kMost)
    throw Error("bad-file", "a convolution sees {} tokens, expected 2 or more", sizes.taps);
  const TokenMixer token_mixer = config.token_mixer;
  if (token_mixer == TokenMixer::kShortConvolution) return;
  check(sizes.inner, "channels of a recurrent state");
  check(sizes.state, "numbers per channel of a recurrent state");
  if (token_mixer == TokenMixer::kMamba)
    return check(sizes.rank, "dimensions of a projection to time steps");
  check(sizes.heads, "heads of a recurrent state");
  check(sizes.groups, "groups of heads of a recurrent state");
  if (sizes.heads % sizes.groups != 0)
    throw Error("bad-file", "a recurrent state has {} heads, not a multiple of its {} groups",
                sizes.heads, sizes.groups);
  if (sizes.inner % sizes.heads != 0)
    throw Error("bad-file", "a recurrent state has {} channels, not a multiple of its {} heads",
                sizes.inner, sizes.heads);
}

}  // namespace mlc::networks
