#include "lib/ir/block_transaction.h"

namespace mlc {

namespace {

std::unique_ptr<Block> EmptyBlock(Function* function) {
  auto block = std::make_unique<Block>();
  block->function = function;
  return block;
}

}  // namespace

BlockTransaction::BlockTransaction(Builder& around)
    : around_(around), block_(EmptyBlock(around.block().function)), builder_(*block_, said_) {
  builder_.SetName(around.name());
  builder_.SetLocation(around.location());
}

Value* BlockTransaction::Input(Type type, std::string_view hint) {
  auto input = std::make_unique<Value>();
  input->name = block_->function->UniqueName(hint);
  input->type = std::move(type);
  block_->inputs.push_back(std::move(input));
  return block_->inputs.back().get();
}

std::unique_ptr<Block> BlockTransaction::Take() {
  around_.diagnostics().Append(std::move(said_));
  return std::move(block_);
}

void BlockTransaction::Splice() {
  around_.diagnostics().Append(std::move(said_));
  around_.block().Append(*block_);
  block_.reset();
}

}  // namespace mlc
