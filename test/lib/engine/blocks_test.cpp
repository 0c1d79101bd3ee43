// Tests the execution of nested blocks, lists and states.
#include "lib/engine/engine.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::engine {
namespace {

Program Parse(const std::string& body, const std::string& inputs = "tensor<fp32, [2]> x",
              const std::string& outputs = "y") {
  Program program =
      ParseText(fmt::format("func main<ios18>({}) {{\n{}\n}} -> ({});", inputs, body, outputs),
                "t.mil", Ops());
  Verify(program);
  return program;
}
Tensor Pair(float a, float b) { return Tensor::Vector<float>({a, b}); }
std::vector<double> Run(const Program& program, Tensor x) {
  return Execute(program, {{"x", std::move(x)}}).at("y").Doubles();
}

// Calculated by hand.
TEST_CASE("cond runs the selected block, which may use outer values") {
  Program program = Parse(R"(
    s = reduce_sum(x = x, keep_dims = false);
    p = greater(x = s, y = 0.0);
    y = cond(pred = p)
      () { a = mul(x = x, y = s); } -> (a)
      () { } -> (x);)");
  CHECK(Run(program, Pair(1, 2)) == std::vector<double>{3, 6});
  CHECK(Run(program, Pair(1, -2)) == std::vector<double>{1, -2});
}

TEST_CASE("while_loop runs while its condition holds, possibly never") {
  Program program = Parse(R"(
    n, y = while_loop(loop_vars = (const int32(0), x))
      (int32 i, tensor<fp32, [2]> a) {
        s = reduce_sum(x = a, keep_dims = false);
        c = less(x = s, y = 20.0);
      } -> (c)
      (int32 j, tensor<fp32, [2]> b) {
        k = add(x = j, y = 1);
        d = add(x = b, y = x);
      } -> (k, d);)");
  CHECK(Run(program, Pair(1, 2)) == std::vector<double>{7, 14});
  CHECK(Run(program, Pair(10, 20)) == std::vector<double>{10, 20});
}

TEST_CASE("loop variables may grow, and blocks may be nested") {
  Program program = Parse(R"(
    n, y = while_loop(loop_vars = (const int32(0), x))
      (int32 i, tensor<fp32, [m]> a) { c = less(x = i, y = 3); } -> (c)
      (int32 j, tensor<fp32, [k]> b) {
        l = add(x = j, y = 1);
        o = equal(x = j, y = 1);
        e = cond(pred = o)
          () { f = mul(x = x, y = 10.0); } -> (f)
          () { } -> (x);
        d = concat(values = (b, e), axis = 0);
      } -> (l, d);)");
  CHECK(Run(program, Pair(1, 2)) == std::vector<double>{1, 2, 1, 2, 10, 20, 1, 2});
}

TEST_CASE("a list can be a loop variable") {
  Program program = Parse(R"(
    l0 = make_list(elem_shape = (const int32(2)));
    n, l = while_loop(loop_vars = (const int32(0), l0))
      (int32 i, list<tensor<fp32, [2]>, ?> a) { c = less(x = i, y = 3); } -> (c)
      (int32 j, list<tensor<fp32, [2]>, ?> b) {
        k = add(x = j, y = 1);
        f = cast(x = k, dtype = "fp32");
        v = mul(x = x, y = f);
        w = list_write(ls = b, index = j, value = v);
      } -> (k, w);
    y = list_gather(ls = l, indices = [2, 0]);)");
  CHECK(Run(program, Pair(1, 2)) == std::vector<double>{3, 6, 1, 2});
}

TEST_CASE("states start as zero and belong to the caller between runs") {
  Program program = Parse(R"(
    a = read_state(input = s);
    b = add(x = a, y = x);
    write_state(input = s, data = b);
    c = read_state(input = s);
    y = mul(x = c, y = const fp16(2.0));)",
                          "tensor<fp16, [2]> x, state<tensor<fp16, [2]>> s");
  Tensor x = Pair(1, 2).Cast(DType::kFp16);
  Engine engine(*program.main());
  States states;
  CHECK(engine.Run({{"x", x}}, states).at("y").Doubles() == std::vector<double>{2, 4});
  CHECK(engine.Run({{"x", x}}, states).at("y").Doubles() == std::vector<double>{4, 8});
  CHECK(states.at("s").Doubles() == std::vector<double>{2, 4});
  CHECK(engine.Run({{"x", x}}).at("y").Doubles() == std::vector<double>{2, 4});
  states["s"] = Pair(10, 20).Cast(DType::kFp16);
  CHECK(engine.Run({{"x", x}}, states).at("y").Doubles() == std::vector<double>{22, 44});
  // A failed run does not change them.
  CHECK_THROWS_WITH(engine.Run({}, states), ContainsSubstring("\"x\" is missing"));
  CHECK(states.at("s").Doubles() == std::vector<double>{11, 22});
  for (auto& [state, text] : std::vector<std::pair<States, std::string>>{
           {{{"t", x}}, "unknown state \"t\""},
           {{{"s", Pair(1, 2)}}, "state \"s\" has type fp32 [2]"},
           {{{"s", Tensor::Full(DType::kFp16, {3}, 0)}}, "state \"s\" has type fp16 [3]"}})
    CHECK_THROWS_WITH(engine.Run({{"x", x}}, state), ContainsSubstring(text));
  Engine other(*program.main(), {.arithmetic = EngineOptions::Arithmetic::kExact});
  CHECK(other.Run({{"x", x}}, states).at("y").Doubles() == std::vector<double>{24, 48});
  CHECK(states.at("s").dtype() == DType::kFp32);
  CHECK_THROWS_WITH(engine.Run({{"x", x}, {"s", x}}), ContainsSubstring("unknown input \"s\""));
}

TEST_CASE("an endless loop is stopped by the timeout") {
  Program program = Parse(R"(
    y = while_loop(loop_vars = x)
      (tensor<fp32, [2]> a) { t = reduce_sum(x = a, keep_dims = false); c = equal(x = t, y = t); } -> (c)
      (tensor<fp32, [2]> b) { d = relu(x = b); } -> (d);)");
  EngineOptions options;
  options.timeout = std::chrono::milliseconds(20);
  CHECK_THROWS_WITH(Execute(program, {{"x", Pair(1, 2)}}, options), ContainsSubstring("timeout"));
}

TEST_CASE("invalid blocks are rejected") {
  auto refused = [](const std::string& body, const std::string& text) {
    CHECK_THROWS_WITH(Parse("p = const()[val = true]; " + body), ContainsSubstring(text));
  };
  refused("y = cond(pred = p) () { } -> (x);", "two blocks");
  refused("y = cond(pred = x) () { } -> (x) () { } -> (x);", "expected a single bool");
  refused("y = cond(pred = p) () { } -> (x) () { } -> (x, x);", "1 and 2 outputs");
  refused("y = cond(pred = p) () { } -> (x) () { } -> (p);", "are incompatible");
  refused(
      "y = while_loop(loop_vars = x) (tensor<fp32, [2]> a) { } -> (a) (tensor<fp32, [2]> b) { } -> "
      "(b);",
      "return a single bool");
  refused(
      "y = while_loop(loop_vars = x) (tensor<fp32, [3]> a) { } -> (p) (tensor<fp32, [3]> b) { } -> "
      "(b);",
      "variable 0 starts as fp32 [2]");
  refused("y = while_loop(loop_vars = x) () { } -> (p) (tensor<fp32, [2]> b) { } -> (b);",
          "a block has 0");
}

}  // namespace
}  // namespace mlc::engine
