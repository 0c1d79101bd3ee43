#include "lib/networks/short_convolution.h"

#include "lib/ir/arithmetic.h"

namespace mlc::networks {

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
