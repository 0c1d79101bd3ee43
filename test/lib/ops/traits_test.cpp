// Checks the traits of every row. Operands that do not follow from the signature are provided by
// the row's own test (random_operands.h).
#include <filesystem>
#include <fstream>
#include <regex>

#include "test/lib/ops/random_operands.h"
#include "test/paths.h"

namespace mlc::test {
namespace {

// Rows whose own tests provide the operands.
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

TEST_CASE("traits: range and layout rules are sound", "[traits]") {
  std::set<std::string, std::less<>> drawn = DrawnInTheirTests();
  for (const OpDef& def : Ops().all()) {
    // const has its own value as result, and list_length has a list as operand.
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

TEST_CASE("traits: rows without a range rule give a reason", "[traits]") {
  std::vector<std::string_view> unknown;
  for (const OpDef& def : Ops().all()) {
    INFO(def.name);
    CHECK((def.range != nullptr) == def.no_range.empty());
    if (!def.range) unknown.push_back(def.name);
  }
  CHECK(unknown.size() <= 20);
}

TEST_CASE("traits: neutral elements are correct and complete", "[traits]") {
  int neutral = 0;
  for (const OpDef& def : Ops().all())
    for (const Neutral& rule : def.neutral) {
      if (rule.param.empty()) continue;
      INFO(def.name << " of " << rule.param);
      ++neutral;
      bool with_others = true;
      for (uint32_t seed = 0; seed < 100; ++seed) {
        Draw draw(seed);
        const Dims dims = draw.Sizes(1, 4);
        const Tensor x = draw.Between(dims, DType::kFp32, 0.1, 3);
        auto result = [&](double number) {
          Case operands;
          const Param& param = def.canonical().params[static_cast<size_t>(def.Find(rule.param))];
          const bool counts = Contains(param.types, DType::kInt32) && !param.domain;
          const Dims of = !counts               ? dims
                          : param.name == "pad" ? Dims{2 * std::ssize(dims)}
                                                : Dims{std::ssize(dims)};
          operands.emplace_back(rule.param,
                                Tensor::Full(counts ? DType::kInt32 : DType::kFp32, of, number));
          operands.emplace_back(rule.result, x);
          return EvaluateAll(def.name, operands)[0];
        };
        const Tensor same = result(rule.number), other = result(rule.number + 1);
        REQUIRE(same.dims() == x.dims());
        CHECK(same.Doubles() == x.Doubles());
        with_others = with_others && other.dims() == x.dims() && other.Doubles() == x.Doubles();
      }
      CHECK(!with_others);
    }
  CHECK(neutral == 9);
}

// Each reduction covers all of x, and each pool has a window over all of x.
TEST_CASE("traits: declared sums are correct and complete", "[traits]") {
  int sums = 0;
  for (const OpDef& def : Ops().all()) {
    const bool reduces = def.layout.axes == "axes" && def.Find("keep_dims") >= 0;
    if (!reduces && def.Find("kernel_sizes") < 0) continue;
    INFO(def.name);
    sums += def.sums.of != Sums::kNone;
    int told = 0;  // cases with another result
    for (uint32_t seed = 0; seed < 100; ++seed) {
      Draw draw(seed);
      const int64_t count = draw.Int(2, 9);
      const Tensor x = draw.Between({1, 1, count}, DType::kFp32, -3, 3);
      Case operands = {{"x", x}};
      if (!reduces) {
        operands.emplace_back("kernel_sizes", Ints32({static_cast<int32_t>(count)}));
        operands.emplace_back("pad_type", Text("valid"));
      }
      double sum = 0;
      const Sums::Of of = def.sums.of == Sums::kNone ? Sums::kElements : def.sums.of;
      for (double number : x.Doubles())
        sum += of == Sums::kSquares      ? number * number
               : of == Sums::kMagnitudes ? std::fabs(number)
                                         : number;
      if (def.sums.mean) sum /= static_cast<double>(count);
      if (def.sums.root) sum = std::sqrt(sum);
      const double result = EvaluateAll(def.name, operands)[0].Double(0);
      if (def.sums.of != Sums::kNone)
        CHECK(std::fabs(result - sum) <= 1e-4);
      else
        told += !(std::fabs(result - sum) < 1e-4);
    }
    if (def.sums.of == Sums::kNone) CHECK(told > 50);
  }
  CHECK(sums == 7);
}

TEST_CASE("traits: only operators with effects lack evaluation or results", "[traits]") {
  for (const OpDef& def : Ops().all()) {
    INFO(def.name);
    CHECK((def.pure || def.effect != Effect::kNone));
    if (!def.eval) CHECK((def.runs_blocks() || def.effect == Effect::kWritesState));
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

TEST_CASE("rows: operators reject strings for numeric operands", "[traits]") {
  int asked = 0;
  for (const OpDef& def : Ops().all())
    for (const Param& param : def.canonical().params) {
      if (param.types == 0 || Contains(param.types, DType::kString)) continue;
      INFO(def.name << " " << param.name);
      OpContext context(def, ArgsOf(def, {{param.name, Tensor::String("1")}}));
      CHECK_THROWS_WITH(context.value(param.name), ContainsSubstring("is a string"));
      ++asked;
    }
  CHECK(asked > 400);
}

}  // namespace mlc::test
