// What RunPasses says of passes that do not come to an end or break a promise.
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "lib/passes/pass.h"
#include "test/catch.h"

namespace mlc::test {
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

// The passes as a group that is repeated.
std::vector<const PassDef*> Repeated(std::vector<const PassDef*> passes) {
  std::vector<const PassDef*> pipeline = DefaultPipeline(PassContext::Precision::kFp32);
  auto mark = [&](std::string_view name) {
    return *std::find_if(pipeline.begin(), pipeline.end(),
                         [&](const PassDef* pass) { return pass->name == name; });
  };
  passes.insert(passes.begin(), mark("repeat"));
  passes.push_back(mark("until-stable"));
  return passes;
}

}  // namespace

TEST_CASE("a group of passes that does not become stable is a warning", "[passes]") {
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

TEST_CASE("a pass that had nothing to do runs again only when the program has changed",
          "[passes]") {
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
    // The first round of each group, and what changed the program in later ones.
    CHECK(std::ssize(runs) == 4 + std::max(changes - 1, 0));
    CHECK(runs.back().name == "counted");
  }
}

TEST_CASE("a broken promise says in which pass, and how many ran before", "[passes]") {
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

}  // namespace mlc::test
