#include "lib/lower/matrix_products.h"

#include <algorithm>
#include <cmath>

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"

namespace mlc::lower {

namespace {

constexpr double kExact = 1 << 24;  // fp32 represents all integers up to here

// factor = 16 * high + low with integers; low is nonnegative.
std::pair<Factor, Factor> Split(Builder& b, const Factor& factor, double terms) {
  Value* high = b.Make("floor", {{"x", Binary(b, "mul", factor.value, 1.0 / 16)}});
  Value* low = Binary(b, "sub", factor.value, Binary(b, "mul", high, 16.0));
  double reach = factor.reach > 0 ? factor.reach / 16 + terms : 0;
  return {{high, std::ceil(factor.most / 16), reach}, {low, 15, 0}};
}

}  // namespace

Value* MatrixProduct(Builder& b, Value* x, Value* y) {
  bool vector_x = x->type.rank() == 1, vector_y = y->type.rank() == 1;
  if (x->type.rank() == 0 || y->type.rank() == 0)
    throw Error("bad-operand", "a scalar cannot be an operand of a matrix product");
  if (vector_x) x = Expanded(b, x, {0});
  if (vector_y) y = Expanded(b, y, {1});
  Value* product = Binary(b, "matmul", x, y);
  std::vector<int64_t> squeezed;
  if (vector_x) squeezed.push_back(-2);
  if (vector_y) squeezed.push_back(-1);
  if (squeezed.empty()) return product;
  return Squeezed(b, product, squeezed);
}

Factor ExactProduct(Builder& b, const Factor& x, const Factor& y, double terms,
                    const Multiply& multiply) {
  auto reach = [&](const Factor& factor) {
    return factor.reach > 0 ? factor.reach : factor.most * terms;
  };
  double most = std::min(x.most * reach(y), y.most * reach(x));
  if (most <= kExact) return {multiply(x.value, y.value), most, 0};
  bool split_x = x.most >= y.most;
  if (std::max(x.most, y.most) <= 16)
    throw Error("resource-limit",
                "a sum of {:g} integer products can exceed 2^24, up to which fp32 is exact", terms);
  auto [high, low] = Split(b, split_x ? x : y, terms);
  auto part = [&](const Factor& half) {
    Factor sum = split_x ? ExactProduct(b, half, y, terms, multiply)
                         : ExactProduct(b, x, half, terms, multiply);
    return b.Cast(sum.value, DType::kInt32);
  };
  Value* above = Binary(b, "mul", part(high), 16);
  return {Binary(b, "add", above, part(low)), most, 0};
}

double Reach(const Tensor& tensor, int64_t outer, int64_t terms, int64_t inner) {
  int64_t step = std::clamp<int64_t>(65536 / inner, 1, terms);  // rows read at a time
  std::vector<double> sums(static_cast<size_t>(inner));
  std::vector<float> rows(static_cast<size_t>(step * inner));
  double most = 0;
  Tensor values = tensor.Cast(DType::kFp32);
  for (int64_t i = 0; i < outer; ++i) {
    std::ranges::fill(sums, 0.0);
    for (int64_t k = 0; k < terms; k += step) {
      int64_t count = std::min(step, terms - k) * inner;
      values.Read((i * terms + k) * inner, count, reinterpret_cast<std::byte*>(rows.data()));
      for (int64_t j = 0; j < count; ++j) sums[j % inner] += std::fabs(rows[j]);
    }
    for (double sum : sums) most = std::max(most, sum);
  }
  return most;
}

Factor ExactMatrixProduct(Builder& b, Factor x, Factor y) {
  const Shape &left = x.value->type.shape, &right = y.value->type.shape;
  if (left.empty() || right.empty()) throw Error("bad-operand", "a scalar is not a matrix");
  int64_t terms = Greatest(b, left.back());
  if (y.value->is_constant() && right.size() >= 2) {
    Dims dims = StaticDims(right);
    int64_t inner = dims.back(), summed = dims[dims.size() - 2];
    if (inner > 0 && summed > 0)
      y.reach =
          Reach(y.value->constant(), y.value->constant().size() / (inner * summed), summed, inner);
    terms = std::min(terms, summed);
  }
  return ExactProduct(b, x, y, static_cast<double>(terms),
                      [&](Value* left, Value* right) { return MatrixProduct(b, left, right); });
}

Factor PlusInteger(Builder& b, const Factor& sum, Value* addend) {
  double most = 0x1p31;
  if (addend->is_constant()) {
    most = 0;
    for (double value : addend->constant().Doubles()) most = std::max(most, std::fabs(value));
  }
  DType type = sum.most + most <= kExact ? DType::kFp32 : DType::kInt32;
  return {b.Make("add", {{"x", b.Cast(sum.value, type)}, {"y", b.Cast(addend, type)}}),
          sum.most + most, 0};
}

}  // namespace mlc::lower
