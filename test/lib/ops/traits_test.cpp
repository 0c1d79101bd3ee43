// The traits of every row: those that follow from the row are checked here, the others where the row
// is tested (draw.h).
#include <filesystem>
#include <fstream>
#include <regex>

#include "test/lib/ops/draw.h"
#include "test/paths.h"

namespace mlc::test {
namespace {

// Rows whose own tests say how operands are drawn.
std::set<std::string, std::less<>> DrawnInTheirTests() {
  const std::regex call(R"re(Check(?:Range|Traits)\("(\w+)")re");
  std::set<std::string, std::less<>> names;
  for (const auto& entry : std::filesystem::directory_iterator(SourcePath("test/lib/ops"))) {
    std::ifstream file(entry.path());
    std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it)
      names.insert((*it)[1]);
  }
  return names;
}

}  // namespace

TEST_CASE("traits: rows keep what they say of ranges and orders of dimensions", "[traits]") {
  std::set<std::string, std::less<>> drawn = DrawnInTheirTests();
  for (const OpDef& def : Ops().all()) {
    // const has its value, list_length a list, for an operand.
    if (def.is_const() || def.effect == Effect::kList || drawn.contains(def.name)) continue;
    bool flexible = !def.layout.data[0].empty();
    INFO(def.name);
    if (flexible)
      CheckTraits(def.name);
    else if (def.range)
      FAIL_CHECK("nothing draws operands for it; CheckRange(\"" << def.name
                                                                << "\", ...) in its own test does");
  }
}

TEST_CASE("traits: of few results nothing is known, and the row says why", "[traits]") {
  std::vector<std::string_view> unknown;
  for (const OpDef& def : Ops().all()) {
    INFO(def.name);
    CHECK((def.range != nullptr) == def.no_range.empty());
    if (!def.range) unknown.push_back(def.name);
  }
  CHECK(unknown.size() <= 20);
}

TEST_CASE("traits: what writes has no result, and only what has an effect is not evaluated",
          "[traits]") {
  for (const OpDef& def : Ops().all()) {
    INFO(def.name);
    CHECK((def.pure || def.effect != Effect::kNone));
    if (!def.eval) CHECK((def.effect == Effect::kControl || def.effect == Effect::kWritesState));
    CHECK(def.is_constexpr() == def.name.starts_with("constexpr_"));
    for (std::string_view param : def.layout.data)
      if (!param.empty()) CHECK(def.Find(param) >= 0);
    for (std::string_view param : def.layout.per_dimension)
      if (!param.empty()) CHECK(def.Find(param) >= 0);
    for (std::string_view param : {def.layout.axes, def.fp16.wide[0], def.fp16.wide[1],
                                   def.fp16.bounds[0], def.fp16.bounds[1]})
      if (!param.empty()) CHECK(def.Find(param) >= 0);
  }
}

}  // namespace mlc::test
