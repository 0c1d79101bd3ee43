// Removes operations whose results have no users.
//
//   %a = add(x, y)      (unused)
//   %b = mul(x, y)  ->  %b = mul(x, y)
//
// Must not fire on operations with side effects (write_state, also in nested blocks) or on model
// inputs. No numeric effect.
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

bool RunOnBlock(Block& block) {
  std::vector<Operation*> operations(block.operations().begin(), block.operations().end());
  bool changed = false;
  for (auto it = operations.rbegin(); it != operations.rend(); ++it) {
    Operation* op = *it;
    for (std::unique_ptr<Block>& nested : op->blocks) changed |= RunOnBlock(*nested);
    bool used = HasEffects(*op);
    for (const std::unique_ptr<Value>& result : op->results) used = used || result->has_uses();
    if (used) continue;
    block.Erase(op);
    changed = true;
  }
  return changed;
}

bool RunDeadCode(Program& program, PassContext&) {
  return OnEachFunction(program, [&](Function& f) { return RunOnBlock(f.body); });
}

}  // namespace

extern const PassDef kDeadCode = {"dead-code", "remove operations whose results are not used",
                                  RunDeadCode};

}  // namespace mlc::passes
