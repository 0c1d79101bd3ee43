#include "frontends/onnx/loop.h"

namespace mlc::onnx {

namespace {

// A block of a loop over these variables, filled by `fill`, which gives the block's outputs.
std::unique_ptr<Block> LoopBlock(
    Builder& b, const std::vector<Value*>& variables,
    const std::function<std::vector<Value*>(Builder&, const std::vector<Value*>&)>& fill) {
  auto block = std::make_unique<Block>();
  block->function = b.block().function;
  std::vector<Value*> inputs;
  for (const Value* variable : variables) {
    auto input = std::make_unique<Value>();
    input->name = block->function->UniqueName(variable->name);
    input->type = variable->type;
    inputs.push_back(input.get());
    block->inputs.push_back(std::move(input));
  }
  Builder inner(*block, b.diagnostics());
  inner.SetName(b.name());
  inner.SetLocation(b.location());
  try {
    block->SetOutputs(fill(inner, inputs));
  } catch (...) {
    block->Clear();
    throw;
  }
  return block;
}

}  // namespace

std::vector<Value*> CountedLoop(Builder& b, Value* steps, std::vector<Value*> variables,
                                const LoopStep& step) {
  variables.insert(variables.begin(), b.Const(Tensor::Vector(std::vector<int32_t>{0})));
  std::vector<std::unique_ptr<Block>> blocks;
  blocks.push_back(LoopBlock(b, variables, [&](Builder& in, const std::vector<Value*>& vars) {
    return std::vector<Value*>{in.Make("less", {{"x", vars[0]}, {"y", steps}})};
  }));
  try {
    blocks.push_back(LoopBlock(b, variables, [&](Builder& in, const std::vector<Value*>& vars) {
      std::vector<Value*> after = step(in, vars[0], {vars.begin() + 1, vars.end()});
      after.insert(after.begin(), in.Make("add", {{"x", vars[0]}, {"y", 1}}));
      return after;
    }));
  } catch (...) {
    blocks[0]->Clear();
    throw;
  }
  std::vector<Value*> results =
      b.MakeNested("while_loop", {{"loop_vars", variables}}, std::move(blocks));
  return {results.begin() + 1, results.end()};
}

}  // namespace mlc::onnx
