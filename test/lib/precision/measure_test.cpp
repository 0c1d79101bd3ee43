#include "lib/verify/measure.h"

#include <cmath>

#include "lib/analysis/cost.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::test {
namespace {

// More elements than stay fp32 for being the last.
Program Computing(const std::string& operations) {
  return ParseText("func main<ios17>(tensor<fp32, [32768]> x) {\n" + operations + "\n} -> (y);",
                   "test.mil", Ops());
}

// Numbers from -3 to 3.
MeasureInputs Given() {
  std::vector<float> x(32768);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 3 * std::sin(0.37f * static_cast<float>(i));
  return {.steps = {{"main", {{{"x", Tensor::Of<float>({32768}, x)}}}}}};
}

// Those, and others that are the same but for their size.
MeasureInputs Samples(float size, int others = 8) {
  MeasureInputs inputs = Given();
  const Tensor x = inputs.steps["main"][0].at("x");
  for (int i = 0; i < others; ++i) {
    Pin<float> values = x.data<float>();
    std::vector<float> scaled(values.begin(), values.end());
    for (float& element : scaled) element *= size;
    inputs.steps["main"].push_back({{"x", Tensor::Of<float>({32768}, scaled)}});
  }
  return inputs;
}

struct Measured {
  Measurement measurement;
  std::map<std::string, std::string> wide;
  size_t warnings;
};

Measured Measure(const Program& program, MeasureOptions options = {.inputs = Given()},
                 PassContext::Precision precision = PassContext::Precision::kFp16,
                 std::vector<std::string> fp16_ops = {}) {
  std::vector<const PassDef*> all = DefaultPipeline();
  options.passes = {std::find(all.begin(), all.end(), &kFp16Precision), all.end()};
  Diagnostics diagnostics;
  PassContext context{diagnostics, precision, Opset::kIos17};
  context.fp16_ops = std::move(fp16_ops);
  Measurement measurement = MeasureFp16(program, context, options);
  return {measurement, context.measured, diagnostics.warnings().size()};
}

// Twelve steps that fp16 does well.
std::string Harmless(const std::string& from, const std::string& to) {
  std::string text, last = from;
  for (int i = 0; i < 12; ++i) {
    std::string next = i == 11 ? to : to + std::to_string(i);
    text += next + (i % 2 ? " = mul(x = " + last + ", y = 1.25);\n"
                          : " = add(x = " + last + ", y = 0.25);\n");
    last = next;
  }
  return text;
}

// Of 256 boxes the 16 of the greatest scores, which are sums of products that differ little; and a
// result that has nothing to do with them. `last` is made of boxes and scores.
std::string Selecting(const std::string& last) {
  std::string corners;
  for (int i = 0; i < 256; ++i)
    corners += fmt::format("{}[{}, {}, 0.5, 0.5]", i ? ", " : "", 2 * (i % 16), 2 * (i / 16));
  return Harmless("x", "before") + "rows = reshape(x = before, shape = [256, 128]);\n" +
         "products = matmul(x = rows, y = rows, transpose_y = true);\n"
         "sums = reduce_mean(x = products, axes = [1]);\n"
         "near = mul(x = sums, y = 1e-2);\nscaled = add(x = near, y = 1.0);\n"
         "scores = reshape(x = scaled, shape = [1, 256, 1]);\n"
         "boxes = const()[val = tensor<fp32, [1, 256, 4]>([[" +
         corners +
         "]])];\n"
         "kept, of, places, many = non_maximum_suppression(boxes = boxes, scores = scores, "
         "iou_threshold = 0.5, score_threshold = 0.0, max_boxes = 16);\n" +
         last + Harmless("x", "beside");
}

}  // namespace

TEST_CASE("measure: what boxes are selected by stays fp32 where others are selected in fp16") {
  auto measure = [](const std::string& output, PassContext::Precision precision, bool least) {
    Program program = ParseText("func main<ios16>(tensor<fp32, [32768]> x) {\n" + Selecting("") +
                                    "\n} -> (beside, " + output + ");",
                                "test.mil", Ops());
    return Measure(program, {.inputs = Given(), .least = least}, precision);
  };
  // Places are integers; boxes are only errors, which --precision mixed does not trust.
  for (const auto& [output, precision, least] :
       {std::tuple("places", PassContext::Precision::kFp16, false),
        std::tuple("kept", PassContext::Precision::kMixed, true)}) {
    CAPTURE(output);
    Measured found = measure(output, precision, least);
    CHECK_FALSE(found.measurement.plain.fits);
    CHECK(found.measurement.chosen.fits);
    CHECK_THAT(found.wide["before0"], ContainsSubstring("boxes are selected by what it makes"));
    CHECK(found.wide.contains("products"));
    CHECK_FALSE(found.wide.contains("beside0"));
  }
  // How many there are says nothing of which.
  CHECK(measure("many", PassContext::Precision::kFp16, false).wide.empty());
}

TEST_CASE("measure: what fp16 does well is left alone") {
  Measured found = Measure(Computing(Harmless("x", "y")));
  CHECK(found.measurement.not_measured.empty());
  CHECK(found.measurement.runs == 1);
  CHECK(found.measurement.plain.fits);
  CHECK(found.wide.empty());
}

TEST_CASE("measure: numbers that leave fp16 stay fp32 with what takes them") {
  Measured found = Measure(
      Computing("large = mul(x = x, y = 3e4);\nmoved = reshape(x = large, shape = [256, 128]);\n"
                "small = mul(x = moved, y = 1e-4);\ny = tanh(x = small);"));
  CHECK(found.measurement.not_measured == "");
  CHECK(found.measurement.chosen.fits);
  CHECK(found.wide.size() == 3);
  CHECK_THAT(found.wide["large"], ContainsSubstring("reach 9e+04 on the given inputs"));
  CHECK(found.wide.contains("small"));
  CHECK_FALSE(found.wide.contains("y"));
}

TEST_CASE("measure: numbers of which fp16 keeps few digits stay fp32 where that shows") {
  Measured found =
      Measure(Computing("tiny = mul(x = x, y = 1e-3);\nless = mul(x = tiny, y = 1e-4);\n"
                        "more = mul(x = less, y = 1e4);\ny = mul(x = more, y = 1e3);"));
  CHECK_FALSE(found.measurement.plain.fits);
  CHECK(found.measurement.not_measured == "");
  CHECK(found.measurement.chosen.fits);
  CHECK(found.wide.contains("less"));
  CHECK_THAT(found.wide["less"], ContainsSubstring("few digits"));
  CHECK_FALSE(found.wide.contains("tiny"));
  // The same numbers added to greater ones do no harm.
  CHECK(Measure(Computing("less = mul(x = x, y = 1e-7);\ny = add(x = x, y = less);")).wide.empty());
}

TEST_CASE("measure: who asks for fp16 overrules what he names, and nothing else") {
  const Program program = Computing(
      Harmless("x", "a") + "far = add(x = a, y = 3000.0);\nnear = sub(x = far, y = 3000.0);\n" +
      Harmless("near", "y"));
  const Measured chosen = Measure(program);
  const Measured asked =
      Measure(program, {.inputs = Given()}, PassContext::Precision::kFp16, {"far"});
  CHECK(asked.wide == chosen.wide);
  CHECK_FALSE(asked.measurement.chosen.fits);
  CHECK(asked.warnings == 1);
}

TEST_CASE("measure: elements that are judged one by one are measured, too") {
  MeasureOptions options{.inputs = Given(), .least = true};
  options.budgets = BudgetsFromJson(R"({"atol": 1e-3})", "test");
  Measured found = Measure(Computing(Harmless("x", "y")), options, PassContext::Precision::kMixed);
  CHECK(found.measurement.not_measured == "");
  CHECK(found.measurement.plain.kind == Measurement::Figure::Kind::kBeyond);
  CHECK(found.measurement.plain.value > 0);
  CHECK(found.measurement.plain.value <= 1);
  CHECK(found.measurement.plain.allowed == 0);
  CHECK(found.measurement.chosen.fits);
}

TEST_CASE("measure: why nothing could be compared") {
  auto why = [](const std::string& operations) {
    return Measure(Computing(operations)).measurement.not_measured;
  };
  CHECK(why("zero = mul(x = x, y = 0.0);\ny = exp(x = zero);") ==
        "each output is the same everywhere, or no number");
  CHECK(why("y = slice_by_index(x = x, begin = [0], end = [0]);") == "each output is empty");
}

TEST_CASE("measure: what fits by chance, with sums in one order, does not fit") {
  // Sums that are numbers of fp16, but for the order in which they are taken; a gate that makes a
  // difference in their last digit great.
  std::string rows;
  for (int i = 0; i < 128; ++i) {
    rows += i ? ", [" : "[";
    for (int j = 0; j < 128; ++j) rows += fmt::format("{}{}.0", j ? ", " : "", i == j ? 1 : 0);
    rows += "]";
  }
  const Program program = Computing(
      "rows = reshape(x = x, shape = [256, 128]);\nw = const()[val = tensor<fp32, [128, 128]>([" +
      rows +
      "])];\nsums = linear(x = rows, weight = w);\noff = sub(x = sums, y = rows);\n"
      "gate = mul(x = off, y = 1000.0);\nall = add(x = rows, y = gate);\n" +
      Harmless("all", "y"));
  std::vector<float> x(32768);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(1025 + i % 1000) / 2048;
  Measured found =
      Measure(program, {.inputs = {.steps = {{"main", {{{"x", Tensor::Of<float>({32768}, x)}}}}}}});
  CHECK(found.measurement.chosen.fits);
  CHECK(found.wide.contains("sums"));
  CHECK_FALSE(found.wide.contains("y"));
  CHECK(found.warnings == 0);
}

TEST_CASE("measure: bisection finds which operations do harm") {
  Measured found = Measure(Computing(Harmless("x", "a") +
                                     "far = add(x = a, y = 3000.0);\n"
                                     "near = sub(x = far, y = 3000.0);\n" +
                                     Harmless("near", "y")));
  CHECK_FALSE(found.measurement.plain.fits);
  CHECK(found.measurement.not_measured == "");
  CHECK(found.measurement.chosen.fits);
  CHECK(found.measurement.runs <= 12);
  CHECK(found.wide.contains("far"));
  CHECK(found.wide.contains("near"));
  CHECK(found.wide.size() <= 4);
  CHECK_THAT(found.wide["far"], ContainsSubstring("output \"y\" has an"));
  CHECK(found.warnings == 0);
}

TEST_CASE("measure: what makes truths of numbers is among what may do harm") {
  Measured found = Measure(
      Computing("rows = reshape(x = x, shape = [256, 128]);\n"
                "product = matmul(x = rows, y = rows, transpose_y = true);\n"
                "more = mul(x = product, y = 0.9999);\ny = greater(x = product, y = more);"));
  CHECK_FALSE(found.measurement.plain.fits);
  CHECK(found.measurement.chosen.fits);
  CHECK(found.wide.contains("y"));
  CHECK(found.warnings == 0);
}

TEST_CASE("measure: a figure near its budget is left alone where samples are alike") {
  // The error is the same whatever the inputs, so that it is the greater part of small ones.
  Program program = Computing("far = add(x = x, y = 20.0);\nnear = sub(x = far, y = 20.0);\n" +
                              Harmless("near", "y"));
  Measured alike = Measure(program, {.inputs = Samples(1)});
  CHECK(alike.measurement.plain.value > 0.7 * alike.measurement.plain.allowed);
  CHECK(alike.wide.empty());
  Measured unlike = Measure(program, {.inputs = Samples(2)});
  CHECK(unlike.measurement.plain.fits);
  CHECK(unlike.wide.contains("far"));
  CHECK_THAT(unlike.wide["far"], ContainsSubstring("leaves others too little"));
  CHECK(unlike.measurement.chosen.value < 0.7 * unlike.measurement.chosen.allowed);
}

TEST_CASE("measure: being sure of other inputs costs nothing where much is computed") {
  Program program = Computing("far = add(x = x, y = 20.0);\nnear = sub(x = far, y = 20.0);\n" +
                              Harmless("near", "y"));
  const double work = CostOf(*program.functions[0], {}).multiply_adds;
  const int affordable = static_cast<int>(5e7 / work);
  CHECK(Measure(program, {.inputs = Samples(3, affordable - 1)}).wide.contains("far"));
  CHECK(Measure(program, {.inputs = Samples(3, affordable + 1)}).wide.empty());
}

TEST_CASE("measure: numbers that are great in one sample of several may be greater in others") {
  auto program = [](const char* size) {
    return Computing(fmt::format(
        "large = mul(x = x, y = {});\nsmall = mul(x = large, y = 1e-3);\ny = tanh(x = small);",
        size));
  };
  CHECK(Measure(program("2000.0"), {.inputs = Samples(1)}).wide.empty());
  CHECK(Measure(program("2000.0"), {.inputs = Samples(0.05f)}).wide.contains("large"));
  // Below 4094 they are far from all that fp16 holds.
  CHECK(Measure(program("1000.0"), {.inputs = Samples(0.001f)}).wide.empty());
}

TEST_CASE("measure: inputs that disprove what was chosen are taken in") {
  Program program = Computing("far = add(x = x, y = 20.0);\nnear = sub(x = far, y = 20.0);\n" +
                              Harmless("near", "y"));
  MeasureInputs inputs = Samples(1);
  inputs.confirm = inputs.steps;
  CHECK(Measure(program, {.inputs = inputs}).wide.empty());
  inputs.confirm = Samples(0.1f).steps;
  for (bool least : {false, true}) {
    Measured found = Measure(program, {.inputs = inputs, .least = least});
    CHECK(found.wide.contains("near"));
    CHECK(found.measurement.chosen.fits);
    CHECK_FALSE(found.measurement.plain.fits);
    CHECK(found.warnings == 0);
  }
}

TEST_CASE("measure: an operation may have the name of a narrowed one") {
  Measured found =
      Measure(Computing("large_fp16 = exp(x = x);\nx_fp16 = mul(x = large_fp16, y = large_fp16);\n"
                        "more_fp16 = mul(x = x_fp16, y = 1e3);\ny = tanh(x = more_fp16);"));
  CHECK(found.measurement.chosen.fits);
  CHECK(found.wide.contains("more_fp16"));
  CHECK_FALSE(found.wide.contains("large_fp16"));
}

TEST_CASE("measure: mixed precision keeps the least and shows what else was tried") {
  MeasureOptions options{.inputs = Given()};
  options.least = true;
  std::string program = "far = add(x = x, y = 3000.0);\nnear = sub(x = far, y = 3000.0);\n" +
                        Harmless("near", "a") + Harmless("a", "b") +
                        "again = add(x = b, y = 3000.0);\ny = sub(x = again, y = 3000.0);";
  Measured found = Measure(Computing(program), options, PassContext::Precision::kMixed);
  CHECK(found.measurement.not_measured == "");
  CHECK(found.measurement.chosen.fits);
  for (const char* name : {"far", "near", "again", "y"}) CHECK(found.wide.contains(name));
  CHECK(found.wide.size() <= 6);  // the harmless ones between them are not kept
  const std::vector<Measurement::Point>& curve = found.measurement.curve;
  REQUIRE(curve.size() > 2);
  CHECK(curve.front().fp16_share < curve.back().fp16_share);
  CHECK_FALSE(curve.back().worst.fits);
}

TEST_CASE("measure: what does harm although the user wants it in fp16 is a warning") {
  std::vector<const PassDef*> all = DefaultPipeline();
  MeasureOptions options{.inputs = Given()};
  options.passes = {std::find(all.begin(), all.end(), &kFp16Precision), all.end()};
  Diagnostics diagnostics;
  PassContext context{diagnostics, PassContext::Precision::kFp16, Opset::kIos17};
  context.fp16_ops = {"add", "sub"};
  Measurement measurement = MeasureFp16(
      Computing("far = add(x = x, y = 3000.0);\ny = sub(x = far, y = 3000.0);"), context, options);
  CHECK_FALSE(measurement.chosen.fits);
  CHECK(measurement.runs <= options.most_runs);
  REQUIRE(diagnostics.warnings().size() == 1);
  CHECK_THAT(diagnostics.warnings()[0].text(), ContainsSubstring("as --fp16-ops asks"));
}

TEST_CASE("measure: what cannot be run or is too large is not measured, and says why") {
  CHECK_THAT(
      Measure(Computing("r = random_normal(shape = [32768], mean = 0.0, stddev = 1.0, seed = 1);\n"
                        "y = add(x = x, y = r);"),
              {})
          .measurement.not_measured,
      ContainsSubstring("random"));
  Program harmless = Computing(Harmless("x", "y"));
  CHECK_THAT(
      Measure(harmless, {.inputs = MakeUpMeasureInputs(harmless, 1000)}).measurement.not_measured,
      ContainsSubstring("multiply-adds"));
  CHECK_THAT(
      Measure(harmless, {.inputs = MakeUpMeasureInputs(harmless, 1e9, 4)}).measurement.not_measured,
      ContainsSubstring("MB of weights"));
  Measured found = Measure(harmless, {.inputs = MakeUpMeasureInputs(harmless)});
  CHECK(found.measurement.not_measured == "");
  CHECK(found.measurement.made_up);
}

TEST_CASE(
    "measure: what is too large for comparing is run for its range, up to ten times the work") {
  Program large = Computing(
      "squares = mul(x = x, y = x);\nlarge = mul(x = squares, y = 3e4);\n"
      "small = mul(x = large, y = 1e-4);\ny = tanh(x = small);");
  const double work = CostOf(*large.functions[0], {}).multiply_adds;
  for (double most : {work * 0.9, work * 0.11}) {
    Measured found = Measure(large, {.inputs = MakeUpMeasureInputs(large, most)});
    CHECK_THAT(found.measurement.not_measured, ContainsSubstring("multiply-adds"));
    CHECK(found.measurement.ranges);
    CHECK(found.measurement.runs == 0);
    CHECK(found.wide.size() == 2);
    CHECK_THAT(found.wide["large"], ContainsSubstring("on made-up inputs"));
  }
  Measured found = Measure(large, {.inputs = MakeUpMeasureInputs(large, work * 0.09)});
  CHECK_FALSE(found.measurement.ranges);
  CHECK(found.wide.empty());
}

TEST_CASE("measure: ranges are looked for up to 1.25 times the weights") {
  Program large = Computing(
      "squares = mul(x = x, y = x);\nlarge = mul(x = squares, y = 3e4);\n"
      "small = mul(x = large, y = 1e-4);\ntensor<fp32, [32768]> w = const()[val = fill(0.5)];\n"
      "y = add(x = small, y = w);");
  uint64_t weights = 0;
  ForEachOperation(*large.functions[0],
                   [&](Operation* op) { weights += op->val ? op->val.byte_size() : 0; });
  for (auto [part, ranges] : {std::pair(0.81, true), std::pair(0.79, false)}) {
    const auto most = static_cast<uint64_t>(static_cast<double>(weights) * part);
    Measured found = Measure(large, {.inputs = MakeUpMeasureInputs(large, 1e9, most)});
    CHECK_THAT(found.measurement.not_measured, ContainsSubstring("MB of weights"));
    CHECK(found.measurement.ranges == ranges);
    CHECK(found.wide.contains("large") == ranges);
  }
}

TEST_CASE("measure: at most 10,000 operations, of which one of many dimensions is several") {
  auto inputs = [](int operations, size_t rank) {
    std::string text = "func main<ios17>(tensor<fp32, [8]> x) {\n";
    for (int i = 0; i < operations; ++i)
      text += fmt::format("y{} = tanh(x = {});\n", i, i ? fmt::format("y{}", i - 1) : "x");
    Program program =
        ParseText(text + fmt::format("}} -> (y{});", operations - 1), "test.mil", Ops());
    Function& function = *program.functions[0];
    if (rank > 1) {  // which no text has
      function.body.inputs[0]->type.shape.assign(rank, 1);
      ForEachOperation(function, [&](Operation* op) { op->result()->type.shape.assign(rank, 1); });
    }
    return MakeUpMeasureInputs(program);
  };
  CHECK(inputs(10'000, 1).too_large.empty());
  CHECK(inputs(10'000, 1).steps.at("main").size() == 3);
  CHECK_THAT(inputs(10'001, 1).too_large, ContainsSubstring("10000 operations"));
  CHECK(inputs(10'001, 1).steps.empty());
  CHECK(inputs(100, 800).too_large.empty());
  CHECK_THAT(inputs(100, 808).too_large, ContainsSubstring("10000 operations"));
}

TEST_CASE("measure: the less a sample computes, the more there are") {
  auto inputs = [](const std::string& sizes, const std::string& operation) {
    return MakeUpMeasureInputs(ParseText(
        "func main<ios17>(tensor<fp32, [" + sizes + "]> x) {\ny = " + operation + ";\n} -> (y);",
        "test.mil", Ops()));
  };
  auto samples = [&](const std::string& sizes, const std::string& operation) {
    return inputs(sizes, operation).steps["main"].size();
  };
  auto more = [&](const std::string& sizes, const std::string& operation) {
    return inputs(sizes, operation).confirm["main"].size();
  };
  const std::string sum = "reduce_sum(x = x, axes = [-1])";
  CHECK(samples("8", "tanh(x = x)") == 256);
  CHECK(more("8", "tanh(x = x)") == 0);
  CHECK(samples("10000", "tanh(x = x)") == 19);  // which compute 11,250 elements' worth, of 40,000
  CHECK(samples("1000000", "tanh(x = x)") == 5);
  CHECK(more("1000000", "tanh(x = x)") == 11);
  CHECK(samples("1000000", sum) == 6);
  CHECK(more("1000000", sum) == 10);
  CHECK(samples("25000000", sum) == 1);
  CHECK(more("25000000", sum) == 1);
  CHECK_THAT(inputs("40000000", sum).too_large, ContainsSubstring("elements"));
  // Open sizes are of what the inputs take, too.
  CHECK(samples("n, 3, h, w", "reduce_max(x = x, axes = [1, 2, 3])") > 16);
}

TEST_CASE("measure: fewer samples confirm where each run packs many weights") {
  auto more = [](int layers) {
    std::string text = "func main<ios17>(tensor<fp32, [40, 1000]> y0) {\n";
    for (int i = 0; i < layers; ++i)
      text += fmt::format(
          "tensor<fp32, [1000, 1000]> w{0} = const()[val = fill(0.5)];\n"
          "y{1} = linear(x = y{0}, weight = w{0});\n",
          i, i + 1);
    return MakeUpMeasureInputs(
               ParseText(text + fmt::format("}} -> (y{});", layers), "test.mil", Ops()))
        .confirm["main"]
        .size();
  };
  CHECK(more(1) == 11);
  CHECK(more(24) == 0);
}

TEST_CASE("measure: the source is what outputs are compared with") {
  Program program = Computing(Harmless("x", "y"));
  auto measure = [&](const std::string& last) {
    return Measure(program,
                   {.inputs = Given(), .source = [&] {
                      return Computing(Harmless("x", "a") + "y = mul(x = a, y = " + last + ");");
                    }});
  };
  Measured same = measure("1.0");
  CHECK(same.warnings == 0);
  CHECK(same.measurement.plain.fits);
  Measured near = measure("1.0008");
  CHECK(near.warnings == 0);
  CHECK(near.measurement.plain.value > 1.5 * same.measurement.plain.value);
  // What is wrong in fp32 already is a warning, and no operation's fault.
  Measured other = measure("1.1");
  CHECK(other.warnings == 1);
  CHECK(other.wide.empty());
}

TEST_CASE("measure: a loop that runs long is not waited for") {
  auto measure = [](const std::string& rounds) {
    Program program = ParseText(
        "func main<ios17>(tensor<fp32, [4]> x) {\n"
        "  n, y = while_loop(loop_vars = (const int32(0), x))\n"
        "    (int32 i, tensor<fp32, [4]> a) {\n      more = less(x = i, y = " +
            rounds +
            ");\n    } -> (more)\n"
            "    (int32 j, tensor<fp32, [4]> b) {\n      k = add(x = j, y = 1);\n"
            "      c = mul(x = b, y = 0.5);\n    } -> (k, c);\n} -> (y);",
        "test.mil", Ops());
    return Measure(program, {.inputs = MakeUpMeasureInputs(program)}).measurement.not_measured;
  };
  CHECK(measure("100") == "");
  CHECK_THAT(measure("1000000"), ContainsSubstring("more than its sizes say"));
  CHECK_THAT(measure("100000000"), ContainsSubstring("elements"));
}

}  // namespace mlc::test
