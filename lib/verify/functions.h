// lib/verify/functions.h - what functions compute in several steps, and how far two of them are
// apart.
//
// A program is all of its functions, and a function is its states too: they are zero before the
// first step, go from step to step, and are compared after each of them like outputs. Functions
// without states have steps as well: samples.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/engine/engine.h"
#include "lib/verify/compare.h"

namespace mlc {

// How many steps tell whether a function keeps what it writes into its states.
inline constexpr int64_t kStatefulSteps = 3;
bool HasStates(const Function& function);
bool IsRandom(const Function& function);  // some result is
// Null where there is none.
const Function* FunctionNamed(const Program& program, std::string_view name);

// Functions of one name; the only functions of two programs, whatever their names. Null: only the
// other program has it.
struct FunctionPair {
  const Function *a = nullptr, *b = nullptr;
};
std::vector<FunctionPair> MatchFunctions(const Program& a, const Program& b);

// By the name in the source where there is one, else by the MIL name.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
const std::string& UserName(const Port& port);

// What a function computed in one step: its outputs, and its states after it, in the order of its
// ports. An empty Tensor is not known.
struct StepResults {
  NamedTensors outputs, states;
};
using StepInputs = std::map<std::string, Tensor>;  // by MIL name, as Engine takes them
std::vector<StepResults> RunSteps(const Function& function, const std::vector<StepInputs>& steps,
                                  const EngineOptions& options);

// One output, or state, of a step.
struct Compared {
  std::string function, name;
  bool state = false;
  int64_t step = 0;
  Comparison comparison;
  std::optional<HiddenSlice> hidden;
  bool within = false, tells = true;  // what Comparison says of the budget
  bool exceeds = false;               // it is within by what the manifest states alone
  Budget budget;
  int64_t ties = 0;  // elements that are one step of quantisation apart, and right (ties.h)
};
// With what that figure hides.
Compared CompareTensor(std::string function, std::string name, bool state, int64_t step,
                       const Tensor& value, const Tensor& reference, const Budget& budget);
// Everything that the references hold, by place or, `by_name`, with the value of the same name; a
// value that is not there is a mismatch.
enum class Match { kByPlace, kByName };
std::vector<Compared> CompareSteps(const std::string& function,
                                   const std::vector<StepResults>& values,
                                   const std::vector<StepResults>& references, Match match,
                                   const Budgets& budgets);

// What comparisons of a program say. Those that tell nothing count for nothing; a function of which
// nothing else was compared is not known to be right.
enum class Verdict { kPassed, kNothingCompared, kFailed };
Verdict Judge(const std::vector<Compared>& list);

// For people: a line for each output and state with the worst of its steps, and a headline for each
// function where there are several.
std::string ReportText(const std::vector<Compared>& list);
// The last line: PASSED, with what the manifest states where that decides, FAILED, or what lacks.
std::string VerdictText(const std::vector<Compared>& list);
// For programs: a JSON array with an object for each comparison. What is read of one says the same
// in every report; it throws what the JSON library throws.
std::string ReportJson(const std::vector<Compared>& list);
std::vector<Compared> ReportFromJson(std::string_view json);

}  // namespace mlc
