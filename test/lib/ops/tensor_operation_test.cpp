#include "test/catch.h"
#include "test/lib/ops/evaluate.h"
#include "test/lib/ops/random_operands.h"

using namespace mlc;
using namespace mlc::test;

namespace {
using Doubles = std::vector<double>;

Tensor V(const std::vector<int32_t>& values) { return Tensor::Vector(values); }
Tensor S(int32_t value) { return Tensor::Scalar(value); }
Tensor Bool(bool value) { return Tensor::Scalar(value); }
Tensor Text(const char* text) { return Tensor::String(text); }
Type Fp32(Shape shape) { return Type::Tensor(DType::kFp32, std::move(shape)); }
Type Int32(Shape shape) { return Type::Tensor(DType::kInt32, std::move(shape)); }
std::string ShapeOf(std::string_view op, const std::vector<In>& in) {
  return ToString(Infer(op, in).results.at(0).shape);
}
std::string ElementsOf(std::string_view op, const std::vector<In>& in) {
  auto dims = Infer(op, in).dims.at(0);
  return dims ? ToString(*dims) : "unknown";
}
const Dim n = Dim::Symbol("n"), m = Dim::Symbol("m");
}  // namespace

TEST_CASE("shape") {
  CHECK(Evaluate("shape", {{"x", F32({2, 0}, {})}}).Ints() == Ints64{2, 0});
  CHECK(Evaluate("shape", {{"x", F32({}, {1})}}).dims() == Dims{0});
  CHECK(ElementsOf("shape", {{"x", Fp32({n, 3, n + m})}}) == "[n, 3, " + (n + m).ToString() + "]");
}

TEST_CASE("fill, fill_like") {
  Tensor y = Evaluate("fill", {{"shape", V({2, 3})}, {"value", I64({}, {INT64_MAX - 1})}});
  CHECK(y.Ints() == Ints64(6, INT64_MAX - 1));
  CHECK(Evaluate("fill", {{"shape", V({2})}}).dtype() == DType::kFp32);
  CHECK(Evaluate("fill", {{"shape", V({})}, {"value", S(4)}}).Int(0) == 4);
  CHECK(Evaluate("fill", {{"shape", V({0, 5})}}).size() == 0);
  CHECK(ShapeOf("fill", {{"shape", Int32({2}), {n, 3}}}) == "[n, 3]");
  CHECK(ElementsOf("fill", {{"shape", V({2})}, {"value", S(7)}}) == "[7, 7]");
  CHECK(Infer("fill", {{"shape", Int32({3})}}).fresh == 3);
  CHECK_THROWS_AS(Infer("fill", {{"shape", Int32({n})}}), Error);
  CHECK_THROWS_AS(Infer("fill", {{"shape", V({-1})}}), Error);
  CHECK_THROWS_AS(Evaluate("fill", {{"shape", V({INT32_MAX, INT32_MAX})}}), Error);
  CHECK_THROWS_AS(Evaluate("fill", {{"shape", V({INT32_MAX, INT32_MAX, INT32_MAX})}}), Error);
  y = Evaluate("fill_like", {{"ref_tensor", F32({2, 1}, {1, 2})}, {"value", Bool(true)}});
  CHECK(y.dtype() == DType::kBool);
  CHECK(y.Ints() == Ints64{1, 1});
}

TEST_CASE("range_1d") {
  auto range = [](Tensor start, Tensor end, Tensor step) {
    return Evaluate("range_1d", {{"start", start}, {"end", end}, {"step", step}});
  };
  auto f = [](double value) { return Tensor::Scalar(value); };
  CHECK(range(S(5), S(-2), S(-3)).Ints() == Ints64{5, 2, -1});  // numpy.arange
  CHECK(Near(range(f(1), f(2), f(0.3)).Doubles(), {1, 1.3, 1.6, 1.9}, 1e-15));
  CHECK(range(S(3), S(3), S(1)).dims() == Dims{0});
  CHECK(range(S(3), S(9), S(-1)).dims() == Dims{0});
  CHECK(range(I64({}, {INT64_MIN}), I64({}, {INT64_MAX}), I64({}, {INT64_MAX})).Ints() ==
        Ints64{INT64_MIN, -1, INT64_MAX - 1});
  CHECK_THROWS_AS(range(S(0), S(3), S(0)), Error);
  CHECK_THROWS_AS(range(f(0), f(3), f(0)), Error);
  CHECK_THROWS_AS(range(f(0), f(kNaN), f(1)), Error);
  CHECK_THROWS_AS(range(f(0), f(kInf), f(1)), Error);
  CHECK_THROWS_AS(range(I64({}, {0}), I64({}, {INT64_MAX}), I64({}, {1})), Error);
  CHECK_THROWS_AS(range(S(0), f(3), S(1)), Error);
  auto symbolic = [](Dim start, Dim end, Dim step) {
    std::vector<In> in = {
        {"start", Int32({}), {start}}, {"end", Int32({}), {end}}, {"step", Int32({}), {step}}};
    return ShapeOf("range_1d", in);
  };
  CHECK(symbolic(0, n, 1) == "[n]");
  CHECK(symbolic(n, n + m, 1) == "[m]");
  CHECK(symbolic(0, n, 2) == "[" + CeilDiv(n, 2).ToString() + "]");
  CHECK(symbolic(n, 0, -1) == "[n]");
  CHECK(symbolic(m, n, 1) == "[" + Max(n - m, 0).ToString() + "]");
  CHECK(symbolic(0, n, n - m)[1] == '?');
  CHECK(ElementsOf("range_1d",
                   {{"start", Int32({}), {n}}, {"end", Int32({}), {n + Dim(2)}}, {"step", S(1)}}) ==
        "[n, n + 1]");
}

TEST_CASE("one_hot") {  // ONNX OneHot, where indices are in range; by hand outside
  Tensor y = Evaluate("one_hot", {{"indices", V({1, -1, 3})},
                                  {"one_hot_vector_size", S(3)},
                                  {"on_value", F32({}, {5})},
                                  {"off_value", F32({}, {2})}});
  CHECK(y.dims() == Dims{3, 3});
  CHECK(y.Doubles() == Doubles{2, 5, 2, 2, 2, 2, 2, 2, 2});
  y = Evaluate("one_hot",
               {{"indices", I32({1, 2}, {0, 1})}, {"one_hot_vector_size", S(3)}, {"axis", S(1)}});
  CHECK(y.dims() == Dims{1, 3, 2});
  CHECK(y.dtype() == DType::kInt32);
  CHECK(y.Ints() == Ints64{1, 0, 0, 1, 0, 0});
  CHECK(ShapeOf("one_hot", {{"indices", Int32({n})}, {"one_hot_vector_size", Int32({}), {m}}}) ==
        "[n, m]");
  CHECK_THROWS_AS(Infer("one_hot", {{"indices", V({1})}, {"one_hot_vector_size", S(-1)}}), Error);
  CHECK_THROWS_AS(
      Infer("one_hot", {{"indices", V({1})}, {"one_hot_vector_size", S(3)}, {"axis", S(2)}}),
      Error);
  CHECK_THROWS_AS(
      Evaluate("one_hot", {{"indices", Evaluate("fill", {{"shape", V({100000})}, {"value", S(0)}})},
                           {"one_hot_vector_size", S(INT32_MAX)}}),
      Error);
}

TEST_CASE("cumsum") {  // numpy.cumsum; exclusive and reverse as in ONNX CumSum's test cases
  auto cumsum = [](Tensor x, int32_t axis, bool exclusive, bool reverse) {
    return Evaluate(
        "cumsum",
        {{"x", x}, {"axis", S(axis)}, {"exclusive", Bool(exclusive)}, {"reverse", Bool(reverse)}});
  };
  Tensor x = F64({5}, {1, 2, 3, 4, 5});
  CHECK(cumsum(x, 0, false, false).Doubles() == Doubles{1, 3, 6, 10, 15});
  CHECK(cumsum(x, 0, true, false).Doubles() == Doubles{0, 1, 3, 6, 10});
  CHECK(cumsum(x, 0, false, true).Doubles() == Doubles{15, 14, 12, 9, 5});
  CHECK(cumsum(x, 0, true, true).Doubles() == Doubles{14, 12, 9, 5, 0});
  CHECK(cumsum(I32({2, 3}, {1, 2, 3, 4, 5, 6}), 0, false, false).Ints() ==
        Ints64{1, 2, 3, 5, 7, 9});
  CHECK(cumsum(I32({2, 3}, {1, 2, 3, 4, 5, 6}), -1, false, false).Ints() ==
        Ints64{1, 3, 6, 4, 9, 15});
  // Sums are rounded once: 2048 + 1 + 1 in fp16.
  CHECK(cumsum(F16({3}, {2048, 1, 1}), 0, false, false).Double(2) == 2050);
  CHECK(cumsum(I32({2}, {INT32_MAX, 1}), 0, false, false).Int(1) == INT32_MIN);
  CHECK(cumsum(I32({0, 2}, {}), 0, false, false).size() == 0);
  CHECK_THROWS_AS(cumsum(x, 1, false, false), Error);
}

TEST_CASE("band_part") {  // numpy.tril and numpy.triu
  Tensor x = I32({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(Evaluate("band_part", {{"x", x}, {"lower", S(1)}, {"upper", S(1)}}).Ints() ==
        Ints64{1, 2, 0, 0, 5, 6, 7, 0, 0, 10, 11, 12});
  CHECK(Evaluate("band_part", {{"x", x}, {"upper", S(0)}}).Ints() ==
        Ints64{1, 0, 0, 0, 5, 6, 0, 0, 9, 10, 11, 0});
  CHECK(Evaluate("band_part", {{"x", x}}).SameBytes(x));
  CHECK_THROWS_AS(Infer("band_part", {{"x", V({1})}}), Error);
}

TEST_CASE("non_zero") {  // numpy: transpose(nonzero(x))
  Tensor x = F32({3, 3}, {3, 0, 0, -0.0f, 4, 0, 5, NAN, 0});
  Tensor y = Evaluate("non_zero", {{"x", x}});
  CHECK(y.dims() == Dims{4, 2});
  CHECK(y.Ints() == Ints64{0, 0, 1, 1, 2, 0, 2, 1});
  CHECK(Evaluate("non_zero", {{"x", V({0})}}).dims() == Dims{0, 1});
  CHECK(ShapeOf("non_zero", {{"x", Fp32({n, 3})}}).find("?non_zero") == 1);
}

TEST_CASE("topk") {
  auto topk = [](Tensor x, int32_t k, bool ascending = false, int32_t axis = -1) {
    return EvaluateAll("topk",
                       {{"x", x}, {"k", S(k)}, {"axis", S(axis)}, {"ascending", Bool(ascending)}});
  };
  // coremltools, iOS17 test_tensor_operation.py.
  auto y = topk(I32({2, 3}, {2, 3, 1, 5, 4, 6}), 2);
  CHECK(y[0].Ints() == Ints64{3, 2, 6, 5});
  CHECK(y[1].Ints() == Ints64{1, 0, 2, 0});
  // ONNX TopK: equal elements are ordered by index, both ascending and descending.
  y = topk(F32({5}, {1, 7, 7, 1, 7}), 4);
  CHECK(y[1].Ints() == Ints64{1, 2, 4, 0});
  y = topk(F32({5}, {1, 7, 7, 1, 7}), 3, true);
  CHECK(y[1].Ints() == Ints64{0, 3, 1});
  // torch.topk and ONNX's reference implementation: NaN is the largest number.
  y = topk(F64({5}, {kNaN, -2, kInf, 0, kNaN}), 5);
  CHECK(y[1].Ints() == Ints64{0, 4, 2, 3, 1});
  y = topk(F64({5}, {kNaN, -2, kInf, 0, kNaN}), 5, true);
  CHECK(y[1].Ints() == Ints64{1, 3, 2, 0, 4});
  y = topk(I64({2}, {INT64_MIN, INT64_MAX}), 1);
  CHECK(y[0].Int(0) == INT64_MAX);
  y = topk(I32({2, 2}, {1, 4, 3, 2}), 1, false, 0);
  CHECK(y[0].Ints() == Ints64{3, 4});
  CHECK(y[1].Ints() == Ints64{1, 0});
  CHECK(topk(V({3, 1, 2}), -1)[0].Ints() == Ints64{3, 2, 1});  // all elements, since iOS17
  CHECK(topk(V({3}), 0)[0].dims() == Dims{0});
  CHECK(EvaluateAll("topk", {{"x", V({3, 4})}, {"return_indices", Bool(false)}}).size() == 1);
  CHECK(EvaluateAll("topk", {{"x", V({3, 4})}, {"output_indices_dtype", Text("uint16")}})[1]
            .dtype() == DType::kUint16);
  CHECK(ShapeOf("topk", {{"x", Fp32({n, 3})}, {"k", S(2)}, {"axis", S(0)}}) == "[2, 3]");
  CHECK_THROWS_AS(topk(V({3}), 2), Error);
  CHECK_THROWS_AS(topk(V({3}), -2), Error);
  CHECK_THROWS_AS(topk(S(3), 1), Error);
  CHECK_THROWS_AS(Infer("topk", {{"x", V({3})}, {"output_indices_dtype", Text("int8")}}), Error);
  CHECK_THROWS_AS(Infer("topk", {{"x", V({3})},
                                 {"return_indices", Bool(false)},
                                 {"output_indices_dtype", Text("int32")}}),
                  Error);
}

TEST_CASE("argsort") {
  auto argsort = [](Tensor x, bool ascending) {
    return Evaluate("argsort", {{"x", x}, {"ascending", Bool(ascending)}}).Ints();
  };
  CHECK(argsort(F32({2, 3}, {3, 1, 2, 0, 0, -1}), true) ==
        Ints64{1, 2, 0, 2, 0, 1});  // numpy, stable
  CHECK(argsort(F32({2, 3}, {3, 1, 2, 0, 0, -1}), false) == Ints64{0, 2, 1, 0, 1, 2});
  CHECK(argsort(F32({0}, {}), true) == Ints64{});
}

TEST_CASE("non_maximum_suppression: form before iOS17") {
  // coremltools, test_tensor_operation.py, smoke test.
  std::vector<In> in = {{"boxes", F32({1, 4, 4}, {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3})},
                        {"scores", F32({1, 4, 1}, {0.2f, 9.4f, 2.3f, 0.1f})},
                        {"iou_threshold", F32({}, {0.2f})},
                        {"score_threshold", F32({}, {0.4f})},
                        {"max_boxes", S(3)},
                        {"per_class_suppression", Bool(true)}};
  auto y = EvaluateAll("non_maximum_suppression", in);
  REQUIRE(y.size() == 4);
  CHECK(y[0].Doubles() == Doubles{1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0});
  CHECK(Near(y[1].Doubles(), {9.4, 2.3, 0}, 1e-6));
  CHECK(y[2].Ints() == Ints64{1, 2, -1});
  CHECK(y[3].Ints() == Ints64{2});
  // If no score exceeds the threshold, the best box alone is selected (Core ML's
  // NonMaximumSuppressionLayerParams).
  in[3] = {"score_threshold", F32({}, {100})};
  y = EvaluateAll("non_maximum_suppression", in);
  CHECK(y[2].Ints() == Ints64{1, -1, -1});
  CHECK(y[3].Ints() == Ints64{1});
}

TEST_CASE("non_maximum_suppression: iOS17") {
  // 2x2 boxes with centres 0, 0.5 and 5 on a line: the first two have an overlap of 1.5 / 2.5 =
  // 0.6.
  std::vector<In> in = {{"boxes", F32({1, 4, 3}, {0, 0.5f, 5, 0, 0, 0, 2, 2, 2, 2, 2, 2})},
                        {"scores", F32({1, 2, 3}, {1, 2, 0, 3, 0, 0.5f})},
                        {"iou_threshold", F32({}, {0.5f})},
                        {"max_boxes", S(3)}};
  auto y = EvaluateAll("non_maximum_suppression", in);
  REQUIRE(y.size() == 3);
  CHECK(y[2].Ints() == Ints64{0, 2, -1});
  CHECK(y[0].Doubles() == Doubles{0, 5, 0, 0, 0, 0, 2, 2, 0, 2, 2, 0});
  CHECK(y[1].Doubles() == Doubles{1, 0, 0, 3, 0.5, 0});
  in.push_back({"per_class_suppression", Bool(true)});  // the second box has another class
  CHECK(EvaluateAll("non_maximum_suppression", in)[2].Ints() == Ints64{0, 1, 2});
  in[2] = {"iou_threshold", F32({}, {0.7f})};
  in.pop_back();
  CHECK(EvaluateAll("non_maximum_suppression", in)[2].Ints() == Ints64{0, 1, 2});
  in[3] = {"max_boxes", S(0)};
  CHECK_THROWS_AS(Infer("non_maximum_suppression", in), Error);
  in[3] = {"max_boxes", S(2)};
  in[1] = {"scores", F32({1, 1, 2}, {1, 2})};
  CHECK_THROWS_AS(Infer("non_maximum_suppression", in), Error);
}

TEST_CASE("tensor: range rules are sound", "[traits]") {
  CheckRange("argsort", [](Draw& draw, DType dtype) -> Case {
    Dims dims = draw.Sizes(1, 3);
    return {{"x", draw.Numbers(dims, dtype)}, {"axis", Axis(draw, dims.size())}};
  });
  CheckRange("topk", [](Draw& draw, DType dtype) -> Case {
    Dims dims = draw.Sizes(1, 3);
    return {{"x", draw.Numbers(dims, dtype)}, {"axis", Axis(draw, dims.size())}, {"k", Number(1)}};
  });
  CheckRange("non_maximum_suppression", [](Draw& draw, DType dtype) -> Case {
    return {{"boxes", draw.Numbers({1, 5, 4}, dtype)},
            {"scores", draw.Numbers({1, 5, 2}, dtype)},
            {"iou_threshold", draw.Between({}, dtype, 0, 1)},
            {"score_threshold", draw.Between({}, dtype, -1, 1)},
            {"max_boxes", Number(3)}};
  });
  CheckRange("band_part", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers({3, 4}, dtype)},
            {"lower", Number(draw.Int(-1, 2))},
            {"upper", Number(1)}};
  });
  CheckRange("fill", [](Draw& draw, DType dtype) -> Case {
    return {{"shape", Ints32({2, 3})}, {"value", draw.Numbers({}, dtype)}};
  });
  CheckRange("fill_like", [](Draw& draw, DType dtype) -> Case {
    Dims dims = draw.Sizes(1, 3);
    return {{"ref_tensor", draw.Numbers(dims, dtype)}, {"value", draw.Numbers({}, dtype)}};
  });
  CheckRange("one_hot", [](Draw& draw, DType dtype) -> Case {
    Dims dims = draw.Sizes(1, 3);
    return {{"indices", draw.Whole(dims, 0, 3)},
            {"one_hot_vector_size", Number(4)},
            {"on_value", draw.Numbers({}, dtype)},
            {"off_value", draw.Numbers({}, dtype)}};
  });
  CheckRange("range_1d", [](Draw& draw, DType) -> Case {
    bool down = draw.Coin();
    return {{"start", draw.Between({}, DType::kFp32, down ? 5 : -5, down ? 6 : -4)},
            {"end", draw.Between({}, DType::kFp32, down ? -5 : 5, down ? -4 : 6)},
            {"step", draw.Between({}, DType::kFp32, down ? -2 : 0.3, down ? -0.3 : 2)}};
  });
  CheckRange("non_zero", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers(draw.Sizes(1, 3), dtype)}};
  });
  CheckRange("shape", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers(draw.Sizes(1, 3), dtype)}};
  });
}
