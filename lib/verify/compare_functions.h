// lib/verify/compare_functions.h - the results of functions over several steps, and their
// comparison.
//
// Programs are compared function by function. States are zero before the first step, are carried
// from step to step, and are compared after each step like outputs. For functions without states,
// the steps are independent samples.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/engine/engine.h"
#include "lib/verify/compare.h"

namespace mlc::verify {

// The number of steps for functions with states: enough to notice a state that is not kept.
inline constexpr int64_t kStatefulSteps = 3;
bool HasStates(const Function& function);
bool IsRandom(const Function& function);  // whether any result is random
// Returns null if there is no such function.
const Function* FunctionNamed(const Program& program, std::string_view name);

// Functions with the same name, or the single functions of two programs. Null means that only the
// other program has the function.
struct FunctionPair {
  const Function *a = nullptr, *b = nullptr;
};
std::vector<FunctionPair> MatchFunctions(const Program& a, const Program& b);

// Keyed by the name in the source if there is one, else by the MIL name.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
const std::string& UserName(const Port& port);

// The outputs of a function in one step, and its states after that step, in the order of its ports.
// An empty Tensor means that the value is unknown.
struct StepResults {
  NamedTensors outputs, states;
};
using StepInputs = std::map<std::string, Tensor>;  // by MIL name, as Engine takes them
// `done` is called after each step.
std::vector<StepResults> RunSteps(const Function& function, const std::vector<StepInputs>& steps,
                                  const engine::EngineOptions& options,
                                  const std::function<void()>& done = {});

// The comparison of one output or state in one step.
struct Compared {
  std::string function, name;
  bool state = false;
  int64_t step = 0;
  Comparison comparison;
  std::optional<HiddenSlice> hidden;
  bool within = false, tells = true;  // Comparison::Within and Tells for `budget`
  bool exceeds = false;  // within the budget only because of the error stated in the manifest
  Budget budget;
  int64_t ties =
      0;  // elements accepted although they are one quantisation step apart (quantisation_ties.h)
};
// Also fills in `hidden`.
Compared CompareTensor(std::string function, std::string name, bool state, int64_t step,
                       const Tensor& value, const Tensor& reference, const Budget& budget);
// Compares everything in `references` with the value at the same position or of the same name. A
// missing value is a mismatch.
enum class Match { kByPlace, kByName };
std::vector<Compared> CompareSteps(const std::string& function,
                                   const std::vector<StepResults>& values,
                                   const std::vector<StepResults>& references, Match match,
                                   const Budgets& budgets);

// The verdict over all comparisons. Inconclusive comparisons are ignored; a function that has only
// such comparisons gives kNothingCompared.
enum class Verdict { kPassed, kNothingCompared, kFailed };
Verdict Judge(const std::vector<Compared>& list);

// Orders failures first and inconclusive comparisons last, then by error.
bool Worse(const Compared& a, const Compared& b);
// The worst comparison of an output or state, and the number of its steps.
struct Steps {
  const Compared* worst;
  int64_t count;
};
// In the order of first occurrence.
std::vector<Steps> WorstSteps(const std::vector<Compared>& list);
// Why a comparison is inconclusive; empty for the others.
std::string WhyItTellsNothing(const Compared& compared);

// Human-readable: one line for each output and state with the worst of its steps, and a headline
// for each function if there are several.
std::string ReportText(const std::vector<Compared>& list);
// The last line of a report: PASSED (with a remark if that depends on an error stated in the
// manifest), FAILED, or what was not compared.
std::string VerdictText(const std::vector<Compared>& list);
// Machine-readable: a JSON array with one object for each comparison.
// ReportFromJson(ReportJson(list)) gives the same reports as `list`; it throws exceptions of the
// JSON library.
std::string ReportJson(const std::vector<Compared>& list);
std::vector<Compared> ReportFromJson(std::string_view json);

}  // namespace mlc::verify
