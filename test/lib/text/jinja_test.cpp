// Chat templates: the cases of jinja_cases.json, whose expected texts were printed by Jinja2 3.1.2
// (Debian's python3-jinja2) in transformers' setting; positions of errors; limits.
#include "lib/text/jinja.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/support/error.h"
#include "test/catch.h"
#include "test/paths.h"

namespace mlc::test {
using namespace text;
namespace {

using Json = nlohmann::ordered_json;
constexpr std::time_t kNow = 1735689600 + 12 * 3600;  // test/chat_templates.py

std::string Rendered(const std::string& source, const Json& variables = Json::object()) {
  return JinjaTemplate(source).Render(variables, kNow);
}

// The id, the text and the place of the error.
std::string FaultOf(const std::string& source, const Json& variables = Json::object()) {
  try {
    return "no error: " + Rendered(source, variables);
  } catch (const Error& error) {
    return fmt::format("{}: {} at {}", error.id(), error.text(), error.location().where);
  }
}

}  // namespace

TEST_CASE("jinja: texts are those of Jinja2", "[jinja]") {
  std::ifstream file(SourcePath("test/lib/text/jinja_cases.json"));
  const Json cases = Json::parse(file);
  CHECK(cases.size() > 80);
  for (const Json& each : cases) {
    INFO(each["name"]);
    const std::string source = each["template"];
    if (each.contains("error"))
      CHECK(FaultOf(source, each["variables"]).starts_with("chat-template: "));
    else
      CHECK(Rendered(source, each["variables"]) == each["expected"].get<std::string>());
  }
}

TEST_CASE("jinja: lists and dictionaries can be changed, as in llama.cpp", "[jinja]") {
  CHECK(Rendered("{% set l = [1] %}{% set _ = l.append(2) %}{% set _ = l.insert(0, 0) %}{{ l }}"
                 "{{ l.pop() }}{{ l.pop(0) }}{{ l }}{% set _ = l.extend('ab') %}{{ l }}") ==
        "[0, 1, 2]20[1][1, 'a', 'b']");
  CHECK(
      Rendered("{% set d = {'a': 1} %}{% set _ = d.update({'b': 2}, c=3) %}{{ d }}{{ d.pop('a') }}"
               "{{ d.setdefault('b', 5) }}{{ d.setdefault('z', 5) }}{{ d }}") ==
      "{'a': 1, 'b': 2, 'c': 3}125{'b': 2, 'c': 3, 'z': 5}");
  // A list in itself ends in the limit of depth.
  CHECK(FaultOf("{% set l = [] %}{% set _ = l.append(l) %}{{ l }}").starts_with("resource-limit"));
}

TEST_CASE("jinja: errors have a line and a column of the template", "[jinja]") {
  CHECK(FaultOf("a\n{{ x.y }}") == "chat-template: 'x' is undefined at line 2:5");
  CHECK(FaultOf("é {{ 1 + 'a' }}") ==
        "chat-template: unsupported operand types for +: 'int' and 'str' at line 1:8");
  CHECK(FaultOf("\n\n {% include 'a' %}") ==
        "chat-template: the tag 'include' is not supported in chat templates at line 3:5");
  CHECK(FaultOf("{{ 1|xmlattr }}") ==
        "chat-template: the filter 'xmlattr' is not supported in chat templates at line 1:6");
  CHECK(FaultOf("{% for x in y recursive %}{% endfor %}") ==
        "chat-template: a recursive loop is not supported in chat templates at line 1:15");
  CHECK(FaultOf("{{ 'a'.encode() }}").find("the method encode of str is not supported") !=
        std::string::npos);
  // The name of the function outlives the call that made it.
  CHECK(FaultOf("{{ 'a'.center('x') }}") ==
        "chat-template: the method center requires an integer, not str at line 1:14");
  CHECK(FaultOf("{{ 'a'|truncate('x') }}") ==
        "chat-template: the filter truncate requires an integer, not str at line 1:8");
  CHECK(FaultOf("{{ 9223372036854775807 + 1 }}").find("beyond 64 bits") != std::string::npos);
  CHECK(FaultOf("{% if x %}").find("expected endif") != std::string::npos);
  CHECK(FaultOf("{{ raise_exception('no') }}") ==
        "chat-template: the chat template rejects the conversation: no at line 1:19");
}

TEST_CASE("jinja: hostile templates end in a limit", "[jinja]") {
  const auto repeated = [](std::string_view text, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += text;
    return out;
  };
  for (const std::string& source : {
           "{{ " + repeated("(", 100000) + "1" + repeated(")", 100000) + " }}",
           "{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}",
           "{{ " + repeated("not ", 5000) + "1 }}",
           "{{ " + repeated("-", 5000) + "1 }}",
           "{{ 1" + repeated("|abs", 5000) + " }}",
           "{{ 1" + repeated(" + 1", 5000) + " }}",
           repeated("{% if 1 %}", 5000),
           std::string("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
           std::string("{{ 'a' * 10000000000 }}"),
           std::string("{{ [0] * 10000000000 }}"),
           std::string(
               "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + "
               "ns.x %}{% endfor %}"),
           std::string("{% set ns = namespace(x=[]) %}{% for i in range(60) %}{% set ns.x = [ns.x, "
                       "ns.x] %}{% endfor %}{{ ns.x }}"),
           std::string(
               "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"),
           std::string("{% for a in range(99999) %}{{ 'x' * 10000 }}{% endfor %}"),
           std::string("{{ '%999999s' % 'a' * 99999 }}"),
           std::string(2 << 20, 'x'),
       }) {
    INFO(source.substr(0, 60));
    CHECK(FaultOf(source).starts_with("resource-limit: "));
  }
  CHECK(FaultOf("{{ '%99999999999s' % 'a' }}").starts_with("chat-template: "));
  CHECK(FaultOf("{{ 'a'|indent(99999999999) }}").starts_with("chat-template: "));
  CHECK(FaultOf("{{ range(99999999999) }}").starts_with("chat-template: "));
}

}  // namespace mlc::test
