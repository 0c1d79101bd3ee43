#include <numeric>

#include "test/catch.h"
#include "test/lib/ops/evaluate.h"
#include "test/lib/ops/random_operands.h"

using namespace mlc;
using namespace mlc::test;

namespace {

// The elements 0, 1, 2, ... in a given shape.
Tensor Iota(Dims dims) {
  std::vector<int32_t> values(ElementCount(dims));
  std::iota(values.begin(), values.end(), 0);
  return I32(std::move(dims), values);
}
Tensor V(const std::vector<int32_t>& values) { return Tensor::Vector(values); }
Tensor S(int32_t value) { return Tensor::Scalar(value); }
Dim Sym(const char* name) { return Dim::Symbol(name); }
Type Fp32(Shape shape) { return Type::Tensor(DType::kFp32, std::move(shape)); }
Type Int32(Shape shape) { return Type::Tensor(DType::kInt32, std::move(shape)); }
std::string ShapeOf(std::string_view op, const std::vector<In>& in, int result = 0) {
  return ToString(Infer(op, in).results.at(result).shape);
}
std::string ElementsOf(std::string_view op, const std::vector<In>& in, int result = 0) {
  auto dims = Infer(op, in).dims.at(result);
  return dims ? ToString(*dims) : "unknown";
}
const Dim n = Sym("n"), m = Sym("m");
}  // namespace

TEST_CASE("reshape: -1 and 0") {
  // coremltools 8, iOS17 reshape: [2, 50] with [1, 0, -1, 0] is [1, 1, 2, 50].
  CHECK(ShapeOf("reshape", {{"x", Fp32({2, 50})}, {"shape", V({1, 0, -1, 0})}}) == "[1, 1, 2, 50]");
  CHECK(ShapeOf("reshape", {{"x", Fp32({2, 3, 4})}, {"shape", V({0, -1})}}) == "[3, 8]");
  CHECK(ShapeOf("reshape", {{"x", Fp32({0, 3})}, {"shape", V({0, 3})}}) == "[0, 3]");
  CHECK(ShapeOf("reshape", {{"x", Fp32({})}, {"shape", V({1, -1})}}) == "[1, 1]");
  CHECK(ShapeOf("reshape", {{"x", Fp32({1})}, {"shape", V({})}}) == "[]");
  Tensor y = Evaluate("reshape", {{"x", Iota({2, 3})}, {"shape", I64({2}, {3, -1})}});
  CHECK(y.Ints() == Ints64{0, 1, 2, 3, 4, 5});
  CHECK_THROWS_AS(Infer("reshape", {{"x", Fp32({2, 3})}, {"shape", V({4, -1})}}), Error);
  CHECK_THROWS_AS(Infer("reshape", {{"x", Fp32({2, 3})}, {"shape", V({-1, -1})}}), Error);
  CHECK_THROWS_AS(Infer("reshape", {{"x", Fp32({2, 3})}, {"shape", V({2, 2})}}), Error);
  CHECK_THROWS_AS(Infer("reshape", {{"x", Fp32({2, 3})}, {"shape", Int32({0})}}), Error);
  CHECK_THROWS_AS(Infer("reshape", {{"x", Fp32({2, 3})}, {"shape", V({-2, -3})}}), Error);
  CHECK_THROWS_AS(Infer("reshape", {{"x", Fp32({0, 3})}, {"shape", V({-1, 0, 3})}}), Error);
  CHECK_THROWS_AS(
      Infer("reshape", {{"x", Fp32({2, 3})}, {"shape", I64({2}, {INT64_MAX, INT64_MAX})}}), Error);
}

TEST_CASE("reshape: symbols") {  // by hand
  CHECK(ShapeOf("reshape", {{"x", Fp32({n, 12, 64})}, {"shape", V({-1, 768})}}) == "[n, 768]");
  CHECK(ShapeOf("reshape", {{"x", Fp32({n, m, 768})}, {"shape", Int32({4}), {n, -1, 12, 64}}}) ==
        "[n, m, 12, 64]");
  CHECK(ShapeOf("reshape", {{"x", Fp32({n, 6})}, {"shape", V({-1, 4})}}) ==
        "[" + FloorDiv(n * Dim(6), Dim(4)).ToString() + ", 4]");
  // If the shape is unknown at compile time, only the rank is known.
  InferContext unknown = Infer("reshape", {{"x", Fp32({n, 6})}, {"shape", Int32({3})}});
  CHECK(unknown.results[0].rank() == 3);
  CHECK(unknown.fresh == 3);
  CHECK_THROWS_AS(Infer("reshape", {{"x", Fp32({n, 6})}, {"shape", Int32({n})}}), Error);
  // n*6 elements never equal n*6 + 1, for any n.
  CHECK_THROWS_AS(Infer("reshape", {{"x", Fp32({n})}, {"shape", Int32({1}), {n + Dim(1)}}}), Error);
  // Known elements are propagated.
  CHECK(ElementsOf("reshape", {{"x", Int32({}), {n}}, {"shape", V({1})}}) == "[n]");
  CHECK(ElementsOf("reshape", {{"x", Int32({2}), {n, 3}}, {"shape", V({-1})}}) == "[n, 3]");
}

TEST_CASE("reshape_like") {  // the example in coremltools' documentation of the operator
  std::vector<In> in = {{"ref_tensors", Fp32({2, 3, 4})}, {"ref_tensors", Fp32({1, 5, 6})}};
  for (int32_t begin : {0, 1}) in.push_back({"begins", S(begin)});
  for (int32_t end : {2, 0}) in.push_back({"ends", S(end)});
  for (bool mask : {false, true}) in.push_back({"end_masks", Tensor::Scalar(mask)});
  in.push_back({"x", Fp32({180})});
  CHECK(ShapeOf("reshape_like", in) == "[2, 3, 5, 6]");
  in.back() = {"x", Fp32({181})};
  CHECK_THROWS_AS(Infer("reshape_like", in), Error);
}

TEST_CASE("transpose") {  // numpy
  Tensor y = Evaluate("transpose", {{"x", Iota({2, 3, 4})}, {"perm", V({-1, 0, 1})}});
  CHECK(y.dims() == Dims{4, 2, 3});
  CHECK(y.Ints() == Ints64{0, 4, 8,  12, 16, 20, 1, 5, 9,  13, 17, 21,
                           2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23});
  CHECK(ShapeOf("transpose", {{"x", Fp32({n, 3})}, {"perm", V({1, 0})}}) == "[3, n]");
  CHECK_THROWS_AS(Infer("transpose", {{"x", Fp32({2, 3})}, {"perm", V({0, 0})}}), Error);
  CHECK_THROWS_AS(Infer("transpose", {{"x", Fp32({2, 3})}, {"perm", V({0, 2})}}), Error);
  CHECK_THROWS_AS(Infer("transpose", {{"x", Fp32({2, 3})}, {"perm", V({0})}}), Error);
  CHECK_THROWS_AS(Infer("transpose", {{"x", Fp32({2, 3})}, {"perm", Int32({2})}}), Error);
}

TEST_CASE("expand_dims, squeeze, flatten2d") {
  CHECK(ShapeOf("expand_dims", {{"x", Fp32({n, 3})}, {"axes", V({-1, 0})}}) == "[1, n, 3, 1]");
  CHECK(ShapeOf("expand_dims", {{"x", Fp32({})}, {"axes", V({0})}}) == "[1]");
  CHECK(ElementsOf("expand_dims", {{"x", Int32({}), {n}}, {"axes", V({0})}}) == "[n]");
  CHECK_THROWS_AS(Infer("expand_dims", {{"x", Fp32({3})}, {"axes", V({0, -3})}}), Error);
  CHECK_THROWS_AS(Infer("expand_dims", {{"x", Fp32({3})}, {"axes", V({2})}}), Error);
  // torch.squeeze ignores a dimension that is not 1.
  CHECK(ShapeOf("squeeze", {{"x", Fp32({1, 3, 1})}, {"axes", V({1, -1})}}) == "[1, 3]");
  CHECK(ShapeOf("squeeze", {{"x", Fp32({1, n, 1})}}) == "[n]");
  CHECK(ShapeOf("squeeze", {{"x", Fp32({1, 1})}}) == "[]");
  CHECK(ElementsOf("squeeze", {{"x", Int32({1}), {m}}, {"axes", V({0})}}) == "[m]");
  CHECK_THROWS_AS(Infer("squeeze", {{"x", Fp32({n, 3})}, {"axes", V({0})}}), Error);
  CHECK_THROWS_AS(Infer("squeeze", {{"x", Fp32({1, 3})}, {"axes", V({2})}}), Error);
  // The examples in coremltools' documentation of flatten2d.
  struct Case {
    Dims x;
    int32_t axis;
    const char* expected;
  };
  for (const Case& each :
       {Case{{3}, -1, "[1, 3]"}, Case{{3}, 1, "[3, 1]"}, Case{{4, 3}, -1, "[4, 3]"},
        Case{{2, 3, 2}, -1, "[6, 2]"}, Case{{5, 5, 2}, 1, "[5, 10]"}})
    CHECK(ShapeOf("flatten2d", {{"x", Iota(each.x)}, {"axis", S(each.axis)}}) == each.expected);
  CHECK(ShapeOf("flatten2d", {{"x", Fp32({n, 3, m})}}) == "[n, " + (Dim(3) * m).ToString() + "]");
  CHECK_THROWS_AS(Infer("flatten2d", {{"x", Fp32({3})}, {"axis", S(2)}}), Error);
}

TEST_CASE("concat") {
  Tensor a = Iota({3, 2}),
         b = Evaluate("reshape", {{"x", V({6, 7, 8, 9, 10, 11})}, {"shape", V({3, 2})}});
  CHECK(Evaluate("concat", {{"values", a}, {"values", b}, {"axis", S(-1)}}).Ints() ==
        Ints64{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11});
  // The documentation's example of interleave with indices from 0; numpy: stack and reshape.
  Tensor y = Evaluate(
      "concat",
      {{"values", a}, {"values", b}, {"axis", S(0)}, {"interleave", Tensor::Scalar(true)}});
  CHECK(y.dims() == Dims{6, 2});
  CHECK(y.Ints() == Ints64{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11});
  Tensor empty = I32({3, 0}, {});
  CHECK(Evaluate("concat", {{"values", empty}, {"values", a}, {"axis", S(1)}}).SameBytes(a));
  CHECK(Evaluate("concat", {{"values", empty}, {"values", empty}, {"axis", S(1)}}).dims() ==
        Dims{3, 0});
  CHECK(Evaluate("concat", {{"values", S(4)}, {"values", S(5)}, {"axis", S(0)}}).Ints() ==
        Ints64{4, 5});
  CHECK(ShapeOf("concat", {{"values", Fp32({n, 3})}, {"values", Fp32({m, 3})}, {"axis", S(0)}}) ==
        "[" + (n + m).ToString() + ", 3]");
  CHECK(ShapeOf("concat", {{"values", Fp32({n, 3})}, {"values", Fp32({7, 3})}, {"axis", S(1)}}) ==
        "[7, 6]");
  CHECK(ElementsOf("concat",
                   {{"values", Int32({1}), {n}}, {"values", V({-1, 64})}, {"axis", S(0)}}) ==
        "[n, -1, 64]");
  CHECK_THROWS_AS(
      Infer("concat", {{"values", Fp32({2, 3})}, {"values", Fp32({2, 4})}, {"axis", S(0)}}), Error);
  CHECK_THROWS_AS(Infer("concat", {{"values", Fp32({2})}, {"values", Int32({2})}, {"axis", S(0)}}),
                  Error);
  CHECK_THROWS_AS(Infer("concat", {{"values", Fp32({2})}, {"axis", S(1)}}), Error);
  CHECK_THROWS_AS(Infer("concat", {{"axis", S(0)}}), Error);
}

TEST_CASE("stack") {
  Tensor y = Evaluate("stack", {{"values", V({0, 1})}, {"values", V({2, 3})}, {"axis", S(-1)}});
  CHECK(y.dims() == Dims{2, 2});
  CHECK(y.Ints() == Ints64{0, 2, 1, 3});  // numpy.stack
  CHECK(ElementsOf("stack", {{"values", Int32({}), {n}}, {"values", S(3)}, {"axis", S(0)}}) ==
        "[n, 3]");
  CHECK_THROWS_AS(Infer("stack", {{"values", Fp32({2})}, {"values", Fp32({3})}, {"axis", S(0)}}),
                  Error);
  CHECK_THROWS_AS(Infer("stack", {{"values", Fp32({2})}, {"axis", S(2)}}), Error);
}

TEST_CASE("split") {
  auto parts = EvaluateAll("split", {{"x", Iota({2, 4})}, {"num_splits", S(2)}, {"axis", S(1)}});
  REQUIRE(parts.size() == 2);
  CHECK(parts[1].Ints() == Ints64{2, 3, 6, 7});
  parts =
      EvaluateAll("split", {{"x", Iota({2, 4})}, {"split_sizes", V({0, 3, 1})}, {"axis", S(-1)}});
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].dims() == Dims{2, 0});
  CHECK(parts[1].Ints() == Ints64{0, 1, 2, 4, 5, 6});
  CHECK(ShapeOf("split", {{"x", Fp32({Dim(4) * n})}, {"num_splits", S(2)}, {"axis", S(0)}}, 1) ==
        "[" + (Dim(2) * n).ToString() + "]");
  CHECK(ElementsOf("split",
                   {{"x", Int32({3}), {n, 4, m}}, {"split_sizes", V({1, 2})}, {"axis", S(0)}},
                   1) == "[4, m]");
  CHECK_THROWS_AS(Infer("split", {{"x", Fp32({5})}, {"num_splits", S(2)}, {"axis", S(0)}}), Error);
  CHECK_THROWS_AS(Infer("split", {{"x", Fp32({5})}, {"num_splits", S(0)}, {"axis", S(0)}}), Error);
  CHECK_THROWS_AS(Infer("split", {{"x", Fp32({n})}, {"num_splits", S(INT32_MAX)}, {"axis", S(0)}}),
                  Error);
  CHECK_THROWS_AS(Infer("split", {{"x", Fp32({5})}, {"split_sizes", V({6, -1})}, {"axis", S(0)}}),
                  Error);
  CHECK_THROWS_AS(Infer("split", {{"x", Fp32({5})}, {"split_sizes", V({1, 3})}, {"axis", S(0)}}),
                  Error);
  CHECK_THROWS_AS(Infer("split", {{"x", Fp32({5})}, {"axis", S(0)}}), Error);
}

TEST_CASE("tile") {
  Tensor y = Evaluate("tile", {{"x", Iota({2, 3})}, {"reps", V({2, 2})}});
  CHECK(y.dims() == Dims{4, 6});
  CHECK(y.Ints() == Ints64{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5, 0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(Evaluate("tile", {{"x", Iota({2})}, {"reps", V({0})}}).dims() == Dims{0});
  CHECK(ShapeOf("tile", {{"x", Fp32({1, 3})}, {"reps", Int32({2}), {n, 2}}}) == "[n, 6]");
  CHECK(ElementsOf("tile", {{"x", Int32({1}), {n}}, {"reps", V({3})}}) == "[n, n, n]");
  CHECK(Infer("tile", {{"x", Fp32({2, 3})}, {"reps", Int32({2})}}).fresh == 2);
  CHECK_THROWS_AS(Infer("tile", {{"x", Fp32({2, 3})}, {"reps", V({2})}}), Error);
  CHECK_THROWS_AS(Infer("tile", {{"x", Fp32({2})}, {"reps", V({-1})}}), Error);
  CHECK_THROWS_AS(Evaluate("tile", {{"x", Iota({2, 2})}, {"reps", V({INT32_MAX, INT32_MAX})}}),
                  Error);
  CHECK_THROWS_AS(Evaluate("tile", {{"x", Iota({3})}, {"reps", I64({1}, {INT64_MAX})}}), Error);
}

TEST_CASE("pad") {  // numpy.pad
  Tensor x = Iota({2, 3});
  auto pad = [&](std::vector<int32_t> amounts, const char* mode) {
    return Evaluate("pad", {{"x", x},
                            {"pad", V(amounts)},
                            {"mode", Tensor::String(mode)},
                            {"constant_val", S(9)}})
        .Ints();
  };
  CHECK(pad({1, 0, 2, 1}, "reflect") ==
        Ints64{5, 4, 3, 4, 5, 4, 2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4});
  CHECK(pad({1, 0, 2, 1}, "replicate") ==
        Ints64{0, 0, 0, 1, 2, 2, 0, 0, 0, 1, 2, 2, 3, 3, 3, 4, 5, 5});
  CHECK(pad({1, 0, 0, 2}, "constant") == Ints64{9, 9, 9, 9, 9, 0, 1, 2, 9, 9, 3, 4, 5, 9, 9});
  CHECK(pad({0, 1}, "constant") == Ints64{0, 1, 2, 9, 3, 4, 5, 9});  // the last dimension only
  CHECK(Evaluate("pad", {{"x", F16({1}, {1.5})}, {"pad", V({1, 0})}}).Doubles() ==
        std::vector<double>{0, 1.5});
  CHECK(Evaluate("pad", {{"x", F32({0}, {})}, {"pad", V({1, 1})}}).dims() == Dims{2});
  CHECK(Evaluate("pad", {{"x", F32({}, {7})}, {"pad", V({})}}).Double(0) == 7);
  CHECK(ShapeOf("pad", {{"x", Fp32({3, 4})}, {"pad", Int32({4}), {0, n, 1, 1}}}) ==
        "[" + (n + Dim(3)).ToString() + ", 6]");
  CHECK(Infer("pad", {{"x", Fp32({3, 4})}, {"pad", Int32({4})}}).fresh == 2);
  CHECK_THROWS_AS(pad({0, 3}, "reflect"), Error);  // at most the dimension minus 1
  CHECK_THROWS_AS(pad({-1, 0}, "constant"), Error);
  CHECK_THROWS_AS(pad({1}, "constant"), Error);
  CHECK_THROWS_AS(pad({1, 1, 1, 1, 1, 1}, "constant"), Error);
  CHECK_THROWS_AS(pad({0, 0}, "wrap"), Error);
  CHECK_THROWS_AS(pad({INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX}, "constant"), Error);
}

TEST_CASE("reverse, reverse_sequence") {
  Tensor x = Iota({2, 3, 4});
  CHECK(
      Evaluate("reverse", {{"x", x}, {"axes", V({0, -1})}}).Ints() ==  // numpy.flip
      Ints64{15, 14, 13, 12, 19, 18, 17, 16, 23, 22, 21, 20, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8});
  CHECK(Evaluate("reverse", {{"x", Iota({2, 2})}}).Ints() == Ints64{3, 2, 1, 0});
  CHECK(Evaluate("reverse", {{"x", I32({0, 2}, {})}}).dims() == Dims{0, 2});
  CHECK(ElementsOf("reverse", {{"x", Int32({2}), {n, m}}}) == "[m, n]");
  CHECK_THROWS_AS(Infer("reverse", {{"x", Fp32({2})}, {"axes", V({1})}}), Error);
  // ONNX ReverseSequence, test case reversesequence_batch: lengths 1..4 of rows of 4.
  Tensor y = Evaluate("reverse_sequence", {{"x", Iota({4, 4})},
                                           {"lengths", V({1, 2, 3, 4})},
                                           {"seq_axis", S(1)},
                                           {"batch_axis", S(0)}});
  CHECK(y.Ints() == Ints64{0, 1, 2, 3, 5, 4, 6, 7, 10, 9, 8, 11, 15, 14, 13, 12});
  // reversesequence_time: the sequences are columns.
  y = Evaluate("reverse_sequence",
               {{"x", Evaluate("transpose", {{"x", Iota({4, 4})}, {"perm", V({1, 0})}})},
                {"lengths", V({4, 3, 2, 1})},
                {"seq_axis", S(0)},
                {"batch_axis", S(1)}});
  CHECK(y.Ints() == Ints64{3, 6, 9, 12, 2, 5, 8, 13, 1, 4, 10, 14, 0, 7, 11, 15});
  CHECK_THROWS_AS(Evaluate("reverse_sequence",
                           {{"x", Iota({2, 2})}, {"lengths", V({1, 3})}, {"seq_axis", S(1)}}),
                  Error);
  CHECK_THROWS_AS(
      Evaluate("reverse_sequence", {{"x", Iota({2, 2})}, {"lengths", V({1})}, {"seq_axis", S(1)}}),
      Error);
}

// A source that counts the elements that are read.
TEST_CASE("views of large tensors are lazy and read only the required elements") {
  const int64_t size = int64_t{1} << 40;  // more than fits in any memory
  auto read = std::make_shared<int64_t>(0);
  Tensor x = Tensor::Lazy(DType::kInt64, {1 << 20, 1 << 20},
                          [read](int64_t first, int64_t count, std::byte* out) {
                            *read += count;
                            for (int64_t i = 0; i < count; ++i) {
                              int64_t value = first + i;
                              std::memcpy(out + 8 * i, &value, 8);
                            }
                          });
  auto at = [&](const Tensor& tensor, int64_t index) {
    int64_t value = -1;
    tensor.Read(index, 1, reinterpret_cast<std::byte*>(&value));
    return value;
  };
  Tensor y = Evaluate("transpose", {{"x", x}, {"perm", V({1, 0})}});
  CHECK(at(y, 1) == 1 << 20);
  y = Evaluate("reshape", {{"x", x}, {"shape", I64({1}, {size})}});
  CHECK(at(y, size - 1) == size - 1);
  y = Evaluate("reverse", {{"x", x}});
  CHECK(at(y, 5) == size - 6);
  y = Evaluate("split", {{"x", x}, {"num_splits", S(2)}, {"axis", S(1)}});
  CHECK(at(y, 1 << 19) == 1 << 20);
  y = Evaluate("concat", {{"values", x}, {"values", x}, {"axis", S(1)}});
  CHECK(at(y, int64_t{3} << 20) == int64_t{1} << 20);
  y = Evaluate("slice_by_index",
               {{"x", x}, {"begin", V({7, -1})}, {"end", V({1 << 20, 0})}, {"stride", V({1, -3})}});
  CHECK(at(y, 1) == (int64_t{8} << 20) - 4);
  y = Evaluate("stack", {{"values", x}, {"values", x}, {"axis", S(-1)}});
  CHECK(at(y, 9) == 4);
  CHECK(*read < 1 << 20);
}

TEST_CASE("strided views of lazy tensors agree with those of tensors in memory") {
  Tensor x = Iota({9, 11, 101});  // larger than the limit for lazy results
  Tensor lazy = Tensor::Lazy(
      x.dtype(), x.dims(),
      [x](int64_t first, int64_t count, std::byte* out) { x.Read(first, count, out); });
  for (const std::vector<int32_t>& stride :
       {std::vector<int32_t>{1, 1, 1}, {-1, 1, -1}, {1, 2, 1}, {2, -1, 1}}) {
    auto slice = [&](const Tensor& from) {
      return Evaluate("slice_by_index", {{"x", from},
                                         {"begin", V({0, 0, 0})},
                                         {"end", V({0, 0, 0})},
                                         {"stride", V(stride)},
                                         {"begin_mask", Tensor::Vector<bool>({true, true, true})},
                                         {"end_mask", Tensor::Vector<bool>({true, true, true})}});
    };
    Tensor a = slice(x), b = slice(lazy);
    REQUIRE(a.size() > Tensor::kLazyElements);
    int64_t i = 0;  // by hand, index by index
    bool equal = true;
    auto begin = [&](int d) { return stride[d] < 0 ? x.dims()[d] - 1 : 0; };
    for (int64_t p = begin(0); p >= 0 && p < 9; p += stride[0])
      for (int64_t q = begin(1); q >= 0 && q < 11; q += stride[1])
        for (int64_t r = begin(2); r >= 0 && r < 101; r += stride[2], ++i)
          equal = equal && a.Int(i) == (p * 11 + q) * 101 + r;
    CHECK(equal);
    CHECK(i == a.size());
    CHECK(a.SameBytes(b));
    int32_t part[1000];  // a range at any position
    b.Read(777, 1000, reinterpret_cast<std::byte*>(part));
    Pin<int32_t> all = a.data<int32_t>();
    CHECK(std::equal(part, part + 1000, all.begin() + 777));
  }
}

TEST_CASE("shape: range rules are sound", "[traits]") {
  CheckTraits("pad", [](Draw& draw, const Dims& dims, DType dtype) -> Case {
    return {{"pad", draw.Whole({2 * std::ssize(dims)}, 0, 2)},
            {"constant_val", draw.Numbers({}, dtype)},
            {"mode", Text("constant")}};
  });
  CheckTraits("tile", [](Draw& draw, const Dims& dims, DType) -> Case {
    return {{"reps", draw.Whole({std::ssize(dims)}, 1, 3)}};
  });
  CheckRange("flatten2d", [](Draw& draw, DType dtype) -> Case {
    Dims dims = draw.Sizes(1, 3);
    return {{"x", draw.Numbers(dims, dtype)}, {"axis", Number(1)}};
  });
  CheckRange("reshape_like", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers({2, 3}, dtype)},
            {"ref_tensors", draw.Numbers({6}, dtype)},
            {"begins", Number(0)},
            {"ends", Number(1)},
            {"end_masks", Truth(false)}};
  });
  CheckRange("reverse_sequence", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers({3, 4}, dtype)},
            {"lengths", draw.Whole({3}, 1, 4)},
            {"seq_axis", Number(1)},
            {"batch_axis", Number(0)}};
  });
  CheckRange("stack", [](Draw& draw, DType dtype) -> Case {
    Dims dims = draw.Sizes(1, 3);
    return {{"values", draw.Numbers(dims, dtype)},
            {"values", draw.Numbers(dims, dtype)},
            {"axis", Number(0)}};
  });
  CheckRange("transpose", [](Draw& draw, DType dtype) -> Case {
    Dims dims = draw.Sizes(1, 3);
    std::vector<int32_t> perm;
    for (int64_t axis : draw.Order(std::ssize(dims))) perm.push_back(static_cast<int32_t>(axis));
    return {{"x", draw.Numbers(dims, dtype)}, {"perm", Ints32(perm)}};
  });
}
