#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "lib/ops/narrow_result.h"
#include "lib/ops/operand_constraint.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"

namespace mlc {

namespace {

void CheckInner(const OpContext& context, const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant() && !(a == b))
    context.Fail("inner dimensions {} and {} differ", a.ToString(), b.ToString());
}

// A matrix in a buffer: element (i, j) is at offset i * row + j * column.
struct MatrixStrides {
  int64_t row, column;
};

// y[m, n] = x[m, k] * y[k, n], summed in order of k.
template <class W>
void Multiply(const W* x, MatrixStrides xs, const W* y, MatrixStrides ys, int64_t m, int64_t k,
              int64_t n, W* out) {
  for (int64_t i = 0; i < m; ++i) {
    W* row = out + i * n;
    for (int64_t p = 0; p < k; ++p) {
      W factor = x[i * xs.row + p * xs.column];
      for (int64_t j = 0; j < n; ++j) row[j] += factor * y[p * ys.row + j * ys.column];
    }
  }
}

// Integer sums wrap; unsigned arithmetic has no undefined overflow.
template <class F>
void DispatchWide(DType dtype, F&& f) {
  if (IsFloat(dtype))
    f(double{});
  else
    f(uint64_t{});
}
template <class W>
std::vector<W> LoadWide(const Tensor& tensor) {
  if constexpr (std::is_same_v<W, double>) {
    return tensor.Doubles();
  } else {
    std::vector<int64_t> values = tensor.Ints();
    return std::vector<W>(values.begin(), values.end());
  }
}

void InferLinear(InferContext& context) {
  const Shape& weight = context.shape("weight");
  Shape shape = context.shape("x");
  if (shape.empty()) context.Fail("x is a scalar");
  if (weight.size() != 2) context.Fail("weight has {} dimensions, expected 2", weight.size());
  CheckInner(context, shape.back(), weight[1]);
  if (context.has("bias")) {
    const Shape& bias = context.shape("bias");
    if (bias.size() != 1) context.Fail("bias must have one dimension");
    if (bias[0].is_constant() && weight[0].is_constant() && !(bias[0] == weight[0]))
      context.Fail("bias has {} elements, expected {}", bias[0].ToString(), weight[0].ToString());
  }
  shape.back() = weight[0];
  context.Result(context.dtype("x"), std::move(shape));
}

Tensor LinearDefault(const OpContext& context, std::string_view) {
  const Type& weight = context.type("weight");
  if (weight.rank() != 2 || !weight.shape[0].is_constant()) return {};
  return Tensor::Full(weight.dtype, {weight.shape[0].constant()}, 0);
}

void EvalLinear(EvalContext& context) {
  Dims out = context.out_dims();
  DispatchWide(context.dtype("x"), [&]<class W>(W) {
    Tensor weight_tensor = context.in("weight");
    std::vector<W> x = LoadWide<W>(context.in("x")), weight = LoadWide<W>(weight_tensor);
    int64_t n = weight_tensor.dims()[0], k = weight_tensor.dims()[1],
            m = n ? ElementCount(out) / n : 0;
    std::vector<W> y(ElementCount(out));
    Multiply<W>(x.data(), {k, 1}, weight.data(), {1, k}, m, k, n, y.data());
    if (context.has("bias")) {
      std::vector<W> bias = LoadWide<W>(context.in("bias"));
      for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % n];
    }
    context.Set(Store(context.out_dtype(), out, y));
  });
}

// An operand of matmul as a stack of matrices [batch..., rows, columns]; vectors get a dimension of
// size 1.
Shape AsMatrix(const OpContext& context, std::string_view name, std::string_view transpose,
               bool left) {
  Shape shape = context.shape(name);
  bool swapped = context.Bool(transpose);
  if (shape.empty()) context.Fail("{} is a scalar", name);
  if (shape.size() == 1) {
    if (swapped) context.Fail("{} is a vector, which {} cannot transpose", name, transpose);
    shape.insert(left ? shape.begin() : shape.end(), 1);
  } else if (swapped) {
    std::swap(shape[shape.size() - 2], shape.back());
  }
  return shape;
}

void InferMatmul(InferContext& context) {
  Shape x = AsMatrix(context, "x", "transpose_x", true),
        y = AsMatrix(context, "y", "transpose_y", false);
  CheckInner(context, x.back(), y[y.size() - 2]);
  Shape shape =
      BroadcastShapes(context, Shape(x.begin(), x.end() - 2), Shape(y.begin(), y.end() - 2));
  if (context.rank("x") > 1) shape.push_back(x[x.size() - 2]);
  if (context.rank("y") > 1) shape.push_back(y.back());
  // Since iOS17, a constant may have another dtype than the run-time operand, which determines the
  // result.
  bool y_decides = context.value("x") && !context.value("y");
  context.Result(context.dtype(y_decides ? "y" : "x"), std::move(shape));
}

void EvalMatmul(EvalContext& context) {
  Dims x_dims = StaticDims(AsMatrix(context, "x", "transpose_x", true));
  Dims y_dims = StaticDims(AsMatrix(context, "y", "transpose_y", false));
  int64_t m = x_dims[x_dims.size() - 2], k = x_dims.back(), n = y_dims.back();
  // The strides of x[i, p] and y[p, j] in memory.
  MatrixStrides xs = context.Bool("transpose_x") ? MatrixStrides{1, m} : MatrixStrides{k, 1};
  MatrixStrides ys = context.Bool("transpose_y") ? MatrixStrides{1, k} : MatrixStrides{n, 1};
  Dims x_batch(x_dims.begin(), x_dims.end() - 2), y_batch(y_dims.begin(), y_dims.end() - 2);
  Dims out = context.out_dims(), batch(std::max(x_batch.size(), y_batch.size()));
  std::copy_n(out.begin(), batch.size(), batch.begin());
  DispatchWide(context.out_dtype(), [&]<class W>(W) {
    std::vector<W> x = LoadWide<W>(context.in("x")), y = LoadWide<W>(context.in("y")),
                   z(ElementCount(out));
    W* to = z.data();
    Walk<2>(batch, {BroadcastStrides(x_batch, batch), BroadcastStrides(y_batch, batch)},
            [&](int64_t i, int64_t j) {
              Multiply<W>(x.data() + i * m * k, xs, y.data() + j * k * n, ys, m, k, n, to);
              to += m * n;
            });
    context.Set(Store(context.out_dtype(), out, z));
  });
}

struct Equation {
  std::string x, y, out;
};

Equation ParseEquation(const OpContext& context) {
  std::string text = context.String("equation");
  std::erase(text, ' ');
  size_t comma = text.find(','), arrow = text.find("->");
  if (comma == text.npos || arrow == text.npos || comma > arrow)
    context.Fail("equation \"{}\" does not have the form \"ab,bc->ac\"", text);
  Equation equation{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1),
                    text.substr(arrow + 2)};
  for (const std::string* letters : {&equation.x, &equation.y, &equation.out})
    for (char c : *letters)
      if (!std::isalpha(static_cast<unsigned char>(c)) || std::ranges::count(*letters, c) > 1)
        context.Fail("equation \"{}\" has a repeated or unknown letter", text);
  for (char c : equation.out)
    if (equation.x.find(c) == std::string::npos && equation.y.find(c) == std::string::npos)
      context.Fail("equation \"{}\" has the letter {} only in its output", text, c);
  return equation;
}

// Renames letters to a, b, c ... in order of appearance.
std::string Canonical(const Equation& equation) {
  std::map<char, char> names;
  std::string text = equation.x + "," + equation.y + ">" + equation.out;
  for (char& c : text)
    if (c != ',' && c != '>')
      c = names.emplace(c, static_cast<char>('a' + names.size())).first->second;
  return text;
}

void InferEinsum(InferContext& context) {
  if (context.count("values") != 2)
    context.Fail("expected two values, got {}", context.count("values"));
  Equation equation = ParseEquation(context);
  std::string canonical = Canonical(equation);
  if (canonical != "abcd,adce>abce" && canonical != "abc,cbd>abd")
    context.Fail(
        "Core ML does not support equation \"{},{}->{}\", only nchw,nwhu->nchu and chw,whr->chr",
        equation.x, equation.y, equation.out);
  std::map<char, Dim> sizes;
  for (int i = 0; i < 2; ++i) {
    const std::string& letters = i ? equation.y : equation.x;
    const Shape& shape = context.shape("values", i);
    if (shape.size() != letters.size())
      context.Fail("value {} has {} dimensions, but the equation has {}", i, shape.size(),
                   letters.size());
    for (size_t d = 0; d < letters.size(); ++d) {
      auto [it, added] = sizes.emplace(letters[d], shape[d]);
      if (!added) it->second = BroadcastShapes(context, {it->second}, {shape[d]})[0];
    }
  }
  Shape shape;
  for (char c : equation.out) shape.push_back(sizes.at(c));
  if (context.dtype("values", 0) != context.dtype("values", 1))
    context.Fail("the values have different types");
  context.Result(context.dtype("values"), std::move(shape));
}

void EvalEinsum(EvalContext& context) {
  Equation equation = ParseEquation(context);
  std::array<Tensor, 2> values = {context.in("values", 0), context.in("values", 1)};
  // Letters of the result come first, then the summed ones.
  std::string letters = equation.out;
  for (char c : equation.x + equation.y)
    if (letters.find(c) == std::string::npos) letters += c;
  Dims sizes(letters.size(), 1);
  std::array<Dims, 2> strides;
  for (int i = 0; i < 2; ++i) {
    const std::string& own = i ? equation.y : equation.x;
    Dims dims = values[i].dims(), packed = StridesOf(dims);
    strides[i].assign(letters.size(), 0);
    for (size_t d = 0; d < own.size(); ++d) {
      size_t at = letters.find(own[d]);
      sizes[at] = std::max(sizes[at], dims[d]);
      if (dims[d] != 1) strides[i][at] = packed[d];
    }
  }
  int64_t summed = 1;
  for (size_t i = equation.out.size(); i < sizes.size(); ++i) summed *= sizes[i];
  DispatchWide(context.out_dtype(), [&]<class W>(W) {
    std::vector<W> x = LoadWide<W>(values[0]), y = LoadWide<W>(values[1]),
                   z(ElementCount(context.out_dims()));
    int64_t step = 0;
    Walk<2>(sizes, strides, [&](int64_t i, int64_t j) { z[step++ / summed] += x[i] * y[j]; });
    context.Set(Store(context.out_dtype(), context.out_dims(), z));
  });
}

void InferAttention(InferContext& context) {
  const Shape &query = context.shape("query"), &key = context.shape("key"),
              &value = context.shape("value");
  size_t rank = query.size();
  if (rank < 3 || key.size() != rank || value.size() != rank)
    context.Fail("query, key and value must have the same number of dimensions, at least 3");
  for (size_t i = 0; i + 2 < rank; ++i) {
    CheckInner(context, query[i], key[i]);
    CheckInner(context, query[i], value[i]);
  }
  CheckInner(context, query.back(), key.back());
  CheckInner(context, key[rank - 2], value[rank - 2]);
  Shape shape = query;
  if (context.has("attn_mask")) {
    Shape scores = query;
    scores.back() = key[rank - 2];
    const Shape& mask = context.shape("attn_mask");
    if (mask.size() > rank || BroadcastShapes(context, scores, mask).size() != rank)
      context.Fail("attn_mask does not broadcast to the attention scores");
  }
  shape.back() = value.back();
  context.Result(context.dtype("query"), std::move(shape));
}

// softmax(query * transposed key / sqrt(width) + mask) * value. A row that is masked entirely is
// NaN, as in torch.
void EvalAttention(EvalContext& context) {
  Dims q_dims = context.in("query").dims(), v_dims = context.in("value").dims(),
       out = context.out_dims();
  size_t rank = q_dims.size();
  int64_t rows = q_dims[rank - 2], width = q_dims.back(), keys = v_dims[rank - 2],
          value_width = v_dims.back();
  std::vector<double> q = context.in("query").Doubles(), k = context.in("key").Doubles(),
                      v = context.in("value").Doubles(), y(ElementCount(out));
  std::vector<double> mask;
  Dims row_dims(q_dims.begin(), q_dims.end() - 1), mask_strides(rank - 1, 0);
  int64_t mask_step = 0;
  if (context.has("attn_mask")) {
    Tensor tensor = context.in("attn_mask");
    mask = tensor.Doubles();
    if (tensor.dtype() == DType::kBool)
      for (double& m : mask) m = m != 0 ? 0 : -std::numeric_limits<double>::infinity();
    Dims scores = q_dims;
    scores.back() = keys;
    Dims strides = BroadcastStrides(tensor.dims(), scores);
    mask_step = strides.back();
    mask_strides.assign(strides.begin(), strides.end() - 1);
  }
  double scale = 1 / std::sqrt(static_cast<double>(width));
  // Keys are stored by columns, so that the sums of a row are independent and can be interleaved.
  std::vector<double> weights(keys), turned(k.size());
  for (int64_t b = 0; b < std::ssize(k) / std::max<int64_t>(width * keys, 1); ++b)
    for (int64_t s = 0; s < keys; ++s)
      for (int64_t e = 0; e < width; ++e)
        turned[(b * width + e) * keys + s] = k[(b * keys + s) * width + e];
  int64_t row = 0;
  Walk<1>(row_dims, {mask_strides}, [&](int64_t mask_at) {
    int64_t batch = row / rows;
    double max = -std::numeric_limits<double>::infinity(), total = 0;
    const double *of_row = q.data() + row * width, *of_keys = turned.data() + batch * width * keys;
    std::ranges::fill(weights, 0.0);
    for (int64_t e = 0; e < width; ++e)
      for (int64_t s = 0; s < keys; ++s) weights[s] += of_row[e] * of_keys[e * keys + s];
    for (int64_t s = 0; s < keys; ++s) {
      weights[s] = weights[s] * scale + (mask.empty() ? 0 : mask[mask_at + s * mask_step]);
      max = MaximumOf(max, weights[s]);
    }
    for (double& weight : weights) total += weight = std::exp(weight - max);
    for (int64_t s = 0; s < keys; ++s) {
      const double share = weights[s] / total,
                   *of_value = v.data() + (batch * keys + s) * value_width;
      double* to = y.data() + row * value_width;
      for (int64_t e = 0; e < value_width; ++e) to[e] += share * of_value[e];
    }
    ++row;
  });
  context.Set(Store(context.out_dtype(), out, y));
}

// The length of the summed dimension: the last of y if y is transposed, else the one before.
double WorkOfMatmul(const OpContext& context) {
  const Shape& y = context.shape("y");
  size_t back = context.Bool("transpose_y") || y.size() < 2 ? 1 : 2;
  if (y.empty()) return 1;
  const Dim& summed = y[y.size() - back];
  return static_cast<double>(summed.is_constant() ? summed.constant() : 1);
}

double WorkOfEinsum(const OpContext& context) {
  return std::max(CountKnown(context, "values"),
                  CountKnown(context, "values", context.count("values") - 1));
}

// Sums of products with one factor from each operand.
Interval RangeEinsum(const RangeContext& context, int) {
  Interval product = {1, 1};
  double most = 1;
  for (int i = 0; i < context.count("values"); ++i) {
    product = product * context.in("values", i);
    for (const Dim& dim : context.shape("values", i))
      most *= dim.is_constant() ? static_cast<double>(dim.constant())
                                : std::numeric_limits<double>::infinity();
  }
  return Sum(product, 1, most);
}
Interval RangeMatmul(const RangeContext& context, int) {
  Tensor transposed = context.value("transpose_y");
  int rank = context.rank("y");
  double count = transposed ? context.Size("y", rank < 2 ? 0 : rank - (transposed.Bool(0) ? 1 : 2))
                            : std::numeric_limits<double>::infinity();
  return Sum(context.in("x") * context.in("y"), 1, count);
}
// Each result is a weighted mean of values.
Interval RangeAttention(const RangeContext& context, int) { return context.in("value"); }

OperandConstraint WantOfMask(const ConstraintContext& context) {
  bool mask = context.value.type.dtype == DType::kBool;
  return {
      .mask = mask, .valid = mask ? 1 : -1, .why = fmt::format("mask of {}", Quoted(context.op))};
}

std::vector<WeightOperand> WeightsOfLinear(const OpContext&) { return {{"weight", 0, 1}}; }

// A vector is not a matrix of weights.
std::vector<WeightOperand> WeightsOfMatmul(const OpContext& context) {
  std::vector<WeightOperand> weights;
  for (const bool left : {true, false}) {
    const std::string_view param = left ? "x" : "y";
    const int rank = context.rank(param);
    if (rank < 2) continue;
    const bool transposed = context.Bool(left ? "transpose_x" : "transpose_y");
    const int output = rank - (left != transposed ? 2 : 1);
    weights.push_back({param, output, 2 * rank - 3 - output, rank - 2});
  }
  return weights;
}

constexpr OpRow kLinearRows[] = {
    {.name = "einsum",
     .doc = "Einstein summation; Core ML supports nchw,nwhu->nchu and chw,whr->chr",
     .signatures = {{{kIos15, "values:T... equation:string! | T=fp16/fp32"}}},
     .infer = InferEinsum,
     .eval = EvalEinsum,
     .fp16 = {.carries = kAngles | kLogarithms | kCounts, .kind = kProduct},
     .work = WorkOfEinsum,
     .range = RangeEinsum},
    {.name = "linear",
     .doc = "x times the transposed weight [out, in], plus bias",
     .signatures = {{{kIos15, "x:T weight:T! bias:T!=* | T=fp16/fp32/int32"},
                     {kIos17, "x:T weight:U! bias:U!=* | T=fp16/fp32/int32 U=fp16/fp32/int32"}}},
     .infer = InferLinear,
     .eval = EvalLinear,
     .default_value = LinearDefault,
     .fp16 = {.needs = kWholeSums, .carries = kAngles | kLogarithms | kCounts, .kind = kProduct},
     .work = WorkOfWeight,
     .weights = WeightsOfLinear,
     .eight_bit = EightBit::kLayer,
     .range = RangeOfProducts},
    {.name = "matmul",
     .doc = "matrix product over the last two dimensions; the others broadcast as in NumPy",
     .signatures =
         {{{kIos15, "x:T y:T transpose_x:bool!=false transpose_y:bool!=false | T=fp16/fp32/int32"},
           {kIos17,
            "x:T y:U transpose_x:bool!=false transpose_y:bool!=false | T=fp16/fp32/int32 "
            "U=fp16/fp32/int32"}}},
     .infer = InferMatmul,
     .eval = EvalMatmul,
     .fp16 = {.needs = kWholeSums, .carries = kAngles | kLogarithms | kCounts, .kind = kProduct},
     .work = WorkOfMatmul,
     .weights = WeightsOfMatmul,
     .range = RangeMatmul},
    {.name = "scaled_dot_product_attention",
     .doc = "softmax(query * key^T / sqrt(width) + mask) * value",
     .signatures = {{{kIos18,
                      "query:T key:T value:T attn_mask:M? | T=fp16/fp32 M=bool/fp16/fp32"}}},
     .infer = InferAttention,
     .eval = EvalAttention,
     .range = RangeAttention,
     .constraints = {{{"attn_mask", WantOfMask}}}},
};

}  // namespace

std::span<const OpRow> LinearRows() { return kLinearRows; }

}  // namespace mlc
