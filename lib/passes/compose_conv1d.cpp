// Turns a 2-D convolution over one spatial dimension into a 1-D convolution.
//
//   a = expand_dims(x, [2]); b = conv(a: [n, c, 1, t], w: [o, c, 1, k]); y = squeeze(b, [2])
//     ->   y = conv(x, w: [o, c, k])
//
// expand_dims and squeeze may be equivalent reshapes, and the dimension of 1 may be the last. Must
// not fire if the kernel or the padding has more than one element in that dimension, if the weight
// is not constant, or if an intermediate result has other users. No numeric effect.
//
// Operators by name: the conv that it matches and the conv that it creates.
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

// Returns whether `value` [n, c, a, b] is `flat` [n, c, t] with an additional dimension of 1 at
// `axis`.
bool IsExpanded(const Type& value, const Type& flat, int axis) {
  if (value.rank() != 4 || flat.rank() != 3 || !(value.shape[axis] == Dim(1))) return false;
  Shape shape = value.shape;
  shape.erase(shape.begin() + axis);
  return shape == flat.shape;
}

// Returns the entries of `numbers`, which has `per` for each of two dimensions, for the remaining
// dimension.
Tensor Kept(const Tensor& numbers, int axis, int per) {
  std::vector<int64_t> all = numbers.Ints();
  all.erase(all.begin() + (axis - 2) * per, all.begin() + (axis - 1) * per);
  return Ints(all);
}

bool Compose(Operation* squeeze, PassContext& context) {
  if (!Reshapes(*squeeze)) return false;
  Operation* conv = DefinedBy(squeeze->value("x"), "conv");
  if (!conv || !SoleUser(conv->result()) || !conv->constant("weight")) return false;
  Value* expanded = conv->value("x");
  if (!expanded || !expanded->def || !Reshapes(*expanded->def)) return false;
  Value* x = expanded->def->value("x");
  Tensor weight = conv->constant("weight");
  for (int axis : {2, 3}) {
    if (weight.rank() != 4 || weight.dims()[axis] != 1 ||
        !IsExpanded(expanded->type, x->type, axis) ||
        !IsExpanded(conv->result()->type, squeeze->result()->type, axis))
      continue;
    Tensor pad = conv->constant("pad");
    if (pad && (pad.size() != 4 || pad.Int(2 * (axis - 2)) || pad.Int(2 * (axis - 2) + 1)))
      continue;
    Builder builder = BuilderBefore(squeeze, context);
    Builder::Args args = ArgsWithout(*conv, {"x", "weight", "strides", "dilations", "pad"});
    Dims dims = weight.dims();
    dims.erase(dims.begin() + axis);
    args.emplace_back("x", x);
    args.emplace_back("weight", builder.Const(weight.Reshaped(dims), conv->name + "_weight"));
    for (std::string_view param : {"strides", "dilations"})
      if (conv->has(param)) args.emplace_back(param, Kept(conv->constant(param), axis, 1));
    if (pad) args.emplace_back("pad", Kept(pad, axis, 2));
    return Replace(squeeze, builder.Make("conv", std::move(args)));
  }
  return false;
}

}  // namespace

extern const PassDef kComposeConv1d = {
    "compose-conv1d", "turn 2-D convolutions over one dimension into 1-D convolutions",
    Rewrites<Compose>};

}  // namespace mlc::passes
