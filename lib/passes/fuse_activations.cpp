// Recognises activations that are decomposed into elementary operations.
//
//   y = mul(x, sigmoid(x))                                       ->   y = silu(x)
//   y = mul(x, sigmoid(mul(x, 1.702)))                           ->   y = gelu(x, SIGMOID_APPROX...)
//   y = 0.5 * x * (1 + erf(x / sqrt(2)))                         ->   y = gelu(x, EXACT)
//   y = 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))  ->   y = gelu(x, TANH_APPROX...)
//   y = maximum(x, mul(x, a)),  0 < a < 1                        ->   y = leaky_relu(x, a)
//   y = log(add(exp(x), 1))                                      ->   y = softplus(x)
//   y = real_div(1, add(exp(mul(x, -1)), 1))                     ->   y = sigmoid(x)
//   e = exp(x); y = real_div(e, reduce_sum(e, axis, keep_dims))  ->   y = softmax(x, axis)
//   e = exp(sub(x, reduce_max(x, axis, keep_dims))); likewise
//
// The factors may be associated in any order. Must not fire if an intermediate result has other
// users, if broadcasting is involved, if a constant has a relative error above 1e-3 (exporters
// write sqrt(2) with few digits; coremltools accepts the same), or on a softmax over several axes.
// Numeric effect: the last bits; softplus, sigmoid and softmax no longer overflow.
//
// Operators by name: the parts of activations that it matches, and the activations that it creates.
#include <numbers>

#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr double kTolerance = 1e-3;

bool Near(double a, double b) { return std::fabs(a - b) <= kTolerance * std::fabs(b); }

// Returns x and the factor if value = x * factor (or x / divisor); {null, 1} otherwise.
std::pair<Value*, double> Scaled(Value* value) {
  Value* x = nullptr;
  std::optional<double> factor = value && value->def ? ScaleOf(*value->def, x) : std::nullopt;
  return {x, factor.value_or(1)};
}

// A tree of products, as its constant factor and its other factors.
struct ProductTree {
  double constant = 1;
  std::vector<Value*> factors;
};
void Flatten(Value* value, int depth, ProductTree& product) {
  if (std::optional<double> number = UniformConstant(value)) {
    product.constant *= *number;
    return;
  }
  Operation* mul = DefinedBy(value, "mul");
  if (!mul || depth == 0 || !SoleUser(value) || !mul->value("x") || !mul->value("y")) {
    product.factors.push_back(value);
    return;
  }
  Flatten(mul->value("x"), depth - 1, product);
  Flatten(mul->value("y"), depth - 1, product);
}

// Returns x if value = x + 0.044715 x^3, else null.
Value* TanhCubic(Value* value) {
  Operation* sum = DefinedBy(value, "add");
  if (!sum) return nullptr;
  for (Value* x : {sum->value("x"), sum->value("y")}) {
    auto [cube, factor] = Scaled(OtherOperand(sum, x));
    if (!x || !cube || !Near(factor, 0.044715)) continue;
    if (Operation* pow = DefinedBy(cube, "pow");
        pow && pow->value("x") == x && IsUniform(pow->value("y"), 3))
      return x;
    if (Operation* mul = DefinedBy(cube, "mul")) {
      Value* square = OtherOperand(mul, x);
      Operation* inner = square ? square->def : nullptr;
      if (inner && inner->is("mul") && inner->value("x") == x && inner->value("y") == x) return x;
      if (inner && inner->is("square") && inner->value("x") == x) return x;
    }
  }
  return nullptr;
}

// Returns x if value = 1 + erf(x / sqrt(2)) or its tanh approximation; `mode` is the mode of gelu.
Value* GeluGate(Value* value, const char** mode) {
  Operation* plus = DefinedBy(value, "add");
  if (!plus || !SoleUser(value)) return nullptr;
  auto [one, gate] = SplitConstant(plus);
  if (!one || !IsUniform(one, 1) || !SoleUser(gate)) return nullptr;
  bool exact = DefinedBy(gate, "erf");
  if (!exact && !DefinedBy(gate, "tanh")) return nullptr;
  auto [x, factor] = Scaled(gate->def->value("x"));
  *mode = exact ? "EXACT" : "TANH_APPROXIMATION";
  if (exact) return Near(factor, std::numbers::sqrt2 / 2) ? x : nullptr;
  return x && Near(factor, std::sqrt(2 / std::numbers::pi)) ? TanhCubic(x) : nullptr;
}

bool Gelu(Operation* mul, PassContext& context) {
  if (!mul->is("mul") || !mul->value("x") || !mul->value("y")) return false;
  ProductTree product;
  Flatten(mul->value("x"), 2, product);
  Flatten(mul->value("y"), 2, product);
  if (product.factors.size() != 2 || !Near(product.constant, 0.5)) return false;
  for (int i : {0, 1}) {
    const char* mode = nullptr;
    Value* x = GeluGate(product.factors[i], &mode);
    if (!x || x != product.factors[1 - i] || !(x->type == mul->result()->type)) continue;
    return ReplaceBy(mul, context, "gelu", {{"x", x}, {"mode", mode}});
  }
  return false;
}

bool Silu(Operation* mul, PassContext& context) {
  if (!mul->is("mul")) return false;
  for (Value* gate : {mul->value("x"), mul->value("y")}) {
    Operation* sigmoid = DefinedBy(gate, "sigmoid");
    if (!sigmoid || SoleUser(gate) != mul) continue;
    Value *x = OtherOperand(mul, gate), *argument = sigmoid->value("x");
    if (!x || !(x->type == mul->result()->type)) continue;
    auto [source, factor] = Scaled(argument);
    Builder builder = BuilderBefore(mul, context);
    if (argument == x)
      Replace(mul, builder.Make("silu", {{"x", x}}));
    else if (source == x && Near(factor, 1.702))
      Replace(mul, builder.Make("gelu", {{"x", x}, {"mode", "SIGMOID_APPROXIMATION"}}));
    else
      continue;
    return true;
  }
  return false;
}

bool LeakyRelu(Operation* maximum, PassContext& context) {
  if (!maximum->is("maximum")) return false;
  for (Value* scaled : {maximum->value("x"), maximum->value("y")}) {
    Value* x = OtherOperand(maximum, scaled);
    auto [source, alpha] = Scaled(scaled);
    if (!x || source != x || !(alpha > 0 && alpha < 1) || SoleUser(scaled) != maximum ||
        !(x->type == maximum->result()->type))
      continue;
    return ReplaceBy(maximum, context, "leaky_relu", {{"x", x}, {"alpha", alpha}});
  }
  return false;
}

// Returns x if value = 1 + e^x and it has no other user.
Value* OnePlusExp(Value* value) {
  Operation* plus = DefinedBy(value, "add");
  if (!plus || !SoleUser(value)) return nullptr;
  auto [one, exp] = SplitConstant(plus);
  if (!one || !IsUniform(one, 1) || !DefinedBy(exp, "exp") || !SoleUser(exp)) return nullptr;
  Value* x = exp->def->value("x");
  return x && x->type == value->type ? x : nullptr;
}

bool SoftplusOrSigmoid(Operation* op, PassContext& context) {
  Builder builder = BuilderBefore(op, context);
  if (op->is("log")) {
    Value* x = OnePlusExp(op->value("x"));
    if (x) Replace(op, builder.Make("softplus", {{"x", x}}));
    return x != nullptr;
  }
  Value* denominator = nullptr;
  if (op->is("real_div") && IsUniform(op->value("x"), 1)) denominator = op->value("y");
  if (!denominator) return false;
  auto [x, factor] = Scaled(OnePlusExp(denominator));
  if (!x || factor != -1 || !(x->type == op->result()->type)) return false;
  return Replace(op, builder.Make("sigmoid", {{"x", x}}));
}

bool Softmax(Operation* div, PassContext& context) {
  const Operation* exp = div->is("real_div") ? DefinedBy(div->value("x"), "exp") : nullptr;
  const Operation* sum = exp ? DefinedBy(div->value("y"), "reduce_sum") : nullptr;
  if (!sum || sum->value("x") != exp->result() || !SoleUser(sum->result()) ||
      exp->result()->is_output() || exp->result()->users.size() != 2 ||
      !(div->result()->type == exp->result()->type) ||
      !sum->constant_or_default("keep_dims").Bool(0))
    return false;
  Value* x = exp->value("x");
  auto axes = x ? ConstantAxes(*sum, "axes", x->type.rank()) : std::nullopt;
  if (!axes || axes->size() != 1) return false;
  if (Value* whole = Unshifted(x, *axes)) x = whole;
  return ReplaceBy(div, context, "softmax", {{"x", x}, {"axis", axes->front()}});
}

}  // namespace

extern const PassDef kFuseActivations = {
    "fuse-activations", "fuse decomposed gelu, silu, leaky_relu, softplus, sigmoid and softmax",
    Rewrites<Gelu, Silu, LeakyRelu, SoftplusOrSigmoid, Softmax>};

}  // namespace mlc::passes
