#include "lib/ops/value_range.h"

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::test {
namespace {

// Returns whether the first result of the last operation is nonnegative.
bool Natural(const std::string& operations) {
  Program program = ParseText(
      "[symbols = {s in 1..64}] func main<ios18>(tensor<fp32, [s]> x, tensor<int32, [s]> i) {" +
          operations + "} -> (y);",
      "test.mil", Ops());
  return IsNatural(program.main()->body.outputs()[0]);
}

}  // namespace

TEST_CASE("intervals: nonnegative integers") {
  CHECK(Natural("y = reduce_argmax(x = x, axis = 0, keep_dims = true);"));
  CHECK(Natural("y = argsort(x = x);"));
  CHECK(Natural("v, y = topk(x = x, k = 1);"));
  CHECK(Natural("n = non_zero(x = x); y = slice_by_index(x = n, begin = [0, 0], end = [1, 1]);"));
  CHECK(Natural("n = shape(x = x); y = expand_dims(x = n, axes = [0]);"));
  CHECK(
      Natural("n = shape(x = x); e = squeeze(x = n); y = range_1d(start = 0, end = e, step = 1);"));
  CHECK(Natural("y = clip(x = x, alpha = 0.0, beta = 9.0);"));
  CHECK(Natural("y = mod(x = i, y = 7);"));
  CHECK(!Natural("y = identity(x = i);"));
  CHECK(!Natural("a = reduce_argmax(x = x, axis = 0, keep_dims = true); y = sub(x = a, y = 1);"));
  // The sum of large integers may wrap.
  CHECK(!Natural("a = abs(x = i); y = add(x = a, y = a);"));
}

}  // namespace mlc::test
