#include "lib/ir/model_graph.h"

#include <unordered_map>
#include <unordered_set>

#include "lib/support/edit_distance.h"
#include "lib/support/error.h"

namespace mlc {

namespace {

// The node that produces each value.
std::unordered_map<std::string, size_t> Producers(const ModelGraph& graph) {
  std::unordered_map<std::string, size_t> producers;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const std::string& result : graph.nodes[i].results) producers.emplace(result, i);
  return producers;
}

void CheckNames(const ModelGraph& graph, const ModelPart& part) {
  std::set<std::string> known = graph.constants;
  known.insert(graph.inputs.begin(), graph.inputs.end());
  known.insert(graph.outputs.begin(), graph.outputs.end());
  for (const GraphNode& node : graph.nodes)
    if (!node.parent) known.insert(node.results.begin(), node.results.end());
  const auto check = [&](const std::string& name) {
    if (known.contains(name)) return;
    if (graph.nested.contains(name))
      throw Error("bad-name", "value \"{}\" is inside a nested block, where models cannot be cut",
                  name)
          .Help("name a value of the graph around it");
    throw Error("bad-name", "the model has no value \"{}\"{}", name, DidYouMean(known, name))
        .Expected("a value of the model, such as {}", Quoted(NearNames(known, name)));
  };
  for (const std::string& name : part.inputs) check(name);
  const std::set<std::string> inputs(part.inputs.begin(), part.inputs.end());
  if (inputs.size() < part.inputs.size()) throw Error("bad-name", "an input is given twice");
  std::set<std::string> outputs;
  for (const std::string& name : part.outputs) {
    check(name);
    if (inputs.contains(name))
      throw Error("bad-name", "value \"{}\" cannot be both an input and an output of the part",
                  name);
    if (!outputs.insert(name).second) throw Error("bad-name", "output \"{}\" is given twice", name);
  }
}

}  // namespace

void CheckPart(const ModelGraph& graph, const ModelPart& part) {
  CheckNames(graph, part);
  const std::unordered_map<std::string, size_t> producers = Producers(graph);
  const std::unordered_set<std::string> inputs(graph.inputs.begin(), graph.inputs.end());
  const std::unordered_set<std::string> available(part.inputs.begin(), part.inputs.end());
  for (const std::string& output : part.outputs) {
    std::unordered_set<std::string> seen = {output};
    std::vector<std::string> open = {output};
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (available.contains(name)) continue;
      if (inputs.contains(name))
        throw Error("bad-name",
                    name == output
                        ? fmt::format("output \"{}\" is an input of the model", output)
                        : fmt::format("output \"{}\" depends on input \"{}\", which is not an "
                                      "input of the part",
                                      output, name))
            .Help("begin the part at \"{}\" too, or choose other outputs", name);
      const auto producer = producers.find(name);
      if (producer == producers.end()) continue;
      for (const std::string& operand : graph.nodes[producer->second].operands)
        if (seen.insert(operand).second) open.push_back(operand);
    }
  }
}

std::optional<ModelPart> PartWithout(const ModelGraph& graph, const std::set<size_t>& nodes,
                                     bool bypass) {
  ModelPart part;
  part.removed = nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].parent && part.removed.contains(*graph.nodes[i].parent))
      part.removed.insert(i);
  if (part.removed.size() == graph.nodes.size()) return std::nullopt;

  const std::unordered_map<std::string, size_t> producers = Producers(graph);
  // The value that is read instead of `name`, through any number of removed nodes.
  const auto resolve = [&](std::string name) {
    while (bypass) {
      const auto producer = producers.find(name);
      if (producer == producers.end() || !part.removed.contains(producer->second)) break;
      const GraphNode& node = graph.nodes[producer->second];
      size_t index = 0;
      while (node.results[index] != name) ++index;
      if (node.stand_ins[index].empty()) break;
      name = node.stand_ins[index];
    }
    return name;
  };
  const auto is_kept = [&](const std::string& name) {
    const auto producer = producers.find(name);
    return producer != producers.end() && !part.removed.contains(producer->second);
  };

  part.inputs = graph.inputs;
  std::unordered_set<std::string> read;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (part.removed.contains(i)) {
      if (bypass)
        for (const std::string& result : graph.nodes[i].results)
          if (std::string other = resolve(result); other != result) part.replaced[result] = other;
      continue;
    }
    for (const std::string& operand : graph.nodes[i].operands) {
      const std::string name = resolve(operand);
      if (read.insert(name).second && producers.contains(name) && !is_kept(name))
        part.inputs.push_back(name);
    }
  }

  std::unordered_set<std::string> outputs;
  const auto add_output = [&](const std::string& name) {
    if (is_kept(name) && !graph.nested.contains(name) && outputs.insert(name).second)
      part.outputs.push_back(name);
  };
  for (const std::string& output : graph.outputs) add_output(resolve(output));
  for (size_t i : part.removed)
    for (const std::string& operand : graph.nodes[i].operands)
      if (const std::string name = resolve(operand); !read.contains(name)) add_output(name);
  if (part.outputs.empty()) return std::nullopt;
  return part;
}

}  // namespace mlc
