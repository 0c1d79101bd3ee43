#include "frontends/onnx/draft.h"

#include "frontends/onnx/scope.h"

namespace mlc::onnx {

namespace {

std::unique_ptr<Block> EmptyBlock(Function* function) {
  auto block = std::make_unique<Block>();
  block->function = function;
  return block;
}

}  // namespace

Draft::Draft(Builder& around)
    : around_(around),
      block_(EmptyBlock(around.block().function)),
      builder_(*block_, around.diagnostics()) {
  builder_.SetName(around.name());
  builder_.SetLocation(around.location());
}

Draft::Draft(Node& node) : Draft(node.builder()) { scope_ = &node.scope(); }

Draft::~Draft() {
  if (!block_) return;
  // Other values may get the addresses of those that go.
  if (scope_)
    ForEachOperation(*block_, [&](Operation* op) {
      for (const std::unique_ptr<Value>& result : op->results)
        scope_->import().named.erase(result.get());
    });
  block_->Clear();
}

Value* Draft::Input(Type type, const std::string& hint) {
  auto input = std::make_unique<Value>();
  input->name = block_->function->UniqueName(hint);
  input->type = std::move(type);
  block_->inputs.push_back(std::move(input));
  return block_->inputs.back().get();
}

void Draft::Splice() {
  block_->SetOutputs({});
  while (!block_->operations().empty())
    around_.block().MoveBefore(block_->operations().front().get(), nullptr);
}

void AddLeaves(const Bound& bound, std::vector<Bound>& leaves) {
  if (bound.value) leaves.push_back(bound);
  if (bound.sequence)
    for (const Bound& element : *bound.sequence) AddLeaves(element, leaves);
}

Bound WithLeaves(const Bound& bound, std::vector<Bound>::const_iterator& next) {
  if (bound.value) return *next++;
  if (!bound.sequence) return bound;
  std::vector<Bound> elements;
  for (const Bound& element : *bound.sequence) elements.push_back(WithLeaves(element, next));
  Bound copy;
  copy.sequence = std::make_shared<const std::vector<Bound>>(std::move(elements));
  return copy;
}

bool SameStructure(const Bound& a, const Bound& b) {
  if (!a.sequence || !b.sequence) return !a.sequence && !b.sequence && a.nothing == b.nothing;
  if (a.sequence->size() != b.sequence->size()) return false;
  for (size_t i = 0; i < a.sequence->size(); ++i)
    if (!SameStructure((*a.sequence)[i], (*b.sequence)[i])) return false;
  return true;
}

Value* AsScalar(Builder& builder, Value* value) {
  if (value->type.rank() == 0) return value;
  std::vector<int64_t> axes;
  for (int i = 0; i < value->type.rank(); ++i) axes.push_back(i);
  return builder.Make("squeeze", {{"x", value}, {"axes", Ints(axes)}});
}

}  // namespace mlc::onnx
