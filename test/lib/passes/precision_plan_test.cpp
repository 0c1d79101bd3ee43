// Tests which operations stay in fp32, and why: by the user's choice, by measuring and by the
// rules.
#include "lib/passes/precision_plan.h"

#include <map>
#include <set>

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::test {
using namespace passes;
namespace {

// The names of the operations, by precision.
struct Plan {
  std::map<std::string, std::string> wide;
  std::set<std::string> narrow;
};

struct Asked {
  std::vector<std::string> fp32_ops = {}, fp16_ops = {};
  std::map<std::string, std::string> measured = {};
  std::map<std::string, double> reached = {};
};

Plan PlanOf(const std::string& text, Asked asked = {}) {
  Diagnostics diagnostics;
  Program program = ParseText(text, "text", Ops());
  PassContext context{diagnostics, PassContext::Precision::kFp16, Opset::kIos16};
  context.fp32_ops = asked.fp32_ops;
  context.fp16_ops = asked.fp16_ops;
  for (const auto& [name, text] : asked.measured)
    context.measured[name] = {Fp32Reason::kRounding, text};
  context.reached = asked.reached;
  CheckNamedOperations(program, context);
  Plan names;
  for (const auto& [op, reason] : PlanPrecision(*program.main(), context))
    if (reason.fp32())
      names.wide[op->result()->name] = reason.text;
    else
      names.narrow.insert(op->result()->name);
  return names;
}

using Names = std::set<std::string>;

constexpr const char* kThree =
    "func main<ios16>(tensor<fp32, [1, 2, 128, 128]> x) {"
    "  a = mul(x = x, y = 2.0); b = mul(x = a, y = 3.0); c = tanh(x = b);"
    "} -> (c);";

}  // namespace

TEST_CASE("named operations take precedence over the rules", "[precision]") {
  CHECK(PlanOf(kThree).narrow == Names{"a", "b", "c"});
  CHECK(PlanOf(kThree, {.fp32_ops = {"a"}}).narrow == Names{"b", "c"});
  CHECK(PlanOf(kThree, {.fp32_ops = {"a"}}).wide.at("a") == "option 'fp32-ops'");
  CHECK(PlanOf(kThree, {.fp32_ops = {"mul"}}).narrow == Names{"c"});
  CHECK(PlanOf(kThree, {.fp32_ops = {"mul"}, .fp16_ops = {"b"}}).narrow == Names{"b", "c"});
  CHECK(PlanOf(kThree, {.fp32_ops = {"b"}, .fp16_ops = {"mul"}}).narrow == Names{"a", "c"});
  CHECK(PlanOf(kThree, {.fp32_ops = {"mul"}, .fp16_ops = {"mul"}}).narrow == Names{"c"});
}

TEST_CASE("an unknown name is an error that suggests similar names", "[precision]") {
  for (Asked asked : {Asked{.fp32_ops = {"muk"}}, Asked{.fp16_ops = {"muk"}}}) {
    std::string text;
    try {
      PlanOf(kThree, asked);
    } catch (const Error& error) {
      text = error.Render();
    }
    INFO(text);
    CHECK(text.find("bad-name") != std::string::npos);
    CHECK(text.find("\"mul\"") != std::string::npos);
  }
}

TEST_CASE("an operation that measuring selects stays in fp32 with its reason", "[precision]") {
  std::map<std::string, std::string> measured = {{"b", "a value of 7e4"}};
  CHECK(PlanOf(kThree, {.measured = measured}).wide ==
        std::map<std::string, std::string>{{"b", "a value of 7e4"}});
  CHECK(PlanOf(kThree, {.fp16_ops = {"b"}, .measured = measured}).wide.empty());
}

TEST_CASE("--fp16-ops applies to overflowing constants, but not to unsupported operators",
          "[precision]") {
  const char* text =
      "func main<ios16>(tensor<fp32, [1, 2, 128, 128]> x) {"
      "  a = mul(x = x, y = 1e6); s = sin(x = a);"
      "} -> (s);";
  CHECK(PlanOf(text).narrow.empty());
  CHECK(PlanOf(text, {.fp16_ops = {"a", "sin"}}).narrow == Names{"a", "s"});
  const char* lacks =
      "func main<ios16>(tensor<fp32, [64, 1, 1]> x, tensor<fp32, [1, 1]> h) {"
      "  b = mul(x = x, y = 2.0);"
      "  y, z = rnn(x = b, initial_h = h, weight_ih = [[0.5]], weight_hh = [[0.25]]);"
      "} -> (y);";
  Plan plan = PlanOf(lacks, {.fp16_ops = {"rnn", "mul"}});
  CHECK(plan.narrow == Names{"b"});
  CHECK(plan.wide.size() == 1);
  CHECK(plan.wide.begin()->second.find("fp32 only") != std::string::npos);
}

TEST_CASE("discontinuous operations stay in fp32 back to the nearest product", "[precision]") {
  for (int size : {64, 256})
    for (const char* steps :
         {"f = floor(x = m); r = cast(x = f, dtype = \"int32\");",
          "f = ceil(x = m); r = cast(x = f, dtype = \"int32\");",
          "f = round(x = m); r = cast(x = f, dtype = \"int32\");",
          "f = identity(x = m); r = cast(x = f, dtype = \"int32\");",
          "f = sign(x = m); r = exp(x = f);", "f = mod(x = m, y = 16.0); r = exp(x = f);",
          "f = greater(x = m, y = 16.0); r = logical_not(x = f);",
          "e = floor(x = m); f = sub(x = m, y = e); r = exp(x = f);"}) {
      std::string text = fmt::format(
          "func main<ios16>(tensor<fp32, [{0}, {0}]> x) {{"
          "  o = exp(x = x); p = matmul(x = o, y = o); s = sigmoid(x = p);"
          "  t = transpose(x = s, perm = [1, 0]); m = mul(x = t, y = 4095.0); {1}"
          "}} -> (r);",
          size, steps);
      INFO(text);
      Plan plan = PlanOf(text);
      for (const char* wide : {"p", "s", "t", "m"}) CHECK(plan.wide.contains(wide));
      CHECK(plan.narrow.contains("o"));
      if (steps[0] == 'e') CHECK(plan.wide.contains("f"));
    }
}

TEST_CASE("comparisons without a scale and quantisation are narrowed", "[precision]") {
  // A comparison of unscaled values, and rounding in a quantisation, whose product may be fp16.
  for (const char* steps :
       {"f = greater(x = s, y = 0.5); r = logical_not(x = f);",
        "m = mul(x = s, y = 0.5); f = greater(x = m, y = 0.25); r = logical_not(x = f);",
        "m = mul(x = s, y = 255.0); f = round(x = m); i = cast(x = f, dtype = \"int32\");"
        "j = cast(x = i, dtype = \"fp32\"); r = mul(x = j, y = 0.1);"}) {
    std::string text = fmt::format(
        "func main<ios16>(tensor<fp32, [256, 256]> x) {{"
        "  p = matmul(x = x, y = x); s = sigmoid(x = p); {}"
        "}} -> (r);",
        steps);
    INFO(text);
    Plan plan = PlanOf(text);
    CHECK(plan.narrow.contains("p"));
    CHECK(plan.narrow.contains("s"));
  }
}

TEST_CASE("quantised values and their scales are narrowed", "[precision]") {
  for (const char* scale :
       {"m = squeeze(x = s, axes = [0]);", "m = reshape(x = s, shape = [1, 1]);"})
    CHECK(
        PlanOf(std::string("func main<ios16>(tensor<fp32, [256, 256]> x, tensor<fp32, [1]> s) {") +
               scale +
               "  q = matmul(x = x, y = x); d = real_div(x = q, y = m); f = round(x = d);"
               "  i = cast(x = f, dtype = \"int32\"); j = cast(x = i, dtype = \"fp32\");"
               "  r = mul(x = j, y = 0.1);"
               "} -> (r);")
            .wide.empty());
}

TEST_CASE("data movement preserves integral values, and fractions do not", "[precision]") {
  auto plan = [](const std::string& weights) {
    return PlanOf(
        "func main<ios16>(tensor<int32, [1, 256, 16, 16]> a, tensor<int32, [256, 512]> b) {"
        "  x = cast(x = a, dtype = \"fp32\"); f = cast(x = b, dtype = \"fp32\"); " +
        weights +
        "  w = reshape(x = v, shape = [256, 256, 1, 1]); r = conv(x = x, weight = w);"
        "} -> (r);");
  };
  const std::string moved = "m = slice_by_size(x = f, begin = [0, 0], size = [256, 256]);";
  CHECK(plan(moved + "v = transpose(x = m, perm = [1, 0]);").wide.contains("r"));
  CHECK(plan(moved + "v = add(x = m, y = 1.0);").wide.contains("r"));
  CHECK(plan(moved + "v = add(x = m, y = 0.5);").narrow.contains("r"));
  CHECK(plan("t = tanh(x = f); v = slice_by_size(x = t, begin = [0, 0], size = [256, 256]);")
            .narrow.contains("r"));
}

TEST_CASE("operations whose rows prove an overflow stay in fp32, others do not", "[precision]") {
  for (int size : {64, 256}) {
    auto plan = [&](const std::string& body) {
      return PlanOf(
          fmt::format("func main<ios16>(tensor<fp32, [{0}, {0}]> x, tensor<fp32, [{0}, {0}]> w) {{ "
                      "{1} }} -> (r);",
                      size, body));
    };
    Plan sum = plan(
        "s = sigmoid(x = x); m = mul(x = s, y = 60000.0); a = add(x = m, y = 10000.0);"
        "h = mul(x = a, y = 0.5); r = tanh(x = h);");
    CHECK(sum.narrow == Names{"s", "m", "r"});
    CHECK(sum.wide.at("a") == "its values reach 70000, which exceeds the range of fp16");
    Plan square =
        plan("c = clip(x = x, alpha = 0.0, beta = 300.0); q = square(x = c); r = exp(x = x);");
    CHECK(square.narrow == Names{"c", "r"});
    // 255 squared fits; a product rarely reaches its bound; x is unbounded.
    CHECK(plan("c = clip(x = x, alpha = 0.0, beta = 255.0); r = square(x = c);").wide.empty());
    CHECK(
        plan("c = clip(x = x, alpha = 0.0, beta = 6.0); d = clip(x = w, alpha = 0.0, beta = 200.0);"
             "r = matmul(x = c, y = d);")
            .wide.empty());
    CHECK(plan("m = mul(x = x, y = 60000.0); r = add(x = m, y = 10000.0);").wide.empty());
  }
}

TEST_CASE("a mean of squares minus the squared mean stays in fp32 with its operands",
          "[precision]") {
  for (const char* variance :
       {"m = reduce_mean(x = p, axes = [1], keep_dims = true); q = mul(x = p, y = p);"
        "s = reduce_mean(x = q, axes = [1], keep_dims = true); t = mul(x = m, y = m);",
        "n = reduce_sum(x = p, axes = [1], keep_dims = true); m = real_div(x = n, y = 256.0);"
        "q = reduce_sum_square(x = p, axes = [1], keep_dims = true); s = mul(x = q, y = "
        "0.00390625);"
        "t = pow(x = m, y = 2.0);",
        "n = reduce_sum(x = p, axes = [1], keep_dims = true); q = square(x = p);"
        "m = reduce_sum(x = q, axes = [1], keep_dims = true); s = mul(x = m, y = 256.0);"
        "t = square(x = n);",
        "m = reduce_l2_norm(x = p, axes = [1], keep_dims = true); q = square(x = m);"
        "s = mul(x = q, y = 0.00390625);"
        "n = reduce_mean(x = p, axes = [1], keep_dims = true); t = square(x = n);"}) {
    std::string text = fmt::format(
        "func main<ios16>(tensor<fp32, [256, 256]> x) {{"
        "  o = exp(x = x); p = matmul(x = o, y = o); {}"
        "  v = sub(x = s, y = t); e = add(x = v, y = 1e-5); r = sqrt(x = e); d = real_div(x = p, y "
        "= r);"
        "}} -> (d);",
        variance);
    INFO(text);
    Plan plan = PlanOf(text);
    for (const char* wide : {"p", "m", "q", "s", "t", "v", "e", "r"})
      CHECK(plan.wide.contains(wide));
    CHECK(plan.narrow == Names{"o", "d"});
  }
  // The mean of squares of one value and the mean of another.
  Plan plan = PlanOf(
      "func main<ios16>(tensor<fp32, [256, 256]> x) {"
      "  y = tanh(x = x); q = square(x = y); s = reduce_mean(x = q, axes = [1]);"
      "  m = reduce_mean(x = x, axes = [1]); t = square(x = m); d = sub(x = s, y = t);"
      "} -> (d);");
  CHECK(plan.wide.empty());
}

TEST_CASE("sums of squares and a product of the same values stay in fp32", "[precision]") {
  auto plan = [](const std::string& body) {
    return PlanOf(
        "func main<ios16>(tensor<fp32, [256, 64]> x, tensor<fp32, [256, 64]> z) {"
        "  n = reduce_sum_square(x = x, axes = [1], keep_dims = true);" +
        body + "r = sqrt(x = d); } -> (r);");
  };
  const std::string product = "p = matmul(x = x, y = z, transpose_y = true); ";
  const std::string other = "m = reduce_sum_square(x = z, axes = [1]); ";
  for (const std::string& distance : std::vector<std::string>{
           product + other +
               "t = mul(x = p, y = -2.0); s = add(x = n, y = t); d = add(x = s, y = m);",
           product + other +
               "t = mul(x = p, y = 2.0); s = add(x = n, y = m); d = sub(x = s, y = t);",
           "tensor<fp32, [256, 64]> w = const()[val = fill(2.0)];"
           "tensor<fp32, [256]> b = const()[val = fill(128.0)];"
           "p = linear(x = x, weight = w, bias = b); d = sub(x = n, y = p);"}) {
    INFO(distance);
    Plan of = plan(distance);
    for (const char* wide : {"n", "p", "d", "r"}) CHECK(of.wide.contains(wide));
    CHECK(of.narrow.empty());
  }
  // A product of other values does not cancel.
  CHECK(
      plan("y = tanh(x = x); p = matmul(x = y, y = z, transpose_y = true); d = add(x = n, y = p);")
          .narrow.contains("p"));
}

TEST_CASE("sums of squares and of many magnitudes stay in fp32 unless they are proved small",
          "[precision]") {
  auto plan = [](const std::string& body) {
    return PlanOf("func main<ios16>(tensor<fp32, [256, 1024]> x) {" + body + "} -> (r);");
  };
  CHECK(plan("q = square(x = x); s = reduce_mean(x = q, axes = [1]); h = mul(x = s, y = 0.5);"
             "r = tanh(x = h);")
            .wide.size() == 4);
  CHECK(plan("s = reduce_sum_square(x = x, axes = [1]); r = tanh(x = s);").narrow.empty());
  CHECK(plan("s = reduce_l1_norm(x = x, axes = [1]); r = tanh(x = s);").narrow.empty());
  // Pooling by a mean of powers: 41 cubed is infinite in fp16.
  CHECK(plan("c = clip(x = x, alpha = 1e-6, beta = 1e4); p = pow(x = c, y = 3.0);"
             "m = reduce_mean(x = p, axes = [1]); r = pow(x = m, y = 0.33333);")
            .narrow == Names{"c"});
  CHECK(plan("q = relu(x = x); s = reduce_sum(x = q, axes = [1]); r = tanh(x = s);").narrow ==
        Names{"q"});
  CHECK(PlanOf(
            "func main<ios16>(tensor<fp32, [1, 8, 64, 64]> x) {"
            "  q = square(x = x); r = avg_pool(x = q, kernel_sizes = [2, 2], pad_type = \"valid\");"
            "} -> (r);")
            .narrow.empty());
  // Narrowed if they depend on a product and the measured values are far below the limit of fp16.
  auto measured = [](const std::string& product, std::map<std::string, double> reached) {
    reached.insert({{"x", 3}, {"p", 40}, {"r", 1}});
    return PlanOf("func main<ios16>(tensor<fp32, [256, 256]> x) {p = " + product +
                      "q = square(x = p); s = reduce_mean(x = q, axes = [1]); r = tanh(x = s);} -> "
                      "(r);",
                  {.reached = reached})
        .wide;
  };
  const std::string product = "matmul(x = x, y = x);";
  CHECK(measured(product, {{"q", 1600}, {"s", 100}}).empty());
  CHECK(measured(product, {{"q", 2500}, {"s", 100}}).contains("q"));
  CHECK(measured(product, {{"q", 1600}}).contains("s"));
  CHECK(measured("mul(x = x, y = 13.0);", {{"q", 1600}, {"s", 100}}).contains("q"));
  for (const char* safe :
       {"h = tanh(x = x); q = square(x = h); r = reduce_sum(x = q, axes = [1]);",
        "c = clip(x = x, alpha = 0.0, beta = 40.0); p = pow(x = c, y = 3.0);"
        "m = reduce_mean(x = p, axes = [1]); r = pow(x = m, y = 0.33333);",
        "h = sigmoid(x = x); r = reduce_l1_norm(x = h, axes = [1]);",
        "r = reduce_sum(x = x, axes = [1]);",
        "h = relu(x = x); r = reduce_mean(x = h, axes = [1]);",
        "a = abs(x = x); m = reduce_max(x = a, axes = [1], keep_dims = true);"
        "h = real_div(x = x, y = m); q = square(x = h); r = reduce_sum(x = q, axes = [1]);"})
    CHECK(plan(safe).wide.empty());
}

TEST_CASE("a division by a product of norms stays in fp32 with the product", "[precision]") {
  for (const char* product : {"matmul(x = n, y = m)", "mul(x = n, y = m)"}) {
    Plan plan = PlanOf(
        fmt::format("func main<ios16>(tensor<fp32, [256, 64]> x, tensor<fp32, [64, 256]> z) {{"
                    "  n = reduce_l2_norm(x = x, axes = [1], keep_dims = true);"
                    "  m = reduce_l2_norm(x = z, axes = [0], keep_dims = true);"
                    "  d = matmul(x = x, y = z); p = {}; b = maximum(x = p, y = 1e-8); r = "
                    "real_div(x = d, y = b);"
                    "}} -> (r);",
                    product));
    CHECK(plan.narrow == Names{"n", "m"});
  }
  Plan plan = PlanOf(
      "func main<ios16>(tensor<fp32, [256, 64]> x, tensor<fp32, [64, 256]> z) {"
      "  d = matmul(x = x, y = z); e = exp(x = d); p = mul(x = d, y = e); r = real_div(x = d, y = "
      "p);"
      "} -> (r);");
  CHECK(plan.wide.empty());
}

TEST_CASE("subtraction of a large mean stays in fp32 unless a product comes before it",
          "[precision]") {
  // Next to a product, since the work is limited to 5 %.
  auto plan = [](const std::string& body) {
    return PlanOf("func main<ios16>(tensor<fp32, [1, 2, 128, 128]> x) {" + body +
                  "other = matmul(x = x, y = x, transpose_x = true); } -> (r, other);");
  };
  CHECK(PlanOf("func main<ios16>(tensor<fp32, [1, 2, 128, 128]> x) {"
               "d = sub(x = x, y = 500.0); r = real_div(x = d, y = 2.0);} -> (r);")
            .wide.empty());
  const Names narrow = {"r", "other"};
  std::string norm =
      "n = batch_norm(x = {}, mean = [1.0, {}], variance = [1.0, 4.0], gamma = [1.0, {}]);"
      "r = tanh(x = n);";
  CHECK(
      plan("h = mul(x = x, y = 2.0);" + fmt::format(fmt::runtime(norm), "h", 100.0, 1.0)).narrow ==
      narrow);
  CHECK(plan(fmt::format(fmt::runtime(norm), "x", 30.0, 1.0)).wide.empty());
  CHECK(plan(fmt::format(fmt::runtime(norm), "x", 100.0, 0.001)).wide.empty());  // negligible
  CHECK(plan("h = matmul(x = x, y = x);" + fmt::format(fmt::runtime(norm), "h", 100.0, 1.0))
            .wide.empty());
  CHECK(plan("d = sub(x = x, y = 500.0); r = real_div(x = d, y = 2.0);").narrow == narrow);
  CHECK(plan("d = sub(x = x, y = [[[500.0]], [[400.0]]]); r = tanh(x = d);").narrow == narrow);
  CHECK(plan("d = add(x = x, y = -500.0); r = tanh(x = d);").wide.empty());
  CHECK(plan("d = sub(x = x, y = 127.5); r = real_div(x = d, y = 128.0);").wide.empty());
  CHECK(plan("d = sub(x = x, y = 127.5); r = mul(x = d, y = 0.0078125);").wide.empty());
}

// A loop that carries b and steps; `body` computes g from d, which is the parameter of b.
std::string Loop(std::string_view body, std::string_view after) {
  return fmt::format(
      "func main<ios16>(tensor<fp32, [256, 256]> x, bool p) {{"
      "  a = matmul(x = x, y = x); h = exp(x = a);"
      "  n, y = while_loop(loop_vars = (const int32(0), h))"
      "    (int32 i, tensor<fp32, [256, 256]> b) {{ c = less(x = i, y = 3); }} -> (c)"
      "    (int32 j, tensor<fp32, [256, 256]> d) {{ k = add(x = j, y = 1); {} }} -> (k, g);"
      "  {}"
      "}} -> (z);",
      body, after);
}

TEST_CASE("precision requirements cross block boundaries", "[precision]") {
  // All operations are narrowed.
  Plan plan = PlanOf(Loop("e = matmul(x = d, y = x); g = add(x = e, y = x);", "z = relu(x = y);"));
  CHECK(plan.narrow == Names{"a", "h", "e", "g", "z"});
  // From outside a loop, through its loop-carried values, back to the product before it.
  plan = PlanOf(Loop("e = tanh(x = d); g = add(x = e, y = x);", "z = floor(x = y);"));
  CHECK(plan.narrow.empty());
  CHECK(plan.wide.size() == 5);
  plan = PlanOf(Loop("e = matmul(x = d, y = d); g = tanh(x = e);", "z = floor(x = y);"));
  CHECK(plan.wide.size() == 5);  // a is carried too, since the loop may not run
  // From outside into a loop.
  plan = PlanOf(Loop("e = sin(x = d); g = matmul(x = e, y = x);", "z = relu(x = y);"));
  CHECK(plan.narrow == Names{"a", "h", "g", "z"});
}

TEST_CASE("accumulators of a loop stay in fp32, values that it recomputes do not", "[precision]") {
  Plan plan = PlanOf(Loop("e = tanh(x = x); g = add(x = d, y = e);", "z = relu(x = y);"));
  CHECK(plan.narrow == Names{"a", "h", "e", "z"});
  plan = PlanOf(Loop("e = mul(x = d, y = 0.9); g = add(x = e, y = x);", "z = relu(x = y);"));
  CHECK(plan.narrow == Names{"a", "h", "z"});
  plan = PlanOf(Loop("e = matmul(x = d, y = x); g = tanh(x = e);", "z = relu(x = y);"));
  CHECK(plan.wide.empty());
}

TEST_CASE("the factor of a loop-carried value stays in fp32", "[precision]") {
  Plan plan = PlanOf(Loop(
      "e = mul(x = x, y = -0.5); f = exp(x = e); m = mul(x = d, y = f); g = add(x = m, y = x);",
      "z = relu(x = y);"));
  CHECK(plan.narrow == Names{"a", "h", "z"});
  CHECK(plan.wide.contains("e"));
  CHECK(plan.wide.contains("f"));
  // Neither a function without a rounding error in fp16 nor an addend stays in fp32.
  plan = PlanOf(
      Loop("f = sigmoid(x = x); m = mul(x = d, y = f); e = exp(x = x); g = add(x = m, y = e);",
           "z = relu(x = y);"));
  CHECK(!plan.wide.contains("f"));
  CHECK(!plan.wide.contains("e"));
}

TEST_CASE("a loop-carried buffer is not cast in each iteration", "[precision]") {
  Plan plan =
      PlanOf(Loop("e = slice_by_index(x = x, begin = [0, 0], end = [1, 256]);"
                  "g = scatter(data = d, indices = [0], updates = e, axis = 0, mode = \"update\");",
                  "z = relu(x = y);"));
  CHECK(plan.narrow == Names{"a", "h", "e", "z"});
  CHECK(plan.wide.contains("g"));
}

TEST_CASE("integral values are tracked through blocks", "[precision]") {
  std::string text = Loop(
      "l = cast(x = j, dtype = \"fp32\"); m = mul(x = l, y = 0.5); o = floor(x = m);"
      "q = equal(x = o, y = 1.0); g = select(cond = q, a = d, b = x);",
      "z = relu(x = y);");
  Plan plan = PlanOf(text);
  CHECK(plan.wide.contains("m"));
  CHECK(plan.wide.contains("o"));
}

TEST_CASE("front ends stay in fp32 up to the next product with weights", "[precision]") {
  // A spectrogram: frames by a product with weights, squares, a logarithm, and a scale.
  const auto plan = [](const std::string& square, const std::string& last, Asked asked = {}) {
    return PlanOf(
        "func main<ios16>(tensor<fp32, [8, 2]> x) {"
        "  w = const()[val = tensor<fp32, [4, 2]>([[1.0, 1.0], [1.0, -1.0], [1.0, 2.0], [-1.0, "
        "1.0]])];"
        "  v = const()[val = tensor<fp32, [2, 4]>([[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0]])];"
        "  f = linear(x = x, weight = w);" +
            square + "c = maximum(x = s, y = 1e-10); l = log(x = c);" +
            "m = reduce_max(x = l, axes = [0, 1], keep_dims = true);"
            "n = sub(x = l, y = m); a = mul(x = n, y = 0.25);" +
            last + "} -> (y);",
        std::move(asked));
  };
  const std::string squares = "s = mul(x = f, y = f);";
  CHECK(plan(squares, "y = add(x = a, y = 1.0);").narrow.empty());
  const Plan network = plan(squares, "p = linear(x = a, weight = v); y = tanh(x = p);");
  CHECK(network.narrow == Names{"p", "y"});
  CHECK_THAT(network.wide.at("a"), ContainsSubstring("front end"));
  // So do a division by the number of frames, and sums of squares, whose overflow is no more than an estimate
  // that measuring overrules elsewhere.
  const Plan normed = plan(
      squares,
      "q = mul(x = a, y = a); t = reduce_sum(x = q, axes = [0], keep_dims = true); z = shape(x = "
      "a);"
      "i = slice_by_index(x = z, begin = [0], end = [1], squeeze_mask = [true]);"
      "j = cast(x = i, dtype = \"fp32\"); d = real_div(x = t, y = j); y = real_div(x = a, y = d);",
      {.reached = {{"x", 3}, {"f", 3}, {"s", 9}, {"l", 2}, {"a", 2}, {"q", 4}, {"t", 32}}});
  CHECK(normed.narrow.empty());
  // Features that pass through other operations before the logarithm are those of a network, whose
  // own rounding exceeds that of the operations after it.
  CHECK(plan("t = tanh(x = f); s = mul(x = t, y = t);", "y = add(x = a, y = 1.0);").narrow ==
        Names{"a", "f", "m", "n", "t", "y"});
  // Without weights there is no front end.
  CHECK(plan("s = mul(x = x, y = x);",
             "u = reduce_sum(x = f, axes = [0, 1], keep_dims = true); y = add(x = a, y = u);")
            .narrow.contains("a"));
}

}  // namespace mlc::test
