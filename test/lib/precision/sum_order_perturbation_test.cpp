#include "lib/precision/sum_order_perturbation.h"

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "lib/support/half.h"
#include "test/catch.h"

namespace mlc::test {
using namespace precision;
namespace {

// Returns the perturbed result of the operation.
template <class T>
std::vector<T> Moved(std::string_view operation, std::vector<T> values, uint64_t seed = 1) {
  Program program =
      ParseText("func main<ios17>(tensor<fp32, [4, 4]> x) {\n  y = " + std::string(operation) +
                    ";\n} -> (y);",
                "test.mil", Ops());
  std::vector<Tensor> results{
      Tensor::Of<T>({static_cast<int64_t>(values.size())}, std::move(values))};
  PerturbSumOrder(*program.main()->body.outputs()[0]->def, results, seed);
  Pin<T> moved = results[0].data<T>();
  return {moved.begin(), moved.end()};
}
constexpr std::string_view kSums = "matmul(x = x, y = x)";

}  // namespace

TEST_CASE("other sums: low-order bits of sums of products change") {
  const std::vector<float> values(4096, 0.7f);
  const std::vector<float> moved = Moved(kSums, values);
  CHECK(std::count(moved.begin(), moved.end(), 0.7f) < 3000);
  for (float value : moved) REQUIRE(std::abs(value - 0.7f) <= 0.7f * 0x1p-21f);
  CHECK(Moved(kSums, values) == moved);
  CHECK(Moved(kSums, values, 2) != moved);
  CHECK(Moved("add(x = x, y = x)", values) == values);
}

TEST_CASE("other sums: few fp16 numbers change, by one step") {
  const Half value(0.7f);
  int others = 0;
  for (Half moved : Moved(kSums, std::vector<Half>(65536, value))) {
    others += moved.bits != value.bits;
    REQUIRE(std::abs(moved.bits - value.bits) <= 1);
  }
  CHECK(others > 4);
  CHECK(others < 64);
}

TEST_CASE("other sums: zeros, small whole numbers and infinities stay") {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i)
    values.insert(values.end(), {0, 1, -3, 70000, std::numeric_limits<float>::infinity()});
  values.push_back(0.3f);
  const std::vector<float> moved = Moved(kSums, values);
  CHECK(std::equal(values.begin(), values.end() - 1, moved.begin()));
}

}  // namespace mlc::test
