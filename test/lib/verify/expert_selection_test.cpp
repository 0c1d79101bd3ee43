#include "lib/verify/expert_selection.h"

#include "lib/engine/engine.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::verify {
namespace {

// For the second of three tokens, the scores of 1 and 2 are equal in fp16; the third clearly
// prefers 3.
constexpr char kRouter[] = R"(func main<ios16>(tensor<fp32, [3, 4]> x) {
  s = mul(x = x, y = 1.0);
  v, i = topk(x = s, k = 2, axis = -1);
} -> (v, i);
)";
const Tensor kScores = Tensor::Of<float>({3, 4}, {4, 3, 2, 1, 2, 1.0001f, 1, 0, 0, 1, 2, 3});

std::map<std::string, Tensor> Run(const Function& function, Observer observe) {
  engine::EngineOptions options;
  options.observe = std::move(observe);
  return engine::Engine(function, options).Run({{"x", kScores}});
}

TEST_CASE("FollowChoices adopts experts whose scores fp16 cannot distinguish", "[verify]") {
  const Program program = ParseText(kRouter, "test.mil", Ops());
  const Function& function = *program.main();
  REQUIRE(HasRouters(function));
  RouterChoices own;
  Run(function, RecordChoices(own));
  REQUIRE(own.size() == 1);
  CHECK(own[0].Ints() == std::vector<int64_t>{0, 1, 0, 1, 3, 2});

  FollowedChoices followed;
  const RouterChoices other{Tensor::Of<int32_t>({3, 2}, {1, 0, 0, 2, 3, 0})};
  const auto outputs = Run(function, FollowChoices(function, other, followed));
  CHECK(followed.tokens == 3);
  CHECK(followed.followed == 1);  // another order is the same selection; the third token differs
  CHECK(followed.widest == Approx(0.0001 / 2).epsilon(1e-2));
  CHECK(outputs.at("i").Ints() == std::vector<int64_t>{0, 1, 0, 2, 3, 2});
  CHECK(outputs.at("v").Double(3) == 1);
  REQUIRE(followed.made.size() == 1);
  CHECK(followed.made[0].Ints() == outputs.at("i").Ints());
}

TEST_CASE("FollowChoices ignores invalid choices", "[verify]") {
  const Program program = ParseText(kRouter, "test.mil", Ops());
  const Function& function = *program.main();
  for (const Tensor& other :
       {Tensor::Of<int32_t>({3, 2}, {0, 1, 0, 0, 3, 2}),
        Tensor::Of<int32_t>({3, 2}, {0, 1, 0, 9, 3, 2}),
        Tensor::Of<int32_t>({3, 2}, {0, 1, -1, 0, 3, 2}), Tensor::Of<int32_t>({1, 2}, {0, 2})}) {
    FollowedChoices followed;
    const RouterChoices choices{other};
    Run(function, FollowChoices(function, choices, followed));
    CHECK(followed.tokens == 3);
    CHECK(followed.followed == 0);
  }
}

TEST_CASE("AtOnce merges the selections of single tokens", "[verify]") {
  std::vector<Tensor> steps;  // two tokens and two routers
  for (int32_t i = 0; i < 4; ++i) steps.push_back(Tensor::Of<int32_t>({1, 2}, {i, i + 10}));
  const RouterChoices joined = AtOnce(steps, 2);
  REQUIRE(joined.size() == 2);
  CHECK(joined[0].Ints() == std::vector<int64_t>{0, 10, 2, 12});
  CHECK(joined[1].Ints() == std::vector<int64_t>{1, 11, 3, 13});
  CHECK(AtOnce(steps, 3).empty());
}

}  // namespace
}  // namespace mlc::verify
