#include "frontends/safetensors/config.h"

#include <cmath>

#include "test/catch.h"
#include "test/expected_error.h"
#include "test/frontends/safetensors/writer.h"

using namespace mlc;
using namespace mlc::safetensors;
using namespace mlc::test;

namespace {

Config Parsed(std::string_view text) { return Config::Parse(text, "config.json"); }

}  // namespace

TEST_CASE("config: getters return members by type") {
  Config config = Parsed(R"({"hidden_size": 64, "rope_theta": 1e4, "eps": 1, "wide": 4096.0,
      "tied": false, "act": "silu", "sizes": [1, 2], "factors": [1, 2.5], "names": ["a", "b"],
      "map": {"x": "1"}, "far": 18446744073709551615})");
  CHECK(config.Int("hidden_size") == 64);
  CHECK(config.Int("wide") == 4096);
  CHECK(config.Number("rope_theta") == 10000);
  CHECK(config.Number("eps") == 1);
  CHECK_FALSE(config.Bool("tied"));
  CHECK(config.Text("act") == "silu");
  CHECK(config.Ints("sizes") == std::vector<int64_t>{1, 2});
  CHECK(config.Numbers("factors") == std::vector<double>{1, 2.5});
  CHECK(config.Texts("names") == std::vector<std::string>{"a", "b"});
  CHECK(config.TextMap("map") == std::map<std::string, std::string>{{"x", "1"}});
  CHECK(config.Number("far") == 18446744073709551615.0);
  CHECK_THAT(Refusal([&] { config.Int("far"); }), ContainsSubstring("an integer"));
}

TEST_CASE("config: integers have 32 bits") {
  const Config config = Parsed(R"({"most": 2147483647, "more": 2147483648, "least": -2147483648,
      "less": -2147483649, "huge": 9223372036854775807, "whole": 2147483647.0, "above": 1e30,
      "list": [1, 2147483648]})");
  CHECK(config.Int("most") == 2147483647);
  CHECK(config.Int("whole") == 2147483647);
  CHECK(config.Int("least") == -2147483648);
  for (const char* key : {"more", "less", "huge", "above"})
    CHECK_THAT(Refusal([&] { config.Int(key); }), ContainsSubstring("an integer of 32 bits"));
  CHECK_THAT(Refusal([&] { config.Ints("list"); }), ContainsSubstring("integers of 32 bits"));
}

TEST_CASE("config: numbers computed from members become integers of 32 bits") {
  CHECK(Truncated(2.9) == 2);
  CHECK(Truncated(-2.9) == -2);
  CHECK(Truncated(2147483647.0) == 2147483647);
  CHECK(Truncated(9.3e18) == 2147483647);
  CHECK(Truncated(-1.0 / 0.0) == -2147483648);
  CHECK(Truncated(std::sqrt(-1.0)) == 0);
}

TEST_CASE("config: missing and null members have the fallback") {
  Config config = Parsed(R"({"head_dim": null, "n": 3})");
  CHECK_FALSE(config.has("head_dim"));
  CHECK(config.kind("head_dim") == Config::Kind::kNone);
  CHECK(config.Int("head_dim", 16) == 16);
  CHECK(config.Number("nothing", 0.5) == 0.5);
  CHECK(config.Bool("nothing", true));
  CHECK(config.Text("nothing", "gelu") == "gelu");
  CHECK(config.Int("n", 16) == 3);
  CHECK(config.keys() == std::vector<std::string>{"n"});
  CHECK_THAT(Refusal([&] { config.Int("head_dim"); }),
             ContainsSubstring("\"head_dim\" is missing") && ContainsSubstring("config.json"));
  CHECK(Config().Int("any", 1) == 1);
  CHECK_THAT(Refusal([&] { Config().Int("any"); }), ContainsSubstring("\"any\" is missing"));
}

TEST_CASE("config: errors name the key, what was found and what was expected") {
  Config config = Parsed(R"({"layers": "two", "tied": 1, "act": 3, "sizes": [1, 2.5],
      "rope_scaling": {"type": "linear", "factor": [2]}, "text_config": {"inner": {"size": true}}})");
  CHECK_THAT(Refusal([&] { config.Int("layers"); }), ContainsSubstring("\"layers\" is \"two\"") &&
                                                         ContainsSubstring("key \"layers\"") &&
                                                         ContainsSubstring("expected: an integer"));
  CHECK_THAT(Refusal([&] { config.Int("layers", 5); }), ContainsSubstring("\"two\""));
  CHECK_THAT(Refusal([&] { config.Bool("tied"); }), ContainsSubstring("true or false"));
  CHECK_THAT(Refusal([&] { config.Text("act"); }), ContainsSubstring("\"act\" is 3"));
  CHECK_THAT(Refusal([&] { config.Ints("sizes"); }), ContainsSubstring("\"sizes\" is [1,2.5]"));
  CHECK_THAT(Refusal([&] { config.Object("act"); }), ContainsSubstring("an object"));
  CHECK_THAT(Refusal([&] { config.Object("rope_scaling").Number("factor"); }),
             ContainsSubstring("\"rope_scaling.factor\" is [2]"));
  CHECK_THAT(Refusal([&] { config.Object("text_config").Object("inner").Int("size"); }),
             ContainsSubstring("\"text_config.inner.size\" is true"));
  CHECK_THAT(Refusal([&] { config.Object("rope_scaling").Number("beta"); }),
             ContainsSubstring("\"rope_scaling.beta\" is missing"));
}

TEST_CASE("config: a nested object outlives the top-level object") {
  Config inner = Parsed(R"({"a": {"b": {"c": 7}}})").Object("a").Object("b");
  CHECK(inner.Int("c") == 7);
}

// Python's json module writes these numbers, which are not valid JSON.
TEST_CASE("config: NaN and infinity") {
  Config config = Parsed(R"({"time_step_limit": [0.0, Infinity], "low": -Infinity, "x": NaN,
      "text": "NaN \" Infinity \\", "after": 1})");
  CHECK_THAT(Refusal([&] { config.Number("low"); }), ContainsSubstring("\"low\" is \"-Infinity\""));
  CHECK_THAT(Refusal([&] { config.Number("x", 1); }), ContainsSubstring("\"x\" is \"NaN\""));
  CHECK(config.Text("text") == "NaN \" Infinity \\");
  CHECK(config.Int("after") == 1);
  CHECK_THAT(Refusal([&] { config.Numbers("time_step_limit"); }),
             ContainsSubstring("\"time_step_limit\" is [0.0,\"Infinity\"]"));
}

TEST_CASE("config: invalid JSON and other values than objects are rejected") {
  CHECK_THAT(Refusal([] { Parsed("[1]"); }), ContainsSubstring("not an object"));
  CHECK_THAT(Refusal([] { Parsed("{\"a\": 1,}"); }), ContainsSubstring("config.json, line 1:9"));
  CHECK_THAT(Refusal([] { Parsed("{\"a\": 1, \"a\": 2}"); }), ContainsSubstring("duplicate key"));
  CHECK_THAT(Refusal([] { Parsed(std::string(1 << 20, '[')); }), ContainsSubstring("deep"));
  ScratchFolder folder;
  CHECK_THAT(Refusal([&] { Config::Read(folder / "none.json"); }),
             ContainsSubstring("error[file-io]"));
}
