// When a pass breaks an invariant, the program before it is saved and can be run again.
#include "tools/driver/run_passes.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::test {
using namespace driver;
namespace {

constexpr const char* kText =
    "func main<ios16>(tensor<fp32, [4]> x) { a = add(x = x, y = 0.0); y = relu(x = a); } -> (y);";

constexpr passes::PassDef kBroken = {"broken", "",
                                     [](Program& program, passes::PassContext&) -> bool {
                                       program.main()->body.operations().back()->name = "half done";
                                       MLC_CHECK(false, "no luck");
                                     }};

}  // namespace

TEST_CASE("the program before a failing pass is saved as valid MIL text") {
  Program program = ParseText(kText, "text", Ops());
  Diagnostics diagnostics;
  passes::PassContext context{diagnostics, passes::PassContext::Precision::kFp32};
  std::vector<const passes::PassDef*> passes = passes::ParsePasses("remove-no-ops,dead-code");
  passes.push_back(&kBroken);
  std::string said;
  try {
    RunPipeline(program, [] { return ParseText(kText, "text", Ops()); }, passes, context, {});
    FAIL("nothing was broken");
  } catch (const InternalError& error) {
    said = error.what();
  }
  CHECK_THAT(said, ContainsSubstring("pass broken: "));
  CHECK_THAT(said, ContainsSubstring("--passes broken --precision fp32 --verify-each"));
  size_t begin = said.find("the program before it: ") + 23;
  std::filesystem::path path = said.substr(begin, said.find('\n', begin) - begin);
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  Program saved = ParseText(text, "saved", Ops());
  Verify(saved);
  CHECK(passes::Histogram(saved) == std::map<std::string, int64_t>{{"relu", 1}});
}

TEST_CASE("compressing says how far it is, up to the end of each step") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("mlc-progress-{}", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "m.mil") << R"(
func main<ios16>(tensor<fp32, [1, 64]> x) {
  a = linear(x = x, weight = const tensor<fp32, [64, 64]>(fill(0.5)));
  y = linear(x = a, weight = const tensor<fp32, [48, 64]>(fill(0.25)));
} -> (y);)";
  std::map<std::string, std::vector<double>> shares;
  OptimizeOptions options{.compress = "int8", .output = folder / "m.mlpackage"};
  options.progress = [&](const ProgressStep& step) {
    shares[std::string(step.name)].push_back(step.share);
  };
  Diagnostics diagnostics;
  Optimize(folder / "m.mil", options, diagnostics);
  std::filesystem::remove_all(folder);
  CHECK(shares["compressing weights"].size() == 2);
  for (const auto& [step, all] : shares) {
    CAPTURE(step);
    CHECK(std::ranges::is_sorted(all));
    CHECK(all.back() == 1);
  }
  CHECK(shares.contains("writing weights"));
}

}  // namespace mlc::test
