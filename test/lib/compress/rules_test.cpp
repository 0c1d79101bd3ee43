#include "lib/compress/rules.h"

#include "test/catch.h"
#include "test/expected_error.h"

using namespace mlc;
using namespace mlc::compress;

TEST_CASE("schemes: the canonical text gives the same scheme") {
  for (const char* text : {"none",
                           "fp16",
                           "int8",
                           "int8:asym",
                           "int8:block=32",
                           "int8:block=tensor",
                           "int4:block=row",
                           "int4:block=32",
                           "int4:block=64,asym",
                           "pal1",
                           "pal8",
                           "pal4:group=16",
                           "pal3:group=16,axis=in",
                           "pal2:vec=2",
                           "pal4:group=16,vec=4",
                           "pal4:scale=row",
                           "pal4:group=8,lut=int8",
                           "sparse:0.75",
                           "sparse:2:4",
                           "sparse:0.5+int8",
                           "sparse:1:2+int4:block=32",
                           "sparse:0.75+pal4:group=16"}) {
    INFO(text);
    CHECK(Text(ParseScheme(text)) == text);
  }
  CHECK(Text(ParseScheme("int4")) == "int4:block=32");
  CHECK(Text(ParseScheme("int4,asym")) == "int4:block=32,asym");
  CHECK(Text(ParseScheme("lut4")) == "pal4:group=32");
}

TEST_CASE("rules: a comma begins a rule unless an option follows") {
  const std::vector<Rule> rules = ParseRules("conv=pal4:group=16,vec=2,linear=int8;first=none");
  REQUIRE(rules.size() == 3);
  CHECK(Text(rules) == "conv=pal4:group=16,vec=2;linear=int8;first=none");
  CHECK(ParseRules("int8,*.bias=none").size() == 2);
  CHECK(ParseRules("int4,asym,last=int8").size() == 2);
  CHECK(ParseRules(" int8 ; last = fp16 ;").size() == 2);
}

TEST_CASE("rules: a selector may contain the characters of a rule") {
  CHECK(ParseRules("a=b=int8")[0].selector == "a=b");
  CHECK(ParseRules("block.*:0=int4:block=32")[0].selector == "block.*:0");
  CHECK(ParseRules("int4:block=32")[0].selector.empty());
}

TEST_CASE("rules: globs") {
  CHECK(MatchesGlob("*", ""));
  CHECK(MatchesGlob("a*c", "abbc"));
  CHECK(MatchesGlob("*_1?", "layer_12"));
  CHECK(MatchesGlob("**b*", "ab"));
  CHECK_FALSE(MatchesGlob("a*c", "abcd"));
  CHECK_FALSE(MatchesGlob("?", ""));
}

TEST_CASE("rules: what a selector matches") {
  Subject subject{
      .names = {"w"}, .consumers = {"conv_1"}, .types = {"conv"}, .weight = true, .first = true};
  CHECK(MatchOf("", subject) == Match::kAny);
  CHECK(MatchOf("w", subject) == Match::kName);
  CHECK(MatchOf("conv", subject) == Match::kType);
  CHECK(MatchOf("conv_*", subject) == Match::kAny);
  CHECK(MatchOf("first", subject) == Match::kAny);
  CHECK(MatchOf("last", subject) == Match::kNone);
  CHECK(MatchOf("linear", subject) == Match::kNone);
}

TEST_CASE("rules: errors name the rule and the mistake") {
  struct Case {
    const char *text, *id, *part;
  };
  for (const auto& [text, id, part] : {
           Case{"", "usage", "contains no rule"},
           {";int8", "usage", "empty rule"},
           {"=int8", "usage", "the selector is empty"},
           {"int5", "usage", "unknown scheme \"int5\""},
           {"conv=", "usage", "the scheme is missing"},
           {"int4:", "usage", "an option is missing"},
           {"int4:block=x", "usage", "invalid option \"block=x\""},
           {"int4:blok=3", "usage", "unknown option \"blok=3\""},
           {"int8:group=4", "usage", "int8 has no option group=4"},
           {"pal4:vec=3", "usage", "invalid option \"vec=3\""},
           {"pal4:axis=in", "usage", "axis=in requires group=N"},
           {"pal4:vec=2,lut=int8", "usage", "vec cannot be combined"},
           {"sparse", "usage", "the share of zeros is missing"},
           {"sparse:1.5", "usage", "not a share of zeros"},
           {"sparse:4:4", "usage", "not a number of zeros"},
           {"sparse:0.5+fp16", "usage", "sparse can be combined"},
           {"sparse:0.5+pal4:vec=2", "usage", "sparse cannot be combined"},
           {"w8a8:block=32", "usage", "no option"},
           {"auto", "usage", "auto requires a goal"},
           {"auto:size=60", "usage", "invalid option \"size=60\""},
           {"auto:bits=0.5", "usage", "invalid option \"bits=0.5\""},
           {"auto:group=4", "usage", "auto has no option group=4"},
           {"sparse:0.5+auto:bits=4", "usage", "sparse can be combined"},
       }) {
    INFO(text);
    auto parse = [rule = text] { ParseRules(rule); };
    CHECK(test::RefusalId(parse) == id);
    CHECK(test::Refusal(parse).find(part) != std::string::npos);
  }
}
