#include "lib/networks/token_mixer.h"

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/networks/feed_forward.h"

namespace mlc::networks {

LayerState::Place LayerState::In(Builder& b) const {
  Value* all = b.Make("read_state", {{"input", state_}});
  Dims end = StaticDims(all->type.shape), begin(end.size(), 0);
  const bool whole = end[0] == 1;
  begin[0] = layer_;
  end[0] = layer_ + 1;
  return {all, Ints(begin), Ints(end), whole};
}

Value* LayerState::Read(Builder& b) const {
  auto [all, begin, end, whole] = In(b);
  if (!whole) all = b.Make("slice_by_index", {{"x", all}, {"begin", begin}, {"end", end}});
  return b.Cast(all, DType::kFp32);
}

void LayerState::Write(Builder& b, Value* data) const {
  auto [all, begin, end, whole] = In(b);
  data = b.Cast(data, DType::kFp16);
  if (!whole)
    data = b.Make("slice_update", {{"x", all}, {"update", data}, {"begin", begin}, {"end", end}});
  b.MakeAll("write_state", {{"input", state_}, {"data", data}});
}

Value* TokenMixerContext::Projected(Role role, Value* x, int64_t out, bool needs_bias) const {
  return mlc::networks::Projected(b, tensors, role, layer, x, out, needs_bias);
}

Value* Convolved(const TokenMixerContext& context, Value* x, bool needs_bias) {
  Builder& b = context.b;
  const int64_t channels = x->type.shape[2].constant(), taps = context.config.recurrent.taps;
  // Keeps the last rows of past and current inputs.
  Sizes begin(b);
  begin.Add(0);
  begin.AddDim(x, 1);
  begin.Add(0);
  x = Concat(b, {context.conv.Read(b), x}, 1);
  context.conv.Write(
      b, b.Make("slice_by_size",
                {{"x", x}, {"begin", begin.Make()}, {"size", Ints({1, taps - 1, channels})}}));
  Value* weight = Expanded(b, context.Weight(Role::kConvolution, {channels, taps}), {1});
  Builder::Args args = {
      {"x", Transposed(b, x, {0, 2, 1})}, {"weight", weight}, {"groups", channels}};
  if (Value* bias = context.tensors.Bias(Role::kConvolution, context.layer, {channels}, needs_bias))
    args.emplace_back("bias", bias);
  return Transposed(b, b.Make("conv", std::move(args)), {0, 2, 1});
}

// y = C * conv(B * x) (Liquid AI 2025, LFM2 technical report, section 2). The rows of the
// projection are those of B, C and x (transformers, models/lfm2/modeling_lfm2.py).
Value* ShortConvolution(const TokenMixerContext& context, Value* x) {
  Builder& b = context.b;
  const int64_t width = context.config.width;
  std::vector<Value*> parts =
      Parts(b, context.Projected(Role::kMixerInput, x, 3 * width), {width, width, width}, 2);
  Value* into = Binary(b, "mul", parts[0], parts[2]);
  Value* y = Binary(b, "mul", parts[1], Convolved(context, into, false));
  return context.Projected(Role::kMixerOutput, y, width);
}

}  // namespace mlc::networks
