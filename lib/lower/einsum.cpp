#include "lib/lower/einsum.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"

namespace mlc::lower {

namespace {

// A tensor with a label (letter) for each dimension.
struct Labelled {
  Value* value;
  std::string labels;
};

Labelled Permute(Builder& b, Labelled operand, const std::string& order) {
  std::vector<int64_t> perm;
  for (char label : order) perm.push_back(static_cast<int64_t>(operand.labels.find(label)));
  if (operand.labels != order) operand.value = Transposed(b, operand.value, perm);
  return {operand.value, order};
}

// Sums over the labels that are not in `keep`.
Labelled SumOver(Builder& b, Labelled operand, const std::string& keep) {
  std::vector<int64_t> axes;
  std::string left;
  for (size_t i = 0; i < operand.labels.size(); ++i) {
    if (keep.find(operand.labels[i]) == keep.npos)
      axes.push_back(static_cast<int64_t>(i));
    else
      left += operand.labels[i];
  }
  if (axes.empty()) return operand;
  return {Reduced(b, "reduce_sum", operand.value, axes, false), left};
}

// Takes the diagonal of repeated labels: multiplies by an identity mask and sums over the
// duplicate.
Labelled Diagonal(Builder& b, Labelled operand, const SameSize& equal) {
  for (size_t i = 0; i < operand.labels.size(); ++i) {
    size_t j = operand.labels.find(operand.labels[i], i + 1);
    if (j == operand.labels.npos) continue;
    Value *rows = operand.value, *columns = operand.value;
    if (equal)
      equal(rows, static_cast<int>(i), columns, static_cast<int>(j),
            fmt::format("sizes of label '{}'", operand.labels[i]));
    operand.value = rows == operand.value ? columns : rows;
    const Shape shape = operand.value->type.shape;
    if (shape[i].is_constant() && shape[i].constant() > 4096)
      throw Error("unsupported-attribute",
                  "equation: a diagonal of more than 4096 elements is not supported");
    auto along = [&](size_t axis) {
      Value* places = IndicesOf(b, operand.value, static_cast<int>(axis));
      return VectorAlong(b, places, axis, shape.size());
    };
    Value* other = along(j);
    Value* identity = Binary(b, "equal", along(i), other);
    identity = b.Cast(identity, operand.value->type.dtype);
    Value* masked = Binary(b, "mul", operand.value, identity);
    operand.value = Reduced(b, "reduce_sum", masked, {static_cast<int64_t>(j)}, false);
    operand.labels.erase(j, 1);
    --i;
  }
  return operand;
}

// Reshapes a tensor to dimensions that are products of dimensions of other tensors.
using DimensionsOf = std::vector<std::pair<Value*, int>>;
Value* Grouped(Builder& b, Value* x, const std::vector<DimensionsOf>& groups) {
  Sizes shape(b);
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
        Value* factor = DimOf(b, value, axis);
        product = product ? Binary(b, "mul", product, factor) : factor;
      }
      shape.Add(AsVector(b, product), 0);
    }
  }
  return b.Make("reshape", {{"x", x}, {"shape", shape.Make()}});
}

// Merges each group of labels into one dimension.
Value* Group(Builder& b, const Labelled& operand, const std::vector<std::string>& groups) {
  std::vector<DimensionsOf> sizes;
  int at = 0;
  for (const std::string& group : groups) {
    sizes.emplace_back();
    for (size_t k = 0; k < group.size(); ++k) sizes.back().emplace_back(operand.value, at++);
  }
  return Grouped(b, operand.value, sizes);
}

const Dim& SizeOf(const Labelled& operand, char label) {
  return operand.value->type.shape[operand.labels.find(label)];
}

// Removes a label of size 1, which broadcasts.
Labelled Without(Builder& b, Labelled operand, char label) {
  auto at = static_cast<int64_t>(operand.labels.find(label));
  operand.value = Squeezed(b, operand.value, {at});
  operand.labels.erase(static_cast<size_t>(at), 1);
  return operand;
}

// Sizes of one label that may differ at run time are required to be equal.
Labelled Contract(Builder& builder, Labelled a, Labelled b, const std::string& keep) {
  for (char label : std::string(a.labels)) {
    if (b.labels.find(label) == b.labels.npos) continue;
    const Dim x = SizeOf(a, label), y = SizeOf(b, label);
    if (x == y) continue;
    if (x == Dim(1) || y == Dim(1)) {
      Labelled& one = x == Dim(1) ? a : b;
      one = Without(builder, one, label);
    } else if (x.is_constant() && y.is_constant()) {
      throw Error("bad-operand", "label '{}' has different sizes, {} and {}", label, x.ToString(),
                  y.ToString());
    }
  }
  a = SumOver(builder, a, b.labels + keep);
  b = SumOver(builder, b, a.labels + keep);
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
    return Group(builder, Permute(builder, operand, batch + rows + columns), groups);
  };
  Value *x = matrix(a, left, inner), *y = matrix(b, inner, right);
  Value* product = builder.Make("matmul", {{"x", x}, {"y", y}});
  std::string labels = batch + left + right;
  if (labels.empty()) return {Squeezed(builder, product, {0, 1, 2}), labels};
  std::vector<DimensionsOf> sizes;
  for (char label : labels) {
    size_t in_a = a.labels.find(label), in_b = b.labels.find(label);
    bool from_b =
        in_a == a.labels.npos || (in_b != b.labels.npos && SizeOf(b, label).is_constant());
    sizes.push_back({{from_b ? b.value : a.value, static_cast<int>(from_b ? in_b : in_a)}});
  }
  return {Grouped(builder, product, sizes), labels};
}

}  // namespace

Value* Einsum(Builder& b, std::string equation, const std::vector<Value*>& inputs,
              const SameSize& equal) {
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  auto bad = [&] {
    throw Error("bad-attribute", "equation \"{}\" does not match the inputs", equation);
  };
  size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char c : left) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != inputs.size()) bad();

  // The dimensions of an ellipsis are labelled with digits, aligned at its end.
  std::vector<Labelled> operands;
  std::string ellipsis;
  std::map<char, int> count;
  for (size_t i = 0; i < terms.size(); ++i) {
    std::string& term = terms[i];
    const int rank = inputs[i]->type.rank();
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
    operands.push_back({inputs[i], term});
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

  for (Labelled& operand : operands) operand = Diagonal(b, operand, equal);
  Labelled result = operands[0];
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string later = output;
    for (size_t j = i + 1; j < operands.size(); ++j) later += operands[j].labels;
    if (i == 0) {
      result = SumOver(b, result, later);
      continue;
    }
    result = Contract(b, result, SumOver(b, operands[i], result.labels + later), later);
  }
  return Permute(b, SumOver(b, result, output), output).value;
}

}  // namespace mlc::lower
