#include "lib/support/json_text.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "test/catch.h"
#include "test/expected_error.h"

namespace mlc {
namespace {

std::string Refused(std::string_view text, const JsonBounds& bounds = {}) {
  return test::Refusal([&] { RequireJson(text, "bad-recipe", "r.json", bounds); });
}

TEST_CASE("json text: valid JSON is accepted") {
  for (std::string_view good :
       {"1", "null", "[]", "{}", R"({"a": {"a": [1, "\u00e9", -2.5e3, true]}, "b": {"a": 0}})"})
    CHECK(Refused(good) == "");
}

TEST_CASE("json text: numbers that JSON lacks are words, and whole ones may be integers") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  auto text = [](double value, bool whole) { return JsonText(NumberJson(value, whole)); };
  CHECK(text(kInfinity, true) == "\"inf\"");
  CHECK(text(-kInfinity, false) == "\"-inf\"");
  CHECK(text(std::nan(""), true) == "\"nan\"");
  CHECK(text(12, true) == "12");
  CHECK(text(12, false) == "12.0");
  CHECK(text(12.5, true) == "12.5");
  CHECK(text(0x1p53, true) == "9007199254740992");
  CHECK(text(0x1p54, true) == "1.8014398509481984e+16");
  for (const double value : {kInfinity, -kInfinity, 12.0, -0.25})
    CHECK(NumberFromJson(NumberJson(value)) == value);
  CHECK(std::isnan(NumberFromJson(NumberJson(std::nan("")))));
}

TEST_CASE("json text: errors have id, file, line and column") {
  CHECK_THAT(Refused("{\n  \"a\": 1,\n  }\n"), ContainsSubstring("error[bad-recipe]") &&
                                                   ContainsSubstring("r.json, line 3:3") &&
                                                   ContainsSubstring("unexpected '}'"));
  CHECK_THAT(Refused(""), ContainsSubstring("line 1:1"));
  CHECK_THAT(Refused("[1, 2"), ContainsSubstring("line 1:6"));
  CHECK_THAT(Refused("\"\xff\""), ContainsSubstring("line 1:2"));
  CHECK_THAT(Refused("[1e999]"), ContainsSubstring("error[bad-recipe]"));
  CHECK_THAT(Refused(std::string_view("{}\n\0{}", 6)), ContainsSubstring("line 2:1"));
  CHECK_THAT(Refused("[1] 2"), ContainsSubstring("line 1:5"));
}

TEST_CASE("json text: duplicate keys are rejected") {
  CHECK_THAT(Refused(R"({"a": 1, "b": {"c": 1, "d": 2, "c": 3}})"),
             ContainsSubstring("duplicate key \"c\" in an object"));
  CHECK_THAT(Refused(R"({"a": 1, "\u0061": 2})"), ContainsSubstring("duplicate key \"a\""));
}

TEST_CASE("json text: depth and number of values are limited") {
  auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(Refused(nested(64)) == "");
  CHECK_THAT(Refused(nested(65)),
             ContainsSubstring("error[resource-limit]") && ContainsSubstring("at most 64"));
  CHECK_THAT(Refused(std::string(10'000'000, '[')), ContainsSubstring("at most 64"));
  CHECK(Refused("[1, [2], {\"a\": 3}]", {.values = 6}) == "");
  CHECK_THAT(Refused("[1, [2], {\"a\": 3}]", {.values = 5}), ContainsSubstring("at most 5"));
}

}  // namespace
}  // namespace mlc
