#include "lib/networks/counted_loop.h"

#include "lib/ir/arithmetic.h"
#include "lib/ir/block_transaction.h"
#include "lib/lower/convert.h"

namespace mlc::networks {

std::vector<Value*> CountedLoop(Builder& b, Value* steps, std::vector<Value*> variables,
                                const LoopStep& step) {
  variables.insert(variables.begin(), b.Const(Tensor::Vector(std::vector<int32_t>{0})));
  BlockTransaction condition(b), body(b);
  std::vector<Value*> before, vars;
  for (const Value* variable : variables) {
    before.push_back(condition.Input(variable->type, variable->name));
    vars.push_back(body.Input(variable->type, variable->name));
  }
  condition.Finish({Binary(condition.builder(), "less", before[0], steps)});
  std::vector<Value*> after = step(body.builder(), vars[0], {vars.begin() + 1, vars.end()});
  after.insert(after.begin(), Binary(body.builder(), "add", vars[0], 1));
  body.Finish(std::move(after));
  std::vector<std::unique_ptr<Block>> blocks;
  blocks.push_back(condition.Take());
  blocks.push_back(body.Take());
  std::vector<Value*> results =
      b.MakeNested("while_loop", {{"loop_vars", variables}}, std::move(blocks));
  return {results.begin() + 1, results.end()};
}

Swept Sweep(Builder& b, Value* x, std::vector<Value*> states, const std::vector<Size>& element,
            DType dtype, bool reverse, const SweepStep& step) {
  Sizes count(b);
  count.AddDim(x, 0);
  Value* steps = lower::AtRunTime(b, count.Make(), DType::kInt64);
  auto carried = std::ssize(states);
  if (!element.empty()) {
    Sizes all(b);
    all.AddDim(x, 0);
    for (const Size& size : element)
      size.of ? all.AddDim(size.of, size.axis) : all.Add(size.number);
    bool small = all.known() && ElementCount(all.numbers()) <= b.fold_limit;
    states.push_back(
        small ? b.Const(Tensor::Full(dtype, all.numbers(), 0))
              : b.Make("fill", {{"shape", all.Make()}, {"value", Tensor::Full(dtype, {}, 0)}}));
  }
  auto body = [&](Builder& in, Value* done, const std::vector<Value*>& vars) {
    Value* t = done;
    if (reverse) t = Binary(in, "sub", Binary(in, "sub", steps, done), 1);
    Swept next = step(in, t, {vars.begin(), vars.begin() + carried});
    if (!element.empty())
      next.states.push_back(in.Make("scatter", {{"data", vars.back()},
                                                {"indices", t},
                                                {"updates", next.y},
                                                {"axis", 0},
                                                {"mode", "update"}}));
    return next.states;
  };
  Swept all{CountedLoop(b, steps, std::move(states), body), nullptr};
  if (element.empty()) return all;
  all.y = all.states.back();
  all.states.pop_back();
  return all;
}

}  // namespace mlc::networks
