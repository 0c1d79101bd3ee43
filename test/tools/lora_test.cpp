#include "tools/driver/lora.h"

#include "lib/engine/engine.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"
#include "test/expected_error.h"

namespace mlc::driver {
namespace {

// Numbers in eighths, of which sums and products are exact.
Tensor Drawn(const Dims& dims, int seed) {
  std::vector<float> values(static_cast<size_t>(ElementCount(dims)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((static_cast<int>(i) * 37 + seed * 11) % 17 - 8) / 8;
  return Tensor::Of(dims, values);
}

Program Parsed(std::string_view text) {
  Program program = ParseText(text, "t.mil", Ops());
  int seed = 0;
  ForEachOperation(*program.functions[0], [&](Operation* op) {
    if (op->def->is_const() && op->val.rank() > 1) op->val = Drawn(op->val.dims(), ++seed);
  });
  return program;
}

constexpr std::string_view kLinear = R"(
func main<ios17>(tensor<fp32, [3, 4]> x) {
  w = const()[val = tensor<fp32, [5, 4]>(fill(0))];
  b = const()[val = tensor<fp32, [5]>(fill(0.25))];
  y = linear(x = x, weight = w, bias = b);
  z = linear(x = y, weight = const tensor<fp32, [2, 5]>(fill(1)));
} -> (y, z);
)";
constexpr std::string_view kConvolution = R"(
func main<ios17>(tensor<fp32, [1, 3, 6, 6]> x) {
  w = const()[val = tensor<fp32, [4, 3, 3, 3]>(fill(0))];
  y = conv(x = x, weight = w, strides = [2, 2], pad_type = "custom", pad = [1, 1, 0, 1]);
} -> (y);
)";

std::map<std::string, Tensor> Run(const Program& program, const Tensor& x,
                                  std::map<std::string, Tensor> others = {}) {
  others["x"] = x;
  return engine::Execute(program, others,
                         {.arithmetic = engine::EngineOptions::Arithmetic::kExact});
}

}  // namespace

TEST_CASE("lora: a merged pair, and one that stays an input, give the same results") {
  for (const std::string_view text : {kLinear, kConvolution}) {
    INFO(text);
    const Program plain = Parsed(text);
    Program merged = Parsed(text), apart = Parsed(text);
    const bool conv = text == kConvolution;
    const Tensor down = conv ? Drawn({2, 3, 3, 3}, 5) : Drawn({2, 4}, 5),
                 up = conv ? Drawn({4, 2}, 6) : Drawn({5, 2}, 6),
                 x = conv ? Drawn({1, 3, 6, 6}, 7) : Drawn({3, 4}, 7);
    MergeLora(merged, "w", down, up, 0.5);
    Diagnostics diagnostics;
    AddLoraInputs(apart, "w", 2, 0.5, diagnostics);
    Verify(merged);
    Verify(apart);
    const auto expected = Run(merged, x);
    const auto made = Run(apart, x, {{"w_lora_down", down}, {"w_lora_up", up}});
    const auto without = Run(
        apart, x, {{"w_lora_down", down}, {"w_lora_up", Tensor::Full(DType::kFp32, up.dims(), 0)}});
    REQUIRE(made.size() == expected.size());
    for (const auto& [name, value] : expected) {
      CHECK(made.at(name).Doubles() == value.Doubles());
      CHECK(without.at(name).Doubles() == Run(plain, x).at(name).Doubles());
      CHECK(value.Doubles() != Run(plain, x).at(name).Doubles());
    }
  }
}

TEST_CASE("lora: errors name the weight, the shape and the other use") {
  Program program = Parsed(kLinear);
  const Tensor down = Drawn({2, 4}, 1), up = Drawn({5, 2}, 2);
  CHECK(test::Refusal([&] { MergeLora(program, "v", down, up, 1); }).find("no weight \"v\"") !=
        std::string::npos);
  CHECK(test::Refusal([&] {
          MergeLora(program, "w", up, down, 1);
        }).find("`down` is fp32 [5, 2]\n  expected: fp32 or fp16 [5, 4]") != std::string::npos);
  CHECK(test::Refusal([&] { MergeLora(program, "w", down, down, 1); }).find("`up`") !=
        std::string::npos);
  Diagnostics diagnostics;
  CHECK(test::Refusal([&] {
          AddLoraInputs(program, "w", 0, 1, diagnostics);
        }).find("the rank is 0") != std::string::npos);
  Program other = ParseText(R"(
func main<ios17>(tensor<fp32, [5, 4]> x) {
  w = const()[val = tensor<fp32, [5, 4]>(fill(1))];
  y = linear(x = x, weight = w);
  z = add(x = x, y = w);
} -> (y, z);
)",
                            "t.mil", Ops());
  CHECK_THAT(test::Refusal([&] { MergeLora(other, "w", down, up, 1); }),
             ContainsSubstring("add \"z\""));
}

}  // namespace mlc::driver
