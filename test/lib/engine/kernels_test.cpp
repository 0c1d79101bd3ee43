// Compares every kernel with the row's eval, on generated operands: odd sizes, groups, dilations,
// asymmetric padding, broadcasting.
#include "lib/engine/kernels.h"

#include <fmt/ranges.h>

#include <numeric>
#include <random>

#include "lib/engine/layout.h"
#include "lib/ir/concat_slice.h"
#include "lib/ir/random_tensor.h"
#include "lib/verify/compare.h"
#include "test/catch.h"
#include "test/lib/ir/encodings.h"
#include "test/lib/ops/evaluate.h"

namespace mlc::test {
using namespace engine;
namespace {

Tensor Num(int32_t v) { return Tensor::Scalar<int32_t>(v); }
Tensor Real(float v) { return Tensor::Scalar<float>(v); }
Tensor Flag(bool v) { return Tensor::Scalar<bool>(v); }
Tensor Ints(const std::vector<int32_t>& v) { return Tensor::Vector(v); }

// fp32 rounding, or one unit in the last place of fp16.
constexpr verify::Budget kFp32Rounding{2e-6, 2e-6}, kFp16Rounding{1e-3, 1e-3};

// Converts every image to channels-last.
void LayChannelsLast(std::vector<In>& operands) {
  ImageLayout last(true);
  for (In& in : operands)
    if (int rank = in.value.rank();
        IsFloat(in.value.dtype()) && 3 <= rank && rank <= 5 && !in.value.encoding())
      in.value = last.Shown(last.Laid(in.value));
}

// Stores fp16 operands as fp32.
std::vector<In> Widened(std::vector<In> operands) {
  for (In& in : operands)
    if (in.value.dtype() == DType::kFp16 && !in.value.is_lazy())
      in.value = in.value.Cast(DType::kFp32).InMemory();
  return operands;
}

using Names = std::vector<std::string_view>;
bool Has(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Runs the kernels with several numbers of threads, first on the given operands, then on other
// values of x, then on channels-last images if they accept any layout. Reproducible kernels must be
// bit-identical to eval, and kernels that accept fp16 stored as fp32 must give the same bytes for
// it. Returns false if there is no kernel for these types.
[[nodiscard]] bool CheckOnce(std::string_view op, std::vector<In> operands, const Names& varying) {
  const OpDef& def = Ops().At(op);
  INFO(op);
  std::vector<bool> constant(def.canonical().params.size());
  for (const In& in : operands) constant[def.Find(in.param)] = !Has(varying, in.param);
  InferContext inferred = Infer(op, operands);
  REQUIRE_FALSE(FindKernels(op).empty());
  std::vector<std::pair<Kernel, bool>> kernels;  // each kernel, and whether it is reproducible
  PreparedWeights prepared;
  // OpenMP creates and destroys threads whenever their number changes.
  for (int threads : {1, 2, 5})
    for (bool reproducible : {false, true})
      if (Kernel kernel = MakeKernel(FindKernels(op, reproducible),
                                     {EvalContext(def, ArgsOf(def, operands), inferred.results),
                                      constant, prepared, threads, reproducible}))
        kernels.push_back({std::move(kernel), reproducible});
  REQUIRE(kernels.size() % 3 == 0);
  if (kernels.empty()) return false;
  for (int round = 0; round < (TakesAnyLayout(op) ? 3 : 2); ++round) {
    if (round == 2) LayChannelsLast(operands);
    const std::vector<Tensor> results = EvaluateAll(op, operands);
    for (const auto& [kernel, reproducible] : kernels) {
      if (reproducible && round == 2) continue;
      EvalContext context(def, ArgsOf(def, operands), inferred.results);
      kernel(context);
      REQUIRE(context.results.size() == results.size());
      if (TakesWide(op)) {
        EvalContext widened(def, ArgsOf(def, Widened(operands)), inferred.results);
        kernel(widened);
        for (size_t i = 0; i < results.size(); ++i)
          CHECK(widened.results[i].SameBytes(context.results[i]));
      }
      for (size_t i = 0; i < results.size(); ++i) {
        if (reproducible) CHECK(context.results[i].SameBytes(results[i]));
        REQUIRE(context.results[i].dims() == results[i].dims());
        REQUIRE(context.results[i].dtype() == results[i].dtype());
        verify::Comparison c = verify::Compare(context.results[i], results[i]);
        INFO(verify::Describe(c));
        CHECK(c.Within(results[i].dtype() == DType::kFp16 ? kFp16Rounding : kFp32Rounding));
      }
    }
    for (In& in : operands)
      if (!constant[def.Find(in.param)] && IsFloat(in.value.dtype()))
        in.value = RandomTensor(in.value.dtype(), in.value.dims(), 99, 0);
  }
  return true;
}

// Also runs with weights that are stored in fewer bits than fp32.
[[nodiscard]] bool Check(std::string_view op, std::vector<In> operands,
                         const Names& varying = {"x"}) {
  const bool checked = CheckOnce(op, operands, varying);
  bool held = false;
  for (In& in : operands)
    if (HoldsWeights(op, in.param) && !Has(varying, in.param) && IsFloat(in.value.dtype()) &&
        in.value.rank() > 0 && in.value.size() > 0 && !in.value.encoding()) {
      FixedDraw draw;
      Dims scales(in.value.dims().size(), 1);
      scales[0] = in.value.dims()[0];
      in.value = Tensor::Encoded({.dtype = in.value.dtype(),
                                  .data = draw.Integers(DType::kInt8, in.value.dims()),
                                  .scale = draw.Scales(scales, in.value.dtype())});
      held = true;
    }
  if (held) CHECK(CheckOnce(op, operands, varying) == checked);
  return checked;
}

// The cases of one test, with random numbers from a fixed seed.
struct Generator {
  std::mt19937 random{7};
  int64_t stream = 0;
  int64_t Int(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  }
  std::vector<int32_t> List(size_t n, int low, int high) {
    std::vector<int32_t> list(n);
    for (int32_t& v : list) v = static_cast<int32_t>(Int(low, high));
    return list;
  }
  Tensor Floats(Dims dims, DType dtype = DType::kFp32) {
    return RandomTensor(dtype, std::move(dims), 3, ++stream);
  }
};

TEST_CASE("convolution kernels agree with eval") {
  Generator g;
  int ran = 0;
  for (int i = 0; i < 60; ++i) {
    size_t spatial = 1 + i % 3;
    int64_t groups = i % 4 == 0 ? g.Int(2, 4) : 1, in = g.Int(1, 5), out = g.Int(1, 20);
    DType dtype = i % 5 == 0 ? DType::kFp16 : DType::kFp32;
    bool transposed = i % 2;
    Dims x{g.Int(1, 2), in * groups},
        w = transposed ? Dims{in * groups, out} : Dims{out * groups, in};
    for (size_t d = 0; d < spatial; ++d) {
      x.push_back(g.Int(5, spatial == 3 ? 7 : 13));
      w.push_back(g.Int(1, 3));
    }
    std::vector<In> operands = {{"x", g.Floats(x, dtype)},
                                {"weight", g.Floats(w, dtype)},
                                {"strides", Ints(g.List(spatial, 1, 3))},
                                {"dilations", Ints(g.List(spatial, 1, 2))},
                                {"groups", Num(static_cast<int32_t>(groups))}};
    if (i % 3) operands.push_back({"bias", g.Floats({out * groups}, dtype)});
    const char* pads[] = {"valid", "custom", "same", "same_lower"};
    std::string pad = pads[g.Int(0, transposed ? 2 : 3)];
    operands.push_back({"pad_type", Tensor::String(pad)});
    if (pad == "custom") operands.push_back({"pad", Ints(g.List(2 * spatial, 0, 1))});
    ran += Check(transposed ? "conv_transpose" : "conv", operands);
  }
  CHECK(ran == 60);
}

TEST_CASE("kernels accept channels-last images") {
  Generator g;
  ImageLayout last(true);
  for (int i = 0; i < 18; ++i) {
    size_t spatial = 1 + i % 3;
    int64_t channels = std::array{3, 17, 16}[i / 3 % 3], groups = i % 2 ? channels : 1;
    DType dtype = i < 9 ? DType::kFp32 : DType::kFp16;
    Dims size = std::array{Dims{1405}, Dims{41, 33}, Dims{9, 11, 14}}[spatial - 1];
    auto image = [&](int64_t n, int64_t c) {
      Dims dims = size;
      dims.insert(dims.begin(), {n, c});
      return g.Floats(dims, dtype);
    };
    Tensor x = image(2, channels);
    INFO(fmt::format("{}", fmt::join(x.dims(), ", ")));
    CHECK(ImageLayout::Of(last.Shown(last.Laid(x))).channels_last());
    CHECK_FALSE(ImageLayout::Of(x).channels_last());
    CHECK(last.Shown(last.Laid(x)).SameBytes(x));
    Dims weight(spatial + 2, 2);
    weight[0] = groups * 5;
    weight[1] = channels / groups;
    CHECK(Check("conv", {{"x", x},
                         {"weight", g.Floats(weight, dtype)},
                         {"strides", Ints(g.List(spatial, 1, 2))},
                         {"dilations", Ints(g.List(spatial, 1, 2))},
                         {"pad_type", Tensor::String("same")},
                         {"groups", Num(static_cast<int32_t>(groups))}}));
    std::vector<In> window = {{"x", x},
                              {"kernel_sizes", Ints(g.List(spatial, 2, 3))},
                              {"strides", Ints(g.List(spatial, 1, 2))},
                              {"pad_type", Tensor::String("custom")},
                              {"pad", Ints(g.List(2 * spatial, 0, 1))}};
    CHECK(Check("max_pool", window));
    window.push_back({"exclude_padding_from_average", Flag(i % 2)});
    CHECK(Check("avg_pool", window));
    CHECK(Check("relu", {{"x", x}}));
    CHECK(Check("concat", {{"values", x}, {"values", image(2, 4)}, {"axis", Num(1)}}, {"values"}));
    CHECK(Check("concat", {{"values", x}, {"values", image(1, channels)}, {"axis", Num(0)}}));
    Dims each(spatial + 2, 1), tail = size;
    each[1] = channels;
    tail.insert(tail.begin(), {channels});
    for (const Tensor& y : {image(2, channels), g.Floats(each, dtype), g.Floats(tail, dtype),
                            g.Floats({size.back()}, dtype), g.Floats({}, dtype)}) {
      CHECK(Check("mul", {{"x", x}, {"y", y}}));
      CHECK(Check("sub", {{"x", y}, {"y", x}}, {"y"}));
    }
    std::vector<int32_t> pixels(spatial), all(spatial + 1);
    std::iota(pixels.begin(), pixels.end(), 2);
    std::iota(all.begin(), all.end(), 1);
    for (const char* op : {"reduce_mean", "reduce_max"}) {
      CHECK(Check(op, {{"x", x}, {"axes", Ints(pixels)}, {"keep_dims", Flag(true)}}));
      CHECK(Check(op, {{"x", x}, {"axes", Ints(all)}}));
      CHECK(Check(op, {{"x", x}, {"axes", Ints({1})}}));
    }
  }
}

TEST_CASE("depthwise convolution kernels agree with eval") {
  Generator g;
  for (int64_t outs : {1, 2, 5, 6, 7})  // per group; from 6 on computed as a product
    for (int i = 0; i < 6; ++i) {
      size_t spatial = 1 + i % 3;
      int64_t groups = g.Int(1, 19);
      Dims x{2, groups}, w{groups * outs, 1};
      for (size_t d = 0; d < spatial; ++d) {
        x.push_back(g.Int(4, spatial == 3 ? 7 : 21));
        w.push_back(g.Int(1, 4));
      }
      CHECK(Check("conv", {{"x", g.Floats(x)},
                           {"weight", g.Floats(w)},
                           {"bias", g.Floats({groups * outs})},
                           {"strides", Ints(g.List(spatial, 1, 3))},
                           {"pad_type", Tensor::String("custom")},
                           {"pad", Ints(g.List(2 * spatial, 0, 4))},
                           {"groups", Num(static_cast<int32_t>(groups))}}));
    }
}

TEST_CASE("products without elements or terms agree with eval") {
  Generator g;
  CHECK(Check("conv", {{"x", g.Floats({0, 2, 5, 5})}, {"weight", g.Floats({3, 2, 3, 3})}}));
  CHECK(Check("linear", {{"x", g.Floats({0, 4})}, {"weight", g.Floats({3, 4})}}));
  CHECK(Check("linear",
              {{"x", g.Floats({2, 0})}, {"weight", g.Floats({3, 0})}, {"bias", g.Floats({3})}}));
  for (Dims dims : {Dims{2, 0, 3, 4}, Dims{2, 3, 0, 4}, Dims{2, 3, 4, 0}, Dims{0, 2, 3, 4}})
    CHECK(Check("matmul", {{"x", g.Floats({dims[0], dims[1], dims[2]})},
                           {"y", g.Floats({dims[0], dims[2], dims[3]})}}));
}

TEST_CASE("recurrent kernels agree with eval") {
  Generator g;
  const char* activations[] = {"linear", "relu", "sigmoid", "hard_sigmoid", "tanh"};
  for (int i = 0; i < 60; ++i) {
    std::string op = std::array{"lstm", "gru", "rnn"}[i % 3];
    bool lstm = op == "lstm", both = lstm && i % 4 == 0, reset_after = op == "gru" && i % 2;
    int64_t gates = lstm          ? 4
                    : op == "gru" ? 3
                                  : 1,
            hidden = g.Int(4, 12), inputs = g.Int(1, 9), batch = g.Int(1, 3),
            width = hidden * (both ? 2 : 1);
    DType dtype = i % 5 == 0 ? DType::kFp16 : DType::kFp32;
    std::vector<In> operands = {{"x", g.Floats({g.Int(1, 6), batch, inputs}, dtype)},
                                {"initial_h", g.Floats({batch, width}, dtype)},
                                {"direction", Tensor::String(both    ? "bidirectional"
                                                             : i % 2 ? "reverse"
                                                                     : "forward")},
                                {"output_sequence", Flag(g.Int(0, 1))}};
    // Small weights, since linear and relu would otherwise exceed fp16.
    auto constant = [&](const char* name, Dims dims) {
      Tensor values = g.Floats(std::move(dims));
      std::vector<float> small;
      for (double v : values.Doubles()) small.push_back(static_cast<float>(v * 0.2));
      operands.push_back({name, Tensor::Of(values.dims(), small).Cast(dtype)});
    };
    constant("weight_ih", {gates * hidden, inputs});
    constant("weight_hh", {gates * hidden, hidden});
    if (i % 4) constant("bias", {gates * hidden});
    if (both) {
      constant("weight_ih_back", {gates * hidden, inputs});
      constant("weight_hh_back", {gates * hidden, hidden});
      constant("bias_back", {gates * hidden});
      constant("peephole_back", {3 * hidden});
    }
    if (lstm) {
      operands.push_back({"initial_c", g.Floats({batch, width}, dtype)});
      if (i % 2) constant("peephole", {3 * hidden});
      if (i % 4 == 1) operands.push_back({"clip", Tensor::Full(dtype, {}, 0.5)});
      operands.push_back({"cell_activation", Tensor::String(activations[g.Int(0, 4)])});
    }
    if (op != "rnn")
      operands.push_back({"recurrent_activation", Tensor::String(activations[g.Int(1, 4)])});
    operands.push_back({"activation", Tensor::String(activations[g.Int(0, 4)])});
    if (op == "gru") operands.push_back({"reset_after", Flag(reset_after)});
    if (reset_after) constant("input_bias", {gates * hidden});
    std::vector<std::string_view> varying = {"x", "initial_h"};
    if (lstm) varying.push_back("initial_c");
    CHECK(Check(op, operands, varying));
  }
}

// Also by more than a stride, which oneDNN does not support.
TEST_CASE("output_shape may extend a transposed convolution") {
  Generator g;
  CHECK(Check("conv_transpose", {{"x", g.Floats({1, 2, 4, 4})},
                                 {"weight", g.Floats({2, 3, 3, 3})},
                                 {"strides", Ints({2, 2})},
                                 {"pad_type", Tensor::String("custom")},
                                 {"pad", Ints({1, 1, 1, 1})},
                                 {"output_shape", Ints({1, 3, 8, 8})}}));
  CHECK(Check("conv_transpose", {{"x", g.Floats({1, 2, 4, 4})},
                                 {"weight", g.Floats({2, 3, 3, 3})},
                                 {"strides", Ints({2, 2})},
                                 {"output_shape", Ints({1, 3, 12, 13})}}));
}

TEST_CASE("kernels with several threads agree with eval") {
  Generator g;
  for (int64_t size : {32, 48, 648}) {  // below and above 2^16 multiplications
    CHECK(Check("linear", {{"x", g.Floats({size, size})}, {"weight", g.Floats({size, size})}}));
    CHECK(Check("conv", {{"x", g.Floats({1, 64, size / 16, size / 16})},
                         {"weight", g.Floats({168, 64, 1, 1})}}));
    CHECK(Check("matmul", {{"x", g.Floats({size, 155})}, {"y", g.Floats({155, 12})}}));
  }
}

// Sizes are below and above kParallelGrain (2^15 elements); a kernel's thread gets part of a
// dimension, and some channel counts leave a partial block of columns.
TEST_CASE("elementwise and sum kernels with several threads agree with eval") {
  Generator g;
  for (DType dtype : {DType::kFp32, DType::kFp16})
    for (int64_t size : {31, 33}) {
      const Dims image = {1, 67, size, 16};
      CHECK(Check("sigmoid", {{"x", g.Floats({size, 1021}, dtype)}}));
      CHECK(Check("mul", {{"x", g.Floats(image, dtype)}, {"y", g.Floats(image, dtype)}}));
      CHECK(Check("mul", {{"x", g.Floats(image, dtype)}, {"y", g.Floats({1, 67, 1, 1}, dtype)}},
                  {"x", "y"}));
      CHECK(Check("add", {{"x", g.Floats({size * 1021}, dtype)}, {"y", g.Floats({1}, dtype)}}));
      CHECK(Check("sub", {{"x", g.Floats({1021, 1}, dtype)}, {"y", g.Floats({1, size}, dtype)}}));
      // Two of these per element are counted.
      CHECK(Check("softmax", {{"x", g.Floats({size, 509}, dtype)}, {"axis", Num(-1)}}));
      CHECK(Check("layer_norm", {{"x", g.Floats({size, 509}, dtype)}, {"axes", Ints({1})}}));
      for (std::string_view op : {"reduce_mean", "reduce_sum", "reduce_max"})
        for (int64_t channels : {3, 32, 67})
          CHECK(Check(op, {{"x", g.Floats({2, channels, size, 16}, dtype)},
                           {"axes", Ints({2, 3})},
                           {"keep_dims", Flag(true)}}));
    }
}

// The products of kernel taps and input positions exceed the memory that the kernel buffers, so it
// computes the output channels in several batches.
TEST_CASE("a large transposed convolution agrees with eval") {
  Generator g;
  CHECK(
      Check("conv_transpose", {{"x", g.Floats({1, 1, 2000})}, {"weight", g.Floats({1, 3, 1000})}}));
}

TEST_CASE("kernels accept run-time weights") {
  Generator g;
  CHECK(Check("conv", {{"x", g.Floats({1, 4, 6, 6})}, {"weight", g.Floats({8, 4, 3, 3})}},
              {"x", "weight"}));
  CHECK(Check("conv",
              {{"x", g.Floats({1, 4, 6, 6}, DType::kFp16)}, {"weight", g.Floats({8, 4, 3, 3})}}));
  CHECK(Check("matmul", {{"x", g.Floats({3, 5, 7})}, {"y", g.Floats({3, 7, 2})}}, {"x", "y"}));
}

TEST_CASE("matrix products agree with eval") {
  Generator g;
  for (int i = 0; i < 60; ++i) {
    int64_t m = g.Int(1, 40), k = g.Int(1, 40), n = g.Int(1, 40);
    DType dtype = i % 5 == 0 ? DType::kFp16 : DType::kFp32;
    bool tx = i % 2, ty = i % 3 == 0;
    Dims x = tx ? Dims{k, m} : Dims{m, k}, y = ty ? Dims{n, k} : Dims{k, n};
    for (int64_t d = g.Int(0, 2); d > 0; --d) x.insert(x.begin(), g.Int(1, 3));
    if (x.size() > 2 && i % 4 < 3) {
      y.insert(y.begin(), i % 4 ? x[x.size() - 3] : 1);
      if (i % 4 == 2 && x.size() == 3) y.insert(y.begin(), 2);
    }
    CHECK(Check("matmul",
                {{"x", g.Floats(x, dtype)},
                 {"y", g.Floats(y, dtype)},
                 {"transpose_x", Flag(tx)},
                 {"transpose_y", Flag(ty)}},
                i % 2 ? Names{"x"} : Names{"x", "y"}));
    Dims lead = {g.Int(1, 3), g.Int(1, 9), k};
    std::vector<In> linear = {{"x", g.Floats(lead, dtype)}, {"weight", g.Floats({n, k}, dtype)}};
    if (i % 2) linear.push_back({"bias", g.Floats({n}, dtype)});
    CHECK(Check("linear", linear));
  }
  CHECK(Check("matmul", {{"x", g.Floats({5})}, {"y", g.Floats({2, 5, 3})}}));
  CHECK(Check("matmul", {{"x", g.Floats({2, 3, 5})}, {"y", g.Floats({5})}}));
  CHECK(Check("matmul", {{"x", g.Floats({5})}, {"y", g.Floats({5})}}));
  CHECK_FALSE(Check("matmul", {{"x", I32({1, 2}, {1, 2})}, {"y", I32({2, 1}, {3, 4})}}));
}

TEST_CASE("einsum kernels agree with eval") {
  Generator g;
  for (int i = 0; i < 40; ++i) {
    const int64_t m = g.Int(1, 40), k = g.Int(1, 40), n = g.Int(1, 40), batch = g.Int(1, 3);
    const DType dtype = i % 5 == 0 ? DType::kFp16 : DType::kFp32;
    Dims x = {batch, m, 1, k}, y = {i % 4 == 1 ? 1 : batch, k, 1, n};
    const bool flat = i % 3 == 0;
    if (flat) x.erase(x.begin()), y.erase(y.begin());
    CHECK(Check("einsum",
                {{"values", g.Floats(x, dtype)},
                 {"values", g.Floats(y, dtype)},
                 {"equation", Tensor::String(flat ? "chw,whr->chr" : "bkhc,bchq->bkhq")}},
                {"values"}));
  }
  // No kernel: a matrix for each h.
  CHECK_FALSE(Check("einsum", {{"values", g.Floats({2, 3, 4, 5})},
                               {"values", g.Floats({2, 5, 4, 6})},
                               {"equation", Tensor::String("nchw,nwhu->nchu")}}));
}

// Encoded weights are expanded in several parts of the outputs, the last of which is smaller; few
// vectors, long rows and groups take other code paths.
TEST_CASE("products of large encoded weights agree with eval") {
  FixedDraw draw;
  Generator g;
  auto halves = [&](Dims dims) { return draw.Floats(std::move(dims), DType::kFp16).InMemory(); };
  for (int64_t m : {1, 5, 6, 9}) {
    CHECK(CheckOnce("linear",
                    {{"x", g.Floats({m, 4100})},
                     {"weight", halves({150, 4100}).Cast(DType::kFp32)},
                     {"bias", g.Floats({150})}},
                    {"x"}));
    CHECK(CheckOnce("matmul", {{"x", g.Floats({m, 700}, DType::kFp16)}, {"y", halves({700, 999})}},
                    {"x"}));
  }
  for (int64_t depth : {65536, 65537})
    CHECK(CheckOnce("linear",
                    {{"x", g.Floats({6, depth}, DType::kFp16)}, {"weight", halves({17, depth})}},
                    {"x"}));
  CHECK(CheckOnce("conv",
                  {{"x", g.Floats({2, 460, 4, 5}, DType::kFp16)},
                   {"weight", halves({150, 460, 3, 3})},
                   {"pad_type", Tensor::String("same")},
                   {"bias", g.Floats({150}, DType::kFp16)}},
                  {"x"}));
  CHECK(CheckOnce("conv",
                  {{"x", g.Floats({1, 400, 3, 4}, DType::kFp16)},
                   {"weight", halves({400, 200, 3, 3})},
                   {"groups", Num(2)}},
                  {"x"}));
  CHECK(CheckOnce(
      "conv_transpose",
      {{"x", g.Floats({1, 210, 3, 3}, DType::kFp16)}, {"weight", halves({210, 170, 3, 3})}},
      {"x"}));
}

// Lazy, as large weights are: three samples, one after the other.
std::vector<std::pair<std::string, Tensor>> EncodedMatrices(DType dtype) {
  std::vector<std::pair<std::string, Tensor>> matrices;
  for (const EncodingSample& sample : EncodingSamples(dtype))
    if (Tensor one = Tensor::Encoded(sample.encoding); one.rank() == 2)
      matrices.push_back({sample.name, Join({one, one, one}, 0)});
  return matrices;
}

TEST_CASE("products of encoded weights agree with eval") {
  Generator g;
  for (DType dtype : {DType::kFp32, DType::kFp16})
    for (const auto& [name, weight] : EncodedMatrices(dtype)) {
      INFO(name);
      int64_t rows = weight.dims()[0], columns = weight.dims()[1];
      for (int64_t m : {1, 4, 23})
        CHECK(Check("linear", {{"x", g.Floats({m, columns}, dtype)}, {"weight", weight}}));
      CHECK(Check("matmul", {{"x", g.Floats({2, 7, rows}, dtype)}, {"y", weight}}));
      CHECK(Check(
          "matmul",
          {{"x", g.Floats({3, columns}, dtype)}, {"y", weight}, {"transpose_y", Flag(true)}}));
      CHECK(Check("matmul", {{"x", weight}, {"y", g.Floats({columns, 21}, dtype)}}, {"y"}));
      CHECK(Check("matmul",
                  {{"x", weight}, {"y", g.Floats({rows, 3}, dtype)}, {"transpose_x", Flag(true)}},
                  {"y"}));
      Tensor taps = weight.Reshaped({rows, columns / 3, 3});
      CHECK(Check("conv", {{"x", g.Floats({2, columns / 3, 20}, dtype)}, {"weight", taps}}));
      CHECK(Check("conv",
                  {{"x", g.Floats({1, columns, 5}, dtype)}, {"weight", taps}, {"groups", Num(3)}}));
      CHECK(Check("conv", {{"x", g.Floats({1, rows * columns / 3, 5}, dtype)},
                           {"weight", weight.Reshaped({rows * columns / 3, 1, 3})},
                           {"groups", Num(static_cast<int32_t>(rows * columns / 3))}}));
      CHECK(Check("conv_transpose", {{"x", g.Floats({1, rows, 9}, dtype)}, {"weight", taps}}));
    }
}

TEST_CASE("products of few vectors and 4-bit blocks agree with eval") {
  Generator g;
  constexpr int64_t kRows = 45, kColumns = 192;
  std::vector<std::byte> bytes(kRows * kColumns / 2);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(g.Int(0, 255));
  for (DType data : {DType::kInt4, DType::kUint4})
    for (DType dtype : {DType::kFp32, DType::kFp16})
      for (int64_t block : {32, 96, 192}) {
        INFO(Name(data) << " in blocks of " << block << ", " << Name(dtype));
        Tensor weight =
            Tensor::Encoded({.dtype = dtype,
                             .data = Tensor::Owned(data, {kRows, kColumns}, bytes),
                             .scale = g.Floats({kRows, kColumns / block}, DType::kFp16)});
        for (int64_t m : {1, 2, 3})
          CHECK(Check("linear", {{"x", g.Floats({m, kColumns}, dtype)}, {"weight", weight}}));
        CHECK(Check("matmul", {{"x", weight}, {"y", g.Floats({kColumns}, dtype)}}, {"y"}));
      }
}

TEST_CASE("attention agrees with eval") {
  Generator g;
  for (int i = 0; i < 30; ++i) {
    int64_t rows = g.Int(1, 40), keys = g.Int(1, 40), width = g.Int(1, 20);
    Dims lead = {g.Int(1, 3)};
    if (i % 2) lead.push_back(g.Int(1, 4));
    auto dims = [&](int64_t a, int64_t b) {
      Dims all = lead;
      all.insert(all.end(), {a, b});
      return all;
    };
    DType dtype = i % 5 == 0 ? DType::kFp16 : DType::kFp32;
    std::vector<In> operands = {{"query", g.Floats(dims(rows, width), dtype)},
                                {"key", g.Floats(dims(keys, width), dtype)},
                                {"value", g.Floats(dims(keys, g.Int(1, 20)), dtype)}};
    if (i % 3 == 1) operands.push_back({"attn_mask", g.Floats({rows, keys}, dtype)});
    if (i % 3 == 2) {  // the first key is visible to all rows
      std::vector<int32_t> seen = g.List(keys, 0, 1);
      seen[0] = 1;
      operands.push_back({"attn_mask", Tensor::Of(Dims{1, keys}, seen).Cast(DType::kBool)});
    }
    CHECK(Check("scaled_dot_product_attention", operands, {"query", "key", "value"}));
  }
  // All keys are masked: NaN, in eval too; many keys on several threads.
  CHECK(Check("scaled_dot_product_attention",
              {{"query", g.Floats({1, 2, 3})},
               {"key", g.Floats({1, 4, 3})},
               {"value", g.Floats({1, 4, 5})},
               {"attn_mask", Tensor::Full(DType::kBool, {2, 4}, 0)}},
              {}));
  CHECK(Check("scaled_dot_product_attention",
              {{"query", g.Floats({6, 300, 16})},
               {"key", g.Floats({6, 300, 16})},
               {"value", g.Floats({6, 300, 16})}},
              {}));
  // More rows than are computed at a time, each with its own additive mask.
  CHECK(Check("scaled_dot_product_attention",
              {{"query", g.Floats({2, 130, 8})},
               {"key", g.Floats({2, 70, 8})},
               {"value", g.Floats({2, 70, 5})},
               {"attn_mask", g.Floats({130, 70})}},
              {}));
}

TEST_CASE("pool kernels agree with eval") {
  Generator g;
  for (int i = 0; i < 60; ++i) {
    size_t spatial = 1 + i % 3;
    Dims x{g.Int(1, 2), g.Int(1, 3)};
    for (size_t d = 0; d < spatial; ++d) x.push_back(g.Int(4, 11));
    const char* pads[] = {"valid", "custom", "same", "same_lower"};
    std::string pad = pads[g.Int(0, 3)];
    bool ceil = pad[0] != 's' && spatial < 3 && i % 2;
    std::vector<In> operands = {{"x", g.Floats(x, i % 5 ? DType::kFp32 : DType::kFp16)},
                                {"kernel_sizes", Ints(g.List(spatial, 2, 4))},
                                {"strides", Ints(g.List(spatial, 1, 3))},
                                {"pad_type", Tensor::String(pad)},
                                {"ceil_mode", Flag(ceil)}};
    if (pad == "custom")
      operands.push_back(
          {"pad", Ints(ceil ? std::vector<int32_t>(2 * spatial, 1) : g.List(2 * spatial, 0, 2))});
    CHECK(Check("max_pool", operands));
    operands.push_back({"exclude_padding_from_average", Flag(i % 4 == 0)});
    CHECK(Check("avg_pool", operands));
  }
}

TEST_CASE("elementwise kernels agree with eval") {
  Generator g;
  std::vector<float> edge = {0, -0.0f, 1e-30f, -1e-4f, 0.3f, 0.6249f, 0.6251f, -3,
                             6, 20,    -20,    80,     -80,  88.6f,   -87};
  In alpha{"alpha", Real(0.3f)}, beta{"beta", Real(0.8f)};
  struct Unary {
    const char* op;
    std::vector<In> rest;
  };
  const Unary unary[] = {{"abs", {}},
                         {"relu", {}},
                         {"relu6", {}},
                         {"sigmoid", {}},
                         {"silu", {}},
                         {"tanh", {}},
                         {"softplus", {}},
                         {"erf", {}},
                         {"square", {}},
                         {"gelu", {}},
                         {"gelu", {{"mode", Tensor::String("TANH_APPROXIMATION")}}},
                         {"gelu", {{"mode", Tensor::String("SIGMOID_APPROXIMATION")}}},
                         {"clip", {alpha, beta}},
                         {"elu", {alpha}},
                         {"leaky_relu", {alpha}},
                         {"linear_activation", {alpha, beta}},
                         {"sigmoid_hard", {alpha, beta}},
                         {"inverse", {{"epsilon", Real(1e-4f)}}}};
  for (const Unary& each : unary) {
    std::vector<In> operands = each.rest;
    operands.push_back({"x", g.Floats({3, 37})});
    CHECK(Check(each.op, operands));
    operands.back() = {"x", Tensor::Vector(edge)};
    CHECK(Check(each.op, operands));
    if (!each.rest.empty() && each.rest[0].value.dtype() != DType::kString) continue;
    operands.back() = {"x", g.Floats({5, 11}, DType::kFp16)};
    CHECK(Check(each.op, operands));
  }
  for (float v : {-104.0f, -103.0f, -95.0f, -88.0f, -1.0f, 1e-6f, 0.0f, 1.5f, 88.5f, 89.0f, 200.0f,
                  -200.0f, kInf != 0 ? INFINITY : 0, -INFINITY, NAN}) {
    INFO(v);
    CHECK(Check("exp", {{"x", F32({1}, {v})}}, {}));
  }
  Tensor positive = Evaluate("square", {{"x", g.Floats({4, 9})}});
  CHECK(Check("sqrt", {{"x", positive}}, {}));
  CHECK(Check("rsqrt", {{"x", positive}}, {}));
  CHECK(Check("pow", {{"x", positive}, {"y", Real(1.7f)}}, {}));
  CHECK(Check("pow", {{"x", positive}, {"y", Real(2)}}, {}));
  CHECK(Check("cast", {{"x", positive}, {"dtype", Tensor::String("fp16")}}, {}));
}

TEST_CASE("binary kernels broadcast like eval") {
  Generator g;
  for (const char* op : {"add", "sub", "mul", "real_div", "maximum", "minimum"}) {
    for (int i = 0; i < 12; ++i) {
      Dims out(g.Int(1, 4)), x, y;
      for (int64_t& d : out) d = g.Int(1, 6);
      x = y = out;
      for (size_t d = 0; d < out.size(); ++d) (g.Int(0, 1) ? x : y)[d] = g.Int(0, 1) ? out[d] : 1;
      for (int64_t cut = g.Int(0, 1); cut > 0 && y.size() > 1 && y[0] == 1; --cut)
        y.erase(y.begin());
      DType dtype = i % 4 ? DType::kFp32 : DType::kFp16;
      CHECK(Check(op, {{"x", g.Floats(x, dtype)}, {"y", g.Floats(y, dtype)}}, {}));
    }
    CHECK_FALSE(Check(op, {{"x", I32({2}, {4, 6})}, {"y", I32({1}, {2})}}));
  }
  Tensor cond = RandomTensor(DType::kBool, {3, 1, 5}, 0, 0);
  CHECK(Check("select", {{"cond", cond}, {"a", g.Floats({3, 4, 5})}, {"b", g.Floats({1})}}, {}));
  CHECK(Check("select", {{"cond", cond}, {"a", g.Floats({3, 1, 5})}, {"b", g.Floats({3, 1, 5})}},
              {}));
}

TEST_CASE("reduction kernels agree with eval") {
  Generator g;
  for (DType dtype : {DType::kFp32, DType::kFp16}) {
    Tensor x = g.Floats({2, 3, 5, 19}, dtype);
    for (int32_t axis = -4; axis < 4; ++axis)
      CHECK(Check("softmax", {{"x", x}, {"axis", Num(axis)}}));
    for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}) {
      CHECK(Check(op, {{"x", x}}));
      CHECK(Check(op, {{"x", x}, {"axes", Ints({-1})}}));
      CHECK(Check(op, {{"x", x}, {"axes", Ints({3, 2})}, {"keep_dims", Flag(true)}}));
      CHECK(Check(op, {{"x", x}, {"axes", Ints({1})}}));
      CHECK_FALSE(Check(op, {{"x", x}, {"axes", Ints({0, 2})}}));
    }
    CHECK(Check("reduce_sum", {{"x", g.Floats({7}, dtype)}, {"axes", Ints({0})}}));
    Tensor channels = g.Floats({3}, dtype), positive = Evaluate("square", {{"x", channels}});
    CHECK(Check("batch_norm", {{"x", x},
                               {"mean", channels},
                               {"variance", positive},
                               {"gamma", channels},
                               {"beta", channels}}));
    CHECK(Check("batch_norm", {{"x", x}, {"mean", channels}, {"variance", positive}}));
    CHECK(Check("instance_norm", {{"x", x}, {"gamma", channels}, {"beta", channels}}));
    CHECK(Check("layer_norm", {{"x", x},
                               {"axes", Ints({-1})},
                               {"gamma", g.Floats({19}, dtype)},
                               {"beta", g.Floats({19}, dtype)}}));
    CHECK(Check("layer_norm",
                {{"x", x}, {"axes", Ints({2, 3})}, {"gamma", g.Floats({5, 19}, dtype)}}));
    CHECK_FALSE(Check("layer_norm", {{"x", x}, {"axes", Ints({1})}}));
  }
}

}  // namespace
}  // namespace mlc::test
