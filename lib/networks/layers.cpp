#include "lib/networks/layers.h"

#include "lib/ir/arithmetic.h"
#include "lib/networks/check_weights.h"
#include "lib/networks/norms.h"

namespace mlc::networks {

Value* Layers::Optional(const std::string& name, Dims dims) {
  Tensor tensor = weights_.find(name);
  if (!tensor) return nullptr;
  if (!dims.empty() && dims[0] < 0 && tensor.rank() > 0) dims[0] = tensor.dims()[0];
  return Make(name, tensor, dims);
}

Value* Layers::Needed(const std::string& name, const Dims& dims) {
  if (Value* value = Optional(name, dims)) return value;
  return Make(name, {}, dims);
}

Value* Layers::Make(const std::string& name, const Tensor& tensor, const Dims& dims) {
  const std::string source = weights_.name(name);
  const Tensor checked = CheckedWeight(tensor, source, dims);
  Value*& made = made_[source];
  if (!made) made = b_.Const(checked, source);
  return made;
}

Value* Layers::Linear(const std::string& name, Value* x, int64_t out) {
  Value* weight = Needed(name + ".weight", {out, x->type.shape.back().constant()});
  Builder::Args args = {{"x", x}, {"weight", weight}};
  if (Value* bias = Optional(name + ".bias", {weight->type.shape[0].constant()}))
    args.emplace_back("bias", bias);
  return b_.Make("linear", std::move(args));
}

Value* Layers::LayerNorm(const std::string& name, Value* x, double epsilon) {
  const int64_t size = x->type.shape.back().constant();
  Value* scale = Needed(name + ".weight", {size});
  return networks::LayerNorm(b_, x, {-1}, scale, Optional(name + ".bias", {size}), epsilon);
}

Value* Layers::RmsNorm(const std::string& name, Value* x, double epsilon, bool scale_adds_one) {
  const int64_t size = x->type.shape.back().constant();
  Value* scale = Needed(name + ".weight", {size});
  if (scale_adds_one) scale = Binary(b_, "add", scale, 1.0);
  return networks::RmsNorm(b_, x, {-1}, scale, Optional(name + ".bias", {size}), epsilon).y;
}

}  // namespace mlc::networks
