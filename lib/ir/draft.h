// lib/ir/draft.h - a block in the making, of a branch, of a loop's body or of an attempt.
//
//   Draft body(builder);
//   Value* x = body.Input(type, "x");
//   body.Finish({body.builder().Make("relu", {{"x", x}})});
//   blocks.push_back(body.Take());
//
// A draft is a transaction: what was made and said through its builder is there when it was taken or
// spliced, else it goes with it: operations, their names (but numbers behind names are not given
// twice), symbols and bounds that were narrowed (Block::Narrow), notes, warnings and decisions. A
// block that was taken goes likewise (but for what was said) until an operation has it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc {

class Draft {
 public:
  // At the place where `around` is, which outlives it.
  explicit Draft(Builder& around);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  Builder& builder() { return builder_; }
  Block* block() { return block_.get(); }  // null when it was taken or spliced
  Value* Input(Type type, std::string_view hint);
  void Finish(std::vector<Value*> outputs) { block_->SetOutputs(std::move(outputs)); }
  std::unique_ptr<Block> Take();
  // Moves the operations to the end of the block around; nothing is made with the draft after it.
  void Splice();

 private:
  Builder& around_;
  Diagnostics said_;
  std::unique_ptr<Block> block_;
  Builder builder_;
};

}  // namespace mlc
