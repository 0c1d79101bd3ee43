#include "test/lib/ops/random_operands.h"

namespace mlc::test {

namespace {

Case Recurrent(Draw& draw, int64_t gates) {
  DType dtype = draw.Float();
  int64_t hidden = draw.Int(1, 3), inputs = draw.Int(1, 3);
  Case operands = {{"x", draw.Numbers({draw.Int(1, 4), 2, inputs}, dtype)},
                   {"initial_h", draw.Numbers({2, hidden}, dtype)},
                   {"weight_ih", draw.Numbers({gates * hidden, inputs}, dtype)},
                   {"weight_hh", draw.Numbers({gates * hidden, hidden}, dtype)},
                   {"output_sequence", Truth(draw.Coin())},
                   {"activation", Text(draw.Of<std::string_view>({"tanh", "sigmoid", "relu"}))}};
  if (gates == 4) operands.emplace_back("initial_c", draw.Numbers({2, hidden}, dtype));
  return operands;
}

}  // namespace

TEST_CASE("recurrent: range rules are sound", "[traits]") {
  CheckRange("gru", [](Draw& draw, DType) -> Case { return Recurrent(draw, 3); });
  CheckRange("lstm", [](Draw& draw, DType) -> Case { return Recurrent(draw, 4); });
  CheckRange("rnn", [](Draw& draw, DType) -> Case { return Recurrent(draw, 1); });
}

}  // namespace mlc::test
