// Tests which states are updated in place. Calculated by hand.
#include "lib/engine/engine.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::engine {
namespace {

using Arithmetic = EngineOptions::Arithmetic;

// A state s of four elements; b is s with x instead of the elements from i on.
Program Parse(const std::string& body, const std::string& outputs = "y") {
  Program program = ParseText(
      "func main<ios18>(tensor<fp16, [2]> x, tensor<int32, [1]> i, state<tensor<fp16, [4]>> s) {\n"
      "a = read_state(input = s); e = add(x = i, y = 2);\n"
      "b = slice_update(x = a, update = x, begin = i, end = e);\n" +
          body + "\n} -> (" + outputs + ");",
      "t.mil", Ops());
  Verify(program);
  return program;
}

std::vector<double> Run(const Engine& engine, std::array<float, 2> x, int32_t i, States& states) {
  Tensor pair = Tensor::Vector<float>({x[0], x[1]}).Cast(DType::kFp16);
  return engine.Run({{"x", pair}, {"i", Tensor::Vector<int32_t>({i})}}, states).at("y").Doubles();
}

const std::byte* Place(const States& states) { return states.at("s").InPlace(0, 1).data(); }

struct Case {
  std::string after;
  std::vector<double> y, state;  // results of a second run
  bool moves = true;             // whether the content of the state was copied
};

TEST_CASE("a state is updated in place if its old content has no other use") {
  const auto arithmetic = GENERATE(Arithmetic::kFaithful, Arithmetic::kExact);
  const std::vector<double> before{1, 2, 0, 0}, after{1, 3, 4, 0};
  const auto [body, y, state, moves] = GENERATE_REF(values<Case>({
      {"write_state(input = s, data = b); y = read_state(input = s);", after, after, false},
      {"k = slice_by_index(x = a, begin = [0], end = [2]); write_state(input = s, data = b); "
       "y = concat(values = (k, k), axis = 0);",
       {1, 2, 1, 2},
       after},
      {"write_state(input = s, data = b); c = read_state(input = s); y = sub(x = c, y = a);",
       {0, 1, 4, 0},
       after},
      {"v = reshape(x = a, shape = [2, 2]); write_state(input = s, data = b); "
       "y = reshape(x = v, shape = [4]);",
       before, after},
      {"r = read_state(input = s); write_state(input = s, data = b); y = relu(x = r);", before,
       after},
      {"y = relu(x = b); write_state(input = s, data = a);", {0, 3, 4, 0}, {0, 0, 0, 0}, false},
      {"d = relu(x = b); write_state(input = s, data = d); y = relu(x = d);", after, after},
  }));
  CAPTURE(body);
  Program program = Parse(body);
  Engine engine(*program.main(), {.arithmetic = arithmetic});
  States states;
  Run(engine, {1, 2}, 0, states);
  const std::byte* place = Place(states);
  const Tensor::Range range = states.at("s").range();
  CHECK(Run(engine, {3, 4}, 1, states) == y);
  CHECK(states.at("s").Doubles() == state);
  CHECK((Place(states) != place) == moves);
  if (state == after) CHECK(states.at("s").range().high > range.high);
}

TEST_CASE("an in-place update preserves other references to a state") {
  Program program = Parse("write_state(input = s, data = b); y = read_state(input = s);");
  Engine engine(*program.main());
  States states;
  const std::vector<double> first = Run(engine, {1, 2}, 0, states);
  States copy = states;
  CHECK(Run(engine, {3, 4}, 1, states) == std::vector<double>{1, 3, 4, 0});
  CHECK(copy.at("s").Doubles() == first);
  Tensor part = states.at("s").Reshaped({2, 2});
  Run(engine, {5, 6}, 2, states);
  CHECK(part.Doubles() == std::vector<double>{1, 3, 4, 0});
  Pin<Half> pin = states.at("s").data<Half>();
  Run(engine, {7, 8}, 0, states);
  CHECK(static_cast<float>(pin[0]) == 1);
  std::vector<std::byte> mine(8);
  states["s"] = Tensor::Borrowed(DType::kFp16, {4}, mine, nullptr);
  Run(engine, {7, 8}, 0, states);
  CHECK(mine == std::vector<std::byte>(8));
}

TEST_CASE("an in-place update preserves results held by observers") {
  Program program = Parse("write_state(input = s, data = b); y = read_state(input = s);");
  std::vector<Tensor> seen;
  EngineOptions options;
  options.observe = [&](const Operation& op, std::span<Tensor> results) {
    if (op.def->name == "read_state") seen.push_back(results[0]);
  };
  Engine engine(*program.main(), options);
  States states;
  Run(engine, {1, 2}, 0, states);
  Run(engine, {3, 4}, 1, states);
  REQUIRE(seen.size() == 4);
  CHECK(seen[1].Doubles() == std::vector<double>{1, 2, 0, 0});
  CHECK(seen[2].Doubles() == std::vector<double>{1, 2, 0, 0});
  CHECK(seen[3].Doubles() == std::vector<double>{1, 3, 4, 0});
}

TEST_CASE("a failed run restores changed states") {
  // The second change overlaps the first; element 6 of four does not exist.
  Program program = Parse(R"(
    write_state(input = s, data = b);
    c = read_state(input = s);
    z = mul(x = x, y = const fp16(10.0));
    d = slice_update(x = c, update = z, begin = [0], end = [2]);
    write_state(input = s, data = d);
    j = mul(x = i, y = 3);
    k = slice_by_index(x = d, begin = j, end = j, squeeze_mask = [true]);
    y = expand_dims(x = k, axes = [0]);)");
  Engine engine(*program.main());
  States states;
  CHECK(Run(engine, {1, 2}, 1, states) == std::vector<double>{0});
  const std::byte* place = Place(states);
  CHECK_THROWS(Run(engine, {5, 6}, 2, states));
  CHECK(states.at("s").Doubles() == std::vector<double>{10, 20, 2, 0});
  CHECK(Place(states) == place);
  CHECK(Run(engine, {3, 4}, 0, states) == std::vector<double>{30});
  CHECK(states.at("s").Doubles() == std::vector<double>{30, 40, 2, 0});
  CHECK(Place(states) == place);
}

}  // namespace
}  // namespace mlc::engine
