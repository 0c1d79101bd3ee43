#include "lib/support/edit_distance.h"

#include "test/catch.h"

namespace mlc {
namespace {

TEST_CASE("suggestions are the nearest names, for one mistake in three characters", "[support]") {
  const std::set<std::string> names = {"batch", "fp16", "fp32",   "dead-code",
                                       "iOS17", "x",    "compile"};
  CHECK(MeantName(names, "bacth") == "batch");  // exchanged neighbours are one mistake
  CHECK(MeantName(names, "btach") == "batch");
  CHECK(MeantName(names, "pf16") == "fp16");
  CHECK(MeantName(names, "dead-cod") == "dead-code");
  CHECK(MeantName(names, "ios17") == "iOS17");          // case
  CHECK(MeantName(names, "Dead_Code") == "dead-code");  // and underscores
  CHECK(MeantName(names, "dea") == "dead-code");        // the only one that begins so
  CHECK(MeantName(names, "y") == "");
  CHECK(MeantName(names, "double") == "");
  CHECK(MeantName(names, "") == "");
  CHECK(MeantName({"compile", "completions"}, "comp") == "");  // either could be meant
}

TEST_CASE("suggestions end a message", "[support]") {
  CHECK("unknown" + DidYouMean(std::vector<std::string_view>{"ane", "gpu"}, "gpw") ==
        "unknown; did you mean \"gpu\"?");
  CHECK(DidYouMean(std::vector<std::string>{"ane"}, "reference") == "");
}

}  // namespace
}  // namespace mlc
