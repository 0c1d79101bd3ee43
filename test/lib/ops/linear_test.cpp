#include "test/lib/ops/random_operands.h"

namespace mlc::test {

TEST_CASE("linear: range rules are sound", "[traits]") {
  CheckRange("einsum", [](Draw& draw, DType dtype) -> Case {
    return {{"values", draw.Numbers({2, 3, 4}, dtype)},
            {"values", draw.Numbers({4, 3, 5}, dtype)},
            {"equation", Text("chw,whr->chr")}};
  });
  CheckRange("scaled_dot_product_attention", [](Draw& draw, DType dtype) -> Case {
    return {{"query", draw.Numbers({1, 2, 3}, dtype)},
            {"key", draw.Numbers({1, 4, 3}, dtype)},
            {"value", draw.Numbers({1, 4, 5}, dtype)}};
  });
  CheckRange("linear", [](Draw& draw, DType dtype) -> Case {
    dtype = draw.Of({DType::kFp16, DType::kFp32, DType::kInt32});
    return {{"x", draw.Numbers({2, 3}, dtype)},
            {"weight", draw.Numbers({4, 3}, dtype)},
            {"bias", draw.Numbers({4}, dtype)}};
  });
  CheckRange("matmul", [](Draw& draw, DType dtype) -> Case {
    dtype = draw.Of({DType::kFp16, DType::kFp32, DType::kInt32});
    bool transposed = draw.Coin();
    return {{"x", draw.Numbers({2, 3}, dtype)},
            {"y", draw.Numbers(transposed ? Dims{4, 3} : Dims{3, 4}, dtype)},
            {"transpose_y", Truth(transposed)}};
  });
}

}  // namespace mlc::test
