#include "frontends/onnx/onnx.h"
#include "frontends/onnx/row.h"
#include "lib/ops/row.h"
#include "test/catch.h"

namespace mlc::onnx {
namespace {

TEST_CASE("onnx rows: version ranges of an operator do not overlap") {
  const NodeRow* last = nullptr;
  for (const NodeRow* row : AllRows()) {
    CAPTURE(row->name);
    CHECK(row->since >= 1);
    CHECK((row->until == 0 || row->until >= row->since));
    if (last && last->domain == row->domain && last->name == row->name)
      CHECK((last->until && last->until < row->since));
    last = row;
  }
}

TEST_CASE("onnx rows: rows without a handler name an existing MIL operator and its parameters") {
  for (const NodeRow* row : AllRows()) {
    if (row->handler || row->kind == Class::kImpossible) continue;
    CAPTURE(row->name);
    std::string_view same = row->same;
    size_t open = same.find('(');
    REQUIRE((open != same.npos && same.back() == ')'));
    const OpDef* def = Ops().Find(same.substr(0, open));
    REQUIRE(def);
    std::string_view params = same.substr(open + 1, same.size() - open - 2);
    while (!params.empty()) {
      size_t end = std::min(params.find(", "), params.size());
      CHECK(def->Find(params.substr(0, end)) >= 0);
      params.remove_prefix(std::min(end + 2, params.size()));
    }
  }
}

TEST_CASE("onnx rows: exactly the conditional and impossible rows have a condition") {
  for (const NodeRow* row : AllRows()) {
    CAPTURE(row->name);
    bool expects = row->kind == Class::kConditional || row->kind == Class::kImpossible;
    CHECK(expects == !row->condition.empty());
  }
}

TEST_CASE("onnx rows: lookup by opset version") {
  CHECK(FindRow("", "Clip", 6) != FindRow("", "Clip", 11));
  CHECK(FindRow("", "Clip", 28) == FindRow("", "Clip", 11));
  CHECK(FindRow("", "Gelu", 19) == nullptr);
  CHECK(FindRow("", "Gelu", 20) != nullptr);
  CHECK(FindRow("com.microsoft", "Clip", 11) == nullptr);
  CHECK(FindRow("", "NoSuchOperator", 11) == nullptr);
}

}  // namespace
}  // namespace mlc::onnx
