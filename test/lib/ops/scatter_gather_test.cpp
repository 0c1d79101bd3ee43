#include <numeric>

#include "lib/engine/engine.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"
#include "test/lib/ops/evaluate.h"
#include "test/lib/ops/random_operands.h"

using namespace mlc;
using namespace mlc::test;

namespace {
using Doubles = std::vector<double>;

Tensor Iota(Dims dims) {
  std::vector<int32_t> values(ElementCount(dims));
  std::iota(values.begin(), values.end(), 0);
  return I32(std::move(dims), values);
}
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

TEST_CASE("gather") {  // numpy.take
  Tensor x = Iota({2, 3, 4});
  auto gather = [&](Tensor indices, int32_t axis) {
    return Evaluate("gather", {{"x", x}, {"indices", indices}, {"axis", S(axis)}});
  };
  CHECK(gather(V({2, 0}), 1).Ints() ==
        Ints64{8, 9, 10, 11, 0, 1, 2, 3, 20, 21, 22, 23, 12, 13, 14, 15});
  CHECK(gather(I32({1, 2}, {3, -4}), -1).dims() == Dims{2, 3, 1, 2});
  CHECK(gather(I32({1, 2}, {3, -4}), -1).Ints() ==
        Ints64{3, 0, 7, 4, 11, 8, 15, 12, 19, 16, 23, 20});
  CHECK(gather(S(1), 0).dims() == Dims{3, 4});
  CHECK(gather(V({}), 0).dims() == Dims{0, 3, 4});
  CHECK(Evaluate("gather", {{"x", F32({3, 0}, {})}, {"indices", V({1})}}).dims() == Dims{1, 0});
  CHECK(Evaluate("gather", {{"x", I64({3}, {1, INT64_MAX, 2})}, {"indices", S(-2)}}).Int(0) ==
        INT64_MAX);
  CHECK_THROWS_AS(gather(V({2}), 0), Error);
  CHECK_THROWS_AS(gather(V({-3}), 0), Error);
  CHECK_THROWS_AS(gather(V({0}), 3), Error);
  CHECK_THROWS_AS(gather(I64({1}, {INT64_MIN}), 0), Error);
  CHECK_THROWS_AS(Evaluate("gather", {{"x", F32({0}, {})}, {"indices", V({0})}}), Error);
  // iOS17: negative indices are out of range.
  CHECK_THROWS_AS(
      Evaluate("gather", {{"x", x}, {"indices", V({-1})}, {"validate_indices", Bool(true)}}),
      Error);
}

TEST_CASE("gather and scatter: since iOS17, a negative index is out of range") {
  auto run = [](std::string_view opset, std::string_view op, int32_t index) {
    const Program program = ParseText(
        fmt::format("func main<{}>(tensor<fp32, [3]> x, tensor<int32, [1]> i) {{ {} }} -> (y);",
                    opset, op),
        "t.mil", Ops());
    const Tensor x = Tensor::Vector<float>({7, 8, 9});
    return engine::Execute(program, {{"x", x}, {"i", Tensor::Vector<int32_t>({index})}})
        .at("y")
        .Doubles();
  };
  constexpr std::string_view kGather = "y = gather(x = x, indices = i, axis = 0);",
                             kScatter =
                                 "y = scatter(data = x, indices = i, updates = const "
                                 "tensor<fp32, [1]>([5.0]), axis = 0, mode = \"update\");";
  CHECK(run("ios16", kGather, -1) == Doubles{9});
  CHECK(run("ios17", kGather, 2) == Doubles{9});
  CHECK(run("ios16", kScatter, -1) == Doubles{7, 8, 5});
  CHECK(run("ios17", kScatter, 2) == Doubles{7, 8, 5});
  for (const std::string_view op : {kGather, kScatter}) {
    CHECK_THROWS_WITH(run("ios17", op, -1),
                      ContainsSubstring("since iOS17, indices may not be negative"));
    CHECK_THROWS_WITH(run("ios17", op, -4), !ContainsSubstring("iOS17"));
    CHECK_THROWS_AS(run("ios16", op, -4), Error);
  }
}

TEST_CASE("gather: batch_dims") {  // tf.gather, by hand
  Tensor y = Evaluate("gather", {{"x", Iota({2, 3, 2})},
                                 {"indices", I32({2, 2}, {2, 0, 1, 1})},
                                 {"axis", S(1)},
                                 {"batch_dims", S(1)}});
  CHECK(y.dims() == Dims{2, 2, 2});
  CHECK(y.Ints() == Ints64{4, 5, 0, 1, 8, 9, 8, 9});
  CHECK(ShapeOf("gather", {{"x", Fp32({n, 5, 8})},
                           {"indices", Int32({n, m})},
                           {"axis", S(1)},
                           {"batch_dims", S(1)}}) == "[n, m, 8]");
  auto bad = [](int32_t axis, int32_t batch) {
    return Infer("gather", {{"x", Fp32({2, 3})},
                            {"indices", Int32({3})},
                            {"axis", S(axis)},
                            {"batch_dims", S(batch)}});
  };
  CHECK_NOTHROW(bad(1, 0));
  CHECK_THROWS_AS(bad(1, 1), Error);  // 2 batches of x, 3 of indices
  CHECK_THROWS_AS(bad(0, 1), Error);
  CHECK_THROWS_AS(bad(1, 2), Error);
  CHECK_THROWS_AS(bad(1, -1), Error);
}

TEST_CASE("gather: symbols") {
  CHECK(ShapeOf("gather", {{"x", Fp32({1000, 64})}, {"indices", Int32({n, m})}}) == "[n, m, 64]");
  CHECK(ElementsOf("gather", {{"x", Int32({3}), {n, 3, m}}, {"indices", S(-1)}}) == "[m]");
  CHECK(ElementsOf("gather", {{"x", Int32({3}), {n, 3, m}}, {"indices", V({1, 0})}}) == "[3, n]");
  CHECK(ElementsOf("gather", {{"x", Int32({3}), {n, 3, m}}, {"indices", Int32({})}}) == "unknown");
  CHECK_THROWS_AS(Infer("gather", {{"x", Int32({3}), {n, 3, m}}, {"indices", S(3)}}), Error);
}

TEST_CASE("gather_along_axis") {  // numpy.take_along_axis
  Tensor indices = I32({2, 3}, {2, 0, -1, 1, 1, 0});
  CHECK(Evaluate("gather_along_axis", {{"x", Iota({2, 3})}, {"indices", indices}, {"axis", S(1)}})
            .Ints() == Ints64{2, 0, 2, 4, 4, 3});
  CHECK(Evaluate("gather_along_axis", {{"x", Iota({3, 2})}, {"indices", I32({1, 2}, {2, 1})}})
            .Ints() == Ints64{4, 3});
  CHECK_THROWS_AS(Evaluate("gather_along_axis",
                           {{"x", Iota({2, 3})}, {"indices", I32({2, 1}, {0, 3})}, {"axis", S(1)}}),
                  Error);
  CHECK_THROWS_AS(Infer("gather_along_axis",
                        {{"x", Iota({2, 3})}, {"indices", I32({1, 1}, {0})}, {"axis", S(1)}}),
                  Error);
  CHECK_THROWS_AS(Infer("gather_along_axis", {{"x", Iota({2, 3})}, {"indices", V({0})}}), Error);
}

TEST_CASE("gather_nd") {
  // The examples in ONNX's specification of GatherND.
  Tensor square = Iota({2, 2}), cube = Iota({2, 2, 2});
  auto gather = [](Tensor x, Tensor indices, int32_t batch = 0) {
    return Evaluate("gather_nd", {{"x", x}, {"indices", indices}, {"batch_dims", S(batch)}});
  };
  CHECK(gather(square, I32({2, 2}, {0, 0, 1, 1})).Ints() == Ints64{0, 3});
  CHECK(gather(square, I32({2, 1}, {1, 0})).Ints() == Ints64{2, 3, 0, 1});
  CHECK(gather(cube, I32({2, 2}, {0, 1, 1, 0})).Ints() == Ints64{2, 3, 4, 5});
  CHECK(gather(cube, I32({2, 1, 2}, {0, 1, 1, 0})).dims() == Dims{2, 1, 2});
  CHECK(gather(cube, I32({2, 1}, {1, 0}), 1).Ints() == Ints64{2, 3, 4, 5});
  CHECK(gather(square, I32({1, 0}, {})).Ints() == Ints64{0, 1, 2, 3});
  CHECK(ShapeOf("gather_nd", {{"x", Fp32({n, 4, 5})}, {"indices", Int32({m, 2})}}) == "[m, 5]");
  CHECK_THROWS_AS(gather(square, I32({1, 2}, {0, 2})), Error);
  CHECK_THROWS_AS(gather(square, I32({1, 3}, {0, 0, 0})), Error);
  CHECK_THROWS_AS(gather(square, S(0)), Error);
  CHECK_THROWS_AS(gather(cube, I32({3, 1}, {1, 0, 0}), 1), Error);
  CHECK_THROWS_AS(gather(cube, V({0}), 1), Error);
  CHECK_THROWS_AS(Infer("gather_nd", {{"x", square}, {"indices", Int32({2, n})}}), Error);
}

TEST_CASE("scatter") {
  // The example in coremltools' documentation of the operator.
  auto scatter = [](const char* mode, Tensor indices, Tensor updates, int32_t axis = 0) {
    return Evaluate("scatter", {{"data", I32({2, 3}, {1, 2, 3, 4, 5, 6})},
                                {"indices", indices},
                                {"updates", updates},
                                {"axis", S(axis)},
                                {"mode", Text(mode)}});
  };
  Tensor updates = I32({2, 3}, {5, 6, 7, 8, 9, 10});
  CHECK(scatter("add", V({1, 0}), updates).Ints() == Ints64{9, 11, 13, 9, 11, 13});
  // By hand; updates with duplicate indices apply in order.
  CHECK(scatter("update", V({1, 1}), updates).Ints() == Ints64{1, 2, 3, 8, 9, 10});
  CHECK(scatter("sub", V({0, 0}), updates).Ints() == Ints64{-12, -13, -14, 4, 5, 6});
  CHECK(scatter("mul", V({-1}), I32({1, 3}, {2, 3, 4})).Ints() == Ints64{1, 2, 3, 8, 15, 24});
  CHECK(scatter("div", V({1}), I32({1, 3}, {-3, 2, -1})).Ints() == Ints64{1, 2, 3, -1, 2, -6});
  CHECK(scatter("max", V({2}), I32({2, 1}, {9, 0}), 1).Ints() == Ints64{1, 2, 9, 4, 5, 6});
  CHECK(scatter("min", V({2}), I32({2, 1}, {9, 0}), 1).Ints() == Ints64{1, 2, 3, 4, 5, 0});
  CHECK_THROWS_AS(scatter("div", V({1}), I32({1, 3}, {1, 0, 1})), Error);
  CHECK_THROWS_AS(scatter("pow", V({1, 0}), updates), Error);
  CHECK_THROWS_AS(scatter("add", V({1, 2}), updates), Error);
  CHECK_THROWS_AS(scatter("add", V({1}), updates), Error);
  CHECK_THROWS_AS(scatter("add", V({1, 0}), updates.Cast(DType::kFp32)), Error);
  Tensor floats = Evaluate("scatter", {{"data", F16({2}, {1, 2})},
                                       {"indices", V({0, 0})},
                                       {"updates", F16({2}, {0.5, 0})},
                                       {"mode", Text("div")}});
  CHECK(floats.Doubles() == Doubles{kInf, 2});
  CHECK(ElementsOf("scatter", {{"data", Int32({3}), {n, 3, m}},
                               {"indices", V({1})},
                               {"updates", V({7})},
                               {"mode", Text("update")}}) == "[n, 7, m]");
}

TEST_CASE("scatter_along_axis") {
  // ONNX ScatterElements: the first two examples of the specification.
  Tensor y =
      Evaluate("scatter_along_axis", {{"data", F32({3, 3}, std::vector<float>(9, 0))},
                                      {"indices", I32({2, 3}, {1, 0, 2, 0, 2, 1})},
                                      {"updates", F32({2, 3}, {1, 1.1f, 1.2f, 2, 2.1f, 2.2f})},
                                      {"mode", Text("update")}});
  CHECK(Near(y.Doubles(), {2, 1.1, 0, 1, 0, 2.2, 0, 2.1, 1.2}, 1e-6));
  std::vector<In> in = {{"data", F32({1, 5}, {1, 2, 3, 4, 5})},
                        {"indices", I32({1, 2}, {1, 1})},
                        {"updates", F32({1, 2}, {1.5f, 2})},
                        {"axis", S(1)}};  // mode add: reduction "add" there
  CHECK(Evaluate("scatter_along_axis", in).Doubles() == Doubles{1, 5.5, 3, 4, 5});
  in[1] = {"indices", I32({1, 2}, {1, 5})};
  CHECK_THROWS_AS(Evaluate("scatter_along_axis", in), Error);
  in[1] = {"indices", I32({1, 1}, {1})};
  CHECK_THROWS_AS(Infer("scatter_along_axis", in), Error);
}

TEST_CASE("scatter_nd") {
  // ONNX ScatterND: the first example of the specification.
  std::vector<In> in = {{"data", V({1, 2, 3, 4, 5, 6, 7, 8})},
                        {"indices", I32({4, 1}, {4, 3, 1, 7})},
                        {"updates", V({9, 10, 11, 12})},
                        {"mode", Text("update")}};
  CHECK(Evaluate("scatter_nd", in).Ints() == Ints64{1, 11, 3, 10, 9, 6, 7, 12});
  in[3] = {"mode", Text("add")};
  in[1] = {"indices", I32({4, 1}, {4, 4, 4, -1})};
  CHECK(Evaluate("scatter_nd", in).Ints() == Ints64{1, 2, 3, 4, 35, 6, 7, 20});
  in.push_back({"validate_indices", Bool(true)});
  CHECK_THROWS_AS(Evaluate("scatter_nd", in), Error);
  Tensor y = Evaluate("scatter_nd", {{"data", Iota({2, 2, 2})},
                                     {"indices", I32({1, 2}, {1, 0})},
                                     {"updates", I32({1, 2}, {-1, -2})},
                                     {"mode", Text("update")}});
  CHECK(y.Ints() == Ints64{0, 1, 2, 3, -1, -2, 6, 7});
  CHECK(ElementsOf("scatter_nd", {{"data", Int32({2}), {n, 3}},
                                  {"indices", I32({1, 1}, {1})},
                                  {"updates", Int32({1}), {m}},
                                  {"mode", Text("update")}}) == "[n, m]");
  CHECK_THROWS_AS(
      Infer("scatter_nd",
            {{"data", V({1, 2})}, {"indices", I32({1, 2}, {0, 0})}, {"updates", V({1})}}),
      Error);
  CHECK_THROWS_AS(
      Infer("scatter_nd",
            {{"data", V({1, 2})}, {"indices", I32({2, 1}, {0, 0})}, {"updates", V({1})}}),
      Error);
}

namespace {

Case Scattered(Draw& draw, const Dims& indices, const Dims& updates, bool axis) {
  DType dtype = draw.Of({DType::kFp16, DType::kFp32, DType::kInt32});
  std::string_view mode =
      draw.Of<std::string_view>({"add", "sub", "mul", "div", "max", "min", "update"});
  if (dtype == DType::kInt32) mode = "add";  // avoids integer division by 0
  Case operands = {{"data", draw.Numbers({4, 3}, dtype)},
                   {"mode", Tensor::String(std::string(mode))},
                   {"indices", draw.Whole(indices, 0, 3)},
                   {"updates", draw.Numbers(updates, dtype)}};
  if (axis) operands.emplace_back("axis", Number(0));
  return operands;
}

}  // namespace

TEST_CASE("scatter_gather: range rules are sound", "[traits]") {
  CheckRange("gather", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers({3, 4}, dtype)},
            {"indices", draw.Whole({2, 2}, 0, 2)},
            {"axis", Number(draw.Int(0, 1))}};
  });
  CheckRange("gather_along_axis", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers({3, 4}, dtype)},
            {"indices", draw.Whole({2, 4}, 0, 2)},
            {"axis", Number(0)}};
  });
  CheckRange("gather_nd", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers({3, 4}, dtype)}, {"indices", draw.Whole({5, 2}, 0, 2)}};
  });
  CheckRange("scatter", [](Draw& draw, DType) -> Case {
    return Scattered(draw, {5}, {5, 3}, true);
  });
  CheckRange("scatter_along_axis", [](Draw& draw, DType) -> Case {
    return Scattered(draw, {2, 3}, {2, 3}, true);
  });
  CheckRange("scatter_nd", [](Draw& draw, DType) -> Case {
    return Scattered(draw, {5, 1}, {5, 3}, false);
  });
}
