// Removes branches that are always taken and loops that never run, and moves loop invariants out of
// loop variables.
//
//   y = cond(pred = true) () { a = relu(x); } -> (a) () { b = exp(x); } -> (b)   ->   y = relu(x)
//   i, y = while_loop(0, x) (j, a) { c = less(j, 3); } -> (c) (k, b) { l = add(k, b); } -> (l, b)
//     ->   i = while_loop(0) (j) { c = less(j, 3); } -> (c) (k) { l = add(k, x); } -> (l); y is x
//
// Also removes unused results of a cond. Must not fire if the predicate is computed at run time, or
// on variables that the loop modifies. No numeric effect.
//
// Operators by name: cond, while_loop, and the identity that it creates for an output.
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

// Replaces a result by `to`, or by a copy of it if an output requires one.
void Stand(Operation* op, Value* from, Value* to, PassContext& context) {
  Function& function = *op->block->function;
  if (!CanReplace(from, to)) to = BuilderBefore(op, context).Make("identity", {{"x", to}});
  bool same = to->type == from->type;
  ReplaceAllUses(from, to);
  if (!same) InferUsers(to, function);
}

bool TakeBranch(Operation* op, PassContext& context) {
  Tensor pred = op->is("cond") ? op->constant("pred") : Tensor();
  if (!pred) return false;
  Block& branch = *op->blocks[pred.Bool(0) ? 0 : 1];
  std::vector<Value*> outputs = branch.outputs();
  branch.SetOutputs({});
  while (!branch.operations().empty()) op->block->MoveBefore(branch.operations().front(), op);
  for (size_t i = 0; i < outputs.size(); ++i)
    Stand(op, op->result(static_cast<int>(i)), outputs[i], context);
  EraseUnused(op);
  return true;
}

bool SkipLoop(Operation* op, PassContext& context) {
  if (!op->is("while_loop")) return false;
  Tensor runs = op->blocks[0]->outputs()[0]->constant();
  if (!runs || runs.Bool(0)) return false;
  for (size_t i = 0; i < op->results.size(); ++i)
    if (Value* variable = op->value("loop_vars", static_cast<int>(i)))
      Stand(op, op->result(static_cast<int>(i)), variable, context);
    else
      return false;
  EraseUnused(op);
  return true;
}

void DropResult(Operation* op, size_t i) {
  op->block->function->ReleaseName(op->results[i]->name);
  op->results.erase(op->results.begin() + static_cast<ptrdiff_t>(i));
  for (size_t k = i; k < op->results.size(); ++k) op->results[k]->index = static_cast<int>(k);
}

void DropOutput(Block& block, size_t i) {
  std::vector<Value*> outputs = block.outputs();
  outputs.erase(outputs.begin() + static_cast<ptrdiff_t>(i));
  block.SetOutputs(std::move(outputs));
}

bool DropUnused(Operation* op, PassContext&) {
  if (!op->is("cond")) return false;
  bool changed = false;
  for (size_t i = op->results.size(); i-- > 0;) {
    if (op->results.size() == 1 || op->results[i]->has_uses()) continue;
    DropResult(op, i);
    for (std::unique_ptr<Block>& block : op->blocks) DropOutput(*block, i);
    changed = true;
  }
  return changed;
}

// Replaces an input of the block by the value `to` from an enclosing block.
void ReplaceInput(Block& block, size_t i, Value* to) {
  Value* input = block.inputs[i].get();
  auto in_outputs = [&](Block& b) {
    for (size_t k = 0; k < b.outputs().size(); ++k)
      if (b.outputs()[k] == input) b.SetOutput(static_cast<int>(k), to);
  };
  in_outputs(block);
  ForEachOperation(block, [&](Operation* op) {
    for (std::unique_ptr<Block>& nested : op->blocks) in_outputs(*nested);
  });
  ReplaceAllUses(input, to);
  block.function->ReleaseName(input->name);
  block.inputs.erase(block.inputs.begin() + static_cast<ptrdiff_t>(i));
}

bool TakeOutInvariants(Operation* op, PassContext& context) {
  if (!op->is("while_loop")) return false;
  bool changed = false;
  Block& body = *op->blocks[1];
  for (size_t i = op->results.size(); i-- > 0;) {
    Value *input = body.inputs[i].get(), *initial = op->value("loop_vars", static_cast<int>(i));
    if (op->results.size() == 1 || body.outputs()[i] != input || !initial) continue;
    bool same = initial->type == input->type;
    Stand(op, op->result(static_cast<int>(i)), initial, context);
    DropOutput(body, i);
    ReplaceInput(*op->blocks[0], i, initial);
    ReplaceInput(body, i, initial);
    DropResult(op, i);
    Operands variables = op->arg("loop_vars");
    variables.erase(variables.begin() + static_cast<ptrdiff_t>(i));
    op->SetArg("loop_vars", std::move(variables));
    if (!same) InferUsers(initial, *op->block->function);
    changed = true;
  }
  return changed;
}

}  // namespace

extern const PassDef kFoldControlFlow = {
    "fold-control-flow", "remove branches with constant predicates and loops that never run",
    Rewrites<TakeBranch, SkipLoop, DropUnused, TakeOutInvariants>};

}  // namespace mlc::passes
