// frontends/onnx/draft.h - a draft (lib/ir) in which nodes are lowered, and what its values are.
#pragma once

#include <vector>

#include "frontends/onnx/node.h"
#include "lib/ir/draft.h"

namespace mlc::onnx {

// Where `around` is, or the node. Values that go with it have no ONNX names any more.
class NodeDraft : public Draft {
 public:
  explicit NodeDraft(Node& node) : NodeDraft(node, node.builder()) {}
  NodeDraft(Node& node, Builder& around);
  ~NodeDraft();

 private:
  Scope& scope_;
};

// Tensors inside a value, one after another: itself, the elements of a sequence, nothing of
// nothing.
void AddLeaves(const Bound& bound, std::vector<Bound>& leaves);
// A value like `bound`, with leaves taken from `next` on.
Bound WithLeaves(const Bound& bound, std::vector<Bound>::const_iterator& next);
// Whether both are tensors, or sequences of the same length of such, or nothing.
bool SameStructure(const Bound& a, const Bound& b);

}  // namespace mlc::onnx
