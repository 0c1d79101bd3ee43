#include "lib/gradients/derivatives.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "lib/ir/arithmetic.h"

namespace mlc::gradients {

namespace {

Dims DimsOf(const Value* value) { return StaticDims(value->type.shape); }

Value* Zeros(Builder& b, const Dims& dims) { return b.Const(Tensor::Full(DType::kFp32, dims, 0)); }

template <class X, class Y>
Value* Times(const Chain& c, X x, Y y) {
  return Binary(c.b, "mul", std::move(x), std::move(y));
}

Value* Negative(const Chain& c, Value* x) { return Times(c, x, -1.0); }

// ---- products and sums

void OfAdd(const Chain& c) {
  c.add(c.operand("x"), c.gradient());
  c.add(c.operand("y"), c.gradient());
}

void OfSub(const Chain& c) {
  c.add(c.operand("x"), c.gradient());
  if (c.needs(c.operand("y"))) c.add(c.operand("y"), Negative(c, c.gradient()));
}

void OfMul(const Chain& c) {
  Value *x = c.operand("x"), *y = c.operand("y");
  if (c.needs(x)) c.add(x, Times(c, c.gradient(), Operand(c.op.arg("y")[0])));
  if (c.needs(y)) c.add(y, Times(c, c.gradient(), Operand(c.op.arg("x")[0])));
}

void OfRealDiv(const Chain& c) {
  Value* y = c.operand("y");
  Value* by_x = Binary(c.b, "real_div", c.gradient(), Operand(c.op.arg("y")[0]));
  c.add(c.operand("x"), by_x);
  if (c.needs(y)) c.add(y, Negative(c, Times(c, by_x, c.op.result())));
}

void OfMatmul(const Chain& c) {
  Value *x = c.operand("x"), *y = c.operand("y"), *g = c.gradient();
  const bool transpose_x = c.op.constant_or_default("transpose_x").Ints()[0] != 0,
             transpose_y = c.op.constant_or_default("transpose_y").Ints()[0] != 0;
  auto product = [&](Value* a, bool transpose_a, Value* b, bool transpose_b) {
    return c.b.Make(
        "matmul", {{"x", a}, {"y", b}, {"transpose_x", transpose_a}, {"transpose_y", transpose_b}});
  };
  if (c.needs(x))
    c.add(x, transpose_x ? product(y, transpose_y, g, true) : product(g, false, y, !transpose_y));
  if (c.needs(y))
    c.add(y, transpose_y ? product(g, true, x, transpose_x) : product(x, !transpose_x, g, false));
}

void OfLinear(const Chain& c) {
  // The weight is a constant, or an input that Differentiate has turned into an operand of matmul.
  c.add(c.operand("x"), c.b.Make("matmul", {{"x", c.gradient()}, {"y", c.operand("weight")}}));
}

void OfGather(const Chain& c) {
  Value* table = c.operand("x");
  const Dims rows = DimsOf(table);
  Value* flat = WithShape(c.b, c.operand("indices"), {-1});
  Value* chosen = c.b.Make("one_hot", {{"indices", flat},
                                       {"one_hot_vector_size", rows[0]},
                                       {"on_value", Tensor::Scalar<float>(1)},
                                       {"off_value", Tensor::Scalar<float>(0)}});
  const int64_t size = ElementCount(rows) / rows[0];
  Value* sums = c.b.Make(
      "matmul",
      {{"x", chosen}, {"y", WithShape(c.b, c.gradient(), {-1, size})}, {"transpose_x", true}});
  c.add(table, WithShape(c.b, sums, rows));
}

// ---- functions of single elements

void OfSquare(const Chain& c) {
  c.add(c.operand("x"), Times(c, c.gradient(), Times(c, c.operand("x"), 2.0)));
}

void OfSqrt(const Chain& c) {
  c.add(c.operand("x"), Binary(c.b, "real_div", Times(c, c.gradient(), 0.5), c.op.result()));
}

void OfRsqrt(const Chain& c) {
  Value* y = c.op.result();
  c.add(c.operand("x"), Times(c, c.gradient(), Times(c, Times(c, Times(c, y, y), y), -0.5)));
}

void OfExp(const Chain& c) { c.add(c.operand("x"), Times(c, c.gradient(), c.op.result())); }

void OfSigmoid(const Chain& c) {
  Value* y = c.op.result();
  c.add(c.operand("x"),
        Times(c, c.gradient(), Times(c, y, Binary(c.b, "add", Negative(c, y), 1.0))));
}

void OfSilu(const Chain& c) {
  // y = x s; y' = s + y (1 - s)
  Value *y = c.op.result(), *s = c.b.Make("sigmoid", {{"x", c.operand("x")}});
  Value* slope = Binary(c.b, "add", s, Times(c, y, Binary(c.b, "add", Negative(c, s), 1.0)));
  c.add(c.operand("x"), Times(c, c.gradient(), slope));
}

void OfTanh(const Chain& c) {
  Value* y = c.op.result();
  c.add(c.operand("x"),
        Times(c, c.gradient(), Binary(c.b, "add", Negative(c, Times(c, y, y)), 1.0)));
}

// The gradient where a condition holds, and 0 elsewhere.
Value* Where(const Chain& c, Value* condition) { return Select(c.b, condition, c.gradient(), 0.0); }

void OfRelu(const Chain& c) {
  c.add(c.operand("x"), Where(c, Binary(c.b, "greater", c.operand("x"), 0.0)));
}

void OfSelect(const Chain& c) {
  if (c.needs(c.operand("a"))) c.add(c.operand("a"), Where(c, c.operand("cond")));
  if (c.needs(c.operand("b")))
    c.add(c.operand("b"), Select(c.b, c.operand("cond"), 0.0, c.gradient()));
}

void OfSoftmax(const Chain& c) {
  Value* y = c.op.result();
  const int64_t axis = c.op.constant_or_default("axis").Ints()[0];
  Value* mean = Reduced(c.b, "reduce_sum", Times(c, c.gradient(), y), {axis}, true);
  c.add(c.operand("x"), Times(c, y, Binary(c.b, "sub", c.gradient(), mean)));
}

// ---- sums over dimensions

void OfReduction(const Chain& c, bool mean) {
  Value* x = c.operand("x");
  const Dims dims = DimsOf(x);
  Dims kept = dims;
  std::vector<int64_t> axes;
  if (const Tensor given = c.op.constant("axes"))
    axes = given.Ints();
  else
    axes = Consecutive(0, std::ssize(dims));
  for (int64_t axis : axes) kept[axis < 0 ? axis + std::ssize(dims) : axis] = 1;
  const double factor =
      mean ? static_cast<double>(ElementCount(kept)) / static_cast<double>(ElementCount(dims)) : 1;
  c.add(x, Times(c, WithShape(c.b, c.gradient(), kept), Tensor::Full(DType::kFp32, dims, factor)));
}
void OfReduceSum(const Chain& c) { OfReduction(c, false); }
void OfReduceMean(const Chain& c) { OfReduction(c, true); }

// With n = (x - mean) / deviation, and h = gradient * gamma:
// h and its parts along 1 and n, which do not change n, over the deviation.
void OfLayerNorm(const Chain& c) {
  Value* x = c.operand("x");
  std::vector<int64_t> axes;
  if (const Tensor given = c.op.constant("axes"))
    axes = given.Ints();
  else
    axes = Consecutive(0, x->type.rank());
  auto mean = [&](Value* of) { return Reduced(c.b, "reduce_mean", of, axes, true); };
  Value* off = Binary(c.b, "sub", x, mean(x));
  const double epsilon = c.op.constant_or_default("epsilon").Doubles()[0];
  Value* inverse = c.b.Make("rsqrt", {{"x", mean(Times(c, off, off))}, {"epsilon", epsilon}});
  Value *n = Times(c, off, inverse), *h = c.gradient();
  if (c.op.has("gamma")) {
    // Gamma has the sizes of the axes.
    Dims dims(static_cast<size_t>(x->type.rank()), 1);
    for (const int64_t axis : axes) {
      const int64_t d = axis < 0 ? axis + std::ssize(dims) : axis;
      dims[d] = DimsOf(x)[d];
    }
    h = Times(c, h, WithShape(c.b, Operand(c.op.arg("gamma")[0]), dims));
  }
  Value* along_n = Times(c, n, mean(Times(c, h, n)));
  c.add(x, Times(c, inverse, Binary(c.b, "sub", Binary(c.b, "sub", h, mean(h)), along_n)));
}

bool KeepsGamma(const Operation& op) {
  // Gamma and beta that depend on weights would need gradients of their own.
  return (!op.has("gamma") || op.constant("gamma")) && (!op.has("beta") || op.constant("beta"));
}

// ---- moves

void OfReshape(const Chain& c) {
  c.add(c.operand("x"), WithShape(c.b, c.gradient(), DimsOf(c.operand("x"))));
}

void OfCast(const Chain& c) { c.add(c.operand("x"), c.gradient()); }

void OfTranspose(const Chain& c) {
  const std::vector<int64_t> perm = c.op.constant("perm").Ints();
  std::vector<int64_t> back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    back[perm[i] < 0 ? perm[i] + std::ssize(perm) : perm[i]] = static_cast<int64_t>(i);
  c.add(c.operand("x"), Transposed(c.b, c.gradient(), back));
}

int64_t AxisOf(const Operation& op, int64_t rank) {
  const int64_t axis = op.constant_or_default("axis").Ints()[0];
  return axis < 0 ? axis + rank : axis;
}

void OfConcat(const Chain& c) {
  const int64_t axis = AxisOf(c.op, c.op.result()->type.rank());
  int64_t begin = 0;
  for (const Operand& part : c.op.arg("values")) {
    const int64_t size = part.value ? DimsOf(part.value)[axis] : part.constant().dims()[axis];
    if (part.value && c.needs(part.value))
      c.add(part.value, SliceAlong(c.b, c.gradient(), axis, begin, begin + size, false));
    begin += size;
  }
}

void OfSplit(const Chain& c) {
  std::vector<Value*> parts = c.of_results;
  for (size_t i = 0; i < parts.size(); ++i)
    if (!parts[i]) parts[i] = Zeros(c.b, DimsOf(c.op.result(static_cast<int>(i))));
  c.add(c.operand("x"), Concat(c.b, parts, AxisOf(c.op, DimsOf(c.operand("x")).size())));
}

// The part of a tensor that slice_by_index takes, or slice_update replaces.
struct Region {
  Dims begin, end, dims;  // dims: those of the part, with the dimensions that are removed

  Region(const Operation& op, const Dims& all) : begin(all.size(), 0), end(all), dims(all) {
    auto flags = [&](std::string_view param) {
      const Tensor given = op.constant(param);
      return given ? given.Ints() : std::vector<int64_t>(all.size(), 0);
    };
    const std::vector<int64_t> from = op.constant("begin").Ints(), to = op.constant("end").Ints(),
                               from_start = flags("begin_mask"), to_end = flags("end_mask"),
                               single = flags("squeeze_mask");
    for (size_t d = 0; d < all.size(); ++d) {
      if (!from_start[d]) begin[d] = from[d] < 0 ? from[d] + all[d] : from[d];
      if (!to_end[d]) end[d] = to[d] < 0 ? to[d] + all[d] : to[d];
      if (single[d]) end[d] = begin[d] + 1;
      end[d] = std::min(end[d], all[d]);
      dims[d] = end[d] - begin[d];
    }
  }
};

bool HasRegion(const Operation& op) {
  if (!op.constant("begin") || !op.constant("end")) return false;
  const Tensor stride = op.constant("stride");
  if (op.has("stride") && !stride) return false;
  return !stride || std::ranges::all_of(stride.Ints(), [](int64_t s) { return s == 1; });
}

void OfSliceByIndex(const Chain& c) {
  const Dims all = DimsOf(c.operand("x"));
  const Region region(c.op, all);
  c.add(c.operand("x"),
        c.b.Make("slice_update", {{"x", Zeros(c.b, all)},
                                  {"update", WithShape(c.b, c.gradient(), region.dims)},
                                  {"begin", Ints(region.begin)},
                                  {"end", Ints(region.end)}}));
}

void OfSliceUpdate(const Chain& c) {
  Value *x = c.operand("x"), *update = c.operand("update");
  const Region region(c.op, DimsOf(c.op.result()));
  if (c.needs(update))
    c.add(update, WithShape(c.b, SliceBetween(c.b, c.gradient(), region.begin, region.end),
                            DimsOf(update)));
  if (x && c.needs(x))
    c.add(x, c.b.Make("slice_update", {{"x", c.gradient()},
                                       {"update", Zeros(c.b, region.dims)},
                                       {"begin", Ints(region.begin)},
                                       {"end", Ints(region.end)}}));
}

// ---- the table

bool Always(const Operation&) { return true; }
bool OfRows(const Operation& op) {
  const Tensor axis = op.constant_or_default("axis"), batch = op.constant("batch_dims");
  return axis.Ints()[0] == 0 && (!batch || batch.Ints()[0] == 0);
}
bool ToFloat(const Operation& op) {
  return IsFloat(op.value("x")->type.dtype) && IsFloat(op.result()->type.dtype);
}
bool NotInterleaved(const Operation& op) {
  const Tensor interleave = op.constant("interleave");
  return !interleave || interleave.Ints()[0] == 0;
}

struct Row {
  std::string_view op;
  Derivative derivative;
  bool (*applies)(const Operation&) = Always;  // to this use of the operator
};

constexpr Row kRows[] = {
    {"add", OfAdd},
    {"cast", OfCast, ToFloat},
    {"concat", OfConcat, NotInterleaved},
    {"exp", OfExp},
    {"expand_dims", OfReshape},
    {"gather", OfGather, OfRows},
    {"identity", OfCast},
    {"layer_norm", OfLayerNorm, KeepsGamma},
    {"linear", OfLinear},
    {"matmul", OfMatmul},
    {"mul", OfMul},
    {"real_div", OfRealDiv},
    {"reduce_mean", OfReduceMean},
    {"reduce_sum", OfReduceSum},
    {"relu", OfRelu},
    {"reshape", OfReshape},
    {"rsqrt", OfRsqrt},
    {"select", OfSelect},
    {"sigmoid", OfSigmoid},
    {"silu", OfSilu},
    {"slice_by_index", OfSliceByIndex, HasRegion},
    {"slice_update", OfSliceUpdate, HasRegion},
    {"softmax", OfSoftmax},
    {"split", OfSplit},
    {"sqrt", OfSqrt},
    {"square", OfSquare},
    {"squeeze", OfReshape},
    {"sub", OfSub},
    {"tanh", OfTanh},
    {"transpose", OfTranspose},
};

}  // namespace

Derivative DerivativeOf(const Operation& op) {
  const auto row = std::ranges::find(kRows, op.def->name, &Row::op);
  return row != std::end(kRows) && row->applies(op) ? row->derivative : nullptr;
}

}  // namespace mlc::gradients
