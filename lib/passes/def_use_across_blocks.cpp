#include "lib/passes/def_use_across_blocks.h"

namespace mlc::passes {

DefUseGraph::DefUseGraph(const Function& function) {
  ForEachOperation(const_cast<Function&>(function), [&](Operation* op) {
    if (op->blocks.empty()) return;
    if (!IsLoop(*op)) {
      for (const std::unique_ptr<Block>& branch : op->blocks)
        for (size_t i = 0; i < op->results.size(); ++i)
          Connect(branch->outputs()[i], op->result(static_cast<int>(i)));
      return;
    }
    const Operands& given = op->arg("loop_vars");
    const std::vector<Value*>& made = op->blocks[1]->outputs();
    for (size_t i = 0; i < given.size(); ++i)
      for (const Value* from :
           {static_cast<const Value*>(given[i].value), static_cast<const Value*>(made[i])}) {
        if (!from) continue;  // a literal
        for (const std::unique_ptr<Block>& block : op->blocks)
          Connect(from, block->inputs[i].get());
        Connect(from, op->result(static_cast<int>(i)));
      }
  });
}

void DefUseGraph::Connect(const Value* from, const Value* to) {
  origins_[to].push_back(from);
  followers_[from].push_back(to);
}

const std::vector<const Value*>& DefUseGraph::Origins(const Value* value) const {
  static const std::vector<const Value*> kNone;
  auto it = origins_.find(value);
  return it == origins_.end() ? kNone : it->second;
}

}  // namespace mlc::passes
