#include "lib/ir/program_part.h"

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"
#include "test/expected_error.h"

namespace mlc::test {
namespace {

constexpr std::string_view kText = R"(func main<ios17>(tensor<fp32, [4]> x, tensor<fp32, [4]> y) {
  tensor<fp32, [4]> a = relu(x = x);
  tensor<fp32, [4]> b = add(x = a, y = y);
  tensor<fp32, [4]> c = softmax(x = b, axis = 0);
  tensor<fp32, [4]> d = mul(x = c, y = 2.0);
} -> (d, b);)";

Program Parsed(std::string_view text = kText) { return ParseText(text, "test.mil", Ops()); }

std::string Readable(const Program& program) { return PrintText(program, {.inline_limit = 8}); }

// The text of a part.
std::string PartText(const ModelPart& part, std::string_view text = kText) {
  Program program = Parsed(text);
  CheckPart(GraphOf(*program.main()), part);
  TakePart(*program.main(), part);
  Verify(program);
  return Readable(program);
}

std::string PartError(const ModelPart& part, std::string_view text = kText) {
  return Refusal([&] { PartText(part, text); });
}

// The text that is left without some nodes.
std::string WithoutText(const std::set<size_t>& nodes, bool bypass, std::string_view text = kText) {
  Program program = Parsed(text);
  const std::optional<ModelPart> part = PartWithout(GraphOf(*program.main()), nodes, bypass);
  if (!part) return "";
  TakePart(*program.main(), *part);
  Verify(program);
  return Readable(program);
}

std::string Same(std::string_view text) { return Readable(Parsed(text)); }

}  // namespace

TEST_CASE("program part: only what the outputs need stays") {
  CHECK(PartText({.inputs = {"x", "y"}, .outputs = {"a"}}) ==
        Same(R"(func main<ios17>(tensor<fp32, [4]> x) {
  tensor<fp32, [4]> a = relu(x = x);
} -> (a);)"));
}

TEST_CASE("program part: named values become inputs of the same type") {
  CHECK(PartText({.inputs = {"b"}, .outputs = {"d"}}) ==
        Same(R"(func main<ios17>(tensor<fp32, [4]> b) {
  tensor<fp32, [4]> c = softmax(x = b, axis = 0);
  tensor<fp32, [4]> d = mul(x = c, y = 2.0);
} -> (d);)"));
}

TEST_CASE("program part: an output that also becomes an input of others is cut") {
  CHECK(PartText({.inputs = {"x", "y", "c"}, .outputs = {"b", "d"}}) ==
        Same(R"(func main<ios17>(tensor<fp32, [4]> x, tensor<fp32, [4]> y, tensor<fp32, [4]> c) {
  tensor<fp32, [4]> a = relu(x = x);
  tensor<fp32, [4]> b = add(x = a, y = y);
  tensor<fp32, [4]> d = mul(x = c, y = 2.0);
} -> (b, d);)"));
}

TEST_CASE("program part: unknown names and missing inputs are errors that name them") {
  CHECK(PartError({.inputs = {"x", "y"}, .outputs = {"dd"}}).find("no value \"dd\"") !=
        std::string::npos);
  CHECK(PartError({.inputs = {"x", "y"}, .outputs = {"dd"}}).find("\"d\"") != std::string::npos);
  CHECK(
      PartError({.inputs = {"a"}, .outputs = {"d"}}).find("output \"d\" depends on input \"y\"") !=
      std::string::npos);
  CHECK(PartError({.inputs = {"a", "y"}, .outputs = {"a"}}).find("both an input and an output") !=
        std::string::npos);
  CHECK(PartError({.inputs = {"x", "y"}, .outputs = {"b", "b"}}).find("twice") !=
        std::string::npos);
  CHECK(PartError({.inputs = {"y"}, .outputs = {"x"}}).find("is an input of the model") !=
        std::string::npos);
}

constexpr std::string_view kNested = R"(func main<ios17>(tensor<bool, []> p, tensor<fp32, [4]> x) {
  tensor<fp32, [4]> y = cond(pred = p)
      () {
          tensor<fp32, [4]> a = relu(x = x);
          tensor<fp32, [4]> b = exp(x = a);
      } -> (b)
      () {
          tensor<fp32, [4]> c = tanh(x = x);
      } -> (c);
} -> (y);)";

TEST_CASE("program part: values of nested blocks cannot be cut") {
  CHECK(PartError({.inputs = {"p", "x"}, .outputs = {"b"}}, kNested)
            .find("value \"b\" is inside a nested block") != std::string::npos);
}

TEST_CASE("program part: nested operations can be removed") {
  // Nodes: cond, relu, exp, tanh.
  CHECK(WithoutText({1}, true, kNested).find("exp(x = x)") != std::string::npos);
  CHECK(WithoutText({2}, false, kNested).find("exp") == std::string::npos);
  CHECK(WithoutText({0}, false, kNested).empty());
}

TEST_CASE("program part: without a node, its result is an input or its operand") {
  CHECK(WithoutText({1}, false) ==
        Same(R"(func main<ios17>(tensor<fp32, [4]> x, tensor<fp32, [4]> b) {
  tensor<fp32, [4]> a = relu(x = x);
  tensor<fp32, [4]> c = softmax(x = b, axis = 0);
  tensor<fp32, [4]> d = mul(x = c, y = 2.0);
} -> (d, a);)"));
  CHECK(WithoutText({1, 2}, true) == Same(R"(func main<ios17>(tensor<fp32, [4]> x) {
  tensor<fp32, [4]> a = relu(x = x);
  tensor<fp32, [4]> d = mul(x = a, y = 2.0);
} -> (d, a);)"));
  CHECK(WithoutText({0, 1, 2, 3}, false).empty());
}

TEST_CASE("program part: a write of a state stays if the state is read") {
  constexpr std::string_view kStates =
      R"(func main<ios18>(state<tensor<fp16, [4]>> s, tensor<fp16, [4]> x) {
  tensor<fp16, [4]> before = read_state(input = s);
  tensor<fp16, [4]> sum = add(x = before, y = x);
  write_state(input = s, data = sum);
  tensor<fp16, [4]> r = relu(x = x);
} -> (sum, r);)";
  CHECK(PartText({.inputs = {"x"}, .outputs = {"sum"}}, kStates).find("write_state") !=
        std::string::npos);
  const std::string other = PartText({.inputs = {"x"}, .outputs = {"r"}}, kStates);
  CHECK(other.find("state") == std::string::npos);
}

TEST_CASE("program part: scalars and bools become vectors and integers at the border") {
  Program program = Parsed(R"(func main<ios17>(tensor<fp32, [4]> x) {
  tensor<bool, [4]> m = greater(x = x, y = 0.0);
  tensor<fp32, []> s = reduce_sum(x = x, axes = [0], keep_dims = false);
  tensor<fp32, [4]> k = mul(x = x, y = s);
  tensor<fp32, [4]> z = select(cond = m, a = k, b = x);
} -> (z);)");
  Program end = Clone(program);
  TakePart(*program.main(), {.inputs = {"x"}, .outputs = {"m", "s"}});
  ConvertPortsForCoreml(*program.main());
  Verify(program);
  CHECK(program.main()->body.outputs()[0]->type == Type::Tensor(DType::kInt32, {4}));
  CHECK(program.main()->body.outputs()[1]->type == Type::Tensor(DType::kFp32, {1}));
  CHECK(program.main()->outputs[0].name == "m");
  TakePart(*end.main(), {.inputs = {"m", "s", "x"}, .outputs = {"z"}});
  ConvertPortsForCoreml(*end.main());
  Verify(end);
  CHECK(end.main()->body.outputs()[0]->type == Type::Tensor(DType::kFp32, {4}));
  for (const auto& input : end.main()->body.inputs) CHECK(input->type.rank() == 1);
}

TEST_CASE("program part: constants, optional operands and sizes are simplified") {
  Program program = Parsed(R"(func main<ios17>(tensor<fp32, [3, 6]> x) {
  tensor<fp32, [5, 6]> w = const()[val = tensor<fp32, [5, 6]>([[1,2,3,4,5,6],[1,2,3,4,5,6],[1,2,3,4,5,6],[1,2,3,4,5,6],[1,2,3,4,5,6]])];
  tensor<fp32, [5]> b = const()[val = tensor<fp32, [5]>([1,2,3,4,5])];
  tensor<fp32, [3, 5]> y = linear(x = x, weight = w, bias = b);
} -> (y);)");
  Function& main = *program.main();
  CHECK(PlacesToSimplify(main, Simplification::kUniform) == 2);
  Simplify(main, Simplification::kUniform, {0, 1});
  CHECK(PlacesToSimplify(main, Simplification::kUniform) == 0);
  Simplify(main, Simplification::kAttributes, {0});
  CHECK(OperationCount(program) == 1);
  CHECK(Readable(program).find("bias") == std::string::npos);
  CHECK(PlacesToSimplify(main, Simplification::kSizes) == 2);
  Simplify(main, Simplification::kSizes, {0, 1});
  Verify(program);
  CHECK(main.body.inputs[0]->type.shape == Shape{1, 1});
  CHECK(main.body.outputs()[0]->type.shape == Shape{1, 5});
}

}  // namespace mlc::test
