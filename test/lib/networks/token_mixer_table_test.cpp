// Tests that the logits of decoders with each token mixer do not depend on how a prompt is divided
// into calls. (Their values are tested by test/frontends/gguf/recurrent_test.py.)
#include "lib/networks/token_mixer_table.h"

#include <cmath>

#include "test/lib/lower/run_lowered.h"

namespace mlc::test {
using namespace networks;
namespace {

// Every third layer has attention.
DecoderConfig ConfigOf(TokenMixer token_mixer) {
  DecoderConfig config;
  config.token_mixer = token_mixer;
  config.attention_every = 3;
  config.layers = 5;
  config.width = 8;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = config.value_head_dim = config.rotary.size = 4;
  config.feed_forward = 12;
  config.vocabulary = 11;
  config.context = 16;
  config.recurrent = {.taps = 3, .inner = 24, .state = 5, .heads = 6, .groups = 2, .rank = 3};
  return config;
}

Dims DimsOf(const DecoderConfig& config, Role role, Part part) {
  const TokenMixerSizes& sizes = config.recurrent;
  const TokenMixer token_mixer = config.token_mixer;
  const int64_t width = config.width, queries = config.heads * config.head_dim, inner = sizes.inner,
                keys = sizes.groups * sizes.state, channels = RowOf(token_mixer).channels(config);
  const bool has_heads = token_mixer == TokenMixer::kMamba2 || token_mixer == TokenMixer::kDeltaNet;
  if (part == Part::kBias)
    return role == Role::kTimeStep      ? Dims{has_heads ? sizes.heads : inner}
           : role == Role::kConvolution ? Dims{channels}
                                        : Dims{};
  switch (role) {
    case Role::kTokens:
      return {config.vocabulary, width};
    case Role::kOutputNorm:
    case Role::kAttentionNorm:
    case Role::kFeedForwardNorm:
      return {width};
    case Role::kQuery:
      return {queries, width};
    case Role::kKey:
    case Role::kValue:
      return {config.kv_heads * config.head_dim, width};
    case Role::kAttentionOutput:
      return {width, queries};
    case Role::kGate:
    case Role::kUp:
      return {config.feed_forward, width};
    case Role::kDown:
      return {width, config.feed_forward};
    case Role::kQkv:
      return {inner + 2 * keys, width};
    case Role::kMixerInput:
      return {token_mixer == TokenMixer::kShortConvolution ? 3 * width
              : token_mixer == TokenMixer::kMamba          ? 2 * inner
                                                           : 2 * inner + 2 * keys + sizes.heads,
              width};
    case Role::kConvolution:
      return {channels, sizes.taps};
    case Role::kSelection:
      return {sizes.rank + 2 * sizes.state, inner};
    case Role::kTimeStep:
      return {inner, sizes.rank};
    case Role::kAlpha:
    case Role::kBeta:
      return {sizes.heads, width};
    case Role::kDecay:
      if (token_mixer == TokenMixer::kMamba) return {inner, sizes.state};
      return token_mixer == TokenMixer::kMamba2 ? Dims{sizes.heads, 1} : Dims{sizes.heads};
    case Role::kSkip:
      return token_mixer == TokenMixer::kMamba ? Dims{inner} : Dims{sizes.heads, 1};
    case Role::kMixerGate:
      return {inner, width};
    case Role::kMixerNorm:
      if (token_mixer == TokenMixer::kDeltaNet) return {inner / sizes.heads};
      return {sizes.groups, inner / sizes.groups};
    case Role::kMixerOutput:
      return {width, token_mixer == TokenMixer::kShortConvolution ? width : inner};
    default:
      return {};
  }
}

// Returns numbers between -1 and 1 that differ between tensors; rates of decay are negative.
Tensor Made(const DecoderConfig& config, Role role, Part part, int64_t layer) {
  // Delta net layers also have the projection that attention layers have.
  const bool attends = config.TokenMixerOf(layer) == TokenMixer::kAttention;
  if (role == Role::kQkv && (attends || config.token_mixer != TokenMixer::kDeltaNet)) return {};
  const Dims dims = DimsOf(config, role, part);
  if (dims.empty()) return {};
  std::vector<float> numbers;
  for (int64_t i = 0; i < ElementCount(dims); ++i) {
    double number = std::sin(1.7 * static_cast<double>(i + 1) + static_cast<double>(role) +
                             3.1 * static_cast<double>(layer) + static_cast<double>(part));
    numbers.push_back(static_cast<float>(role == Role::kDecay ? -std::fabs(number) : number));
  }
  return F32(dims, numbers);
}

TEST_CASE("networks: logits do not depend on the division of a prompt into calls", "[mixers]") {
  for (TokenMixer token_mixer : {TokenMixer::kShortConvolution, TokenMixer::kMamba,
                                 TokenMixer::kMamba2, TokenMixer::kDeltaNet}) {
    const DecoderConfig config = ConfigOf(token_mixer);
    const DecoderWeights weights{
        .find = [&](Role role, Part part,
                    int64_t layer) { return Made(config, role, part, layer); },
        .name =
            [](Role role, Part, int64_t layer) {
              return fmt::format("tensor_{}_{}", static_cast<int>(role), layer);
            }};
    Diagnostics diagnostics;
    Program program = BuildDecoder(config, weights, {16}, diagnostics);
    Verify(program);
    engine::Engine engine(*program.functions[0],
                          {.arithmetic = engine::EngineOptions::Arithmetic::kExact});
    auto logits = [&](const std::vector<int64_t>& calls) {
      engine::States states;
      std::vector<double> all;
      int64_t past = 0;
      for (int64_t count : calls) {
        std::vector<int32_t> ids;
        for (int64_t i = 0; i < count; ++i)
          ids.push_back(static_cast<int32_t>((past + i) * 7 % 11));
        past += count;
        std::map<std::string, Tensor> outputs =
            engine.Run({{"inputIds", I32({1, count}, ids)},
                        {"causalMask", Tensor::Full(DType::kFp16, {1, 1, count, past}, 0)}},
                       states);
        for (double number : outputs.at("logits").Doubles()) all.push_back(number);
      }
      return all;
    };
    const std::vector<double> at_once = logits({9});
    for (const std::vector<int64_t>& calls :
         {std::vector<int64_t>{3, 5, 1}, {1, 1, 7}, {8, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
      const std::vector<double> divided = logits(calls);
      REQUIRE(divided.size() == at_once.size());
      double most = 0, largest = 0;
      for (size_t i = 0; i < divided.size(); ++i) {
        most = std::max(most, std::fabs(divided[i] - at_once[i]));
        largest = std::max(largest, std::fabs(at_once[i]));
      }
      CHECK(largest > 0.1);
      CHECK(most < 1e-5 * largest);
    }
  }
}

}  // namespace
}  // namespace mlc::test
