// frontends/onnx/model/order.h - selects the nodes that are needed and sorts them topologically.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "frontends/onnx/model/model.h"

namespace mlc::onnx {

struct NodeOrder {
  std::vector<size_t>
      nodes;  // indices of the nodes on which `wanted` depends, in file order if that is valid
  std::unordered_set<std::string> used;  // the names that these nodes read, and `wanted`
};
// Names that no node produces must come from the enclosing scope. Throws "bad-graph" for a cycle
// and for a name that two nodes produce.
NodeOrder OrderNodes(const std::vector<NodeDef>& nodes, const std::vector<std::string>& wanted);

// Describes a node in messages: `node "up2/Resize_47" (output "up2_out")`.
std::string Describe(const NodeDef& node);

}  // namespace mlc::onnx
