#include "lib/analysis/generated_inputs.h"

#include <algorithm>
#include <set>

#include "lib/engine/engine.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::test {
using namespace analysis;
namespace {

Program Parse(const std::string& inputs, const std::string& body, const std::string& output = "y") {
  return ParseText("func main<ios18>(" + inputs + ") {\n" + body + "\n} -> (" + output + ");",
                   "test.mil", Ops());
}

InputRange RangeOf(const Program& program, const std::string& name, SymbolSizes sizes = {}) {
  return InputRanges(*program.main(), sizes).at(name);
}
std::string Text(const Program& program, const std::string& name, SymbolSizes sizes = {}) {
  return Describe(RangeOf(program, name, std::move(sizes)));
}

Tensor Made(const Program& program, const std::string& name, int sample,
            const std::map<std::string, Tensor>& given = {}) {
  return GenerateInputs(*program.main(), given, {.sample = sample}).tensors.at(name);
}

std::set<double> Values(const Tensor& tensor) {
  std::vector<double> values = tensor.Doubles();
  return {values.begin(), values.end()};
}

// Runs 16 samples and returns the number of elements of the first output that are not finite.
int64_t NotFinite(const Program& program) {
  int64_t count = 0;
  for (int sample = 0; sample < 16; ++sample) {
    auto results =
        engine::Execute(program, GenerateInputs(*program.main(), {}, {.sample = sample}).tensors);
    for (double value : results.at(program.main()->body.outputs()[0]->name).Doubles())
      count += !std::isfinite(value);
  }
  return count;
}

const std::string kTable = "tensor<fp32, [100, 4]> t";

}  // namespace

TEST_CASE("generated inputs: default ranges") {
  Program p = Parse("tensor<fp32, [4]> x, tensor<int32, [4]> n, tensor<uint8, [4]> u",
                    "y = relu(x = x); m = add(x = n, y = n); v = cast(x = u, dtype = \"fp32\");",
                    "y, m, v");
  CHECK(Text(p, "x") == "N(0, 1)");
  CHECK(Text(p, "n") == "-9..9");
  CHECK(Text(p, "u") == "0..255");
  CHECK(RangeOf(p, "x").why.empty());
}

TEST_CASE("generated inputs: values that do not depend on inputs are known") {
  Program p = Parse("tensor<bool, [4]> m, tensor<fp32, [4]> x",
                    "f = real_div(x = [-1.0], y = [0.0]); y = select(cond = m, a = x, b = f);");
  CHECK(RangeOf(p, "m").valid == 1);
}

TEST_CASE("generated inputs: indices of a table") {
  Program p = Parse(kTable + ", tensor<int32, [8]> i", "y = gather(x = t, indices = i, axis = 0);");
  CHECK(Text(p, "i") == "0..99");
  CHECK(RangeOf(p, "i").why == "rows selected by gather \"y\"");
  // Another axis has another size.
  CHECK(Text(Parse(kTable + ", tensor<int32, [8]> i", "y = gather(x = t, indices = i, axis = -1);"),
             "i") == "0..3");
  // 16 samples of 8 cover every row.
  std::set<double> rows;
  for (int sample = 0; sample < 16; ++sample)
    for (double row : Values(Made(p, "i", sample))) rows.insert(row);
  CHECK(rows.size() == 100);
  CHECK(*rows.begin() == 0);
  CHECK(*rows.rbegin() == 99);
}

TEST_CASE("generated inputs: bounds are propagated through data movement, casts and arithmetic") {
  auto index = [](const std::string& body) {
    return Text(Parse(kTable + ", tensor<int32, [8]> i",
                      body + " y = gather(x = t, indices = j, axis = 0);"),
                "i");
  };
  CHECK(index("j = reshape(x = i, shape = [2, 4]);") == "0..99");
  CHECK(index("a = expand_dims(x = i, axes = [0]); j = tile(x = a, reps = [3, 1]);") == "0..99");
  CHECK(index("a = cast(x = i, dtype = \"int16\"); j = cast(x = a, dtype = \"int32\");") ==
        "0..99");
  CHECK(index("j = slice_by_index(x = i, begin = [0], end = [4]);") == "0..99");
  CHECK(index("j = add(x = i, y = 2);") == "-2..97");
  CHECK(index("j = sub(x = 99, y = i);") == "0..99");
  CHECK(index("j = mul(x = i, y = 3);") == "0..33");
  CHECK(index("j = floor_div(x = i, y = 2);") == "0..199");
  CHECK(index("j = add(x = i, y = [0, 0, 0, 0, 0, 0, 0, 20]);") == "0..79");
  // Clamped values may lie outside, and do.
  CHECK(index("a = maximum(x = i, y = 0); j = minimum(x = a, y = 99);") == "-1..100");
  // The common form of negative indices.
  CHECK(index("n = less(x = i, y = 0); a = add(x = i, y = 100); "
              "j = select(cond = n, a = a, b = i);") == "-100..99");
  // With two tables, the smaller one counts.
  CHECK(Text(Parse(kTable + ", tensor<fp32, [7, 4]> s, tensor<int32, [8]> i",
                   "a = gather(x = t, indices = i, axis = 0); b = gather(x = s, indices = i, axis "
                   "= 0); y = add(x = a, y = b);"),
             "i") == "0..6");
}

TEST_CASE("generated inputs: index vectors have a range per position") {
  Program p = Parse("tensor<fp32, [3, 50, 2]> t, tensor<int32, [40, 2]> i",
                    "y = gather_nd(x = t, indices = i);");
  InputRange range = RangeOf(p, "i");
  REQUIRE(range.parts.size() == 2);
  CHECK(range.parts[0].second == 2);
  CHECK(range.parts[1].second == 49);
  Tensor i = Made(p, "i", 1);
  double most[2] = {0, 0};
  for (int64_t k = 0; k < i.size(); ++k) most[k % 2] = std::max(most[k % 2], i.Double(k));
  CHECK(most[0] == 2);
  CHECK(most[1] > 30);
  Program joined =
      Parse("tensor<fp32, [3, 50, 2]> t, tensor<int32, [40, 1]> a, tensor<int32, [40, 1]> b",
            "i = concat(values = (a, b), axis = -1); y = gather_nd(x = t, indices = i);");
  CHECK(Text(joined, "a") == "0..2");
  CHECK(Text(joined, "b") == "0..49");
}

TEST_CASE("generated inputs: classes, lengths, positions, thresholds, divisors") {
  CHECK(Text(Parse("tensor<int32, [4]> i", "y = one_hot(indices = i, one_hot_vector_size = 12);"),
             "i") == "0..11");
  // Lengths of a sequence of 6 steps: n > step.
  CHECK(Text(Parse("tensor<int32, [2, 1]> n", "y = less(x = [[0, 1, 2, 3, 4, 5]], y = n);"), "n") ==
        "1..6");
  // Positions: step <= n.
  CHECK(Text(Parse("tensor<int32, [2, 1]> n", "y = less_equal(x = [[0, 1, 2, 3, 4, 5]], y = n);"),
             "n") == "0..5");
  CHECK(Text(Parse("tensor<int32, [4]> n", "y = greater(x = n, y = 7);"), "n") == "7..8");
  CHECK(Text(Parse("tensor<int32, [4]> n", "y = less(x = n, y = 7);"), "n") == "6..7");
  CHECK(Text(Parse("tensor<int32, [4]> n", "y = floor_div(x = 7, y = n);"), "n") == "1..9");
}

TEST_CASE("generated inputs: slices are never empty") {
  Program p = Parse("tensor<fp32, [9, 5]> x, tensor<int32, [2]> b, tensor<int32, [2]> e",
                    "y = slice_by_index(x = x, begin = b, end = e);");
  for (int sample = 0; sample < 16; ++sample) {
    Tensor b = Made(p, "b", sample), e = Made(p, "e", sample);
    for (int d = 0; d < 2; ++d) {
      CHECK(b.Int(d) >= 0);
      CHECK(b.Int(d) < e.Int(d));
      CHECK(e.Int(d) <= (d ? 5 : 9));
    }
  }
  auto range = [](const std::string& slice) {
    return Text(Parse("tensor<fp32, [9]> x, tensor<int32, [1]> n", slice), "n");
  };
  CHECK(range("y = slice_by_index(x = x, begin = n, end = [7]);") == "0..6");
  CHECK(range("y = slice_by_index(x = x, begin = n, end = [0], end_mask = [true]);") == "0..8");
  CHECK(range("y = slice_by_index(x = x, begin = [2], end = n);") == "3..9");
  CHECK(range("y = slice_by_size(x = x, begin = n, size = [4]);") == "0..5");
  CHECK(range("y = slice_by_size(x = x, begin = [3], size = n);") == "1..6");
  CHECK(range("u = slice_by_index(x = x, begin = [0], end = [4]); m = add(x = n, y = 4); "
              "y = slice_update(x = x, update = u, begin = n, end = m);") == "0..5");
}

TEST_CASE("generated inputs: images and other scales") {
  auto range = [](const std::string& body) {
    return Text(Parse("tensor<fp32, [1, 3, 8, 8]> x", body), "x");
  };
  CHECK(range("y = mul(x = x, y = 0.003921569);") == "0..255");
  CHECK(range("y = real_div(x = x, y = 255.0);") == "0..255");
  CHECK(range("a = sub(x = x, y = 127.5); y = mul(x = a, y = 0.0078125);") == "0..255");
  CHECK(range("y = sub(x = x, y = [[[[123.0]], [[117.0]], [[104.0]]]]);") == "0..255");
  CHECK(range("y = mul(x = x, y = 0.5);") == "N(0, 1)");
  CHECK(Text(Parse("tensor<fp32, [1, 512]> x", "y = mul(x = x, y = 0.000030517578125);"), "x") ==
        "-65536..65536");
  CHECK(range("y = clip(x = x, alpha = 0.0, beta = 96.0);") == "-6..102");
}

TEST_CASE("generated inputs: 8-bit types take all values unless a scale restricts them") {
  auto range = [](const std::string& type, const std::string& scaled) {
    return Text(Parse("tensor<" + type + ", [1, 3, 8, 8]> x",
                      "f = cast(x = x, dtype = \"fp32\"); s = sub(x = f, y = 119.0); " + scaled),
                "x");
  };
  CHECK(range("uint8", "y = relu(x = s);") == "0..255");
  CHECK(range("uint8", "y = mul(x = s, y = 0.05);") == "79..159");
  CHECK(range("int32", "y = relu(x = s);") == "117..121");
}

TEST_CASE("generated inputs: functions with a restricted domain") {
  CHECK(Text(Parse("tensor<fp32, [8]> x", "y = sqrt(x = x);"), "x") == "0 + |N(0, 1)|");
  CHECK(NotFinite(Parse("tensor<fp32, [8]> x", "y = sqrt(x = x);")) == 0);
  CHECK(NotFinite(Parse("tensor<fp32, [8]> x", "y = log(x = x, epsilon = 0.0);")) == 0);
  CHECK(NotFinite(Parse("tensor<fp32, [8]> x", "a = sub(x = 1.0, y = x); y = acos(x = a);")) == 0);
  CHECK(NotFinite(Parse("tensor<fp32, [8]> x", "y = pow(x = x, y = 0.5);")) == 0);
  // Powers with integer exponents are defined everywhere.
  CHECK(Text(Parse("tensor<fp32, [8]> x", "y = pow(x = x, y = 2.0);"), "x") == "N(0, 1)");
}

TEST_CASE("generated inputs: attention masks leave a valid position in every row") {
  // 1 marks valid positions.
  std::string scores = "tensor<fp32, [2, 6]> s, tensor<int32, [2, 6]> m";
  Program one = Parse(scores,
                      "f = cast(x = m, dtype = \"fp32\"); a = sub(x = 1.0, y = f); "
                      "b = mul(x = a, y = -10000.0); c = add(x = s, y = b); "
                      "y = softmax(x = c, axis = -1);");
  // 1 marks masked positions.
  Program zero = Parse("tensor<fp32, [2, 6]> s, tensor<bool, [2, 6]> m",
                       "c = select(cond = m, a = -3e38, b = s); y = softmax(x = c, axis = -1);");
  CHECK(RangeOf(one, "m").valid == 1);
  CHECK(RangeOf(zero, "m").valid == 0);
  CHECK(Text(one, "m") == "0 or 1");
  for (auto [program, valid] : {std::pair{&one, 1.0}, {&zero, 0.0}}) {
    bool both = false;
    for (int sample = 0; sample < 16; ++sample) {
      Tensor m = Made(*program, "m", sample);
      both = both || Values(m).size() == 2;
      for (int64_t row = 0; row < 2; ++row) CHECK(Values(m.Rows(row, row + 1)).contains(valid));
    }
    CHECK(both);
  }
  // A token that is compared with the padding is still a token.
  CHECK(Text(Parse(kTable + ", tensor<int32, [8]> i",
                   "y = gather(x = t, indices = i, axis = 0); p = equal(x = i, y = 0);", "y, p"),
             "i") == "0..99");
}

TEST_CASE("generated inputs: a single boolean takes both values") {
  Program p = Parse("tensor<bool, []> b", "y = logical_not(x = b);");
  std::set<double> seen = Values(Made(p, "b", 0));
  for (double value : Values(Made(p, "b", 1))) seen.insert(value);
  CHECK(seen.size() == 2);
}

TEST_CASE("generated inputs: loops run a few iterations") {
  Program p = Parse("tensor<int32, []> n, tensor<fp32, [2]> x",
                    "i, y = while_loop(loop_vars = (0, x))\n"
                    "  (int32 c, tensor<fp32, [2]> a) {\n"
                    "    go = less(x = c, y = n);\n  } -> (go)\n"
                    "  (int32 e, tensor<fp32, [2]> f) {\n"
                    "    d = add(x = e, y = 1);\n    b = mul(x = f, y = 2.0);\n  } -> (d, b);");
  CHECK(Text(p, "n") == "0..4");
}

TEST_CASE("generated inputs: sizes range from the lower bound to the work limit") {
  Program p =
      Parse("tensor<fp32, [n, 1000]> x, tensor<fp32, [1000, 1000]> w", "y = matmul(x = x, y = w);");
  p.main()->symbols["n"].low = 2;
  p.main()->symbols["n"].high = 4096;
  CHECK(Made(p, "x", 0).dims() == Dims{2, 1000});
  // A row costs a million multiply-adds: 999 rows stay below 1e9.
  int64_t most = Made(p, "x", 1).dims()[0];
  CHECK(most > 900);
  CHECK(most < 1000);
  for (int sample = 2; sample < 8; ++sample) {
    CHECK(Made(p, "x", sample).dims()[0] >= 2);
    CHECK(Made(p, "x", sample).dims()[0] <= most);
  }
  p.main()->symbols["n"].high = 8;
  CHECK(Made(p, "x", 1).dims()[0] == 8);
  p.main()->symbols["n"].enumerated = {2, 4, 8};
  CHECK(std::set<int64_t>{2, 4, 8}.contains(Made(p, "x", 5).dims()[0]));
  // The given input determines the remaining sizes.
  Program two = Parse("tensor<fp32, [n]> x, tensor<fp32, [n]> z", "y = add(x = x, y = z);");
  two.main()->symbols["n"].high = 64;
  CHECK(Made(two, "z", 1, {{"x", Tensor::Full(DType::kFp32, {5}, 1)}}).dims() == Dims{5});
  // A sum over a dynamic dimension counts with its size.
  Program square = Parse("tensor<fp32, [n, n]> x", "y = matmul(x = x, y = x);");
  square.main()->symbols["n"].high = 100000;
  CHECK(Made(square, "x", 1).dims()[0] <= 1000);
}

TEST_CASE("generated inputs: sizes are valid") {
  // After down- and upsampling only even sizes fit again.
  Program p = Parse("tensor<fp32, [1, 1, n, 8]> x",
                    "a = avg_pool(x = x, kernel_sizes = [2, 2], strides = [2, 2], pad_type = "
                    "\"valid\", pad = [0, 0, 0, 0]);"
                    " b = upsample_nearest_neighbor(x = a, scale_factor_height = 2, "
                    "scale_factor_width = 2); y = concat(values = (x, b), axis = 1);");
  p.main()->symbols["n"].low = 2;
  p.main()->symbols["n"].high = 99;
  std::set<int64_t> seen;
  for (int sample = 0; sample < 8; ++sample) {
    auto made = GenerateInputs(*p.main(), {}, {.sample = sample}).tensors;
    seen.insert(made.at("x").dims()[2]);
    CHECK(made.at("x").dims()[2] % 2 == 0);
    engine::Execute(p, made);
  }
  CHECK(seen.contains(2));
  CHECK(seen.contains(98));
  CHECK(seen.size() > 3);
}

TEST_CASE("generated inputs: sizes are valid in combination if the lower bounds are not") {
  const std::string pooled =
      "p = max_pool(x = x, kernel_sizes = [5, 9], strides = [1, 1], pad_type = \"valid\", "
      "pad = [0, 0, 0, 0]);";
  Program pool = Parse("tensor<fp32, [1, 1, n, m]> x", pooled + " y = relu(x = p);");
  const std::string reflected = "p = pad(x = x, pad = [0, 0, 4, 8], mode = \"reflect\");";
  Program pad = Parse("tensor<fp32, [1, 1, n, m]> x", reflected + " y = relu(x = p);");
  // One of two branches must be valid if data decides between them.
  Program either = Parse("bool c, tensor<fp32, [1, 1, n, m]> x",
                         "y = cond(pred = c) () { " + reflected +
                             " } -> (p) () { r = " + reflected.substr(4) + " } -> (r);");
  const std::pair<Program*, Dims> cases[] = {
      {&pool, {1, 1, 5, 9}}, {&pad, {1, 1, 1, 9}}, {&either, {1, 1, 1, 9}}};
  for (const auto& [program, dims] : cases) {
    for (const char* name : {"n", "m"}) program->main()->symbols[name].high = 64;
    CHECK(Made(*program, "x", 0).dims() == dims);
    CHECK(NotFinite(*program) == 0);
  }
}

TEST_CASE("generated inputs: seeds, samples and the caller's ranges") {
  Program p = Parse(kTable + ", tensor<int32, [8]> i", "y = gather(x = t, indices = i, axis = 0);");
  CHECK(Made(p, "t", 3).SameBytes(Made(p, "t", 3)));
  CHECK_FALSE(Made(p, "t", 3).SameBytes(Made(p, "t", 4)));
  CHECK_FALSE(Made(p, "t", 3).SameBytes(
      GenerateInputs(*p.main(), {}, {.seed = 1, .sample = 3}).tensors.at("t")));
  GeneratedInputs made =
      GenerateInputs(*p.main(), {}, {.ranges = {{"i", {5, 6}}, {"t", {10, 11.5}}}});
  CHECK(Values(made.tensors.at("i")) == std::set<double>{5, 6});
  CHECK(*Values(made.tensors.at("t")).begin() >= 10);
  CHECK(*Values(made.tensors.at("t")).rbegin() <= 11.5);
  CHECK(Describe(made.ranges.at("t")) == "10..11.5");
}

TEST_CASE("generated inputs: default number of samples") {
  CHECK(DefaultSamples(*Parse("tensor<fp32, [4]> x", "y = relu(x = x);").main()) == 16);
  CHECK(DefaultSamples(*Parse("tensor<fp32, [1000, 1000]> x, tensor<fp32, [1000, 1000]> w",
                              "y = matmul(x = x, y = w);")
                            .main()) == 2);
}

}  // namespace mlc::test
