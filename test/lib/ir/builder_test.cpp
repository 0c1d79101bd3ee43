#include "lib/ir/builder.h"

#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::test {
namespace {

struct Net {
  Program program{&Ops()};
  Function* main = program.Add("main");
  Diagnostics diagnostics;
  Builder b{main->body, diagnostics};
  Value* Input(DType dtype, Dims dims) {
    return main->AddInput("x", Type::Tensor(dtype, ToShape(dims)));
  }
  int64_t operations() {
    int64_t count = 0;
    ForEachOperation(*main, [&](Operation* op) { count += !op->is("const"); });
    return count;
  }
};

}  // namespace

TEST_CASE("builder: numbers take the dtype of the parameter") {
  Net net;
  Value* y = net.b.Make("add", {{"x", net.Input(DType::kFp16, {2})}, {"y", 1.5}});
  CHECK(y->type.dtype == DType::kFp16);
  CHECK(y->def->constant("y").dtype() == DType::kFp16);
  CHECK(net.b.Make("softmax", {{"x", y}, {"axis", -1}})->def->constant("axis").dtype() ==
        DType::kInt32);
}

TEST_CASE("builder: folded constants know the tensors that they were computed from") {
  using Names = std::vector<std::string>;
  Net net;
  const auto source = [&](const char* name, std::vector<float> values) {
    return net.b.Const(Tensor::Vector(values).From({{name}, true}));
  };
  Value *v = source("v", {1, 2}), *w = source("w", {3, 4});
  const Tensor product = net.b.Make("mul", {{"x", w}, {"y", v}})->constant();
  REQUIRE(product.provenance());
  CHECK(product.provenance()->sources == Names{"v", "w"});
  CHECK_FALSE(product.provenance()->unchanged);
  CHECK(net.b.Cast(v, DType::kFp16)->constant().provenance()->unchanged);
  const Tensor turned = net.b.Make("expand_dims", {{"x", v}, {"axes", Ints({0})}})->constant();
  CHECK(turned.provenance()->unchanged);
  CHECK(net.b.Make("add", {{"x", Tensor::Scalar(1.f)}, {"y", Tensor::Scalar(2.f)}})
            ->constant()
            .provenance() == nullptr);
}

TEST_CASE("builder: constants fold in their own dtype") {
  Net net;
  int64_t large = (int64_t{1} << 40) + 1;
  Value* sum = net.b.Make("add", {{"x", Tensor::Scalar(large)}, {"y", Tensor::Scalar(int64_t{2})}});
  REQUIRE(sum->is_constant());
  CHECK(sum->type.dtype == DType::kInt64);
  CHECK(sum->constant().Int(0) == large + 2);
  CHECK(net.operations() == 0);
}

TEST_CASE("builder: the fold limit does not apply to view operations") {
  Net net;
  net.b.fold_limit = 100;
  Value* big = net.b.Const(Tensor::Full(DType::kFp32, {101}, 1));
  CHECK_FALSE(net.b.Make("relu", {{"x", big}})->is_constant());
  CHECK(net.b.Make("reshape", {{"x", big}, {"shape", Ints({101, 1})}})->is_constant());
}

TEST_CASE("builder: dtypes outside the domain are legalised with casts") {
  Net net;
  Value* x = net.Input(DType::kInt16, {3});
  Value* y = net.b.Make("add", {{"x", x}, {"y", x}});
  REQUIRE(y->def);
  CHECK(y->def->is("cast"));
  CHECK(y->type.dtype == DType::kInt16);
  CHECK(y->def->value("x")->def->is("add"));
  CHECK(y->def->value("x")->type.dtype == DType::kInt32);
}

TEST_CASE("builder: a cast to the same dtype returns the value") {
  Net net;
  Value* x = net.Input(DType::kFp32, {2});
  CHECK(net.b.Cast(x, DType::kFp32) == x);
  CHECK(net.b.Cast(x, DType::kFp16)->def->is("cast"));
  CHECK(net.b.Cast(net.b.Const(Tensor::Scalar(2.0f)), DType::kInt32)->constant().Int(0) == 2);
}

TEST_CASE("builder: inference errors have a message and a location") {
  Net net;
  net.b.SetName("bad");
  Value* x = net.Input(DType::kFp32, {2, 3});
  CHECK_THROWS_AS(net.b.Make("matmul", {{"x", x}, {"y", x}}), Error);
  CHECK_THROWS_AS(net.b.Make("transpose", {{"x", x}, {"perm", Ints({0, 0})}}), Error);
  CHECK(net.operations() == 0);  // no partial operation remains
}

TEST_CASE("builder: appended operations share small constants") {
  Net net;
  Value* x = net.Input(DType::kFp32, {2, 16, 17});
  auto shape = [&](Builder& b, std::vector<int64_t> to) {
    return b.Make("reshape", {{"x", x}, {"shape", Ints(to)}})->def->value("shape");
  };
  Value* first = shape(net.b, {32, 17});
  CHECK(shape(net.b, {32, 17}) == first);
  CHECK(shape(net.b, {17, 32}) != first);
  Value* gelu = net.b.Make("gelu", {{"x", x}, {"mode", "EXACT"}});
  CHECK(net.b.Make("gelu", {{"x", x}, {"mode", "EXACT"}})->def->value("mode") ==
        gelu->def->value("mode"));
  // Constants of up to 16 elements of the same dtype are shared, unless they might be defined after
  // their user.
  auto added = [&](int64_t count, double value) {
    Tensor y = Tensor::Full(DType::kFp32, {count}, value).InMemory();
    Value* row = net.b.Make("slice_by_size",
                            {{"x", x}, {"begin", Ints({0, 0, 0})}, {"size", Ints({2, 16, count})}});
    return net.b.Make("add", {{"x", row}, {"y", y}})->def->value("y");
  };
  CHECK(added(16, 1) == added(16, 1));
  CHECK(added(16, 1) != added(16, 2));
  CHECK(added(17, 1) != added(17, 1));
  Builder before(net.main->body, net.diagnostics, first->def);
  CHECK(shape(before, {32, 17}) != shape(before, {32, 17}));
}

TEST_CASE("builder: narrowing of int64 constants") {
  auto narrow = [](int64_t value) {
    return NarrowForMil(Tensor::Scalar(value), DType::kInt32).Int(0);
  };
  CHECK(narrow(-5) == -5);
  // The sentinel for "to the end" in ONNX's Slice.
  CHECK(narrow(std::numeric_limits<int64_t>::max()) == std::numeric_limits<int32_t>::max());
  CHECK(narrow(std::numeric_limits<int64_t>::min()) == std::numeric_limits<int32_t>::min());
  CHECK_THROWS_WITH(narrow(int64_t{1} << 35), ContainsSubstring("34359738368"));
  CHECK(NarrowForMil(Tensor::Scalar(0.1), DType::kFp32).Double(0) == Approx(0.1f));
}

}  // namespace mlc::test
