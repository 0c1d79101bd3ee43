#include "frontends/onnx/model/order.h"

#include <functional>
#include <queue>

namespace mlc::onnx {

namespace {

// Appends the names that a subgraph captures from enclosing scopes.
void AddCaptured(const Graph& graph, std::vector<std::string>& names) {
  std::unordered_set<std::string> own;
  for (const ValueInfo& input : graph.inputs) own.insert(input.name);
  for (const Constant& constant : graph.initializers) own.insert(constant.name);
  for (const NodeDef& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  std::vector<std::string> read;
  for (const NodeDef& node : graph.nodes) {
    read.insert(read.end(), node.inputs.begin(), node.inputs.end());
    for (const Attribute& attribute : node.attributes)
      for (const auto& nested : attribute.graphs) AddCaptured(*nested, read);
  }
  for (const ValueInfo& output : graph.outputs) read.push_back(output.name);
  for (std::string& name : read)
    if (!own.contains(name)) names.push_back(std::move(name));
}

std::vector<std::string> NamesRead(const NodeDef& node) {
  std::vector<std::string> names = node.inputs;
  for (const Attribute& attribute : node.attributes)
    for (const auto& graph : attribute.graphs) AddCaptured(*graph, names);
  std::erase(names, "");
  return names;
}

}  // namespace

std::string Describe(const NodeDef& node) {
  std::string output = "none";
  for (const std::string& name : node.outputs)
    if (!name.empty()) {
      output = '"' + name + '"';
      break;
    }
  return node.name.empty() ? "node of output " + output
                           : "node \"" + node.name + "\" (output " + output + ")";
}

NodeOrder OrderNodes(const std::vector<NodeDef>& nodes, const std::vector<std::string>& wanted) {
  std::unordered_map<std::string, size_t> maker;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& output : nodes[i].outputs)
      if (!output.empty() && !maker.emplace(output, i).second)
        throw Error("bad-graph", "two nodes produce a value named \"{}\"", output)
            .At({"", Describe(nodes[i])});

  NodeOrder order;
  std::vector<std::vector<size_t>> sources(nodes.size());
  std::vector<bool> needed(nodes.size());
  std::vector<size_t> open;
  auto need = [&](const std::string& name) {
    order.used.insert(name);
    auto it = maker.find(name);
    if (it == maker.end()) return;
    if (!needed[it->second]) open.push_back(it->second);
    needed[it->second] = true;
  };
  for (const std::string& name : wanted) need(name);
  while (!open.empty()) {
    size_t node = open.back();
    open.pop_back();
    for (const std::string& name : NamesRead(nodes[node])) {
      need(name);
      if (auto it = maker.find(name); it != maker.end()) sources[node].push_back(it->second);
    }
  }

  // Of all nodes whose inputs are ready, the first in the file is taken next.
  std::vector<std::vector<size_t>> users(nodes.size());
  std::vector<size_t> missing(nodes.size());
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  size_t count = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!needed[i]) continue;
    ++count;
    missing[i] = sources[i].size();
    for (size_t source : sources[i]) users[source].push_back(i);
    if (missing[i] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    size_t node = ready.top();
    ready.pop();
    order.nodes.push_back(node);
    for (size_t user : users[node])
      if (--missing[user] == 0) ready.push(user);
  }
  if (order.nodes.size() < count) {
    for (size_t i = 0; i < nodes.size(); ++i)
      if (needed[i] && missing[i] > 0)
        throw Error("bad-graph", "the graph has a cycle").At({"", Describe(nodes[i])});
  }
  return order;
}

}  // namespace mlc::onnx
