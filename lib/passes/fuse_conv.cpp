// Folds per-channel operations after a convolution into its weights and bias.
//
//   y = batch_norm(conv(x, w, b), mean, variance, gamma, beta)
//     ->   y = conv(x, w * s, (b - mean) * s + beta),   s = gamma / sqrt(variance + eps)
//   y = mul(conv(x, w, b), c)      ->   y = conv(x, w * c, b * c)
//   y = add(conv(x, w, b), c)      ->   y = conv(x, w, b + c)
//
// Applies to conv and conv_transpose. Must not fire if the convolution's result has other users or
// is a model output, if bias or scaled weights are not constant, if c is not one number per output
// channel, or, with --precision fp32, if a scaled result is rounded next: sums of integers are
// exact and sums of scaled integers are not, but fp16 cannot represent the former. Numeric effect:
// weights are rounded once after scaling in double; results differ in the last bits.
//
// Operators by name: convolutions and the operations after them.
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

bool IsConv(const Operation* op) { return op && (op->is("conv") || op->is("conv_transpose")); }

// Returns 0 if the number of channels is dynamic.
int64_t OutputChannels(const Operation& conv) {
  const Dim& channels = conv.result()->type.shape[1];
  return channels.is_constant() ? channels.constant() : 0;
}

// Returns one number per output channel for a constant that broadcasts against the convolution's
// result [n, c, spatial...].
std::optional<std::vector<double>> PerChannel(const Tensor& constant, const Operation& conv) {
  if (!constant || !IsFloat(constant.dtype())) return std::nullopt;
  int64_t channels = OutputChannels(conv);
  int rank = conv.result()->type.rank();
  if (constant.rank() > rank) return std::nullopt;
  if (constant.size() == 1) return std::vector<double>(channels, constant.Double(0));
  for (int i = 0; i < constant.rank(); ++i) {
    bool is_channel = i + rank - constant.rank() == 1;
    if (constant.dims()[i] != (is_channel ? channels : 1)) return std::nullopt;
  }
  return constant.size() == channels ? std::optional(constant.Doubles()) : std::nullopt;
}

// Records that a constant was computed from those of an operation, too.
Tensor ComputedFromConstants(Tensor tensor, const Operation& op) {
  for (const Operands& operands : op.args())
    for (const Operand& operand : operands) tensor = tensor.ComputedFrom(operand.constant());
  return tensor;
}

// Replaces `conv` and `after` by y = conv * scale + shift. A null scale is 1.
bool Rebuild(Operation* conv, Operation* after, const std::vector<double>* scale,
             const std::vector<double>& shift, PassContext& context) {
  for (size_t c = 0; c < shift.size(); ++c)
    if (!std::isfinite(shift[c]) || (scale && !std::isfinite((*scale)[c]))) return false;
  Tensor weight = conv->constant("weight"), old_bias = conv->constant("bias");
  if (scale && !weight) return false;
  Builder builder = BuilderBefore(after, context);
  Builder::Args args = ArgsWithout(*conv, {"weight", "bias"});
  std::vector<double> bias(shift);
  for (size_t c = 0; c < bias.size(); ++c)
    bias[c] +=
        (old_bias ? old_bias.Double(static_cast<int64_t>(c)) : 0) * (scale ? (*scale)[c] : 1);
  if (scale) {
    const bool transposed = conv->is("conv_transpose");
    Tensor scaled = transposed ? Tensor() : ScaledRows(weight, *scale);
    if (!scaled)
      scaled =
          ScaledChannels(weight, *scale, transposed, conv->constant_or_default("groups").Int(0));
    scaled = ComputedFromConstants(scaled.ComputedFrom(weight), *after);
    args.emplace_back("weight", builder.Const(scaled, conv->value("weight")->name));
  } else {
    args.emplace_back("weight", conv->arg("weight")[0]);
  }
  const Tensor sums = ComputedFromConstants(
      Tensor::Of<double>({static_cast<int64_t>(bias.size())}, bias).ComputedFrom(old_bias), *after);
  args.emplace_back(
      "bias", builder.Const(sums.Cast(conv->arg("weight")[0].type().dtype),
                            conv->has("bias") && conv->value("bias") ? conv->value("bias")->name
                                                                     : builder.name() + "_bias"));
  return Replace(after, builder.Make(conv->def->name, std::move(args)));
}

bool FuseAfter(Operation* after, PassContext& context) {
  bool is_norm = after->is("batch_norm"), is_sum = after->is("add") || after->is("sub"),
       is_scale = after->is("mul") || after->is("real_div");
  if (!is_norm && !is_sum && !is_scale) return false;
  Value* x = is_norm ? after->value("x") : SplitConstant(after).second;
  if (!x || !IsConv(x->def) || SoleUser(x) != after) return false;
  Operation* conv = x->def;
  const Type weight = conv->arg("weight")[0].type();
  if (!conv->value("weight") || (weight.dtype != DType::kFp32 && weight.dtype != DType::kFp16))
    return false;
  if (OutputChannels(*conv) == 0 || (conv->has("bias") && !conv->constant("bias"))) return false;
  if (!(after->result()->type == x->type)) return false;
  std::vector<double> ones(OutputChannels(*conv), 1.0), zeros(ones.size(), 0.0);

  if (is_norm) {
    Tensor mean = after->constant("mean"), variance = after->constant("variance"),
           gamma = after->constant("gamma"), beta = after->constant("beta");
    if (!mean || !variance || (after->has("gamma") && !gamma) || (after->has("beta") && !beta))
      return false;
    double epsilon = after->constant_or_default("epsilon").Double(0);
    std::vector<double> scale(ones), shift(zeros);
    for (size_t c = 0; c < scale.size(); ++c) {
      int64_t i = static_cast<int64_t>(c);
      scale[c] = (gamma ? gamma.Double(i) : 1) / std::sqrt(variance.Double(i) + epsilon);
      shift[c] = (beta ? beta.Double(i) : 0) - mean.Double(i) * scale[c];
    }
    return Rebuild(conv, after, &scale, shift, context);
  }
  Value* constant = SplitConstant(after).first;
  if ((after->is("real_div") || after->is("sub")) && after->value("y") != constant) {
    if (after->is("real_div")) return false;                                             // c / conv
    std::optional<std::vector<double>> shift = PerChannel(constant->constant(), *conv);  // c - conv
    if (!shift) return false;
    std::vector<double> minus(ones.size(), -1.0);
    return Rebuild(conv, after, &minus, *shift, context);
  }
  std::optional<std::vector<double>> numbers = PerChannel(constant->constant(), *conv);
  const bool exact = context.precision == PassContext::Precision::kFp32;
  if (!numbers || (is_scale && exact && DecidesSteps(after->result()))) return false;
  // Does not fold a scale that scale-small-weights has extracted.
  const bool half = conv->result()->type.dtype == DType::kFp16;
  if (is_scale && (half || !exact) && constant->constant().size() == 1) {
    const double number = std::fabs(constant->constant().Double(0));
    const double limit = after->is("mul") ? kLeastNormal / number : kLeastNormal * number;
    if (limit > kLeastNormal && IsBelow(conv->constant("weight"), limit)) return false;
  }
  if (is_sum) {
    if (after->is("sub"))
      for (double& number : *numbers) number = -number;
    return Rebuild(conv, after, nullptr, *numbers, context);
  }
  if (after->is("real_div"))
    for (double& number : *numbers) number = 1 / number;
  return Rebuild(conv, after, &*numbers, zeros, context);
}

}  // namespace

extern const PassDef kFuseConv = {"fuse-conv", "fold batch_norm, scale and bias into convolutions",
                                  Rewrites<FuseAfter>};

}  // namespace mlc::passes
