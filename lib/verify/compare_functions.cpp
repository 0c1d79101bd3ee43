#include "lib/verify/compare_functions.h"

#include <algorithm>
#include <limits>
#include <set>

#include "lib/support/error.h"

namespace mlc::verify {

bool HasStates(const Function& function) { return !function.states.empty(); }

bool IsRandom(const Function& function) {
  bool random = false;
  ForEachOperation(const_cast<Function&>(function),
                   [&](Operation* op) { random = random || op->def->effect == Effect::kRandom; });
  return random;
}

const Function* FunctionNamed(const Program& program, std::string_view name) {
  for (const auto& function : program.functions)
    if (function->name == name) return function.get();
  return nullptr;
}

std::vector<FunctionPair> MatchFunctions(const Program& a, const Program& b) {
  if (a.functions.size() == 1 && b.functions.size() == 1)
    return {{a.functions[0].get(), b.functions[0].get()}};
  std::vector<FunctionPair> pairs;
  for (const auto& function : a.functions)
    pairs.push_back({function.get(), FunctionNamed(b, function->name)});
  for (const auto& function : b.functions)
    if (!FunctionNamed(a, function->name)) pairs.push_back({nullptr, function.get()});
  return pairs;
}

const std::string& UserName(const Port& port) {
  return port.source_name.empty() ? port.name : port.source_name;
}

std::vector<StepResults> RunSteps(const Function& function, const std::vector<StepInputs>& steps,
                                  const engine::EngineOptions& options,
                                  const std::function<void()>& done) {
  engine::Engine engine(function, options);
  engine::States states;
  std::vector<StepResults> all;
  for (const StepInputs& inputs : steps) {
    std::map<std::string, Tensor> results = engine.Run(inputs, states);
    StepResults step;
    for (size_t i = 0; i < function.outputs.size(); ++i)
      step.outputs.emplace_back(UserName(function.outputs[i]),
                                results.at(function.body.outputs()[i]->name));
    for (const Port& port : function.states)
      step.states.emplace_back(UserName(port), states.at(port.name));
    all.push_back(std::move(step));
    if (done) done();
  }
  return all;
}

Compared CompareTensor(std::string function, std::string name, bool state, int64_t step,
                       const Tensor& value, const Tensor& reference, const Budget& budget) {
  Compared compared;
  compared.function = std::move(function);
  compared.name = std::move(name);
  compared.state = state;
  compared.step = step;
  compared.budget = budget;
  Comparison& c = compared.comparison;
  if (!value) {
    c.mismatch = state ? "no such state" : "no such output";
    c.max_error = c.rmse = std::numeric_limits<double>::infinity();
    c.equal_fraction = 0;
    return compared;
  }
  c = Compare(value, reference, budget);
  compared.within = c.Within(budget);
  if (budget.stated) {
    Budget without = budget;
    without.stated.reset();
    compared.exceeds = compared.within && !c.Within(without);
  }
  compared.tells = c.Tells(budget);
  if (c.mismatch.empty() && !c.exact && !budget.per_axis && !budget.elementwise())
    compared.hidden = FindHidden(value, reference);
  return compared;
}

std::vector<Compared> CompareSteps(const std::string& function,
                                   const std::vector<StepResults>& values,
                                   const std::vector<StepResults>& references, Match match,
                                   const Budgets& budgets) {
  MLC_CHECK(references.size() <= values.size(), "{} steps, {} references", values.size(),
            references.size());
  std::vector<Compared> list;
  for (size_t step = 0; step < references.size(); ++step)
    for (bool state : {false, true}) {
      const NamedTensors& known = state ? references[step].states : references[step].outputs;
      const NamedTensors& computed = state ? values[step].states : values[step].outputs;
      for (size_t i = 0; i < known.size(); ++i) {
        const auto& [name, reference] = known[i];
        if (!reference) continue;
        Tensor value;
        if (match == Match::kByPlace && i < computed.size()) value = computed[i].second;
        if (match == Match::kByName)
          for (const auto& [own, tensor] : computed)
            if (own == name) value = tensor;
        list.push_back(CompareTensor(function, name, state, static_cast<int64_t>(step), value,
                                     reference, budgets.of(name)));
      }
    }
  return list;
}

Verdict Judge(const std::vector<Compared>& list) {
  // In a function with outputs, comparisons of states alone are not conclusive.
  std::set<std::string> silent, telling, with_outputs;
  for (const Compared& compared : list)
    if (!compared.state) with_outputs.insert(compared.function);
  for (const Compared& compared : list) {
    if (!compared.tells) {
      silent.insert(compared.function);
      continue;
    }
    if (!compared.within) return Verdict::kFailed;
    if (!compared.state || !with_outputs.contains(compared.function))
      telling.insert(compared.function);
  }
  bool all = std::includes(telling.begin(), telling.end(), silent.begin(), silent.end());
  return telling.empty() || !all ? Verdict::kNothingCompared : Verdict::kPassed;
}

}  // namespace mlc::verify
