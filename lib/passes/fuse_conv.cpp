// Folds what follows a convolution channel by channel, and a zero pad before it, into the
// convolution.
//
//   y = batch_norm(conv(x, w, b), mean, variance, gamma, beta)   ->   y = conv(x, w * s, (b - mean)
//   * s + beta),  s = gamma / sqrt(variance + eps) y = mul(conv(x, w, b), c)      ->   y = conv(x,
//   w * c, b * c) y = add(conv(x, w, b), c)      ->   y = conv(x, w, b + c) y = conv(pad(x, 0), w,
//   b)      ->   y = conv(x, w, b, pad = custom)          (conv only)
//
// conv and conv_transpose. Must not fire where the convolution's result is used elsewhere or is a
// model output, where weights are not constant, or where c is not one number per output channel.
// Numeric effect: weights are rounded once after scaling in double; results differ in the last
// bits.
#include "lib/passes/match.h"

namespace mlc {
namespace {

bool IsConv(const Operation* op) { return op && (op->is("conv") || op->is("conv_transpose")); }

int64_t OutputChannels(const Operation& conv) {
  const Tensor weight = conv.constant("weight");
  int64_t groups = conv.constant_or_default("groups").Int(0);
  return conv.is("conv") ? weight.dims()[0] : weight.dims()[1] * groups;
}

// One number per output channel from a constant that broadcasts against the convolution's result
// [n, c, spatial...].
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

// weight with every output channel multiplied by its scale; read block by block.
Tensor ScaleWeight(const Tensor& weight, bool transposed, int64_t groups,
                   std::vector<double> scale) {
  int64_t inner = 1;  // elements that share dimensions 0 and 1
  for (int i = 2; i < weight.rank(); ++i) inner *= weight.dims()[i];
  int64_t second = weight.dims()[1], per_group = std::max<int64_t>(weight.dims()[0] / groups, 1);
  auto channel = [=](int64_t element) {
    int64_t pair = element / inner;  // (dimension 0, dimension 1)
    return transposed ? pair / second / per_group * second + pair % second : pair / second;
  };
  DType dtype = weight.dtype();
  auto read = [=, scale = std::move(scale)](int64_t first, int64_t count, std::byte* out) {
    weight.Read(first, count, out);
    int64_t run = transposed ? inner : inner * second;
    for (int64_t i = 0; i < count;) {
      int64_t end = std::min(count, i + run - (first + i) % run);
      double factor = scale[channel(first + i)];
      if (dtype == DType::kFp16) {
        Half* values = reinterpret_cast<Half*>(out);
        for (; i < end; ++i) values[i] = Half(static_cast<double>(values[i]) * factor);
      } else {
        float* values = reinterpret_cast<float*>(out);
        for (; i < end; ++i) values[i] = static_cast<float>(values[i] * factor);
      }
    }
  };
  return Tensor::Lazy(dtype, weight.dims(), std::move(read));
}

// y = conv * scale + shift in place of `conv` and `after`.
void Rebuild(Operation* conv, Operation* after, const std::vector<double>* scale,
             const std::vector<double>& shift, PassContext& context) {
  Builder builder = BuilderBefore(after, context);
  Builder::Args args;
  const std::vector<Param>& params = conv->def->canonical().params;
  for (size_t i = 0; i < conv->args().size(); ++i)
    if (!conv->args()[i].empty() && params[i].name != "weight" && params[i].name != "bias")
      args.emplace_back(params[i].name, conv->args()[i][0]);
  Tensor weight = conv->constant("weight");
  DType dtype = weight.dtype();
  Tensor old_bias = conv->constant("bias");
  std::vector<double> bias(shift);
  for (size_t c = 0; c < bias.size(); ++c)
    bias[c] +=
        (old_bias ? old_bias.Double(static_cast<int64_t>(c)) : 0) * (scale ? (*scale)[c] : 1);
  if (scale) {
    Tensor scaled = ScaleWeight(weight, conv->is("conv_transpose"),
                                conv->constant_or_default("groups").Int(0), *scale);
    args.emplace_back("weight", builder.Const(scaled, conv->value("weight")->name));
  } else {
    args.emplace_back("weight", conv->arg("weight")[0]);
  }
  int64_t channels = static_cast<int64_t>(bias.size());
  args.emplace_back("bias", builder.Const(Tensor::Of<double>({channels}, bias).Cast(dtype),
                                          conv->has("bias") ? conv->value("bias")->name
                                                            : builder.name() + "_bias"));
  ReplaceAllUses(after->result(), builder.Make(conv->def->name, std::move(args)));
  after->block->Erase(after);
}

bool FuseAfter(Operation* after, PassContext& context) {
  bool is_norm = after->is("batch_norm"), is_sum = after->is("add") || after->is("sub"),
       is_scale = after->is("mul") || after->is("real_div");
  if (!is_norm && !is_sum && !is_scale) return false;
  Value* x = is_norm ? after->value("x") : SplitConstant(after).second;
  if (!x || !IsConv(x->def) || SoleUser(x) != after) return false;
  Operation* conv = x->def;
  Tensor weight = conv->constant("weight");
  if (!weight || (weight.dtype() != DType::kFp32 && weight.dtype() != DType::kFp16)) return false;
  if (conv->has("bias") && !conv->constant("bias")) return false;
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
    Rebuild(conv, after, &scale, shift, context);
    return true;
  }
  Value* constant = SplitConstant(after).first;
  if ((after->is("real_div") || after->is("sub")) && after->value("y") != constant) {
    if (after->is("real_div")) return false;                                             // c / conv
    std::optional<std::vector<double>> shift = PerChannel(constant->constant(), *conv);  // c - conv
    if (!shift) return false;
    std::vector<double> minus(ones.size(), -1.0);
    Rebuild(conv, after, &minus, *shift, context);
    return true;
  }
  std::optional<std::vector<double>> numbers = PerChannel(constant->constant(), *conv);
  if (!numbers) return false;
  if (is_sum) {
    if (after->is("sub"))
      for (double& number : *numbers) number = -number;
    Rebuild(conv, after, nullptr, *numbers, context);
  } else {
    for (double& number : *numbers) {
      if (after->is("real_div")) number = 1 / number;
      if (!std::isfinite(number)) return false;
    }
    Rebuild(conv, after, &*numbers, zeros, context);
  }
  return true;
}

bool FusePad(Operation* conv, PassContext& context) {
  if (!conv->is("conv")) return false;
  Operation* pad = DefinedBy(conv->value("x"), "pad");
  if (!pad || SoleUser(pad->result()) != conv) return false;
  Tensor amounts = pad->constant("pad"), value = pad->constant_or_default("constant_val"),
         mode = pad->constant_or_default("mode"), type = conv->constant_or_default("pad_type");
  if (!amounts || !value || value.Double(0) != 0 || mode.strings()[0] != "constant") return false;
  std::string pad_type = type.strings()[0];
  int spatial = conv->result()->type.rank() - 2;
  if (pad_type != "valid" && pad_type != "custom") return false;
  // pad lists (before, after) for the last dimensions; those of batch and channel must be zero.
  std::vector<int64_t> before = amounts.Ints(), total(2 * spatial, 0);
  for (size_t i = 0; i < before.size(); ++i) {
    int64_t place = static_cast<int64_t>(i) - static_cast<int64_t>(before.size()) + 2 * spatial;
    if (before[i] < 0 || (place < 0 && before[i] != 0)) return false;
    if (place >= 0) total[place] = before[i];
  }
  if (pad_type == "custom") {
    Tensor own = conv->constant("pad");
    if (own)
      for (int64_t i = 0; i < own.size(); ++i) total[i] += own.Int(i);
  }
  Builder builder = BuilderBefore(conv, context);
  Builder::Args args;
  const std::vector<Param>& params = conv->def->canonical().params;
  for (size_t i = 0; i < conv->args().size(); ++i)
    if (!conv->args()[i].empty() && params[i].name != "x" && params[i].name != "pad" &&
        params[i].name != "pad_type")
      args.emplace_back(params[i].name, conv->args()[i][0]);
  args.emplace_back("x", pad->value("x"));
  args.emplace_back("pad_type", "custom");
  args.emplace_back("pad", Ints(total));
  ReplaceAllUses(conv->result(), builder.Make("conv", std::move(args)));
  conv->block->Erase(conv);
  return true;
}

bool Run(Program& program, PassContext& context) {
  return RewriteAll(program,
                    [&](Operation* op) { return FuseAfter(op, context) || FusePad(op, context); });
}

}  // namespace

const PassDef kFuseConv = {"fuse-conv",
                           "fold batch_norm, scale, bias and zero padding into convolutions", Run};

}  // namespace mlc
