// lib/ir/model_graph.h - a model of any format as a graph of named values, and a part of it, for
// tools that cut models (mlc extract, mlc reduce).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace mlc {

// A node of an ONNX graph or an operation of a Program, without constants.
struct GraphNode {
  std::vector<std::string> operands;  // also those of nested subgraphs and blocks
  std::vector<std::string> results;
  // For each result, an operand of the same type; empty if there is none.
  std::vector<std::string> stand_ins;
  std::optional<size_t> parent;  // the node whose block contains this one; precedes it
};

struct ModelGraph {
  std::vector<GraphNode> nodes;  // in execution order
  std::vector<std::string> inputs, outputs, states;
  std::set<std::string> constants;
  std::set<std::string> nested;  // values inside subgraphs and blocks
};

// A part of a model, by the names of its values.
struct ModelPart {
  // Values that become inputs, in this order; an input of the model that is not among them is not
  // available.
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, std::string> replaced;  // values, and those that their users read instead
  std::set<size_t> removed;                     // nodes that are dropped even if they have effects
};

// Error "bad-name" if a name of the part is unknown (with the nearest names) or is nested, if an
// output is also an input, or if an output depends on an input of the model that is not among the
// part's.
void CheckPart(const ModelGraph& graph, const ModelPart& part);

// The part without some nodes and what is nested in them. The results of a removed node become
// inputs; with `bypass`, their stand-ins replace them where there are any. Values that only removed
// nodes used become outputs, so that all other nodes stay. Nothing if no node stays.
std::optional<ModelPart> PartWithout(const ModelGraph& graph, const std::set<size_t>& nodes,
                                     bool bypass);

// Ways to simplify what a graph does not show.
enum class Simplification {
  kUniform,     // all elements of a constant become its first one
  kZero,        // a float constant becomes 0
  kOne,         // a float constant becomes 1
  kAttributes,  // an attribute or an optional operand is removed
  kSizes,       // a size of inputs, and the equal sizes of constants, become 1
  kInputSizes,  // a dimension of an input becomes 1
};

}  // namespace mlc
