#include "frontends/onnx/model/order.h"

#include "test/catch.h"

namespace mlc::onnx {
namespace {

NodeDef Make(std::vector<std::string> inputs, std::vector<std::string> outputs) {
  return {"", "Op", "", std::move(inputs), std::move(outputs), {}};
}
using Indices = std::vector<size_t>;

TEST_CASE("onnx order: a valid file order is kept, without nodes that are not needed") {
  std::vector<NodeDef> nodes = {Make({"x"}, {"a"}), Make({"x"}, {"unused"}), Make({"x"}, {"b"}),
                                Make({"b", "a"}, {"y"})};
  CHECK(OrderNodes(nodes, {"y"}).nodes == Indices{0, 2, 3});
  CHECK(OrderNodes(nodes, {"b"}).nodes == Indices{2});
  CHECK(OrderNodes(nodes, {"x"}).nodes.empty());
  CHECK(OrderNodes(nodes, {"y"}).used.contains("a"));
  CHECK_FALSE(OrderNodes(nodes, {"y"}).used.contains("unused"));
}

TEST_CASE("onnx order: nodes are sorted topologically") {
  std::vector<NodeDef> nodes = {Make({"b", ""}, {"y"}), Make({"a"}, {"b"}), Make({"x"}, {"a"})};
  CHECK(OrderNodes(nodes, {"y"}).nodes == Indices{2, 1, 0});
}

TEST_CASE("onnx order: values captured by subgraphs are dependencies, their local values are not") {
  auto graph = std::make_shared<Graph>();
  graph->nodes = {Make({"outer"}, {"inner"}), Make({"inner"}, {"result"})};
  graph->outputs = {{"result", "a tensor", 0, {}}};
  NodeDef branch = Make({"c"}, {"y"});
  branch.attributes.push_back(
      {.name = "then_branch", .kind = Attribute::Kind::kGraph, .graphs = {graph}});
  std::vector<NodeDef> nodes = {branch, Make({"y"}, {"inner"}), Make({"x"}, {"outer"})};
  CHECK(OrderNodes(nodes, {"y"}).nodes == Indices{2, 0});
}

TEST_CASE("onnx order: cycles and duplicate names are errors") {
  std::vector<NodeDef> cycle = {Make({"b"}, {"a"}), Make({"a"}, {"b"}), Make({"x"}, {"y"})};
  CHECK_NOTHROW(OrderNodes(cycle, {"y"}));  // the cycle is not needed
  CHECK_THROWS_WITH(OrderNodes(cycle, {"a"}), ContainsSubstring("cycle"));
  CHECK_THROWS_WITH(OrderNodes({Make({"y"}, {"y"})}, {"y"}), ContainsSubstring("cycle"));
  CHECK_THROWS_WITH(OrderNodes({Make({"x"}, {"y"}), Make({"x"}, {"y"})}, {"y"}),
                    ContainsSubstring("two nodes"));
}

}  // namespace
}  // namespace mlc::onnx
