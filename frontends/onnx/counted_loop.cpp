#include "frontends/onnx/counted_loop.h"

#include "lib/ir/draft.h"

namespace mlc::onnx {

std::vector<Value*> CountedLoop(Builder& b, Value* steps, std::vector<Value*> variables,
                                const LoopStep& step) {
  variables.insert(variables.begin(), b.Const(Tensor::Vector(std::vector<int32_t>{0})));
  Draft condition(b), body(b);
  std::vector<Value*> before, vars;
  for (const Value* variable : variables) {
    before.push_back(condition.Input(variable->type, variable->name));
    vars.push_back(body.Input(variable->type, variable->name));
  }
  condition.Finish({condition.builder().Make("less", {{"x", before[0]}, {"y", steps}})});
  std::vector<Value*> after = step(body.builder(), vars[0], {vars.begin() + 1, vars.end()});
  after.insert(after.begin(), body.builder().Make("add", {{"x", vars[0]}, {"y", 1}}));
  body.Finish(std::move(after));
  std::vector<std::unique_ptr<Block>> blocks;
  blocks.push_back(condition.Take());
  blocks.push_back(body.Take());
  std::vector<Value*> results =
      b.MakeNested("while_loop", {{"loop_vars", variables}}, std::move(blocks));
  return {results.begin() + 1, results.end()};
}

}  // namespace mlc::onnx
