// Recognises spelled-out activations.
//
//   y = mul(x, sigmoid(x))                                       ->   y = silu(x)
//   y = mul(x, sigmoid(mul(x, 1.702)))                           ->   y = gelu(x,
//   SIGMOID_APPROXIMATION) y = 0.5 * x * (1 + erf(x / sqrt(2)))                         ->   y =
//   gelu(x, EXACT) y = 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))  ->   y = gelu(x,
//   TANH_APPROXIMATION)
//
// The factors may be associated in any way. Must not fire where a part is used elsewhere, or where
// a constant is off by more than 1e-3 of itself (exporters write sqrt(2) with few digits;
// coremltools accepts the same). Numeric effect: last bits.
#include <numbers>

#include "lib/passes/match.h"

namespace mlc {
namespace {

constexpr double kTolerance = 1e-3;

// Multiplies up from `value` through products that nobody else uses: the constant factor, the other
// factors, and the last product.
struct Product {
  double constant = 1;
  std::vector<Value*> factors;  // beside `value`
  Operation* root = nullptr;    // null: value is no factor of anything
};
void AddFactor(Value* value, Product& product) {
  if (std::optional<double> number = UniformConstant(value)) {
    product.constant *= *number;
    return;
  }
  if (Operation* inner = DefinedBy(value, "mul"); inner && SoleUser(value)) {
    auto [constant, other] = SplitConstant(inner);
    if (std::optional<double> number = UniformConstant(constant); constant && number) {
      product.constant *= *number;
      product.factors.push_back(other);
      return;
    }
  }
  product.factors.push_back(value);
}
Product ProductOf(Value* value) {
  Product product;
  while (Operation* user = SoleUser(value, "mul")) {
    if (user->value("x") == user->value("y")) break;
    AddFactor(OtherOperand(user, value), product);
    product.root = user;
    value = user->result();
    if (product.factors.size() >= 1 && std::fabs(product.constant - 0.5) < kTolerance) break;
  }
  return product;
}

// x and the factor when value = x * factor (or x / divisor); {null, 1} otherwise.
std::pair<Value*, double> Scaled(Value* value) {
  if (Operation* mul = DefinedBy(value, "mul")) {
    auto [constant, x] = SplitConstant(mul);
    if (std::optional<double> number = UniformConstant(constant)) return {x, *number};
  }
  if (Operation* div = DefinedBy(value, "real_div"))
    if (std::optional<double> number = UniformConstant(div->value("y")); number && *number != 0)
      return {div->value("x"), 1 / *number};
  return {nullptr, 1};
}

bool Near(double a, double b) { return std::fabs(a - b) <= kTolerance * std::fabs(b); }

// x when value = x + 0.044715 x^3, else null.
Value* TanhCubic(Value* value) {
  Operation* sum = DefinedBy(value, "add");
  if (!sum) return nullptr;
  for (Value* x : {sum->value("x"), sum->value("y")}) {
    auto [cube, factor] = Scaled(OtherOperand(sum, x));
    if (!cube || !Near(factor, 0.044715)) continue;
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

bool Replace(Operation* root, Value* x, const char* mode, PassContext& context) {
  if (!(root->result()->type == x->type)) return false;
  Builder builder = BuilderBefore(root, context);
  Value* made =
      mode ? builder.Make("gelu", {{"x", x}, {"mode", mode}}) : builder.Make("silu", {{"x", x}});
  ReplaceAllUses(root->result(), made);
  root->block->Erase(root);
  return true;
}

bool Gelu(Operation* op, PassContext& context) {
  bool exact = op->is("erf");
  if (!exact && !op->is("tanh")) return false;
  Value* x = nullptr;
  auto [source, factor] = Scaled(op->value("x"));
  if (exact && source && Near(factor, std::numbers::sqrt2 / 2)) x = source;
  if (!exact && source && Near(factor, std::sqrt(2 / std::numbers::pi))) x = TanhCubic(source);
  if (!x) return false;
  Operation* plus = SoleUser(op->result(), "add");
  if (!plus || !IsUniform(OtherOperand(plus, op->result()), 1)) return false;
  Product product = ProductOf(plus->result());
  if (!product.root || !Near(product.constant, 0.5) || product.factors != std::vector<Value*>{x})
    return false;
  // The root may come before some users of its parts only if it stays where it is; it does.
  return Replace(product.root, x, exact ? "EXACT" : "TANH_APPROXIMATION", context);
}

bool Silu(Operation* mul, PassContext& context) {
  if (!mul->is("mul")) return false;
  for (Value* gate : {mul->value("x"), mul->value("y")}) {
    Operation* sigmoid = DefinedBy(gate, "sigmoid");
    if (!sigmoid || SoleUser(gate) != mul) continue;
    Value *x = OtherOperand(mul, gate), *argument = sigmoid->value("x");
    if (argument == x) return Replace(mul, x, nullptr, context);
    auto [source, factor] = Scaled(argument);
    if (source == x && x && Near(factor, 1.702))
      return Replace(mul, x, "SIGMOID_APPROXIMATION", context);
  }
  return false;
}

bool Run(Program& program, PassContext& context) {
  // Gelu erases an operation after the visited one, so it works on a list.
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (std::unique_ptr<Function>& function : program.functions) {
      std::vector<Operation*> starts;
      ForEachOperation(*function, [&](Operation* op) {
        if (op->is("erf") || op->is("tanh")) starts.push_back(op);
      });
      for (Operation* op : starts) again |= Gelu(op, context);
    }
    changed |= again;
  }
  changed |= RewriteAll(program, [&](Operation* op) { return Silu(op, context); });
  return changed;
}

}  // namespace

const PassDef kFuseActivations = {"fuse-activations", "recognise spelled-out gelu and silu", Run};

}  // namespace mlc
