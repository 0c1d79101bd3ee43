#include "lib/verify/check_pass.h"

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::test {
using namespace verify;
namespace {
// y = `expression` of an x of four elements.
Program Computing(const std::string& expression) {
  return ParseText("func main<ios17>(tensor<fp32, [4]> x) {\n  y = " + expression + ";\n} -> (y);",
                   "test.mil", Ops());
}
}  // namespace

TEST_CASE("CheckSame accepts equal results and rounding differences") {
  CheckSame(Computing("mul(x = x, y = 2.0)"), Computing("add(x = x, y = x)"), 1, "p");
  CheckSame(Computing("real_div(x = x, y = 3.0)"), Computing("mul(x = x, y = 0.33333334)"), 1, "p");
}

TEST_CASE("CheckSame names the pass and the output that changed") {
  CHECK_THROWS_WITH(
      CheckSame(Computing("mul(x = x, y = 2.0)"), Computing("mul(x = x, y = 2.1)"), 1, "my-pass"),
      ContainsSubstring("pass my-pass changes the results: output \"y\": max error"));
  CHECK_THROWS_WITH(CheckSame(Computing("relu(x = x)"), Computing("expand_dims(x = x, axes = [0])"),
                              1, "my-pass"),
                    ContainsSubstring("shape [1, 4], reference has [4]"));
}

}  // namespace mlc::test
