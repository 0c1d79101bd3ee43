// Convolutions, pools, products, image operators and recurrent layers against torch; torch_cases.py
// made the table.
#include "test/catch.h"
#include "test/lib/ops/evaluate.h"

namespace mlc::test {
namespace {

// The values that torch_cases.py calls pattern(dims, seed).
Tensor Pattern(Dims dims, int64_t seed) {
  std::vector<float> values(ElementCount(dims));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((static_cast<int64_t>(i) * 7 + seed) % 11 - 5) * 0.25f;
  return Tensor::Of(std::move(dims), values);
}

struct Case {
  std::string_view op;
  std::vector<In> operands;
  Dims dims;
  std::vector<double> values;
};

TEST_CASE("operators agree with torch") {
  const Case cases[] = {
#include "test/lib/ops/torch_cases.inc"
  };
  int number = 0;
  for (const Case& each : cases) {
    INFO("case " << ++number << ": " << each.op);
    std::vector<double> values;  // of all results
    for (const Tensor& result : EvaluateAll(each.op, each.operands)) {
      if (values.empty()) CHECK(result.dims() == each.dims);
      std::vector<double> more = result.Doubles();
      values.insert(values.end(), more.begin(), more.end());
    }
    CHECK(Near(values, each.values, 1e-6));
  }
}

}  // namespace
}  // namespace mlc::test
