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

// Breaks a valid program and expects the verifier to say what is wrong.
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
  Finds("is an output but not defined",
        [](Function& f) { f.body.SetOutput(0, Op(f, "b")->result()); });
}

TEST_CASE("verify: users") {
  Finds("lists 0 users, is an operand 1 times",
        [](Function& f) { Op(f, "a")->result()->users = {}; });
  // Which of the two is looked at first hangs on their addresses.
  Finds("users, is an operand",
        [](Function& f) { std::swap(Op(f, "a")->result()->users, Op(f, "s")->result()->users); });
  Finds("lists a use that it has not",
        [](Function& f) { std::swap(f.body.inputs[0]->users, Op(f, "a")->result()->users); });
  Finds("lists 0 uses as an output, has 1",
        [](Function& f) { Op(f, "y")->result()->outputs = {}; });
}

TEST_CASE("verify: names") {
  Finds("is visible where another value has this name",
        [](Function& f) { Op(f, "s")->result()->name = "a"; });
  Finds("is no legal name", [](Function& f) { Op(f, "s")->result()->name = "s.1"; });
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
  Finds("result s is fp16 [4], infer gives fp32 [4]",
        [](Function& f) { Op(f, "s")->result()->type.dtype = DType::kFp16; });
  Finds("result s is fp32 [n], infer gives fp32 [4]",
        [](Function& f) { Op(f, "s")->result()->type.shape = {Dim::Symbol("n")}; });
  Finds("the value is int32 [], the type int32 [1]",
        [](Function& f) { Op(f, "s_axis")->result()->type.shape = {1}; });
}

TEST_CASE("verify: symbols") {
  Finds("n: a symbol of 0 to 4 may be below 1", [](Function& f) { f.symbols["n"] = {0, 4, {}}; });
  Finds("n: a symbol of 5 to 4 has no size", [](Function& f) { f.symbols["n"] = {5, 4, {}}; });
  for (std::vector<int64_t> sizes : {std::vector<int64_t>{4, 2}, {2, 3, 3, 4}, {2, 3}, {3, 4}})
    Finds("lists other sizes, or not in order", [&](Function& f) {
      f.symbols["n"] = {2, 4, sizes};
    });
  // Another function's symbol is none of this one.
  Finds("its size n - 1 is written with n, which is no symbol of main", [](Function& f) {
    f.program->Add("other")->symbols["n"] = {1, 4, {}};
    f.body.inputs[0]->type.shape = {Dim::Symbol("n") - 1};
  });
  Finds("its size n is written with n, which is no symbol of main",
        [](Function& f) { Op(f, "s")->result()->elements = {Dim::Symbol("n")}; });
}

TEST_CASE("verify: owners") {
  Finds("does not know where it is defined", [](Function& f) { Op(f, "s")->result()->index = 1; });
  Finds("a block does not know its owner",
        [](Function& f) { Op(f, "y")->blocks[0]->parent = Op(f, "a"); });
}

}  // namespace mlc::test
