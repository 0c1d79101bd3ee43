// frontends/onnx/model/order.h - which nodes are needed, and in which order.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "frontends/onnx/model/model.h"

namespace mlc::onnx {

struct NodeOrder {
  std::vector<size_t>
      nodes;  // indices of those on which `wanted` depends; the file's order where that is valid
  std::unordered_set<std::string> used;  // names that they read, and `wanted`
};
// Names that no node makes belong to the caller. Throws Error "bad-graph" for a cycle and for a
// name that two nodes make.
NodeOrder OrderNodes(const std::vector<NodeDef>& nodes, const std::vector<std::string>& wanted);

// `node "up2/Resize_47" (output "up2_out")`
std::string Describe(const NodeDef& node);

}  // namespace mlc::onnx
