#include "lib/verify/check_pass.h"

#include "lib/analysis/generated_inputs.h"
#include "lib/verify/compare_functions.h"

namespace mlc::verify {

namespace {

bool Any(const Function& function, const std::function<bool(const Operation&)>& is) {
  bool any = false;
  ForEachOperation(const_cast<Function&>(function), [&](Operation* op) { any = any || is(*op); });
  return any;
}

bool ComputesInFp16(const Function& function) {
  return Any(function, [](const Operation& op) {
    return std::ranges::any_of(op.results, [](const auto& result) {
      return result->type.is_tensor() && result->type.dtype == DType::kFp16;
    });
  });
}

void CheckFunction(const Function& before, const Function& after, uint64_t seed,
                   std::string_view pass) {
  if (IsRandom(before) || IsRandom(after)) return;
  Budgets budgets =
      ParseBudgets(ComputesInFp16(after) && !ComputesInFp16(before) ? "fp16" : "fp32");
  std::vector<StepInputs> steps;
  analysis::GeneratedInputOptions make_up{.seed = seed};
  make_up.shapes = analysis::GeneratedShapes(before, {}, make_up);
  for (; make_up.sample < (HasStates(before) ? kStatefulSteps : 1); ++make_up.sample)
    steps.push_back(analysis::GenerateInputs(before, {}, make_up).tensors);
  for (const Compared& compared :
       CompareSteps(before.name, RunSteps(after, steps, {}), RunSteps(before, steps, {}),
                    Match::kByPlace, budgets)) {
    if (compared.within) continue;
    throw Error(
        "check-failed", "pass {} changes the results: {} \"{}\"{}{}: {}", pass,
        compared.state ? "state" : "output", compared.name,
        before.program->functions.size() > 1 ? fmt::format(" of function {}", before.name) : "",
        steps.size() > 1 ? fmt::format(" in step {}", compared.step + 1) : "",
        Describe(compared.comparison))
        .Help(
            "option 'print-after' shows the program before and after; option 'verify-each' checks "
            "its form");
  }
}

}  // namespace

void CheckSame(const Program& before, const Program& after, uint64_t seed, std::string_view pass) {
  for (const FunctionPair& pair : MatchFunctions(before, after)) {
    if (!pair.a || !pair.b)
      throw Error("check-failed", "pass {} {} function {}", pass, pair.a ? "removes" : "adds",
                  (pair.a ? pair.a : pair.b)->name);
    if (pair.a->outputs.size() != pair.b->outputs.size() ||
        pair.a->states.size() != pair.b->states.size())
      throw Error("check-failed", "pass {} changes the number of outputs or states of function {}",
                  pass, pair.a->name);
    CheckFunction(*pair.a, *pair.b, seed, pass);
  }
}

}  // namespace mlc::verify
