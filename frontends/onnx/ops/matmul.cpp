// Matrix products: Gemm, MatMul, Einsum.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
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

// A tensor with a label (letter) for each dimension.
struct Labelled {
  Value* value;
  std::string labels;
};

Labelled Permute(Node& node, Labelled operand, const std::string& order) {
  std::vector<int64_t> perm;
  for (char label : order) perm.push_back(static_cast<int64_t>(operand.labels.find(label)));
  if (operand.labels != order) operand.value = Transposed(node, operand.value, perm);
  return {operand.value, order};
}

// Sums over the labels that are not in `keep`.
Labelled SumOver(Node& node, Labelled operand, const std::string& keep) {
  std::vector<int64_t> axes;
  std::string left;
  for (size_t i = 0; i < operand.labels.size(); ++i) {
    if (keep.find(operand.labels[i]) == keep.npos)
      axes.push_back(static_cast<int64_t>(i));
    else
      left += operand.labels[i];
  }
  if (axes.empty()) return operand;
  return {Reduced(node, "reduce_sum", operand.value, axes, false), left};
}

// Takes the diagonal of repeated labels: multiplies by an identity mask and sums over the
// duplicate.
Labelled Diagonal(Node& node, Labelled operand) {
  for (size_t i = 0; i < operand.labels.size(); ++i) {
    size_t j = operand.labels.find(operand.labels[i], i + 1);
    if (j == operand.labels.npos) continue;
    Value *rows = operand.value, *columns = operand.value;
    RequireEqualSize(node, rows, static_cast<int>(i), columns, static_cast<int>(j),
                     fmt::format("sizes of label '{}'", operand.labels[i]));
    operand.value = rows == operand.value ? columns : rows;
    const Shape shape = operand.value->type.shape;
    if (shape[i].is_constant() && shape[i].constant() > 4096)
      node.Unsupported("equation", "a diagonal of more than 4096 elements is not supported");
    auto along = [&](size_t axis) {
      Value* places = IndicesOf(node, operand.value, static_cast<int>(axis));
      return VectorAlong(node, places, axis, shape.size());
    };
    Value* other = along(j);
    Value* identity = Binary(node, "equal", along(i), other);
    identity = node.builder().Cast(identity, operand.value->type.dtype);
    Value* masked = Binary(node, "mul", operand.value, identity);
    operand.value = Reduced(node, "reduce_sum", masked, {static_cast<int64_t>(j)}, false);
    operand.labels.erase(j, 1);
    --i;
  }
  return operand;
}

// Reshapes a tensor to dimensions that are products of dimensions of other tensors.
using DimensionsOf = std::vector<std::pair<Value*, int>>;
Value* Grouped(Node& node, Value* x, const std::vector<DimensionsOf>& groups) {
  Sizes shape(node);
  int unknown = 0;
  for (const DimensionsOf& group : groups) {
    Dim size = 1;
    for (auto [value, axis] : group) size = size * value->type.shape[axis];
    if (size.is_constant()) {
      shape.Add(size.constant());
    } else if (++unknown == 1) {
      shape.Add(-1);
    } else {
      Value* product = nullptr;
      for (auto [value, axis] : group) {
        Value* factor = DimOf(node, value, axis);
        product = product ? Binary(node, "mul", product, factor) : factor;
      }
      shape.Add(AsVector(node, product), 0);
    }
  }
  return node.Make("reshape", {{"x", x}, {"shape", shape.Make()}});
}

// Merges each group of labels into one dimension.
Value* Group(Node& node, const Labelled& operand, const std::vector<std::string>& groups) {
  std::vector<DimensionsOf> sizes;
  int at = 0;
  for (const std::string& group : groups) {
    sizes.emplace_back();
    for (size_t k = 0; k < group.size(); ++k) sizes.back().emplace_back(operand.value, at++);
  }
  return Grouped(node, operand.value, sizes);
}

const Dim& SizeOf(const Labelled& operand, char label) {
  return operand.value->type.shape[operand.labels.find(label)];
}

// Removes a label of size 1, which broadcasts.
Labelled Without(Node& node, Labelled operand, char label) {
  auto at = static_cast<int64_t>(operand.labels.find(label));
  operand.value = Squeezed(node, operand.value, {at});
  operand.labels.erase(static_cast<size_t>(at), 1);
  return operand;
}

// Sizes of one label that may differ at run time are required to be equal.
Labelled Contract(Node& node, Labelled a, Labelled b, const std::string& keep) {
  for (char label : std::string(a.labels)) {
    if (b.labels.find(label) == b.labels.npos) continue;
    const Dim x = SizeOf(a, label), y = SizeOf(b, label);
    if (x == y) continue;
    if (x == Dim(1) || y == Dim(1)) {
      Labelled& one = x == Dim(1) ? a : b;
      one = Without(node, one, label);
    } else if (x.is_constant() && y.is_constant()) {
      node.Fail("bad-operand", "label '{}' has different sizes, {} and {}", label, x.ToString(),
                y.ToString());
    }
  }
  a = SumOver(node, a, b.labels + keep);
  b = SumOver(node, b, a.labels + keep);
  std::string batch, left, right, inner;
  for (char label : a.labels) {
    if (b.labels.find(label) == b.labels.npos)
      left += label;
    else
      (keep.find(label) == keep.npos ? inner : batch) += label;
  }
  for (char label : b.labels)
    if (a.labels.find(label) == a.labels.npos) right += label;
  // Two batch dimensions, the last of which is usually that of attention heads, need no reshape.
  std::vector<std::string> batches = {batch};
  if (batch.size() > 1)
    batches = {batch.substr(0, batch.size() - 1), batch.substr(batch.size() - 1)};
  auto matrix = [&](const Labelled& operand, const std::string& rows, const std::string& columns) {
    std::vector<std::string> groups = batches;
    groups.insert(groups.end(), {rows, columns});
    return Group(node, Permute(node, operand, batch + rows + columns), groups);
  };
  Value *x = matrix(a, left, inner), *y = matrix(b, inner, right);
  Value* product = node.Make("matmul", {{"x", x}, {"y", y}});
  std::string labels = batch + left + right;
  if (labels.empty()) return {Squeezed(node, product, {0, 1, 2}), labels};
  std::vector<DimensionsOf> sizes;
  for (char label : labels) {
    size_t in_a = a.labels.find(label), in_b = b.labels.find(label);
    bool from_b =
        in_a == a.labels.npos || (in_b != b.labels.npos && SizeOf(b, label).is_constant());
    sizes.push_back({{from_b ? b.value : a.value, static_cast<int>(from_b ? in_b : in_a)}});
  }
  return {Grouped(node, product, sizes), labels};
}

void Einsum(Node& node) {
  std::string equation = node.String("equation");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  auto bad = [&] {
    node.Fail("bad-attribute", "equation \"{}\" does not match the inputs", equation);
  };
  size_t arrow = equation.find("->");
  std::string inputs = equation.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char c : inputs) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (static_cast<int>(terms.size()) != node.inputs()) bad();

  // The dimensions of an ellipsis are labelled with digits, aligned at its end.
  std::vector<Labelled> operands;
  std::string ellipsis;
  std::map<char, int> count;
  for (size_t i = 0; i < terms.size(); ++i) {
    std::string& term = terms[i];
    int rank = node.rank(static_cast<int>(i));
    if (size_t dots = term.find("..."); dots != term.npos) {
      int hidden = rank - static_cast<int>(term.size() - 3);
      if (hidden < 0 || hidden > 9) bad();
      std::string labels;
      for (int k = hidden; k > 0; --k) labels += static_cast<char>('0' + k);
      if (labels.size() > ellipsis.size()) ellipsis = labels;
      term.replace(dots, 3, labels);
    }
    if (static_cast<int>(term.size()) != rank) bad();
    for (char c : term) {
      if (!std::isalnum(static_cast<unsigned char>(c))) bad();
      ++count[c];
    }
    operands.push_back({node.In(static_cast<int>(i)), term});
  }
  std::string output;
  if (arrow != equation.npos) {
    output = equation.substr(arrow + 2);
    if (size_t dots = output.find("..."); dots != output.npos) output.replace(dots, 3, ellipsis);
  } else {
    output = ellipsis;
    for (auto [label, times] : count)
      if (times == 1 && !std::isdigit(static_cast<unsigned char>(label))) output += label;
  }
  for (char label : output)
    if (!count.contains(label) || std::ranges::count(output, label) > 1) bad();

  for (Labelled& operand : operands) operand = Diagonal(node, operand);
  Labelled result = operands[0];
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string later = output;
    for (size_t j = i + 1; j < operands.size(); ++j) later += operands[j].labels;
    if (i == 0) {
      result = SumOver(node, result, later);
      continue;
    }
    result = Contract(node, result, SumOver(node, operands[i], result.labels + later), later);
  }
  node.Set(Permute(node, SumOver(node, result, output), output).value);
}

constexpr std::array kMatMulRows = {
    NodeRow{"Einsum", Einsum},
    NodeRow("Gemm", Gemm).Direct(),
    NodeRow("MatMul", MatMul).Direct(),
};

}  // namespace

std::span<const NodeRow> MatMulRows() { return kMatMulRows; }

}  // namespace mlc::onnx
