// Matrix products: Gemm, MatMul, Einsum.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "frontends/onnx/products.h"
#include "frontends/onnx/row.h"
#include "frontends/onnx/sizes.h"

namespace mlc::onnx {

Value* MatrixProduct(Node& node, Value* a, Value* b) {
  bool vector_a = a->type.rank() == 1, vector_b = b->type.rank() == 1;
  if (a->type.rank() == 0 || b->type.rank() == 0)
    node.Fail("bad-operand", "a scalar is no operand of a matrix product");
  if (vector_a) a = node.Make("expand_dims", {{"x", a}, {"axes", Ints({0})}});
  if (vector_b) b = node.Make("expand_dims", {{"x", b}, {"axes", Ints({1})}});
  Value* product = node.Make("matmul", {{"x", a}, {"y", b}});
  std::vector<int64_t> squeezed;
  if (vector_a) squeezed.push_back(-2);
  if (vector_b) squeezed.push_back(-1);
  if (squeezed.empty()) return product;
  return node.Make("squeeze", {{"x", product}, {"axes", Ints(squeezed)}});
}

namespace {

Value* Scale(Node& node, Value* value, double factor) {
  return factor == 1 ? value : node.Make("mul", {{"x", value}, {"y", factor}});
}

void Gemm(Node& node) {
  if (node.rank(0) != 2 || node.rank(1) != 2)
    node.Fail("bad-operand", fmt::format("operands have {} and {} dimensions, expected 2",
                                         node.rank(0), node.rank(1)));
  bool transpose_a = node.Int("transA", 0) != 0, transpose_b = node.Int("transB", 0) != 0;
  double alpha = node.Float("alpha", 1.0), beta = node.Float("beta", 1.0);
  node.Ignore({"broadcast"});  // before opset 7; C broadcasts the same way since
  Value *a = node.In(0), *b = node.In(1), *c = node.Optional(2);
  if (!IsFloat(a->type.dtype) && (alpha != std::floor(alpha) || beta != std::floor(beta)))
    node.Unsupported("alpha", "or beta is a fraction where the operands are integers");
  // A constant factor folds into a constant operand.
  if (b->is_constant()) b = Scale(node, b, alpha);
  Value* product = node.Make(
      "matmul", {{"x", a}, {"y", b}, {"transpose_x", transpose_a}, {"transpose_y", transpose_b}});
  if (!b->is_constant()) product = Scale(node, product, alpha);
  if (c && beta != 0) product = node.Make("add", {{"x", product}, {"y", Scale(node, c, beta)}});
  node.Set(product);
}

void MatMul(Node& node) { node.Set(MatrixProduct(node, node.In(0), node.In(1))); }

// A tensor whose dimensions have letters.
struct Labelled {
  Value* value;
  std::string labels;
};

Labelled Permute(Node& node, Labelled operand, const std::string& order) {
  std::vector<int64_t> perm;
  for (char label : order) perm.push_back(static_cast<int64_t>(operand.labels.find(label)));
  if (operand.labels != order)
    operand.value = node.Make("transpose", {{"x", operand.value}, {"perm", Ints(perm)}});
  return {operand.value, order};
}

// Sums over the labels that nobody needs any more.
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
  return {
      node.Make("reduce_sum", {{"x", operand.value}, {"axes", Ints(axes)}, {"keep_dims", false}}),
      left};
}

// The diagonal of repeated labels: the product with an identity mask, summed over the repetition.
Labelled Diagonal(Node& node, Labelled operand) {
  for (size_t i = 0; i < operand.labels.size(); ++i) {
    size_t j = operand.labels.find(operand.labels[i], i + 1);
    if (j == operand.labels.npos) continue;
    const Shape& shape = operand.value->type.shape;
    if (!shape[i].is_constant() || !(shape[i] == shape[j]))
      node.Unsupported("equation",
                       "takes a diagonal of dimensions whose sizes are not known to be equal");
    int64_t n = shape[i].constant();
    if (n > 4096) node.Unsupported("equation", "takes a diagonal of more than 4096 elements");
    Dims dims(shape.size(), 1);
    dims[i] = dims[j] = n;
    std::vector<float> mask(static_cast<size_t>(n * n), 0.0f);
    for (int64_t k = 0; k < n; ++k) mask[k * n + k] = 1;
    Tensor identity = Tensor::Of<float>(dims, mask).Cast(operand.value->type.dtype);
    Value* masked = node.Make("mul", {{"x", operand.value}, {"y", identity}});
    operand.value =
        node.Make("reduce_sum",
                  {{"x", masked}, {"axes", Ints({static_cast<int64_t>(j)})}, {"keep_dims", false}});
    operand.labels.erase(j, 1);
    --i;
  }
  return operand;
}

// The value reshaped so that each group of labels is one dimension. Needs sizes, -1 for at most one
// that is not known.
Value* Group(Node& node, const Labelled& operand, const std::vector<std::string>& groups) {
  std::vector<int64_t> shape;
  size_t at = 0;
  for (const std::string& group : groups) {
    Dim size = 1;
    for (size_t k = 0; k < group.size(); ++k) size = size * operand.value->type.shape[at++];
    shape.push_back(size.is_constant() ? size.constant() : -1);
  }
  if (std::count(shape.begin(), shape.end(), -1) > 1)
    node.Unsupported("equation", "needs the sizes of all dimensions but one");
  return node.Make("reshape", {{"x", operand.value}, {"shape", Ints(shape)}});
}

Labelled Contract(Node& node, Labelled a, Labelled b, const std::string& keep) {
  std::string batch, left, right, inner;
  for (char label : a.labels) {
    if (b.labels.find(label) == b.labels.npos)
      left += label;
    else
      (keep.find(label) == keep.npos ? inner : batch) += label;
  }
  for (char label : b.labels)
    if (a.labels.find(label) == a.labels.npos) right += label;
  std::string labels = batch + left + right;
  std::map<char, Dim> sizes;
  for (const Labelled* operand : {&b, &a})
    for (size_t i = 0; i < operand->labels.size(); ++i) {
      auto [it, inserted] = sizes.emplace(operand->labels[i], operand->value->type.shape[i]);
      if (!inserted && it->second == Dim(1)) it->second = operand->value->type.shape[i];
    }
  for (const std::string* part : {&batch, &inner})
    for (char label : *part) {
      for (const Labelled* operand : {&a, &b})
        if (!(operand->value->type.shape[operand->labels.find(label)] == sizes[label]))
          node.Unsupported("equation", fmt::format("broadcasts label '{}'", label));
    }
  Value* x = Group(node, Permute(node, a, batch + left + inner), {batch, left, inner});
  Value* y = Group(node, Permute(node, b, batch + inner + right), {batch, inner, right});
  Value* product = node.Make("matmul", {{"x", x}, {"y", y}});
  std::vector<int64_t> shape;
  for (char label : labels)
    shape.push_back(sizes[label].is_constant() ? sizes[label].constant() : -1);
  if (std::count(shape.begin(), shape.end(), -1) > 1)
    node.Unsupported("equation", "needs the sizes of all dimensions but one");
  if (shape.empty())
    product = node.Make("squeeze", {{"x", product}, {"axes", Ints({0, 1, 2})}});
  else
    product = node.Make("reshape", {{"x", product}, {"shape", Ints(shape)}});
  return {product, labels};
}

void Einsum(Node& node) {
  std::string equation = node.String("equation");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  auto bad = [&] {
    node.Fail("bad-attribute", fmt::format("equation \"{}\" does not fit the inputs", equation));
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

  // An ellipsis stands for digits as labels, aligned at its end.
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
    if (!count.contains(label) || std::count(output.begin(), output.end(), label) > 1) bad();

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

constexpr std::array kRows = {
    Row{"Einsum", Einsum},
    Row("Gemm", Gemm).Direct(),
    Row("MatMul", MatMul).Direct(),
};

}  // namespace

std::span<const Row> LinearRows() { return kRows; }

}  // namespace mlc::onnx
