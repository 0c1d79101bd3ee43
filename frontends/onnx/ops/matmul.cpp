// Matrix products: Gemm, MatMul, Einsum.
#include <array>
#include <cmath>

#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/lower/einsum.h"
#include "lib/lower/matrix_products.h"

namespace mlc::onnx {

namespace {

Value* Scale(Node& node, Value* value, double factor) {
  return factor == 1 ? value : Binary(node, "mul", value, factor);
}

void Gemm(Node& node) {
  if (node.rank(0) != 2 || node.rank(1) != 2)
    node.Fail("bad-operand", "the inputs have {} and {} dimensions, expected 2", node.rank(0),
              node.rank(1));
  bool transpose_a = node.Int("transA", 0) != 0, transpose_b = node.Int("transB", 0) != 0;
  double alpha = node.Float("alpha", 1.0), beta = node.Float("beta", 1.0);
  node.Ignore({"broadcast"});  // exists before opset 7; later opsets always broadcast C
  Value *a = node.In(0), *b = node.In(1), *c = node.Optional(2);
  if (!IsFloat(a->type.dtype) && (alpha != std::floor(alpha) || beta != std::floor(beta)))
    node.Unsupported("alpha", "alpha or beta is not an integer, but the inputs are");
  // A constant factor is folded into a constant operand.
  if (b->is_constant()) b = Scale(node, b, alpha);
  Value* product = node.Make(
      "matmul", {{"x", a}, {"y", b}, {"transpose_x", transpose_a}, {"transpose_y", transpose_b}});
  if (!b->is_constant()) product = Scale(node, product, alpha);
  if (c && beta != 0) {
    Value* sum = Binary(node, "add", product, Scale(node, c, beta));
    product = OfShape(node, sum, product, "the product");
  }
  node.Set(product);
}

void MatMul(Node& node) { node.Set(lower::MatrixProduct(node, node.In(0), node.In(1))); }

// Sizes of one label on a diagonal are required to be equal.
void Einsum(Node& node) {
  std::vector<Value*> operands;
  for (int i = 0; i < node.inputs(); ++i) operands.push_back(node.In(i));
  const auto equal = [&](Value*& x, int i, Value*& y, int j, const std::string& what) {
    RequireEqualSize(node, x, i, y, j, what);
  };
  node.Set(lower::Einsum(node, node.String("equation"), operands, equal));
}

constexpr std::array kMatMulRows = {
    NodeRow{"Einsum", Einsum},
    NodeRow("Gemm", Gemm).Direct(),
    NodeRow("MatMul", MatMul).Direct(),
};

}  // namespace

std::span<const NodeRow> MatMulRows() { return kMatMulRows; }

}  // namespace mlc::onnx
