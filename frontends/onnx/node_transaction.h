// frontends/onnx/node_transaction.h - a BlockTransaction (lib/ir) for lowering nodes, and the
// tensors inside a Bound.
#pragma once

#include <vector>

#include "frontends/onnx/node.h"
#include "lib/ir/block_transaction.h"

namespace mlc::onnx {

// A block under construction at the position of `around`, or of the node's builder. When it is
// discarded, its values are removed from the table of named ONNX values.
class NodeTransaction : public BlockTransaction {
 public:
  explicit NodeTransaction(Node& node) : NodeTransaction(node, node.builder()) {}
  NodeTransaction(Node& node, Builder& around);
  ~NodeTransaction();

 private:
  Scope& scope_;
};

// Appends the tensors inside a value in order: the tensor itself or the elements of a sequence. An
// empty optional has none.
void AddLeaves(const Bound& bound, std::vector<Bound>& leaves);
// Returns a value with the structure of `bound` whose tensors are taken from `next` on.
Bound WithLeaves(const Bound& bound, std::vector<Bound>::const_iterator& next);
// Returns whether both are tensors, both are empty optionals, or both are sequences of equal length
// whose elements have the same structure.
bool SameStructure(const Bound& a, const Bound& b);

}  // namespace mlc::onnx
