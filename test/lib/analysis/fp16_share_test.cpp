// Tests the share of work in fp16 and the number of segments.
#include "lib/analysis/fp16_share.h"

#include <cmath>

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::test {
using namespace analysis;
namespace {

Fp16Share ShareOf(const std::string& inputs, const std::string& operations,
                  const std::string& outputs) {
  const Program program =
      ParseText("func main<ios18>(" + inputs + ") {" + operations + "} -> (" + outputs + ");",
                "test.mil", Ops());
  return Fp16ShareOf(program);
}

constexpr const char* kHalf = "tensor<fp16, [8]> x";

}  // namespace

TEST_CASE("an operation counts as fp16 if all its float operands and results are", "[fp16-share]") {
  // 8 elements in fp16 and 8 in fp32; the cast between them is not measured.
  Fp16Share share =
      ShareOf(kHalf, "a = relu(x = x); b = cast(x = a, dtype = \"fp32\"); c = exp(x = b);", "c");
  CHECK(share.fp16 == 8);
  CHECK(share.fp32 == 8);
  CHECK(share.share() == 0.5);
  // Integer operands are ignored; one fp32 operand is not.
  CHECK(ShareOf(kHalf, "a = cast(x = x, dtype = \"int32\"); b = add(x = a, y = 1);", "b").fp32 ==
        0);
  CHECK(ShareOf("tensor<int32, [8]> x", "a = cast(x = x, dtype = \"fp32\"); b = relu(x = a);", "b")
            .fp32 == 16);
  CHECK(ShareOf("tensor<int32, [8]> x", "b = add(x = x, y = 1);", "b").share() == 1);
}

TEST_CASE("work is the number of multiply-adds, at least one per element", "[fp16-share]") {
  // 4 x 16 results of 32 terms, and 64 elements.
  Fp16Share share =
      ShareOf("tensor<fp16, [4, 32]> x, tensor<fp16, [32, 16]> w",
              "a = matmul(x = x, y = w); b = relu(x = a); c = cast(x = b, dtype = \"fp32\");"
              "d = exp(x = c);",
              "d");
  CHECK(share.fp16 == 4 * 16 * 32 + 64);
  CHECK(share.fp32 == 64);
}

TEST_CASE("dynamic dimensions have their lower bounds", "[fp16-share]") {
  const std::string operations =
      "a = relu(x = x); b = cast(x = a, dtype = \"fp32\"); c = exp(x = b);"
      "d = reduce_sum(x = c, axes = [0], keep_dims = true);";
  Program program = ParseText("func main<ios18>(tensor<fp16, [n]> x) {" + operations + "} -> (d);",
                              "test.mil", Ops());
  CHECK(Fp16ShareOf(program).fp16 == 1);
  program.functions[0]->symbols["n"].low = 10;
  CHECK(Fp16ShareOf(program).fp16 == 10);
  CHECK(DefaultSizes(*program.functions[0]).at("n") == 10);
}

TEST_CASE("NoFp16FormShare counts operations that the target supports in fp32 only",
          "[fp16-share]") {
  const Program program = ParseText(
      "func main<ios18>(tensor<fp32, [4, 1, 1]> x, tensor<fp32, [1, 1]> h) {"
      "y, last = rnn(x = x, initial_h = h, weight_ih = [[0.5]], weight_hh = [[0.25]]);"
      "z = relu(x = x); } -> (y, z);",
      "test.mil", Ops());
  const double all = Fp16ShareOf(program).fp32;  // 4, from relu
  CHECK(std::fabs(NoFp16FormShare(program, Opset::kIos16) - (1 - 4 / all)) < 1e-12);
  CHECK(NoFp16FormShare(program, Opset::kIos18) == 0);
}

TEST_CASE("operations in a loop count once per iteration", "[fp16-share]") {
  CHECK(ShareOf(
            kHalf,
            "n, y = while_loop(loop_vars = (const int32(0), x))"
            "(int32 i, tensor<fp16, [8]> a) { more = less(x = i, y = 5); } -> (more)"
            "(int32 j, tensor<fp16, [8]> b) { k = add(x = j, y = 1); c = relu(x = b); } -> (k, c);",
            "y")
            .fp16 == 5 * 8);
}

TEST_CASE("the number of segments is minimal over execution orders", "[fp16-share]") {
  auto segments = [](const std::string& operations, const std::string& outputs) {
    return ShareOf(kHalf, operations, outputs).segments;
  };
  const std::string wide =
      "b = cast(x = a, dtype = \"fp32\"); c = exp(x = b); d = cast(x = c, dtype = \"fp16\");";
  CHECK(segments("a = relu(x = x); b = exp(x = a);", "b") == 1);
  CHECK(segments("a = relu(x = x);" + wide, "d") == 1);
  CHECK(segments("a = relu(x = x);" + wide + "e = relu(x = d);", "e") == 2);
  // An fp32 branch that depends only on the input can be executed first.
  CHECK(segments("a = identity(x = x);" + wide + "f = relu(x = x); e = add(x = d, y = f);", "e") ==
        2);
  CHECK(ShareOf(
            "tensor<fp32, [8]> x",
            "c = exp(x = x); d = cast(x = c, dtype = \"fp16\"); f = cast(x = x, dtype = \"fp16\");"
            "g = relu(x = f); e = add(x = d, y = g);",
            "e")
            .segments == 1);
  // A bypass does not join the segments before and after.
  CHECK(segments("a = relu(x = x);" + wide + "e = add(x = d, y = a);", "e") == 2);
  CHECK(ShareOf("tensor<fp32, [8]> x", "a = relu(x = x);", "a").segments == 0);
}

}  // namespace mlc::test
