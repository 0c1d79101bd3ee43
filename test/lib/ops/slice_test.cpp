#include <numeric>

#include "test/catch.h"
#include "test/lib/ops/evaluate.h"
#include "test/lib/ops/random_operands.h"

using namespace mlc;
using namespace mlc::test;

namespace {

Tensor Iota(Dims dims) {
  std::vector<int32_t> values(ElementCount(dims));
  std::iota(values.begin(), values.end(), 0);
  return I32(std::move(dims), values);
}
Tensor V(const std::vector<int32_t>& values) { return Tensor::Vector(values); }
Tensor B(const std::vector<bool>& values) { return Tensor::Vector(values); }
Tensor S(int32_t value) { return Tensor::Scalar(value); }
Type Fp32(Shape shape) { return Type::Tensor(DType::kFp32, std::move(shape)); }
Type Int32(Shape shape) { return Type::Tensor(DType::kInt32, std::move(shape)); }
const Dim n = Dim::Symbol("n"), m = Dim::Symbol("m");

// x[begin:end:stride] of a vector 0, 1, 2, ...
Ints64 Slice(int64_t size, int64_t begin, int64_t end, int64_t stride) {
  return Evaluate("slice_by_index", {{"x", Iota({size})},
                                     {"begin", I64({1}, {begin})},
                                     {"end", I64({1}, {end})},
                                     {"stride", I64({1}, {stride})}})
      .Ints();
}

// Returns the inferred length of x[begin:end:stride] for a vector x of length `size`. `size`,
// `begin` and `end` may be symbolic.
std::string Length(Dim size, Dim begin, Dim end, int32_t stride = 1) {
  std::vector<In> in = {{"x", Fp32({size})},
                        {"begin", Int32({1}), {begin}},
                        {"end", Int32({1}), {end}},
                        {"stride", V({stride})}};
  return Infer("slice_by_index", in).results[0].shape[0].ToString();
}
}  // namespace

TEST_CASE("slice_by_index: bounds and strides") {  // numpy
  CHECK(Slice(10, 8, -11, -3) == Ints64{8, 5, 2});
  CHECK(Slice(5, 100, -100, -2) == Ints64{4, 2, 0});
  CHECK(Slice(5, -100, 100, 1) == Ints64{0, 1, 2, 3, 4});
  CHECK(Slice(5, 3, 1, 1) == Ints64{});
  CHECK(Slice(5, -2, INT64_MAX, 1) == Ints64{3, 4});
  CHECK(Slice(5, -1, INT64_MIN, -1) == Ints64{4, 3, 2, 1, 0});
  CHECK(Slice(5, 1, 5, INT64_MAX) == Ints64{1});
  CHECK(Slice(5, 3, INT64_MIN, INT64_MIN) == Ints64{3});
  CHECK(Slice(5, 4, -1, -1) == Ints64{});  // -1 is the last index, not the end of a downward range
  CHECK(Slice(0, 0, 5, 1) == Ints64{});
  CHECK_THROWS_AS(Slice(5, 0, 5, 0), Error);
  Tensor y = Evaluate("slice_by_index", {{"x", Iota({2, 3, 4})},
                                         {"begin", V({0, 0, 3})},
                                         {"end", V({0, 0, 0})},
                                         {"stride", V({1, -2, -2})},
                                         {"begin_mask", B({true, true, false})},
                                         {"end_mask", B({true, true, false})}});
  CHECK(y.dims() == Dims{2, 2, 2});
  CHECK(y.Ints() == Ints64{11, 9, 3, 1, 23, 21, 15, 13});
}

TEST_CASE("slice_by_index: squeeze_mask selects one index") {
  auto at = [](int32_t row, int32_t column) {
    return Evaluate("slice_by_index", {{"x", Iota({2, 3})},
                                       {"begin", V({row, column})},
                                       {"end", V({0, 3})},
                                       {"squeeze_mask", B({true, false})}});
  };
  CHECK(at(-1, 1).dims() == Dims{2});
  CHECK(at(-1, 1).Ints() == Ints64{4, 5});
  CHECK_THROWS_AS(at(2, 0), Error);
  CHECK_THROWS_AS(at(-3, 0), Error);
  Tensor scalar =
      Evaluate("slice_by_index",
               {{"x", Iota({3})}, {"begin", V({1})}, {"end", V({0})}, {"squeeze_mask", B({true})}});
  CHECK(scalar.dims() == Dims{});
  CHECK(scalar.Int(0) == 1);
}

TEST_CASE("slice_by_index: bad operands") {
  auto with = [](In begin, In end, In mask) {
    return Infer("slice_by_index", {{"x", Fp32({2, 3})}, begin, end, mask});
  };
  CHECK_NOTHROW(with({"begin", V({0, 0})}, {"end", V({1, 1})}, {"end_mask", B({false, true})}));
  CHECK_THROWS_AS(with({"begin", V({0})}, {"end", V({1, 1})}, {"end_mask", B({false, true})}),
                  Error);
  CHECK_THROWS_AS(with({"begin", V({0, 0})}, {"end", S(1)}, {"end_mask", B({false, true})}), Error);
  CHECK_THROWS_AS(with({"begin", V({0, 0})}, {"end", V({1, 1})}, {"end_mask", B({true})}), Error);
  CHECK_THROWS_AS(with({"begin", V({0, 0})}, {"end", Int32({n})}, {"end_mask", B({false, true})}),
                  Error);
}

TEST_CASE("slice_by_index: symbolic lengths") {  // by hand
  CHECK(Length(n, 0, INT32_MAX) == "n");
  CHECK(Length(n, 1, n) == "n - 1");
  CHECK(Length(n, 0, -1) == "n - 1");
  CHECK(Length(n, -1, INT32_MAX) == "1");
  CHECK(Length(n + m, n, n + m) == "m");
  CHECK(Length(n + m, 0, n) == "n");
  CHECK(Length(n, 0, n, 2) == CeilDiv(n, 2).ToString());
  CHECK(Length(n, -1, INT32_MIN, -1) == "n");
  // If the length depends on a comparison with n, it stays exact: min(n, 10) is n + 10 - max(n,
  // 10).
  CHECK(Length(n, 0, 10) == (n + Dim(10) - Max(n, 10)).ToString());
  // A bound of unknown sign gives an unknown length.
  CHECK(Length(10, n - Dim(5), 10)[0] == '?');
  // A run-time bound makes only its own dimension unknown, and none if it is masked.
  InferContext some = Infer("slice_by_index", {{"x", Fp32({n, 8})},
                                               {"begin", V({0, 2})},
                                               {"end", Int32({2})},
                                               {"end_mask", B({false, true})}});
  CHECK(some.fresh == 1);
  CHECK(some.results[0].shape[1] == Dim(6));
}

TEST_CASE("slice_by_index: known elements are propagated") {
  auto elements = [](std::vector<In> in) {
    in.push_back({"x", Int32({4}), {n, 3, m, 5}});
    auto dims = Infer("slice_by_index", in).dims[0];
    return dims ? ToString(*dims) : "unknown";
  };
  CHECK(elements({{"begin", V({-2})}, {"end", V({4})}}) == "[m, 5]");
  CHECK(elements({{"begin", V({3})}, {"end", V({-9})}, {"stride", V({-2})}}) == "[5, 3]");
  CHECK(elements({{"begin", V({2})}, {"end", V({0})}, {"squeeze_mask", B({true})}}) == "[m]");
  CHECK(elements({{"begin", Int32({1})}, {"end", V({4})}}) == "unknown");
}

TEST_CASE("slice_by_size") {
  auto slice = [](std::vector<int32_t> begin, std::vector<int32_t> size) {
    return Evaluate("slice_by_size", {{"x", Iota({3, 4})}, {"begin", V(begin)}, {"size", V(size)}});
  };
  CHECK(slice({1, -2}, {2, -1}).Ints() == Ints64{6, 7, 10, 11});  // numpy: x[1:3, 2:]
  CHECK(slice({3, 0}, {-1, 0}).dims() == Dims{0, 0});
  CHECK_THROWS_AS(slice({2, 0}, {2, 1}), Error);
  CHECK_THROWS_AS(slice({-4, 0}, {-1, 1}), Error);
  CHECK_THROWS_AS(slice({4, 0}, {-1, 1}), Error);
  CHECK_THROWS_AS(slice({0, 0}, {-2, 1}), Error);
  auto shape = [](std::vector<In> in) {
    in.push_back({"x", Fp32({n})});
    return ToString(Infer("slice_by_size", in).results[0].shape);
  };
  CHECK(shape({{"begin", V({2})}, {"size", V({-1})}}) == "[n - 2]");
  CHECK(shape({{"begin", V({-2})}, {"size", V({-1})}}) == "[2]");
  CHECK(shape({{"begin", Int32({1})}, {"size", V({5})}}) == "[5]");
  CHECK(shape({{"begin", Int32({1})}, {"size", Int32({1}), {m}}}) == "[m]");
  CHECK(shape({{"begin", V({0})}, {"size", Int32({1})}})[1] == '?');
}

TEST_CASE("slice_update") {
  std::vector<In> in = {{"x", Iota({3, 4})},
                        {"update", I32({2, 2}, {-1, -2, -3, -4})},
                        {"begin", V({0, 3})},
                        {"end", V({3, -9})},
                        {"stride", V({2, -2})}};
  // numpy: x[0:3:2, 3::-2] = [[-1, -2], [-3, -4]]
  CHECK(Evaluate("slice_update", in).Ints() == Ints64{0, -2, 2, -1, 4, 5, 6, 7, 8, -4, 10, -3});
  in[1] = {"update", I32({2, 3}, {1, 2, 3, 4, 5, 6})};
  CHECK_THROWS_AS(Infer("slice_update", in), Error);
  in[1] = {"update", F32({2, 2}, {1, 2, 3, 4})};
  CHECK_THROWS_AS(Infer("slice_update", in), Error);
  // A row of a cache at a run-time position.
  CHECK(ToString(Infer("slice_update", {{"x", Fp32({512, 64})},
                                        {"update", Fp32({n, 64})},
                                        {"begin", Int32({2})},
                                        {"end", Int32({2})}})
                     .results[0]
                     .shape) == "[512, 64]");
}

TEST_CASE("sliding_windows") {
  Tensor y = Evaluate("sliding_windows",
                      {{"x", Iota({5, 2})}, {"axis", S(0)}, {"size", S(3)}, {"stride", S(2)}});
  CHECK(y.dims() == Dims{2, 3, 2});
  CHECK(y.Ints() == Ints64{0, 1, 2, 3, 4, 5, 4, 5, 6, 7, 8, 9});  // numpy.sliding_window_view
  CHECK(Evaluate(
            "sliding_windows",
            {{"x", Iota({3})}, {"axis", S(-1)}, {"size", S(3)}, {"stride", I64({}, {INT64_MAX})}})
            .dims() == Dims{1, 3});
  CHECK(ToString(Infer("sliding_windows", {{"x", Fp32({n, 2})}, {"axis", S(0)}, {"size", S(3)}})
                     .results[0]
                     .shape) == "[n - 2, 3, 2]");
  CHECK_THROWS_AS(Infer("sliding_windows", {{"x", Fp32({2})}, {"axis", S(0)}, {"size", S(3)}}),
                  Error);
  CHECK_THROWS_AS(Infer("sliding_windows",
                        {{"x", Fp32({5})}, {"axis", S(0)}, {"size", S(3)}, {"stride", S(0)}}),
                  Error);
}

TEST_CASE("depth_to_space, pixel_shuffle and their inverses") {
  Tensor x = Iota({1, 8, 2, 2});
  // The formulas of the modes DCR and CRD in ONNX's DepthToSpace, computed with numpy.
  Tensor dcr = Evaluate("depth_to_space", {{"x", x}, {"block_size", S(2)}});
  CHECK(dcr.dims() == Dims{1, 2, 4, 4});
  CHECK(dcr.Ints() == Ints64{0, 8,  1, 9,  16, 24, 17, 25, 2, 10, 3, 11, 18, 26, 19, 27,
                             4, 12, 5, 13, 20, 28, 21, 29, 6, 14, 7, 15, 22, 30, 23, 31});
  Tensor crd = Evaluate("pixel_shuffle", {{"x", x}, {"upscale_factor", S(2)}});
  CHECK(crd.Ints() == Ints64{0,  4,  1,  5,  8,  12, 9,  13, 2,  6,  3,  7,  10, 14, 11, 15,
                             16, 20, 17, 21, 24, 28, 25, 29, 18, 22, 19, 23, 26, 30, 27, 31});
  CHECK(Evaluate("space_to_depth", {{"x", dcr}, {"block_size", S(2)}}).SameBytes(x));
  CHECK(Evaluate("pixel_unshuffle", {{"x", crd}, {"downscale_factor", S(2)}}).SameBytes(x));
  CHECK(ToString(Infer("depth_to_space", {{"x", Fp32({1, 4, n, m})}, {"block_size", S(2)}})
                     .results[0]
                     .shape) == "[1, 1, 2*n, 2*m]");
  CHECK(ToString(Infer("space_to_depth", {{"x", Fp32({1, 4, Dim(2) * n, 6})}, {"block_size", S(2)}})
                     .results[0]
                     .shape) == "[1, 16, n, 3]");
  CHECK_THROWS_AS(Infer("depth_to_space", {{"x", Fp32({1, 6, 2, 2})}, {"block_size", S(2)}}),
                  Error);
  CHECK_THROWS_AS(Infer("space_to_depth", {{"x", Fp32({1, 6, 3, 2})}, {"block_size", S(2)}}),
                  Error);
  CHECK_THROWS_AS(Infer("pixel_shuffle", {{"x", Fp32({4, 2, 2})}, {"upscale_factor", S(2)}}),
                  Error);
  CHECK_THROWS_AS(Infer("pixel_shuffle", {{"x", Fp32({1, 4, 2, 2})}, {"upscale_factor", S(0)}}),
                  Error);
}

TEST_CASE("space_to_batch and batch_to_space") {
  Tensor x = I32({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  // numpy, by the formula of tf.space_to_batch_nd.
  Tensor y =
      Evaluate("space_to_batch",
               {{"x", x}, {"block_shape", V({2, 3})}, {"paddings", I32({2, 2}, {0, 0, 1, 1})}});
  CHECK(y.dims() == Dims{6, 1, 1, 2});
  CHECK(y.Ints() == Ints64{0, 3, 1, 4, 2, 0, 0, 7, 5, 8, 6, 0});
  CHECK(Evaluate("batch_to_space",
                 {{"x", y}, {"block_shape", V({2, 3})}, {"crops", I32({2, 2}, {0, 0, 1, 1})}})
            .SameBytes(x));
  CHECK_THROWS_AS(
      Infer("space_to_batch",
            {{"x", x}, {"block_shape", V({2, 3})}, {"paddings", I32({2, 2}, {0, 0, 0, 0})}}),
      Error);
  CHECK_THROWS_AS(
      Infer("space_to_batch",
            {{"x", x}, {"block_shape", V({2, 2})}, {"paddings", I32({4}, {0, 0, 0, 0})}}),
      Error);
  CHECK_THROWS_AS(
      Infer("batch_to_space",
            {{"x", y}, {"block_shape", V({2, 3})}, {"crops", I32({2, 2}, {3, 0, 0, 0})}}),
      Error);
  CHECK_THROWS_AS(
      Infer("batch_to_space",
            {{"x", y}, {"block_shape", V({5, 1})}, {"crops", I32({2, 2}, {0, 0, 0, 0})}}),
      Error);
}

TEST_CASE("slice: range rules are sound", "[traits]") {
  CheckRange("slice_update", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers({4, 3}, dtype)},
            {"update", draw.Numbers({2, 3}, dtype)},
            {"begin", Ints32({1, 0})},
            {"end", Ints32({3, 3})}};
  });
  CheckRange("sliding_windows", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers({4, 3}, dtype)}, {"axis", Number(0)}, {"size", Number(2)}};
  });
  CheckRange("pixel_shuffle", [](Draw& draw, DType) -> Case {
    return {{"x", draw.Image()}, {"upscale_factor", Number(2)}};
  });
  CheckRange("pixel_unshuffle", [](Draw& draw, DType) -> Case {
    return {{"x", draw.Image()}, {"downscale_factor", Number(2).Cast(DType::kUint32)}};
  });
  CheckRange("batch_to_space", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers({4, 2, 4, 4}, dtype)},
            {"block_shape", Ints32({2, 2})},
            {"crops", I32({2, 2}, {0, 0, 1, 1})}};
  });
  CheckRange("space_to_batch", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers({4, 2, 4, 4}, dtype)},
            {"block_shape", Ints32({2, 2})},
            {"paddings", I32({2, 2}, {0, 0, 1, 1})}};
  });
  CheckRange("depth_to_space", [](Draw& draw, DType) -> Case {
    return {{"x", draw.Image()}, {"block_size", Number(2)}};
  });
  CheckRange("space_to_depth", [](Draw& draw, DType) -> Case {
    return {{"x", draw.Image()}, {"block_size", Number(2)}};
  });
}
