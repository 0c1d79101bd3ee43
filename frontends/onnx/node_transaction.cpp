#include "frontends/onnx/node_transaction.h"

#include "frontends/onnx/scope.h"

namespace mlc::onnx {

NodeTransaction::NodeTransaction(Node& node, Builder& around)
    : BlockTransaction(around), scope_(node.scope()) {}

NodeTransaction::~NodeTransaction() {
  if (!block()) return;
  // New values may be allocated at the addresses of the deleted ones.
  auto forget = [&](const auto& values) {
    for (const std::unique_ptr<Value>& value : values) scope_.import().named.erase(value.get());
  };
  forget(block()->inputs);
  ForEachOperation(*block(), [&](Operation* op) {
    forget(op->results);
    for (const std::unique_ptr<Block>& nested : op->blocks) forget(nested->inputs);
  });
}

void AddLeaves(const Bound& bound, std::vector<Bound>& leaves) {
  if (bound.value) leaves.push_back(bound);
  for (size_t i = 0; i < bound.sequence.size(); ++i) AddLeaves(bound.sequence[i], leaves);
}

Bound WithLeaves(const Bound& bound, std::vector<Bound>::const_iterator& next) {
  if (bound.value) return *next++;
  if (!bound.sequence) return bound;
  std::vector<Bound> elements;
  for (size_t i = 0; i < bound.sequence.size(); ++i)
    elements.push_back(WithLeaves(bound.sequence[i], next));
  Bound copy;
  copy.sequence = Sequence(std::move(elements));
  return copy;
}

bool SameStructure(const Bound& a, const Bound& b) {
  if (!a.sequence || !b.sequence) return !a.sequence && !b.sequence && a.nothing == b.nothing;
  if (a.sequence.size() != b.sequence.size()) return false;
  for (size_t i = 0; i < a.sequence.size(); ++i)
    if (!SameStructure(a.sequence[i], b.sequence[i])) return false;
  return true;
}

}  // namespace mlc::onnx
