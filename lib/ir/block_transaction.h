// lib/ir/block_transaction.h - a block under construction: a branch, a loop body, or a tentative
// lowering.
//
//   BlockTransaction body(builder);
//   Value* x = body.Input(type, "x");
//   body.Finish({body.builder().Make("relu", {{"x", x}})});
//   blocks.push_back(body.Take());
//
// It is a transaction: what was created and reported through its builder is kept once the
// block is taken or spliced, and discarded otherwise: operations and their names (numeric suffixes
// are not reused), symbols and narrowed bounds (Block::Narrow), notes, warnings and decisions. A
// taken block is discarded in the same way, except for its diagnostics, until an operation owns it.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc {

class BlockTransaction {
 public:
  // Starts a block at the insertion point of `around`, which must outlive the transaction.
  explicit BlockTransaction(Builder& around);
  BlockTransaction(const BlockTransaction&) = delete;
  BlockTransaction& operator=(const BlockTransaction&) = delete;

  Builder& builder() { return builder_; }
  Block* block() { return block_.get(); }  // null once taken or spliced
  Value* Input(Type type, std::string_view hint);
  void Finish(std::vector<Value*> outputs) { block_->SetOutputs(std::move(outputs)); }
  std::unique_ptr<Block> Take();
  // Moves the operations to the end of the enclosing block. The transaction must not be used
  // afterwards.
  void Splice();

 private:
  Builder& around_;
  Diagnostics said_;
  std::unique_ptr<Block> block_;
  Builder builder_;
};

}  // namespace mlc
