#include "lib/ir/text.h"
#include "test/catch.h"
#include "test/lib/ir/text_ops.h"

namespace mlc::test {
namespace {

constexpr std::string_view kText = R"(func main<ios17>(tensor<fp32, [4]> x, bool p) {
  tensor<fp32, [4]> a = relu(x = x);
  tensor<fp32, [4]> s = softmax(axis = -1, x = a);
  tensor<fp32, [4]> y = cond(pred = p)
    () { b = relu(x = s); } -> (b)
    () { c = add(x = s, y = s); } -> (c);
} -> (y);)";

// Damages a valid program and expects this message from the verifier.
void Finds(const std::string& message, const std::function<void(Function&)>& damage) {
  Program program = ParseText(kText, "test.mil", SmallOps());
  Verify(program);
  damage(*program.main());
  try {
    Verify(program);
    FAIL("nothing found: " << message);
  } catch (const InternalError& error) {
    CHECK_THAT(std::string(error.what()), ContainsSubstring(message));
  }
}

Operation* Op(Function& function, std::string_view name) {
  Operation* found = nullptr;
  ForEachOperation(function, [&](Operation* op) {
    if (!op->results.empty() && op->result()->name == name) found = op;
  });
  return found;
}

}  // namespace

TEST_CASE("verify: order and scope") {
  Finds("operand x is not defined before it",
        [](Function& f) { f.body.MoveBefore(Op(f, "s"), Op(f, "a")); });
  Finds("operand x is not defined before it",
        [](Function& f) { Op(f, "c")->SetArg("x", {Op(f, "b")->result()}); });
  Finds("is an output but is not defined",
        [](Function& f) { f.body.SetOutput(0, Op(f, "b")->result()); });
}

TEST_CASE("verify: users") {
  Finds("lists 0 users, but is an operand 1 times",
        [](Function& f) { Op(f, "a")->result()->users = {}; });
  // Which of the two is checked first depends on their addresses.
  Finds("users, but is an operand",
        [](Function& f) { std::swap(Op(f, "a")->result()->users, Op(f, "s")->result()->users); });
  Finds("lists a use that does not exist",
        [](Function& f) { std::swap(f.body.inputs[0]->users, Op(f, "a")->result()->users); });
  Finds("lists 0 uses as an output, but has 1",
        [](Function& f) { Op(f, "y")->result()->outputs = {}; });
}

TEST_CASE("verify: names") {
  Finds("has the same name as another visible value",
        [](Function& f) { Op(f, "s")->result()->name = "a"; });
  Finds("is not a legal name", [](Function& f) { Op(f, "s")->result()->name = "s.1"; });
  Finds("output y2 has a port named y", [](Function& f) { Op(f, "y")->result()->name = "y2"; });
  Finds("input x has no port", [](Function& f) { f.inputs.clear(); });
}

TEST_CASE("verify: parameters") {
  Finds("lacks operand x", [](Function& f) { Op(f, "a")->SetArg("x", {}); });
  Finds("has 2 operands for x", [](Function& f) {
    Value* x = f.body.inputs[0].get();
    Op(f, "a")->SetArg("x", {x, x});
  });
  Finds("operand axis is not a constant",
        [](Function& f) { Op(f, "s")->SetArg("axis", {f.body.inputs[1].get()}); });
}

TEST_CASE("verify: types") {
  Finds("result s is fp16 [4], but infer returns fp32 [4]",
        [](Function& f) { Op(f, "s")->result()->type.dtype = DType::kFp16; });
  Finds("result s is fp32 [n], but infer returns fp32 [4]",
        [](Function& f) { Op(f, "s")->result()->type.shape = {Dim::Symbol("n")}; });
  Finds("the value is int32 [], but the type is int32 [1]",
        [](Function& f) { Op(f, "s_axis")->result()->type.shape = {1}; });
}

TEST_CASE("verify: symbols") {
  Finds("n: the symbol with range 0 to 4 may be below 1", [](Function& f) {
    f.symbols["n"] = {0, 4, {}};
  });
  Finds("n: the symbol with range 5 to 4 has an empty range", [](Function& f) {
    f.symbols["n"] = {5, 4, {}};
  });
  for (std::vector<int64_t> sizes : {std::vector<int64_t>{4, 2}, {2, 3, 3, 4}, {2, 3}, {3, 4}})
    Finds("has unsorted sizes, or sizes that do not match its range", [&](Function& f) {
      f.symbols["n"] = {2, 4, sizes};
    });
  // A symbol of another function is invalid here.
  Finds("its size n - 1 uses n, which is not a symbol of main", [](Function& f) {
    f.program->Add("other")->symbols["n"] = {1, 4, {}};
    f.body.inputs[0]->type.shape = {Dim::Symbol("n") - 1};
  });
  Finds("its size n uses n, which is not a symbol of main",
        [](Function& f) { Op(f, "s")->result()->elements = {Dim::Symbol("n")}; });
}

TEST_CASE("verify: owners") {
  Finds("has a wrong link to its definition", [](Function& f) { Op(f, "s")->result()->index = 1; });
  Finds("a block has a wrong link to its owner",
        [](Function& f) { Op(f, "y")->blocks[0]->parent = Op(f, "a"); });
}

}  // namespace mlc::test
