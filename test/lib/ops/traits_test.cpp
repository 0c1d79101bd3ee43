// The traits of every row, held against its evaluation on drawn operands.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "lib/ops/range.h"
#include "test/catch.h"
#include "test/lib/ops/evaluate.h"

namespace mlc::test {
namespace {

class Draw {
 public:
  explicit Draw(uint32_t seed) : engine_(seed) {}
  int64_t Int(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  double Real(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine_);
  }
  bool Coin() { return Int(0, 1) == 1; }
  template <class T>
  T Of(std::initializer_list<T> list) {
    return list.begin()[Int(0, static_cast<int64_t>(list.size()) - 1)];
  }
  Dims Sizes(int least, int most) {
    Dims dims(static_cast<size_t>(Int(least, most)));
    for (int64_t& dim : dims) dim = Int(1, 4);
    return dims;
  }
  // Numbers of an interval of any size and place; now and then its ends, or one number only.
  Tensor Numbers(const Dims& dims, DType dtype) {
    double size = Of({0.0, 0.01, 1.0, 3.0, 50.0, 1000.0}), low = Of({-size, 0.0, 0.1, -size / 3});
    return Between(dims, dtype, low, low + size);
  }
  Tensor Between(const Dims& dims, DType dtype, double low, double high) {
    std::vector<double> values(static_cast<size_t>(ElementCount(dims)));
    for (double& value : values) {
      value = Int(0, 7) == 0 ? Of({low, high}) : Real(low, high);
      if (IsInteger(dtype) || dtype == DType::kBool) value = std::floor(value);
      if (dtype == DType::kBool) value = static_cast<double>(Int(0, 1));
      value += 0.0;  // not -0
    }
    return Tensor::Of<double>(dims, values).Cast(dtype);
  }
  Tensor Whole(const Dims& dims, int64_t low, int64_t high) {
    std::vector<int32_t> values(static_cast<size_t>(ElementCount(dims)));
    for (int32_t& value : values) value = static_cast<int32_t>(Int(low, high));
    return I32(dims, values);
  }
  std::vector<int64_t> Order(int64_t rank) {
    std::vector<int64_t> order(static_cast<size_t>(rank));
    for (int64_t i = 0; i < rank; ++i) order[static_cast<size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), engine_);
    return order;
  }
  DType Float() { return Of({DType::kFp16, DType::kFp32}); }
  // Of those that a parameter takes and that the cases are drawn in.
  DType TypeOf(DTypeSet types) {
    std::vector<DType> all;
    for (DType dtype : {DType::kFp16, DType::kFp32, DType::kInt32, DType::kBool})
      if (Contains(types, dtype)) all.push_back(dtype);
    return all.at(static_cast<size_t>(Int(0, static_cast<int64_t>(all.size()) - 1)));
  }

 private:
  std::mt19937 engine_;
};

using Case = std::vector<In>;

Tensor Ints32(std::vector<int32_t> values) { return Tensor::Vector(values); }
Tensor Axis(Draw& draw, size_t rank) {
  int64_t n = static_cast<int64_t>(rank);
  return Tensor::Scalar<int32_t>(static_cast<int32_t>(draw.Int(-n, n - 1)));
}
Tensor Text(std::string_view text) { return Tensor::String(std::string(text)); }
Tensor Truth(bool value) { return Tensor::Scalar<bool>(value); }
Tensor Number(int64_t value) { return Tensor::Scalar<int32_t>(static_cast<int32_t>(value)); }

// Operators with a layout, from their signature: data of one shape (sizes of 1 in some), axes, and
// scalars.
// Parameters that rows with a layout may have and that keep their defaults here.
constexpr std::string_view kAsDefault[] = {"begin_mask",   "end_mask",    "interleave",  "mode",
                                           "output_dtype", "split_sizes", "squeeze_mask"};
bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Case DrawFlexible(const OpDef& def, Draw& draw, size_t least_rank, bool keeps_rank) {
  Dims dims = draw.Sizes(static_cast<int>(least_rank), 4);
  Case operands;
  std::map<char, DType> domains;
  for (const Param& param : def.canonical().params) {
    DType dtype = param.domain
                      ? domains.try_emplace(param.domain, draw.TypeOf(param.types)).first->second
                  : Contains(param.types, DType::kBool) && !Contains(param.types, DType::kFp32)
                      ? DType::kBool
                      : DType::kInt32;
    const Layout& layout = def.layout;
    if (std::find(layout.data.begin(), layout.data.end(), param.name) != layout.data.end()) {
      for (int64_t n = param.variadic ? draw.Int(1, 3) : 1; n > 0; --n) {
        Dims own = dims;
        if (layout.data[1] != "")
          for (int64_t& dim : own)
            if (draw.Int(0, 4) == 0) dim = 1;
        if (def.name == "squeeze") own.front() = 1;
        operands.emplace_back(param.name, draw.Numbers(own, dtype));
      }
    } else if (param.name == "axis") {
      operands.emplace_back("axis", Axis(draw, dims.size()));
    } else if (param.name == "axes") {
      std::vector<int32_t> axes;
      int64_t count = draw.Int(1, static_cast<int64_t>(dims.size()));
      for (int64_t axis : draw.Order(static_cast<int64_t>(dims.size())))
        if (std::ssize(axes) < count) axes.push_back(static_cast<int32_t>(axis));
      if (def.name == "squeeze" || def.name == "expand_dims") axes = {0};
      operands.emplace_back("axes", Ints32(axes));
    } else if (param.name == "keep_dims") {
      operands.emplace_back("keep_dims", Truth(keeps_rank || draw.Coin()));
    } else if (param.name == "alpha" || param.name == "beta") {
      bool bounds = def.name == "clip";
      double low = bounds && param.name == "beta" ? 2 : -2;
      operands.emplace_back(param.name, draw.Between({}, dtype, low, bounds ? low + 2 : low + 4));
    } else if (param.name == "epsilon") {
      operands.emplace_back("epsilon", draw.Between({}, dtype, 1e-3, 0.1));
    } else if (param.name == "exclusive" || param.name == "reverse") {
      operands.emplace_back(param.name, Truth(draw.Coin()));
    } else if (param.name == "num_splits") {
      operands.emplace_back("num_splits", Number(1));
    } else if (def.name == "gelu") {
      operands.emplace_back("mode", Text(draw.Of<std::string_view>(
                                        {"EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION"})));
    } else if (def.name == "cast") {
      operands.emplace_back(
          "dtype",
          Text(draw.Of<std::string_view>({"fp16", "fp32", "int32", "uint8", "int8", "bool"})));
    } else if (def.name == "reshape") {
      operands.emplace_back("shape", Ints32({-1}));
    } else if (def.name == "pad" && param.name == "pad") {
      operands.emplace_back("pad", draw.Whole({2 * static_cast<int64_t>(dims.size())}, 0, 2));
    } else if (def.name == "pad" && param.name == "constant_val") {
      operands.emplace_back("constant_val", draw.Numbers({}, dtype));
    } else if (def.name == "tile") {
      operands.emplace_back("reps", draw.Whole({static_cast<int64_t>(dims.size())}, 1, 3));
    } else if (param.name == "begin" || param.name == "end" || param.name == "size") {
      std::vector<int32_t> places;
      for (int64_t dim : dims)
        places.push_back(static_cast<int32_t>(param.name == "begin" ? 0 : draw.Int(1, dim)));
      operands.emplace_back(param.name, Ints32(places));
    } else if (param.name == "stride") {
      operands.emplace_back("stride", draw.Whole({static_cast<int64_t>(dims.size())}, 1, 2));
    } else if (!Contains(kAsDefault, param.name)) {
      FAIL(def.name << ": nothing draws \"" << param.name << "\"; DrawFlexible should");
    }
  }
  return operands;
}

// x [2, 4, 4, 4] or so, in fp16 or fp32.
Tensor Image(Draw& draw, int64_t channels = 4) {
  return draw.Numbers({draw.Int(1, 2), channels, 4, 4}, draw.Float());
}
Case WithWindow(Draw& draw, Case operands) {
  operands.emplace_back("kernel_sizes", draw.Whole({2}, 1, 3));
  operands.emplace_back("strides", draw.Whole({2}, 1, 2));
  operands.emplace_back("pad_type", Text(draw.Of<std::string_view>({"valid", "same"})));
  return operands;
}
Case Convolution(Draw& draw, bool transposed) {
  int64_t groups = draw.Int(1, 2), in = 2 * groups, out = 2 * groups;
  Tensor x = Image(draw, in);
  Dims weight = transposed ? Dims{in, out / groups, 3, 2} : Dims{out, in / groups, 3, 2};
  Case operands = {{"x", x},
                   {"weight", draw.Numbers(weight, x.dtype())},
                   {"groups", Number(groups)},
                   {"pad_type", Text("custom")},
                   {"pad", Ints32({1, 1, 0, 1})},
                   {"strides", draw.Whole({2}, 1, 2)}};
  if (draw.Coin()) operands.emplace_back("bias", draw.Numbers({out}, x.dtype()));
  return operands;
}
Case Recurrent(Draw& draw, int64_t gates) {
  DType dtype = draw.Float();
  int64_t hidden = draw.Int(1, 3), inputs = draw.Int(1, 3);
  Case operands = {{"x", draw.Numbers({draw.Int(1, 4), 2, inputs}, dtype)},
                   {"initial_h", draw.Numbers({2, hidden}, dtype)},
                   {"weight_ih", draw.Numbers({gates * hidden, inputs}, dtype)},
                   {"weight_hh", draw.Numbers({gates * hidden, hidden}, dtype)},
                   {"output_sequence", Truth(draw.Coin())},
                   {"activation", Text(draw.Of<std::string_view>({"tanh", "sigmoid", "relu"}))}};
  if (gates == 4) operands.emplace_back("initial_c", draw.Numbers({2, hidden}, dtype));
  return operands;
}
Case Resampled(Draw& draw, Case operands) {
  operands.emplace_back("sampling_mode", Text(draw.Of<std::string_view>({"bilinear", "nearest"})));
  operands.emplace_back("padding_mode",
                        Text(draw.Of<std::string_view>({"constant", "border", "reflection"})));
  operands.emplace_back("coordinates_mode", Text("unnormalized"));
  operands.emplace_back("align_corners", Truth(true));
  operands.emplace_back("padding_value", draw.Numbers({}, operands.front().value.dtype()));
  return operands;
}
Case Scattered(Draw& draw, std::string_view op) {
  DType dtype = draw.Of({DType::kFp16, DType::kFp32, DType::kInt32});
  Case operands = {
      {"data", draw.Numbers({4, 3}, dtype)},
      {"mode",
       Text(draw.Of<std::string_view>({"add", "sub", "mul", "div", "max", "min", "update"}))}};
  if (dtype == DType::kInt32) operands.back() = {"mode", Text("add")};  // it divides by no 0
  bool along = op == "scatter_along_axis", nd = op == "scatter_nd";
  operands.emplace_back("indices", along ? draw.Whole({2, 3}, 0, 3)
                                   : nd  ? draw.Whole({5, 1}, 0, 3)
                                         : draw.Whole({5}, 0, 3));
  operands.emplace_back("updates", draw.Numbers(along ? Dims{2, 3} : Dims{5, 3}, dtype));
  if (!nd) operands.emplace_back("axis", Number(0));
  return operands;
}
Case Norm(Draw& draw, std::string_view op) {
  Tensor x = Image(draw);
  Case operands = {{"x", x}};
  if (op == "local_response_norm") {
    operands.emplace_back("size", Number(draw.Int(1, 3)));
    operands.emplace_back("k", draw.Between({}, x.dtype(), 0.5, 2));
    return operands;
  }
  operands.emplace_back("epsilon", draw.Between({}, x.dtype(), 1e-3, 0.1));
  if (op == "l2_norm") return operands;
  if (op == "layer_norm") operands.emplace_back("axes", Ints32({1}));
  for (std::string_view param : {"gamma", "beta"})
    if (draw.Coin()) operands.emplace_back(param, draw.Numbers({4}, x.dtype()));
  if (op != "batch_norm") return operands;
  operands.emplace_back("mean", draw.Numbers({4}, x.dtype()));
  operands.emplace_back("variance", draw.Between({4}, x.dtype(), 0, 4));
  return operands;
}

// The operators whose operands hang together in their own way.
Case DrawOwn(const OpDef& def, Draw& draw) {
  std::string_view op = def.name;
  DType dtype = draw.Float();
  Dims dims = draw.Sizes(1, 3);
  auto alone = [&](Case operands) { return operands; };
  if (op == "prelu") {
    Tensor x = Image(draw);
    return {{"x", x}, {"alpha", draw.Numbers({4}, x.dtype())}};
  }
  if (op == "softplus_parametric") {
    Tensor x = Image(draw);
    return {{"x", x},
            {"alpha", draw.Numbers({4}, x.dtype())},
            {"beta", draw.Between({4}, x.dtype(), -1, 1)}};
  }
  if (op == "constexpr_affine_dequantize")
    return {{"quantized_data", draw.Between({4, 3}, DType::kInt8, -128, 127)},
            {"zero_point", draw.Between({4}, DType::kInt8, -128, 127)},
            {"scale", draw.Between({4}, dtype, -2, 2)},
            {"axis", Number(0)}};
  if (op == "constexpr_blockwise_shift_scale") {
    Case operands = {{"data", draw.Between({4, 6}, DType::kInt8, -128, 127)},
                     {"scale", draw.Between({2, 3}, dtype, -2, 2)}};
    if (draw.Coin()) operands.emplace_back("offset", draw.Between({2, 3}, DType::kInt8, -128, 127));
    return operands;
  }
  if (op == "constexpr_cast")
    return {{"source_val", draw.Numbers(dims, DType::kFp16)}, {"output_dtype", Text("fp32")}};
  if (op == "constexpr_lut_to_dense")
    return {{"indices", draw.Between({4, 6}, DType::kUint8, 0, 3).Cast(DType::kUint2)},
            {"lut", draw.Numbers({1, 1, 4, 1}, dtype)}};
  if (op == "constexpr_lut_to_sparse")
    return {{"indices_mask", Tensor::Full(DType::kUint1, {4, 6}, 1)},
            {"indices_nonzero_data", draw.Between({24}, DType::kUint8, 0, 3).Cast(DType::kUint2)},
            {"lut", draw.Numbers({1, 1, 4, 1}, dtype)}};
  if (op == "constexpr_sparse_blockwise_shift_scale")
    return {{"data_mask", Tensor::Full(DType::kUint1, {4, 6}, 1)},
            {"nonzero_data", draw.Between({24}, DType::kInt8, -128, 127)},
            {"scale", draw.Between({2, 3}, dtype, -2, 2)},
            {"offset", draw.Between({2, 3}, DType::kInt8, -128, 127)}};
  if (op == "constexpr_sparse_to_dense")
    return {{"nonzero_data", draw.Numbers({3}, dtype)},
            {"mask", Tensor::Vector<uint8_t>({1, 0, 1, 0, 1, 0}).Cast(DType::kUint1)}};
  if (op == "conv" || op == "conv_transpose") return Convolution(draw, op == "conv_transpose");
  if (op == "affine")
    return {{"x", draw.Numbers({1, 2, 4, 4}, dtype)},
            {"transform_matrix", draw.Between({1, 6}, dtype, -2, 2)},
            {"output_height", Number(3)},
            {"output_width", Number(5)},
            {"sampling_mode", Text("bilinear")},
            {"padding_mode", Text("constant")},
            {"padding_value", draw.Between({}, dtype, 0, 0)},
            {"coordinates_mode", Text("normalized_minus_one_to_one")},
            {"align_corners", Truth(true)}};
  if (op == "resample")
    return Resampled(draw, {{"x", draw.Numbers({1, 2, 4, 4}, dtype)},
                            {"coordinates", draw.Between({1, 3, 3, 2}, DType::kFp32, -2, 6)}});
  if (op == "crop")
    return {{"x", Image(draw)}, {"crop_height", Ints32({1, 1})}, {"crop_width", Ints32({0, 1})}};
  if (op == "crop_resize")
    return {{"x", draw.Numbers({1, 2, 4, 4}, dtype)},
            {"boxes", draw.Between({3, 4}, dtype, -1, 6)},
            {"box_indices", Ints32({0, 0, 0})},
            {"target_height", Number(2)},
            {"target_width", Number(3)},
            {"pad_value", draw.Numbers({}, dtype)}};
  if (op == "resize")
    return {
        {"x", Image(draw)},
        {"shape", Ints32({5, 3})},
        {"resized_dims", Tensor::Scalar<int32_t>(2).Cast(DType::kUint32)},
        {"interpolation_mode", Text(draw.Of<std::string_view>({"LINEAR", "NEAREST_NEIGHBOR"}))}};
  if (op == "resize_bilinear" || op == "resize_nearest_neighbor")
    return {
        {"x", Image(draw)}, {"target_size_height", Number(5)}, {"target_size_width", Number(3)}};
  if (op == "upsample_bilinear")
    return {{"x", Image(draw)},
            {"scale_factor_height", Number(2)},
            {"scale_factor_width", Number(3)},
            {"align_corners", Truth(draw.Coin())}};
  if (op == "upsample_nearest_neighbor")
    return {
        {"x", Image(draw)}, {"scale_factor_height", Number(2)}, {"scale_factor_width", Number(3)}};
  if (op == "einsum")
    return {{"values", draw.Numbers({2, 3, 4}, dtype)},
            {"values", draw.Numbers({4, 3, 5}, dtype)},
            {"equation", Text("chw,whr->chr")}};
  if (op == "linear" || op == "matmul") {
    dtype = draw.Of({DType::kFp16, DType::kFp32, DType::kInt32});
    Tensor x = draw.Numbers({2, 3}, dtype);
    if (op == "linear")
      return {
          {"x", x}, {"weight", draw.Numbers({4, 3}, dtype)}, {"bias", draw.Numbers({4}, dtype)}};
    bool transposed = draw.Coin();
    return {{"x", x},
            {"y", draw.Numbers(transposed ? Dims{4, 3} : Dims{3, 4}, dtype)},
            {"transpose_y", Truth(transposed)}};
  }
  if (op == "scaled_dot_product_attention")
    return {{"query", draw.Numbers({1, 2, 3}, dtype)},
            {"key", draw.Numbers({1, 4, 3}, dtype)},
            {"value", draw.Numbers({1, 4, 5}, dtype)}};
  if (op == "list_length") return {{"ls", draw.Numbers({3, 2}, dtype)}};
  if (op.ends_with("_norm")) return Norm(draw, op);
  if (op.ends_with("_pool")) return WithWindow(draw, {{"x", Image(draw)}});
  if (op == "dequantize")
    return {{"input", draw.Between({4, 3}, DType::kInt8, -128, 127)},
            {"zero_point", draw.Between({}, DType::kInt8, -128, 127)},
            {"scale", draw.Between({}, dtype, -2, 2)}};
  if (op == "quantize")
    return {{"input", draw.Numbers({4, 3}, dtype)},
            {"scale", draw.Between({}, dtype, 0.01, 2)},
            {"output_dtype", Text(draw.Of<std::string_view>({"int8", "uint8"}))}};
  if (op == "random_bernoulli")
    return {{"shape", Ints32({5})}, {"prob", draw.Between({}, dtype, 0, 1)}, {"seed", Number(3)}};
  if (op == "random_categorical")
    return {{"x", draw.Between({2, 3}, dtype, -2, 2)}, {"size", Number(5)}, {"seed", Number(3)}};
  if (op == "random_uniform")
    return {{"shape", Ints32({5})},
            {"low", draw.Between({}, dtype, -2, 0)},
            {"high", draw.Between({}, dtype, 1, 2)},
            {"seed", Number(draw.Int(0, 1000))}};
  if (op == "gru" || op == "lstm" || op == "rnn")
    return Recurrent(draw, op == "gru" ? 3 : op == "lstm" ? 4 : 1);
  if (op == "gather")
    return {{"x", draw.Numbers({3, 4}, dtype)},
            {"indices", draw.Whole({2, 2}, 0, 2)},
            {"axis", Number(draw.Int(0, 1))}};
  if (op == "gather_along_axis")
    return {{"x", draw.Numbers({3, 4}, dtype)},
            {"indices", draw.Whole({2, 4}, 0, 2)},
            {"axis", Number(0)}};
  if (op == "gather_nd")
    return {{"x", draw.Numbers({3, 4}, dtype)}, {"indices", draw.Whole({5, 2}, 0, 2)}};
  if (op.starts_with("scatter")) return Scattered(draw, op);
  if (op == "argsort") return {{"x", draw.Numbers(dims, dtype)}, {"axis", Axis(draw, dims.size())}};
  if (op == "topk")
    return {{"x", draw.Numbers(dims, dtype)}, {"axis", Axis(draw, dims.size())}, {"k", Number(1)}};
  if (op == "non_maximum_suppression")
    return {{"boxes", draw.Numbers({1, 5, 4}, dtype)},
            {"scores", draw.Numbers({1, 5, 2}, dtype)},
            {"iou_threshold", draw.Between({}, dtype, 0, 1)},
            {"score_threshold", draw.Between({}, dtype, -1, 1)},
            {"max_boxes", Number(3)}};
  if (op == "flatten2d") return {{"x", draw.Numbers(dims, dtype)}, {"axis", Number(1)}};
  if (op == "reshape_like")
    return {{"x", draw.Numbers({2, 3}, dtype)},
            {"ref_tensors", draw.Numbers({6}, dtype)},
            {"begins", Number(0)},
            {"ends", Number(1)},
            {"end_masks", Truth(false)}};
  if (op == "reverse_sequence")
    return {{"x", draw.Numbers({3, 4}, dtype)},
            {"lengths", draw.Whole({3}, 1, 4)},
            {"seq_axis", Number(1)},
            {"batch_axis", Number(0)}};
  if (op == "stack")
    return {{"values", draw.Numbers(dims, dtype)},
            {"values", draw.Numbers(dims, dtype)},
            {"axis", Number(0)}};
  if (op == "transpose") {
    std::vector<int32_t> perm;
    for (int64_t axis : draw.Order(std::ssize(dims))) perm.push_back(static_cast<int32_t>(axis));
    return {{"x", draw.Numbers(dims, dtype)}, {"perm", Ints32(perm)}};
  }
  if (op == "slice_update")
    return {{"x", draw.Numbers({4, 3}, dtype)},
            {"update", draw.Numbers({2, 3}, dtype)},
            {"begin", Ints32({1, 0})},
            {"end", Ints32({3, 3})}};
  if (op == "sliding_windows")
    return {{"x", draw.Numbers({4, 3}, dtype)}, {"axis", Number(0)}, {"size", Number(2)}};
  if (op == "batch_to_space" || op == "space_to_batch") {
    bool to_space = op == "batch_to_space";
    return {{"x", draw.Numbers({4, 2, 4, 4}, dtype)},
            {"block_shape", Ints32({2, 2})},
            {to_space ? "crops" : "paddings", I32({2, 2}, {0, 0, 1, 1})}};
  }
  if (op == "depth_to_space" || op == "space_to_depth")
    return {{"x", Image(draw)}, {"block_size", Number(2)}};
  if (op == "pixel_shuffle") return {{"x", Image(draw)}, {"upscale_factor", Number(2)}};
  if (op == "pixel_unshuffle")
    return {{"x", Image(draw)}, {"downscale_factor", Number(2).Cast(DType::kUint32)}};
  if (op == "band_part")
    return {{"x", draw.Numbers({3, 4}, dtype)},
            {"lower", Number(draw.Int(-1, 2))},
            {"upper", Number(1)}};
  if (op == "fill") return {{"shape", Ints32({2, 3})}, {"value", draw.Numbers({}, dtype)}};
  if (op == "fill_like")
    return {{"ref_tensor", draw.Numbers(dims, dtype)}, {"value", draw.Numbers({}, dtype)}};
  if (op == "non_zero" || op == "shape") return alone({{"x", draw.Numbers(dims, dtype)}});
  if (op == "one_hot")
    return {{"indices", draw.Whole(dims, 0, 3)},
            {"one_hot_vector_size", Number(4)},
            {"on_value", draw.Numbers({}, dtype)},
            {"off_value", draw.Numbers({}, dtype)}};
  if (op == "range_1d") {
    bool down = draw.Coin();
    return {{"start", draw.Between({}, DType::kFp32, down ? 5 : -5, down ? 6 : -4)},
            {"end", draw.Between({}, DType::kFp32, down ? -5 : 5, down ? -4 : 6)},
            {"step", draw.Between({}, DType::kFp32, down ? -2 : 0.3, down ? -0.3 : 2)}};
  }
  FAIL("no operands are drawn for " << op);
  return {};
}

Case DrawOperands(const OpDef& def, Draw& draw) {
  return def.layout.data[0].empty() ? DrawOwn(def, draw) : DrawFlexible(def, draw, 1, false);
}

RangeContext ContextOf(const OpDef& def, const Case& operands, std::vector<Type> types) {
  RangeContext::Intervals intervals(def.canonical().params.size());
  for (const In& each : operands)
    intervals[static_cast<size_t>(def.Find(each.param))].push_back(IntervalOf(each.value));
  return RangeContext(def, ArgsOf(def, operands), std::move(intervals), std::move(types));
}

// What is wrong with the interval of a result for these operands; empty when nothing is. Counts the
// elements that were held against one.
std::string Outside(const OpDef& def, const Case& operands, int64_t& looked_at) {
  std::vector<Type> types = Infer(def.name, operands).results;
  std::vector<Tensor> results = EvaluateAll(def.name, operands);
  RangeContext context = ContextOf(def, operands, types);
  for (size_t i = 0; i < results.size(); ++i) {
    Interval range = RangeOf(context, static_cast<int>(i));
    for (double element : results[i].Doubles()) {
      looked_at += !std::isnan(element);
      if (!std::isnan(element) && !range.Contains(element))
        return fmt::format("result {}: {} is outside [{}, {}]", i, element, range.low, range.high);
    }
  }
  return "";
}

}  // namespace

TEST_CASE("traits: results lie in the interval that their row promises", "[traits]") {
  constexpr uint32_t kCases = 1000;
  for (const OpDef& def : Ops().all()) {
    // const has its value, list_length a list, for an operand.
    if (!def.range || def.is_const() || def.effect == Effect::kList) continue;
    std::string wrong;
    uint32_t looked_at = 0;  // cases with an element to look at
    for (uint32_t seed = 0; seed < kCases && wrong.empty(); ++seed) {
      INFO(def.name << ", seed " << seed);
      Draw draw(seed);
      try {
        int64_t elements = 0;
        wrong = Outside(def, DrawOperands(def, draw), elements);
        looked_at += elements > 0;
      } catch (const Error& error) {
        wrong = error.text();
      }
      CHECK(wrong == "");
    }
    INFO(def.name);
    CHECK(looked_at >= kCases / 2);
  }
}

TEST_CASE("traits: the intervals of floats say something", "[traits]") {
  for (const OpDef& def : Ops().all()) {
    if (!def.range || def.is_const() || def.effect == Effect::kList) continue;
    bool says = false;
    for (uint32_t seed = 0; seed < 100 && !says; ++seed) {
      Draw draw(seed);
      Case operands = DrawOperands(def, draw);
      std::vector<Type> types = Infer(def.name, operands).results;
      RangeContext context = ContextOf(def, operands, types);
      says = !IsFloat(types[0].dtype) || RangeOf(context, 0) != Interval();
    }
    INFO(def.name);
    CHECK(says);
  }
}

TEST_CASE("traits: of few results nothing is known, and the row says why", "[traits]") {
  std::vector<std::string_view> unknown;
  for (const OpDef& def : Ops().all()) {
    INFO(def.name);
    CHECK((def.range != nullptr) == def.no_range.empty());
    if (!def.range) unknown.push_back(def.name);
  }
  CHECK(unknown.size() <= 20);
}

TEST_CASE("traits: operands in another order of dimensions give the result in that order",
          "[traits]") {
  for (const OpDef& def : Ops().all()) {
    // What reshape and expand_dims add has its own place: test/lib/passes/sink_transposes_test.
    if (def.layout.data[0].empty() || def.name == "reshape" || def.name == "expand_dims") continue;
    const Layout& layout = def.layout;
    auto named = [](const auto& names, std::string_view name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    uint32_t telling = 0;  // cases whose result is another one when its dimensions are not moved
    for (uint32_t seed = 0; seed < 200; ++seed) {
      Draw draw(seed);
      Case operands = DrawFlexible(def, draw, 2, true), permuted = operands;
      size_t rank = 0;
      for (const In& each : operands)
        if (named(layout.data, each.param)) rank = each.value.dims().size();
      std::vector<int64_t> order = draw.Order(static_cast<int64_t>(rank)), place(rank);
      for (size_t i = 0; i < rank; ++i)
        place[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
      std::set<int64_t> dropped;
      for (In& each : permuted) {
        if (named(layout.data, each.param)) {
          each = In(each.param, each.value.Transposed({order.begin(), order.end()}));
        } else if (each.param == layout.axes) {
          std::vector<int32_t> axes;
          for (int64_t axis : each.value.Ints()) {
            axis += axis < 0 ? static_cast<int64_t>(rank) : 0;
            if (def.name == "squeeze") dropped.insert(axis);
            axes.push_back(static_cast<int32_t>(place[static_cast<size_t>(axis)]));
          }
          each = In(each.param, each.value.rank() == 0 ? Number(axes[0]) : Ints32(axes));
        } else if (named(layout.per_dimension, each.param)) {
          std::vector<int64_t> before = each.value.Ints();
          size_t n = before.size() / rank;
          std::vector<int32_t> after;
          for (int64_t dim : order)
            for (size_t k = 0; k < n; ++k)
              after.push_back(static_cast<int32_t>(before[static_cast<size_t>(dim) * n + k]));
          each = In(each.param, Ints32(after));
        }
      }
      std::vector<Tensor> plain = EvaluateAll(def.name, operands),
                          moved = EvaluateAll(def.name, permuted);
      std::vector<int64_t> result_order;
      for (int64_t dim : order)
        if (!dropped.contains(dim))
          result_order.push_back(dim - std::distance(dropped.begin(), dropped.lower_bound(dim)));
      REQUIRE(plain.size() == moved.size());
      for (size_t i = 0; i < plain.size(); ++i) {
        INFO(def.name << ", seed " << seed);
        Tensor expected = plain[i].Transposed({result_order.begin(), result_order.end()});
        REQUIRE(expected.dims() == moved[i].dims());
        telling += i == 0 &&
                   (expected.dims() != plain[i].dims() || expected.Doubles() != plain[i].Doubles());
        REQUIRE(Near(moved[i].Doubles(), expected.Doubles(),
                     plain[i].dtype() == DType::kFp16 ? 2e-3 : 1e-5));
      }
    }
    INFO(def.name);
    CHECK(telling >= 50);
  }
}

TEST_CASE("traits: what writes has no result, and only what has an effect is not evaluated",
          "[traits]") {
  for (const OpDef& def : Ops().all()) {
    INFO(def.name);
    CHECK((def.pure || def.effect != Effect::kNone));
    if (!def.eval) CHECK((def.effect == Effect::kControl || def.effect == Effect::kWritesState));
    CHECK(def.is_constexpr() == def.name.starts_with("constexpr_"));
    for (std::string_view param : def.layout.data)
      if (!param.empty()) CHECK(def.Find(param) >= 0);
    for (std::string_view param : def.layout.per_dimension)
      if (!param.empty()) CHECK(def.Find(param) >= 0);
    for (std::string_view param : {def.layout.axes, def.fp16.wide[0], def.fp16.wide[1],
                                   def.fp16.bounds[0], def.fp16.bounds[1]})
      if (!param.empty()) CHECK(def.Find(param) >= 0);
  }
}

}  // namespace mlc::test
