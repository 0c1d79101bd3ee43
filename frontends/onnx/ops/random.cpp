// Random number generators. Without a seed, Core ML draws different numbers in each run.
#include <bit>
#include <cmath>

#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// ONNX's seed is a float. MIL's is an integer, where -1 means no seed.
int64_t Seed(Node& node) {
  if (!node.Has("seed")) return -1;
  float seed = static_cast<float>(node.Float("seed"));
  if (seed >= 0 && seed < 0x1p31f && seed == std::floor(seed)) return static_cast<int64_t>(seed);
  return std::bit_cast<uint32_t>(seed) & 0x7fffffff;
}

// The result type: attribute `dtype`, by default `otherwise`.
DType ResultType(Node& node, DType otherwise) {
  DType dtype = node.Has("dtype") ? ToDType(static_cast<int>(node.Int("dtype"))) : otherwise;
  if (!IsFloat(dtype) || lower::RuntimeType(dtype) == DType::kNone)
    node.Fail("unsupported-dtype", "random numbers of type {} are not supported", Name(dtype));
  return dtype;
}

Tensor Parameter(double value, DType dtype) {
  return Tensor::Full(lower::RuntimeType(dtype), {}, value);
}

// A distribution `op` with parameters `first` and `second`, sampled to a given shape.
struct Distribution {
  const char *op, *first, *second;
  const char *first_attribute, *second_attribute;
  double first_default, second_default;
};
constexpr Distribution kNormal = {"random_normal", "mean", "stddev", "mean", "scale", 0, 1};
constexpr Distribution kUniform = {"random_uniform", "low", "high", "low", "high", 0, 1};

template <const Distribution& kDistribution, bool kLike>
void Random(Node& node) {
  const Distribution& d = kDistribution;
  DType dtype = ResultType(node, kLike ? node.dtype() : DType::kFp32);
  Value* shape = kLike ? ShapeOf(node, node.In(0)) : node.Const(Tensor::Vector(node.Ints("shape")));
  double first = node.Float(d.first_attribute, d.first_default),
         second = node.Float(d.second_attribute, d.second_default);
  node.Set(node.Make(d.op, {{"shape", shape},
                            {d.first, Parameter(first, dtype)},
                            {d.second, Parameter(second, dtype)},
                            {"seed", Seed(node)}}),
           dtype);
}

// Each element is true with the probability given by the input.
void Bernoulli(Node& node) {
  Value* x = node.In(0);
  DType dtype = node.Has("dtype") ? ToDType(static_cast<int>(node.Int("dtype"))) : node.dtype();
  node.RequireRunTimeType(dtype, "results");
  Value* drawn = node.Make("random_uniform", {{"shape", ShapeOf(node, x)},
                                              {"low", Parameter(0, node.dtype())},
                                              {"high", Parameter(1, node.dtype())},
                                              {"seed", Seed(node)}});
  Value* hit = Binary(node, "less", drawn, x);
  node.Set(lower::Convert(node, hit, DType::kBool, dtype), dtype);
}

// Each row of the input holds the unnormalized log-probabilities of one distribution.
void Multinomial(Node& node) {
  DType dtype = ToDType(static_cast<int>(node.Int("dtype", 6)));
  if (!IsInteger(dtype))
    node.Fail("unsupported-dtype", "results of type {} are not supported", Name(dtype));
  Value* drawn = node.Make("random_categorical", {{"x", node.In(0)},
                                                  {"mode", "logits"},
                                                  {"size", node.Int("sample_size", 1)},
                                                  {"seed", Seed(node)}});
  node.Set(lower::Convert(node, drawn, node.dtype(), dtype), dtype);
}

// Zeroes each element with probability `ratio` and scales the others to preserve the mean.
void Drop(Node& node, Value* ratio, DType mask_type) {
  Builder& b = node.builder();
  Value* x = node.In(0);
  DType dtype = x->type.dtype;
  if (x->is_constant()) dtype = lower::RuntimeType(node.dtype());
  ratio = lower::Convert(b, ratio, node.dtype(1), node.dtype());
  Value* drawn = b.Make("random_uniform", {{"shape", ShapeOf(node, x)},
                                           {"low", Tensor::Full(dtype, {}, 0)},
                                           {"high", Tensor::Full(dtype, {}, 1)},
                                           {"seed", Seed(node)}});
  Value* kept = Binary(b, "greater_equal", drawn, ratio);
  Value* scaled = Binary(b, "real_div", x, Binary(b, "sub", 1.0, ratio));
  node.Set(0, b.Make("select", {{"cond", kept}, {"a", scaled}, {"b", 0.0}}), node.dtype());
  if (node.HasOutput(1)) node.Set(1, lower::Convert(b, kept, DType::kBool, mask_type), mask_type);
}

// At inference, Dropout is the identity. The mask has the type of the data before opset 10.
void Dropout(Node& node) {
  node.Ignore({"seed", "is_test", "consumed_inputs"});
  if (node.opset() < 12) node.Ignore({"ratio"});
  DType mask_type = node.opset() < 10 ? node.dtype() : DType::kBool;
  if (node.opset() >= 12 && node.HasInput(2)) {
    Tensor training = node.Constant(2, "training_mode");
    if (training.dtype() != DType::kBool || training.size() != 1)
      node.Fail("bad-operand", "training_mode must be a single bool");
    if (training.Bool(0)) {
      Value* ratio = node.HasInput(1) ? node.In(1) : node.Const(Tensor::Scalar(0.5f));
      Tensor known = ratio->constant();
      if (known && known.size() != 1) node.Fail("bad-operand", "ratio must be a single number");
      if (known && !(known.Double(0) >= 0 && known.Double(0) < 1))
        node.Fail("bad-operand", "ratio is {}, expected 0 to 1", known.Double(0));
      if (!known || known.Double(0) != 0) return Drop(node, ratio, mask_type);
    }
  }
  node.Set(0, node.In(0), node.dtype());
  if (!node.HasOutput(1)) return;
  Value* kept = node.Const(Tensor::Full(lower::RuntimeType(mask_type), {}, 1));
  node.Set(1,
           node.Make("fill", {{"shape", node.Make("shape", {{"x", node.In(0)}})}, {"value", kept}}),
           mask_type);
}

constexpr NodeRow kRandomRows[] = {
    {"Bernoulli", Bernoulli, 15},
    NodeRow("Dropout", Dropout).Folded(),
    NodeRow("Multinomial", Multinomial, 7).Direct(),
    NodeRow("RandomNormal", Random<kNormal, false>).Direct(),
    NodeRow("RandomNormalLike", Random<kNormal, true>).Direct(),
    NodeRow("RandomUniform", Random<kUniform, false>).Direct(),
    NodeRow("RandomUniformLike", Random<kUniform, true>).Direct(),
};

}  // namespace

std::span<const NodeRow> RandomRows() { return kRandomRows; }

}  // namespace mlc::onnx
