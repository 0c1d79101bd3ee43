
#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"
#include "lib/networks/norms.h"

namespace mlc::onnx {

namespace {

// Constants of a normalization are stored in the type of its input; inputs of lower precision may
// come with fp32 constants.
Value* As(Node& node, int input, DType dtype) {
  return lower::Convert(node, node.In(input), node.dtype(input), dtype);
}

// Returns input `i`, a vector with one element per channel (dimension 1) of x, in the type of x.
Value* ChannelsAs(Node& node, int i, Value*& x) {
  Value* vector = As(node, i, node.dtype());
  if (vector->type.rank() != 1)
    node.Fail("bad-operand", "input {} is {}, expected a vector", i, ToString(vector->type.shape));
  RequireEqualSize(
      node, x, 1, vector, 0,
      fmt::format("number of channels of {} and length of input {}", ToString(x->type.shape), i));
  return vector;
}

// Normalizes with the mean and variance of the batch; the running mean and variance are further
// outputs.
void TrainingNormalization(Node& node, double epsilon) {
  double momentum = node.Float("momentum", 0.9f);
  DType dtype = node.dtype();
  Value* x = node.In(0);
  int rank = x->type.rank();
  if (rank < 2) node.Fail("bad-operand", "the input has no channel dimension");
  Value *scale = ChannelsAs(node, 1, x), *bias = ChannelsAs(node, 2, x);
  std::vector<int64_t> axes = Consecutive(1, rank);
  axes[0] = 0;  // all but the channels
  Value* mean = networks::Mean(node, x, axes);
  Value* centred = Binary(node, "sub", x, mean);
  Value* variance = networks::Mean(node, node.Make("square", {{"x", centred}}), axes);
  Value* factor = networks::InverseRoot(node, variance, epsilon);
  factor = Binary(node, "mul", networks::PerChannel(node, scale, rank), factor);
  Value* added = networks::PerChannel(node, bias, rank);
  node.Set(Binary(node, "add", Binary(node, "mul", centred, factor), added), dtype);
  auto follow = [&](int output, Value* now) {
    if (!node.HasOutput(output)) return;
    DType own = node.dtype(output + 2);
    now = lower::Convert(node, Squeezed(node, now, axes), dtype, own);
    Value* kept = Binary(node, "mul", node.In(output + 2), momentum);
    node.Set(output, Binary(node, "add", kept, Binary(node, "mul", now, 1 - momentum)), own);
  };
  follow(1, mean);
  follow(2, variance);
}

void BatchNormalization(Node& node) {
  node.Ignore({"consumed_inputs"});
  double epsilon = node.Float("epsilon", 1e-5f);
  if (node.Int("training_mode", 0) != 0) return TrainingNormalization(node, epsilon);
  node.Ignore({"momentum"});
  if (node.opset() < 7 && node.Int("is_test", 0) == 0)
    node.builder().diagnostics().Warn(
        Error("unsupported-attribute",
              "BatchNormalization: is_test is 0 (training mode); compiled for inference with the "
              "stored mean and variance")
            .At(*node.builder().location()));
  bool spatial = node.Int("spatial", 1) != 0;  // 0: mean and variance also differ by position
  DType dtype = node.dtype();
  Value* x = node.In(0);
  int rank = x->type.rank();
  if (rank < 2 && spatial) node.Fail("bad-operand", "the input has no channel dimension");
  auto parameter = [&](int i) { return spatial ? ChannelsAs(node, i, x) : As(node, i, dtype); };
  Value *scale = parameter(1), *bias = parameter(2), *mean = parameter(3), *variance = parameter(4);
  bool constant =
      scale->is_constant() && bias->is_constant() && mean->is_constant() && variance->is_constant();
  if (spatial && constant && rank >= 3 && rank <= 5)
    return node.Set(node.Make("batch_norm", {{"x", x},
                                             {"mean", mean},
                                             {"variance", variance},
                                             {"gamma", scale},
                                             {"beta", bias},
                                             {"epsilon", epsilon}}),
                    dtype);
  if (spatial)
    for (Value** vector : {&scale, &bias, &mean, &variance})
      *vector = networks::PerChannel(node, *vector, rank);
  // The scale and offset applied to x are folded if the parameters are constants.
  Value* factor = Binary(node, "mul", scale, networks::InverseRoot(node, variance, epsilon));
  Value* offset = Binary(node, "sub", bias, Binary(node, "mul", mean, factor));
  node.Set(Binary(node, "add", Binary(node, "mul", x, factor), offset), dtype);
}

void InstanceNormalization(Node& node) {
  node.Ignore({"consumed_inputs"});
  double epsilon = node.Float("epsilon", 1e-5f);
  DType dtype = node.dtype();
  Value* x = node.In(0);
  int rank = x->type.rank();
  if (rank < 3) node.Fail("bad-operand", "the input has no spatial dimensions");
  Value *scale = ChannelsAs(node, 1, x), *bias = ChannelsAs(node, 2, x);
  if (rank > 5) node.Fail("rank-limit", "the input has rank {}, which is not supported", rank);
  if (scale->is_constant() && bias->is_constant())
    return node.Set(node.Make("instance_norm",
                              {{"x", x}, {"gamma", scale}, {"beta", bias}, {"epsilon", epsilon}}),
                    dtype);
  Value* normal = node.Make("instance_norm", {{"x", x}, {"epsilon", epsilon}});
  normal = Binary(node, "mul", normal, networks::PerChannel(node, scale, rank));
  node.Set(Binary(node, "add", normal, networks::PerChannel(node, bias, rank)), dtype);
}

void LayerNormalization(Node& node) {
  double epsilon = node.Float("epsilon", 1e-5f);
  node.Ignore({"stash_type"});  // intermediate results are fp32 in any case
  DType dtype = node.dtype();
  Value* x = node.In(0);
  int rank = x->type.rank();
  std::vector<int64_t> axes = Consecutive(node.Axis(node.Int("axis", -1), rank), rank);
  Value *scale = As(node, 1, dtype), *bias = node.HasInput(2) ? As(node, 2, dtype) : nullptr;
  Value* result = nullptr;
  if (node.HasOutput(1) || node.HasOutput(2)) {
    Value* mean = networks::Mean(node, x, axes);
    Value* centred = Binary(node, "sub", x, mean);
    networks::Normalized normal = networks::RmsNorm(node, centred, axes, scale, bias, epsilon,
                                                    Binary(node, "mul", centred, centred));
    result = normal.y;
    // They have the type that stash_type names: fp32 or bfloat16, even if the input is fp16.
    node.Set(1, mean, DType::kFp32);
    node.Set(2, normal.inverse, DType::kFp32);
  } else {
    result = networks::LayerNorm(node, x, axes, scale, bias, epsilon);
  }
  node.Set(OfShape(node, result, x, "the input"), dtype);
}

void RmsNormalization(Node& node) {
  double epsilon = node.Float("epsilon", 1e-5f);
  node.Ignore({"stash_type"});
  DType dtype = node.dtype();
  Value* x = node.In(0);
  int rank = x->type.rank();
  std::vector<int64_t> axes = Consecutive(node.Axis(node.Int("axis", -1), rank), rank);
  Value* squares = Binary(node, "mul", x, x);
  Value* result = networks::RmsNorm(node, x, axes, As(node, 1, dtype), nullptr, epsilon, squares).y;
  node.Set(OfShape(node, result, x, "the input"), dtype);
}

void GroupNormalization(Node& node) {
  double epsilon = node.Float("epsilon", 1e-5f);
  node.Ignore({"stash_type"});
  int64_t groups = node.Int("num_groups");
  DType dtype = node.dtype();
  Value* x = node.In(0);
  Shape shape = x->type.shape;
  int rank = x->type.rank();
  if (rank < 3) node.Fail("bad-operand", "the input has no spatial dimensions");
  bool per_channel = node.opset() >= 21;  // in opset 18 there is one scale per group
  Value *scale = per_channel ? ChannelsAs(node, 1, x) : As(node, 1, dtype),
        *bias = per_channel ? ChannelsAs(node, 2, x) : As(node, 2, dtype);
  shape = x->type.shape;
  Value* normal = networks::GroupNorm(node, x, groups, epsilon);
  int64_t channels = shape[1].constant();
  if (!per_channel)
    for (Value** vector : {&scale, &bias})
      if ((*vector)->type.rank() == 1)
        *vector = Sized(node, *vector, 0, groups, "scale and bias must have one element per group");
  auto spread = [&](Value* vector) {
    if (vector->type.rank() != 1) node.Fail("bad-operand", "scale and bias must be vectors");
    if (!per_channel && groups != channels) {
      vector = Expanded(node, vector, {1});
      vector = node.Make("tile", {{"x", vector}, {"reps", Ints({1, channels / groups})}});
      vector = WithShape(node, vector, {channels});
    }
    return networks::PerChannel(node, vector, rank);
  };
  bias = spread(bias);
  node.Set(Binary(node, "add", Binary(node, "mul", normal, spread(scale)), bias), dtype);
}

void Lrn(Node& node) {
  int64_t size = node.Int("size");
  double alpha = node.Float("alpha", 1e-4f), beta = node.Float("beta", 0.75),
         bias = node.Float("bias", 1.0);
  if (size < 1) node.Fail("bad-attribute", "size is {}, expected a positive number", size);
  if (node.rank() < 2)
    node.Fail("bad-operand", "the input has rank {}, expected 2 or more", node.rank());
  // Core ML documents ranks 3 and 4; at rank 3 it was observed to normalize over the wrong
  // channels.
  Value* x = node.In(0);
  if (node.rank() != 4) {
    Sizes flat(node);
    flat.AddDim(x, 0);
    flat.AddDim(x, 1);
    flat.Add(-1);
    flat.Add(1);
    x = node.Make("reshape", {{"x", x}, {"shape", flat.Make()}});
  }
  // For an even window size, the larger half is before the channel in MIL and after it in ONNX.
  auto turned = [&](Value* value) {
    return size % 2 ? value : node.Make("reverse", {{"x", value}, {"axes", Ints({1})}});
  };
  Value* y = turned(
      node.Make("local_response_norm",
                {{"x", turned(x)}, {"size", size}, {"alpha", alpha}, {"beta", beta}, {"k", bias}}));
  if (node.rank() != 4) y = node.Make("reshape", {{"x", y}, {"shape", ShapeOf(node, node.In(0))}});
  node.SetAlike(y);
}

void LpNormalization(Node& node) {
  int64_t p = node.Int("p", 2);
  if (p != 1 && p != 2) node.Unsupported("p", "p={}", p);
  int64_t axis = node.Axis(node.Int("axis", -1), node.rank());
  Value* norm = node.Make(p == 1 ? "reduce_l1_norm" : "reduce_l2_norm",
                          {{"x", node.In(0)}, {"axes", Ints({axis})}, {"keep_dims", true}});
  // Where the norm is 0, the result is 0.
  Value* zero = Binary(node, "equal", norm, 0.0);
  norm = Select(node, zero, 1.0, norm);
  node.SetAlike(Binary(node, "real_div", node.In(0), norm));
}

// scale * x + bias, with a bias per channel. Experimental operator, removed in opset 10.
void ImageScaler(Node& node) {
  if (node.rank() != 4) node.Fail("bad-operand", "the input must have four dimensions");
  std::vector<double> numbers = node.Floats("bias");
  std::vector<float> bias(numbers.begin(), numbers.end());
  Value* x = Sized(node, node.In(0), 1, static_cast<int64_t>(bias.size()),
                   "bias must have one element per channel");
  Value* vector =
      lower::Convert(node, node.Const(Tensor::Vector(bias)), DType::kFp32, node.dtype());
  Value* y = Binary(node, "mul", x, node.Float("scale", 1.0));
  node.SetAlike(Binary(node, "add", y, networks::PerChannel(node, vector, 4)));
}

// (x - mean) / (deviation + 1e-9), like the function body in the ONNX specification. Before opset 9
// the operator was experimental and had other attributes.
void MeanVarianceNormalization(Node& node) {
  Value* x = node.In(0);
  std::vector<int64_t> wanted = {0, 2, 3}, axes;
  if (node.opset() >= 9)
    wanted = node.Ints("axes", wanted);
  else if (node.Int("across_channels", 0) != 0)
    wanted.push_back(1);
  for (int64_t axis : wanted) axes.push_back(node.Axis(axis, x->type.rank()));
  Value* centred = Binary(node, "sub", x, networks::Mean(node, x, axes));
  if (node.opset() < 9 && node.Int("normalize_variance", 1) == 0) return node.SetAlike(centred);
  Value* deviation =
      node.Make("sqrt", {{"x", networks::Mean(node, Binary(node, "mul", centred, centred), axes)}});
  Value* divisor = Binary(node, "add", deviation, 1e-9);
  node.SetAlike(Binary(node, "real_div", centred, divisor));
}

constexpr NodeRow kNormalizationRows[] = {
    NodeRow("BatchNormalization", BatchNormalization).Direct(),
    {"GroupNormalization", GroupNormalization, 18},
    {"ImageScaler", ImageScaler, 1, 9},
    NodeRow("InstanceNormalization", InstanceNormalization).Direct(),
    NodeRow("LRN", Lrn).Direct(),
    // In ONNX since opset 17, but onnxruntime's optimizer writes it to models of any opset.
    NodeRow("LayerNormalization", LayerNormalization).Direct(),
    {"LpNormalization", LpNormalization},
    {"MeanVarianceNormalization", MeanVarianceNormalization},
    {"RMSNormalization", RmsNormalization, 23},
};

}  // namespace

std::span<const NodeRow> NormalizationRows() { return kNormalizationRows; }

}  // namespace mlc::onnx
