// Tests how RunPasses reports passes that never become stable or break an invariant.
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "lib/passes/pass.h"
#include "test/catch.h"

namespace mlc::test {
using namespace passes;
namespace {

constexpr const char* kText = "func main<ios16>(fp32 x) { y = relu(x = x); } -> (y);";

constexpr PassDef kRestless = {"restless", "", [](Program&, PassContext&) { return true; }};
constexpr PassDef kQuiet = {"quiet", "", [](Program&, PassContext&) { return false; }};
constexpr PassDef kBroken = {"broken", "",
                             [](Program&, PassContext&) -> bool { MLC_CHECK(false, "no luck"); }};

int runs_of_counted = 0;
int changes_left = 0;
constexpr PassDef kCounted = {"counted", "", [](Program&, PassContext&) {
                                ++runs_of_counted;
                                return false;
                              }};
constexpr PassDef kChanges = {"changes", "",
                              [](Program&, PassContext&) { return --changes_left >= 0; }};

// Returns the passes as a repeated group.
std::vector<const PassDef*> Repeated(std::vector<const PassDef*> passes) {
  std::vector<const PassDef*> pipeline = DefaultPipeline();
  auto mark = [&](std::string_view name) {
    return *std::find_if(pipeline.begin(), pipeline.end(),
                         [&](const PassDef* pass) { return pass->name == name; });
  };
  passes.insert(passes.begin(), mark("repeat"));
  passes.push_back(mark("until-stable"));
  return passes;
}

// Parameters that iOS17 removed: a score threshold, and a roi.
constexpr const char* kLost[] = {
    "func main<ios17>(tensor<fp32, [1, 4, 6]> b, tensor<fp32, [1, 2, 6]> s) {"
    "  c = mul(x = b, y = 2.0); d = transpose(x = c, perm = [0, 2, 1]);"
    "  e = transpose(x = s, perm = [0, 2, 1]);"
    "  p, q, r, t = non_maximum_suppression(boxes = d, scores = e, iou_threshold = 0.5,"
    "                                       score_threshold = 0.25, max_boxes = 3);"
    "  y = mul(x = p, y = 0.5); } -> (y, q, r, t);",
    "func main<ios17>(tensor<fp32, [2, 1, 4, 4]> x, tensor<fp32, [3, 1, 5, 1, 1]> r) {"
    "  y = crop_resize(x = x, roi = r, target_height = 2, target_width = 2); z = relu(x = y);"
    "} -> (z);",
    "func main<ios17>(tensor<fp32, [2, 1, 4, 4]> x) {"
    "  y = crop_resize(x = x, roi = [[[[[0.0]], [[1.0]], [[2.0]], [[3.0]]]]], target_height = 2,"
    "                  target_width = 2); z = relu(x = y); } -> (z);",
};

}  // namespace

TEST_CASE("newer-forms replaces removed parameters once", "[passes]") {
  for (const char* text : kLost)
    for (auto precision : {PassContext::Precision::kFp32, PassContext::Precision::kFp16}) {
      INFO(text);
      Diagnostics diagnostics;
      Program older = ParseText(text, "text", Ops()), newer = Clone(older);
      PassContext keeps{diagnostics, precision, Opset::kIos16};
      RunPasses(older, DefaultPipeline(), keeps);
      PassContext lost{diagnostics, precision, Opset::kIos17};
      RunPasses(newer, DefaultPipeline(), lost, {.verify_each = true});
      for (Program* program : {&older, &newer}) {
        bool found = false;
        ForEachOperation(*program->main(), [&](Operation* op) {
          found = found || (op->is("crop_resize") && op->has("roi")) ||
                  (op->is("non_maximum_suppression") && op->has("score_threshold"));
        });
        CHECK(found == (program == &older));
      }
      for (const PassRun& run : RunPasses(newer, DefaultPipeline(), lost)) {
        INFO(run.name << " changes something again");
        CHECK(!run.changed);
      }
    }
}

TEST_CASE("RunPasses warns about an unstable group", "[passes]") {
  for (bool restless : {true, false}) {
    Program program = ParseText(kText, "text", Ops());
    Diagnostics diagnostics;
    PassContext context{diagnostics};
    RunPasses(program, Repeated({&kQuiet, restless ? &kRestless : &kQuiet}), context);
    REQUIRE(diagnostics.warnings().size() == (restless ? 1 : 0));
    if (restless) {
      CHECK(diagnostics.warnings()[0].id() == "not-stable");
      CHECK_THAT(diagnostics.warnings()[0].what(), ContainsSubstring("quiet to restless"));
    }
  }
}

TEST_CASE("RunPasses skips a pass if nothing changed since its last run", "[passes]") {
  Program program = ParseText(kText, "text", Ops());
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  for (int changes : {0, 1, 3}) {
    runs_of_counted = 0;
    changes_left = changes;
    std::vector<const PassDef*> passes = Repeated({&kCounted, &kChanges, &kCounted});
    for (const PassDef* pass : Repeated({&kCounted})) passes.push_back(pass);
    std::vector<PassRun> runs = RunPasses(program, passes, context);
    CHECK(runs_of_counted == 1 + changes);
    // The first round of each group, and passes that changed the program in later rounds.
    CHECK(std::ssize(runs) == 4 + std::max(changes - 1, 0));
    CHECK(runs.back().name == "counted");
  }
}

TEST_CASE("PassFailure names the pass and counts the passes before it", "[passes]") {
  Program program = ParseText(kText, "text", Ops());
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  try {
    RunPasses(program, {&kQuiet, &kRestless, &kBroken}, context);
    FAIL("nothing was broken");
  } catch (const PassFailure& failure) {
    CHECK(failure.pass == "broken");
    CHECK(failure.completed == 2);
    CHECK_THAT(failure.what(), ContainsSubstring("pass broken: "));
    CHECK_THAT(failure.what(), ContainsSubstring("no luck"));
  }
  CHECK(RunPasses(program, {&kQuiet, &kRestless, &kBroken}, context, {.at_most = 2}).size() == 2);
}

TEST_CASE("passes: a constant that stands for several tensors of the source is none of them") {
  const auto merged = [](std::vector<const char*> sources) {
    Program program = ParseText(
        "func main<ios16>(tensor<fp32, [2]> x) {"
        "  a = const()[val = tensor<fp32, [2]>([1.0, 2.0])];"
        "  b = const()[val = tensor<fp32, [2]>([1.0, 2.0])];"
        "  s = add(x = x, y = a); p = mul(x = s, y = b); } -> (p);",
        "m.mil", Ops());
    size_t next = 0;
    ForEachOperation(*program.main(), [&](Operation* op) {
      if (!op->val) return;
      const char* source = sources[next++];
      if (source) op->val = op->val.From({{source}, true});
    });
    Diagnostics diagnostics;
    PassContext context{diagnostics};
    RunPasses(program, ParsePasses("deduplicate-constants"), context);
    std::vector<Tensor> left;
    ForEachOperation(*program.main(), [&](Operation* op) {
      if (op->val) left.push_back(op->val);
    });
    REQUIRE(left.size() == 1);
    return left[0];
  };
  using Names = std::vector<std::string>;
  CHECK(merged({"w", "v"}).provenance()->sources == Names{"v", "w"});
  for (std::vector<const char*> sources :
       {std::vector<const char*>{"w", "v"}, {"w", nullptr}, {nullptr, "w"}}) {
    const Tensor tensor = merged(sources);
    REQUIRE(tensor.provenance());
    CHECK_FALSE(tensor.provenance()->unchanged);
  }
  CHECK(merged({"w", "w"}).provenance()->unchanged);
  CHECK(merged({nullptr, nullptr}).provenance() == nullptr);
}

}  // namespace mlc::test
