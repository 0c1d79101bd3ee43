// frontends/onnx/draft.h - a block in the making, of a branch or of a loop's body.
//
//   Draft body(node);
//   Value* x = body.Input(type, "x");
//   body.Finish({body.builder().Make("relu", {{"x", x}})});
//   blocks.push_back(body.Take());
//
// What is in it goes with it unless it was taken or spliced.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

class Draft {
 public:
  // At the place where `around` is.
  explicit Draft(Builder& around);
  explicit Draft(Node& node);
  ~Draft();
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  Builder& builder() { return builder_; }
  Value* Input(Type type, const std::string& hint);
  void Finish(std::vector<Value*> outputs) { block_->SetOutputs(std::move(outputs)); }
  std::unique_ptr<Block> Take() { return std::move(block_); }
  // Moves the operations to the end of the block around.
  void Splice();

 private:
  Builder& around_;
  Scope* scope_ = nullptr;  // in which ONNX's names are given
  std::unique_ptr<Block> block_;
  Builder builder_;
};

// Tensors inside a value, one after another: itself, the elements of a sequence, nothing of
// nothing.
void AddLeaves(const Bound& bound, std::vector<Bound>& leaves);
// A value like `bound`, with leaves taken from `next` on.
Bound WithLeaves(const Bound& bound, std::vector<Bound>::const_iterator& next);
// Whether both are tensors, or sequences of the same length of such, or nothing.
bool SameStructure(const Bound& a, const Bound& b);
// A value of one element as a scalar.
Value* AsScalar(Builder& builder, Value* value);

}  // namespace mlc::onnx
