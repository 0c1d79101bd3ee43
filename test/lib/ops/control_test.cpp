#include "test/catch.h"
#include "test/lib/ops/evaluate.h"

using namespace mlc;
using namespace mlc::test;

TEST_CASE("identity: the same tensor") {
  Tensor x = I64({2}, {1, 2});
  CHECK(Evaluate("identity", {{"x", x}}).SameBytes(x));
  Dim n = Dim::Symbol("n");
  const std::vector<In> in = {{"x", Type::Tensor(DType::kInt32, {1}), {n}}};
  CHECK(Infer("identity", in).dims[0] == std::vector<Dim>{n});
}

TEST_CASE("const: requires a value") {
  CHECK_THROWS_WITH(Infer("const", {}), ContainsSubstring("no value"));
}

TEST_CASE("select: three-way broadcast") {
  // numpy 1.24: np.where([[True], [False]], [1, 2, 3], 9)
  Tensor cond = Tensor::Of<bool>({2, 1}, {true, false});
  Tensor y = Evaluate(
      "select",
      {{"cond", cond}, {"a", I64({3}, {1, 2, (int64_t{1} << 53) + 1})}, {"b", I64({}, {9})}});
  CHECK(y.dims() == Dims{2, 3});
  CHECK(y.Ints() == std::vector<int64_t>{1, 2, (int64_t{1} << 53) + 1, 9, 9, 9});
  CHECK(Near(
      Evaluate("select", {{"cond", cond}, {"a", F32({}, {NAN})}, {"b", F32({}, {1})}}).Doubles(),
      {kNaN, 1}, 0));
  CHECK_THROWS_WITH(
      Evaluate("select", {{"cond", I32({}, {1})}, {"a", I32({}, {1})}, {"b", I32({}, {1})}}),
      ContainsSubstring("expected bool"));
}

TEST_CASE("equal, select: the pattern of exported expand") {
  Dim n = Dim::Symbol("n");
  const std::vector<In> sizes = {{"x", Type::Tensor(DType::kInt64, {3}), {n, 2, -1}},
                                 {"y", I64({}, {-1})}};
  InferContext equal = Infer("equal", sizes);
  REQUIRE(equal.dims[0] == std::vector<Dim>{0, 0, 1});
  const std::vector<In> in = {{"cond", equal.results[0], *equal.dims[0]},
                              {"a", I64({}, {1})},
                              {"b", Type::Tensor(DType::kInt64, {3}), {n, 2, -1}}};
  CHECK(Infer("select", in).dims[0] == std::vector<Dim>{n, 2, 1});
}

TEST_CASE("comparisons of sizes: known only if certain") {
  Dim n = Dim::Symbol("n"), m = Dim::Symbol("m");
  auto compare = [](const char* op, Dim x, Dim y) {
    const std::vector<In> in = {{"x", Type::Tensor(DType::kInt32, {1}), {x}},
                                {"y", Type::Tensor(DType::kInt32, {1}), {y}}};
    return Infer(op, in).dims[0];
  };
  CHECK(compare("equal", n, n) == std::vector<Dim>{1});
  CHECK(compare("not_equal", n, 0) == std::vector<Dim>{1});
  CHECK(compare("less", n, n + 1) == std::vector<Dim>{1});
  CHECK(compare("greater", n, 0) == std::vector<Dim>{1});
  CHECK(compare("less_equal", n, n) == std::vector<Dim>{1});
  CHECK(compare("greater_equal", 0, n) == std::vector<Dim>{0});
  CHECK(!compare("equal", n, m));
  CHECK(!compare("less", n, m));
  CHECK(!compare("greater_equal", n, 2));
}
