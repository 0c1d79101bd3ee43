#include "lib/precision/measure.h"

#include <cmath>
#include <set>

#include "lib/analysis/cost.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::test {
using namespace precision;
namespace {

// The final operations stay in fp32 if they have few elements, so this has more.
Program Computing(const std::string& operations) {
  return ParseText("func main<ios17>(tensor<fp32, [32768]> x) {\n" + operations + "\n} -> (y);",
                   "test.mil", Ops());
}

// Values from -3 to 3.
MeasureInputs Given() {
  std::vector<float> x(32768);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 3 * std::sin(0.37f * static_cast<float>(i));
  return {.steps = {{"main", {{{"x", Tensor::Of<float>({32768}, x)}}}}}};
}

// The inputs of Given, followed by others that differ only in scale.
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
  std::map<std::string, std::string> wide;  // name, reason
  std::set<passes::Fp32Reason> reasons;
  size_t warnings;
};

Measured Measure(const Program& program, MeasureOptions options = {.inputs = Given()},
                 passes::PassContext::Precision precision = passes::PassContext::Precision::kFp16,
                 std::vector<std::string> fp16_ops = {}) {
  std::vector<const passes::PassDef*> all = passes::DefaultPipeline();
  options.passes = {std::find(all.begin(), all.end(), &passes::kFp16Precision), all.end()};
  Diagnostics diagnostics;
  passes::PassContext context{diagnostics, precision, Opset::kIos17};
  context.fp16_ops = std::move(fp16_ops);
  Measurement measurement = MeasureFp16(program, context, options);
  Measured found{measurement, {}, {}, diagnostics.warnings().size()};
  for (const auto& [name, why] : context.measured) {
    found.wide[name] = why.text;
    found.reasons.insert(why.reason);
  }
  return found;
}

// Twelve operations that are accurate in fp16.
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

// Returns MIL text that selects 16 of 256 boxes by scores that differ only slightly (sums of
// products), followed by the operations in `last`, which may use boxes and scores, and an unrelated
// result.
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

TEST_CASE(
    "measure: --precision mixed keeps the scores of NMS in fp32 if fp16 selects other boxes") {
  auto measure = [](const std::string& output) {
    Program program = ParseText("func main<ios16>(tensor<fp32, [32768]> x) {\n" + Selecting("") +
                                    "\n} -> (beside, " + output + ");",
                                "test.mil", Ops());
    return Measure(program, {.inputs = Given(), .least = true},
                   passes::PassContext::Precision::kMixed);
  };
  // Indices are integers; box coordinates only have errors, which are unreliable as well.
  for (const char* output : {"places", "kept"}) {
    CAPTURE(output);
    Measured found = measure(output);
    CHECK(found.measurement.chosen.fits);
    CHECK_THAT(found.wide["before0"], ContainsSubstring("NMS decisions depend on"));
    CHECK(found.wide.contains("products"));
    CHECK_FALSE(found.wide.contains("beside0"));
  }
  // The number of boxes does not show which boxes were selected.
  CHECK(measure("many").wide.empty());
}

TEST_CASE(
    "measure: at most 5 % of the work stays in fp32 for rounding, and only if that suffices") {
  // Cancellation by one operation followed by many, or by an operation with most of the work.
  auto program = [](int harmless) {
    std::string text = "far = add(x = x, y = 3000.0);\nnear = sub(x = far, y = 3000.0);\n",
                last = "near";
    for (int i = 0; i < harmless; ++i) {
      text += fmt::format("a{} = {}(x = {}, y = {});\n", i, i % 2 ? "mul" : "add", last,
                          i % 2 ? 1.01 : 0.1);
      last = fmt::format("a{}", i);
    }
    return Computing(text + "y = mul(x = " + last + ", y = 0.5);");
  };
  Measured cheap = Measure(program(60));
  CHECK_FALSE(cheap.measurement.plain.fits);
  CHECK(cheap.measurement.chosen.fits);
  CHECK(cheap.measurement.beyond.empty());
  CHECK(cheap.wide.contains("far"));
  CHECK(cheap.wide.size() <= 3);
  CHECK(cheap.reasons == std::set{passes::Fp32Reason::kRounding});
  CHECK_THAT(cheap.wide["far"], ContainsSubstring("output \"y\" has an error"));
  Measured dear = Measure(program(12));
  CHECK(dear.wide.empty());
  CHECK_FALSE(dear.measurement.chosen.fits);
  REQUIRE(dear.measurement.beyond.size() == 1);
  CHECK(dear.measurement.beyond[0].output == "y");
  CHECK(dear.measurement.beyond[0].value > dear.measurement.beyond[0].allowed);
  // The caller reports it, with the share that would have to be in fp32.
  CHECK(dear.warnings == 0);
  CHECK(dear.measurement.mixed_share.value_or(1) > 0.05);
}

TEST_CASE("measure: further inputs decide as well") {
  const auto program = [](int harmless) {
    std::string text = "far = add(x = x, y = 100.0);\nnear = sub(x = far, y = 100.0);\n",
                last = "near";
    for (int i = 0; i < harmless; ++i) {
      text += fmt::format("a{} = mul(x = {}, y = 1.01);\n", i, last);
      last = fmt::format("a{}", i);
    }
    return Computing(text + "y = mul(x = " + last + ", y = 0.5);");
  };
  MeasureInputs inputs = Given();
  Measured first = Measure(program(0), {.inputs = inputs});
  CHECK(first.measurement.chosen.fits);
  // Errors are absolute here, so a small sample between larger ones exceeds the budget.
  std::vector<verify::StepInputs>& more = inputs.more["main"];
  more = Samples(1, 5).steps.at("main");
  more[3] = Samples(0.05f, 1).steps.at("main")[1];
  Measured stated = Measure(program(0), {.inputs = inputs});
  CHECK(stated.wide.empty());
  REQUIRE(stated.measurement.beyond.size() == 1);
  CHECK(stated.measurement.beyond[0].output == "y");
  CHECK(stated.measurement.chosen.value > 1.5 * first.measurement.chosen.value);
  // Where little work in fp32 suffices, it is spent, and the further inputs confirm it.
  Measured spent = Measure(program(60), {.inputs = inputs});
  CHECK(spent.measurement.beyond.empty());
  CHECK(spent.wide.contains("far"));
  CHECK(spent.wide.size() <= 3);
  CHECK_FALSE(spent.measurement.plain.fits);
}

TEST_CASE("measure: overflow for images in a wider range is repaired if cheap, else reported") {
  auto measure = [](int harmless) {
    std::string text = "large = mul(x = x, y = 1000.0);\ns = tanh(x = large);\n", last = "s";
    for (int i = 0; i < harmless; ++i) {
      text += fmt::format("a{} = mul(x = {}, y = 0.99);\n", i, last);
      last = fmt::format("a{}", i);
    }
    MeasureInputs inputs = Given();
    inputs.other_range = Samples(85.0f, 1).steps;
    inputs.other_range_name = "0..255";
    return Measure(Computing(text + "y = mul(x = " + last + ", y = 0.5);"), {.inputs = inputs});
  };
  Measured little = measure(60);
  CHECK(little.wide.contains("large"));
  CHECK_THAT(little.wide["large"], ContainsSubstring("images with values in 0..255"));
  CHECK(little.reasons == std::set{passes::Fp32Reason::kOverflow});
  CHECK(little.measurement.other_range == "");
  Measured much = measure(10);
  CHECK(much.wide.empty());
  CHECK_THAT(much.measurement.other_range, ContainsSubstring("for images with values in 0..255"));
}

TEST_CASE("measure: NaN caused by fp16 is always repaired") {
  // 0 / 0, because fp16 underflows.
  Measured found =
      Measure(Computing("a = abs(x = x);\ns = add(x = a, y = 1.0);\nb = mul(x = s, y = 1e-5);\n"
                        "c = mul(x = b, y = 1e-4);\nd = mul(x = c, y = 0.5);\n"
                        "r = real_div(x = c, y = d);\ny = mul(x = r, y = s);"));
  CHECK(found.measurement.broken == "");
  CHECK(found.measurement.chosen.fits);
  CHECK(found.wide.contains("r"));
  CHECK(found.wide.contains("c"));
  CHECK(found.reasons == std::set{passes::Fp32Reason::kOverflow});
}

TEST_CASE("measure: operations accurate in fp16 are narrowed") {
  Measured found = Measure(Computing(Harmless("x", "y")));
  CHECK(found.measurement.not_measured.empty());
  CHECK(found.measurement.runs == 1);
  CHECK(found.measurement.plain.fits);
  CHECK(found.wide.empty());
}

TEST_CASE("measure: values outside the range of fp16 stay in fp32, with their users") {
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

TEST_CASE("measure: --fp16-ops overrides only the named operations") {
  const Program program = Computing(
      Harmless("x", "a") + "far = add(x = a, y = 3000.0);\nnear = sub(x = far, y = 3000.0);\n" +
      Harmless("near", "y"));
  const Measured chosen = Measure(program);
  const Measured asked =
      Measure(program, {.inputs = Given()}, passes::PassContext::Precision::kFp16, {"far"});
  CHECK(asked.wide == chosen.wide);
  CHECK_FALSE(asked.measurement.chosen.fits);
  CHECK(asked.measurement.beyond.size() == 1);
}

TEST_CASE("measure: budgets with atol and rtol") {
  MeasureOptions options{.inputs = Given(), .least = true};
  options.budgets = verify::BudgetsFromJson(R"({"atol": 1e-3})", "test");
  Measured found =
      Measure(Computing(Harmless("x", "y")), options, passes::PassContext::Precision::kMixed);
  CHECK(found.measurement.not_measured == "");
  CHECK(found.measurement.plain.kind == Measurement::Figure::Kind::kBeyond);
  CHECK(found.measurement.plain.value > 0);
  CHECK(found.measurement.plain.value <= 1);
  CHECK(found.measurement.plain.allowed == 0);
  CHECK(found.measurement.chosen.fits);
}

TEST_CASE("measure: reasons why no output was compared") {
  auto why = [](const std::string& operations) {
    return Measure(Computing(operations)).measurement.not_measured;
  };
  CHECK(why("zero = mul(x = x, y = 0.0);\ny = exp(x = zero);") ==
        "each output is constant or not finite");
  CHECK(why("y = slice_by_index(x = x, begin = [0], end = [0]);") == "each output is empty");
}

TEST_CASE("measure: a choice must fit with sums in other orders") {
  // Sums that are exact in fp16 except for the order of summation, and a gate that amplifies their
  // low-order bits.
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
  Measured found = Measure(
      program,
      {.inputs = {.steps = {{"main", {{{"x", Tensor::Of<float>({32768}, x)}}}}}}, .least = true},
      passes::PassContext::Precision::kMixed);
  CHECK(found.measurement.chosen.fits);
  CHECK(found.wide.contains("sums"));
  CHECK_FALSE(found.wide.contains("y"));
  CHECK(found.warnings == 0);
}

TEST_CASE("measure: comparisons may be kept in fp32 (mixed)") {
  Measured found = Measure(
      Computing("rows = reshape(x = x, shape = [256, 128]);\n"
                "product = matmul(x = rows, y = rows, transpose_y = true);\n"
                "more = mul(x = product, y = 0.9999);\ny = greater(x = product, y = more);"),
      {.inputs = Given(), .floor = false, .least = true}, passes::PassContext::Precision::kMixed);
  CHECK_FALSE(found.measurement.plain.fits);
  CHECK(found.measurement.chosen.fits);
  CHECK(found.wide.contains("y"));
  CHECK(found.warnings == 0);
}

TEST_CASE("measure: an outlier in one sample raises the estimated range") {
  auto program = [](const char* size) {
    return Computing(fmt::format(
        "large = mul(x = x, y = {});\nsmall = mul(x = large, y = 1e-3);\ny = tanh(x = small);",
        size));
  };
  CHECK(Measure(program("2000.0"), {.inputs = Samples(1)}).wide.empty());
  CHECK(Measure(program("2000.0"), {.inputs = Samples(0.05f)}).wide.contains("large"));
  // Values below 4094 are far from the limit of fp16.
  CHECK(Measure(program("1000.0"), {.inputs = Samples(0.001f)}).wide.empty());
}

TEST_CASE("measure: inputs on which the choice fails are added (mixed)") {
  Program program = Computing(
      "far = add(x = x, y = 20.0);\nnear = sub(x = far, y = 20.0);\ny = mul(x = near, y = 1.25);");
  MeasureInputs inputs = Samples(1);
  inputs.more = inputs.steps;
  CHECK(Measure(program, {.inputs = inputs, .least = true}).wide.empty());
  inputs.more = Samples(0.03f).steps;
  Measured found = Measure(program, {.inputs = inputs, .least = true});
  CHECK(found.wide.contains("near"));
  CHECK(found.measurement.chosen.fits);
  CHECK(found.warnings == 0);
}

TEST_CASE("measure: operations with the name of a narrowed one") {
  Measured found =
      Measure(Computing("large_fp16 = exp(x = x);\nx_fp16 = mul(x = large_fp16, y = large_fp16);\n"
                        "more_fp16 = mul(x = x_fp16, y = 1e3);\ny = tanh(x = more_fp16);"));
  CHECK(found.measurement.chosen.fits);
  CHECK(found.wide.contains("more_fp16"));
  CHECK_FALSE(found.wide.contains("large_fp16"));
}

TEST_CASE("measure: mixed precision keeps a minimum in fp32 and reports the trade-off") {
  MeasureOptions options{.inputs = Given()};
  options.least = true;
  std::string program = "far = add(x = x, y = 3000.0);\nnear = sub(x = far, y = 3000.0);\n" +
                        Harmless("near", "a") + Harmless("a", "b") +
                        "again = add(x = b, y = 3000.0);\ny = sub(x = again, y = 3000.0);";
  Measured found = Measure(Computing(program), options, passes::PassContext::Precision::kMixed);
  CHECK(found.measurement.not_measured == "");
  CHECK(found.measurement.chosen.fits);
  for (const char* name : {"far", "near", "again", "y"}) CHECK(found.wide.contains(name));
  CHECK(found.wide.size() <= 6);  // without the harmless ones between them
  const std::vector<Measurement::Point>& curve = found.measurement.curve;
  REQUIRE(curve.size() > 2);
  CHECK(curve.front().fp16_share < curve.back().fp16_share);
  CHECK_FALSE(curve.back().worst.fits);
}

TEST_CASE("measure: --fp16-ops that exceed the budget cause a warning") {
  std::vector<const passes::PassDef*> all = passes::DefaultPipeline();
  MeasureOptions options{.inputs = Given()};
  options.passes = {std::find(all.begin(), all.end(), &passes::kFp16Precision), all.end()};
  Diagnostics diagnostics;
  passes::PassContext context{diagnostics, passes::PassContext::Precision::kFp16, Opset::kIos17};
  context.fp16_ops = {"add", "sub"};
  Measurement measurement = MeasureFp16(
      Computing("far = add(x = x, y = 3000.0);\ny = sub(x = far, y = 3000.0);"), context, options);
  CHECK_FALSE(measurement.chosen.fits);
  // The caller reports it; no rule would have kept the operation in fp32.
  REQUIRE(measurement.beyond.size() == 1);
  CHECK(measurement.beyond[0].output == "y");
  CHECK(diagnostics.warnings().empty());
}

TEST_CASE("measure: programs that cannot be run or are too large are not measured") {
  CHECK_THAT(
      Measure(Computing("r = random_normal(shape = [32768], mean = 0.0, stddev = 1.0, seed = 1);\n"
                        "y = add(x = x, y = r);"),
              {})
          .measurement.not_measured,
      ContainsSubstring("random"));
  Program harmless = Computing(Harmless("x", "y"));
  CHECK_THAT(Measure(harmless, {.inputs = MakeUpLeastInputs(harmless, 1000, 100)})
                 .measurement.not_measured,
             ContainsSubstring("multiply-adds"));
  CHECK_THAT(
      Measure(harmless, {.inputs = MakeUpLeastInputs(harmless, 1e9, 4)}).measurement.not_measured,
      ContainsSubstring("weights over "));
  Measured found = Measure(harmless, {.inputs = MakeUpMeasureInputs(harmless)});
  CHECK(found.measurement.not_measured == "");
  CHECK(found.measurement.generated);
}

TEST_CASE("measure: at most a gigabyte of weights") {
  auto inputs = [](int64_t rows) {
    Program program = Computing(Harmless("x", "y"));
    ForEachOperation(*program.functions[0], [&](Operation* op) {
      if (op->val && op->val.dtype() == DType::kFp32)
        op->val = Tensor::Full(DType::kFp32, {rows, 1'000'000}, 0);
    });
    return MakeUpMeasureInputs(program).too_large;
  };
  CHECK(inputs(2) == "");
  CHECK_THAT(inputs(251), ContainsSubstring("weights over 1000 MB"));
}

TEST_CASE("measure: at most 10,000 operations, weighted by rank") {
  auto inputs = [](int operations, size_t rank) {
    std::string text = "func main<ios17>(tensor<fp32, [8]> x) {\n";
    for (int i = 0; i < operations; ++i)
      text += fmt::format("y{} = tanh(x = {});\n", i, i ? fmt::format("y{}", i - 1) : "x");
    Program program =
        ParseText(text + fmt::format("}} -> (y{});", operations - 1), "test.mil", Ops());
    Function& function = *program.functions[0];
    if (rank > 1) {  // no program text has these
      function.body.inputs[0]->type.shape.assign(rank, 1);
      ForEachOperation(function, [&](Operation* op) { op->result()->type.shape.assign(rank, 1); });
    }
    return MakeUpMeasureInputs(program);
  };
  CHECK(inputs(10'000, 1).too_large.empty());
  CHECK(inputs(10'000, 1).steps.at("main").size() == 1);
  CHECK_THAT(inputs(10'001, 1).too_large, ContainsSubstring("10000 operations"));
  CHECK(inputs(10'001, 1).steps.empty());
  CHECK(inputs(100, 800).too_large.empty());
  CHECK_THAT(inputs(100, 808).too_large, ContainsSubstring("10000 operations"));
}

TEST_CASE("measure: --precision mixed compares outputs with the source") {
  Program program = Computing(Harmless("x", "y"));
  auto measure = [&](const std::string& last) {
    return Measure(
        program,
        {.inputs = Given(),
         .source =
             [&] { return Computing(Harmless("x", "a") + "y = mul(x = a, y = " + last + ");"); },
         .least = true},
        passes::PassContext::Precision::kMixed);
  };
  Measured same = measure("1.0");
  CHECK(same.warnings == 0);
  CHECK(same.measurement.plain.fits);
  Measured near = measure("1.0008");
  CHECK(near.warnings == 0);
  CHECK(near.measurement.plain.value > 1.3 * same.measurement.plain.value);
  // An error that exists already in fp32 is a warning, not attributed to any operation.
  Measured other = measure("1.1");
  CHECK(other.warnings == 1);
  CHECK(other.wide.empty());
}

TEST_CASE("measure: a long-running loop is aborted") {
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
  CHECK_THAT(measure("1000000"), ContainsSubstring("than its static sizes indicate"));
  CHECK_THAT(measure("100000000"), ContainsSubstring("multiply-adds"));
}

}  // namespace mlc::test
