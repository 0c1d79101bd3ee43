// lib/precision/precision_trials.h - runs of a program in fp32 and of candidates, in which some
// operations stay in fp32 and the others are narrowed. The searches (rounding.h,
// minimal_fp32_search.h) choose among candidates.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/analysis/cost.h"
#include "lib/precision/activation_stats.h"
#include "lib/precision/error_stats.h"
#include "lib/precision/measure.h"

namespace mlc::precision {

// The operations that stay in fp32 and the reasons, by name: PassContext::measured.
using Fp32Operations = std::map<std::string, passes::Fp32Decision>;

// A function with the inputs of its runs and the expected results.
struct Job {
  const Function* function;
  std::vector<verify::StepInputs> steps;
  std::set<size_t> sensitive = {};  // steps that also run with sums in other orders
  analysis::Cost cost = {};         // sum over all steps
  std::vector<verify::StepResults> references = {};
  std::vector<verify::Budgets> budgets = {};  // one for every kSamplesOfOneFloor steps
  bool floor_taken = false;
};
using Jobs = std::vector<Job>;

struct Candidate {
  ErrorStats figures = {};
  // The first value that is infinite or NaN where it is finite in fp32; empty if there is none.
  std::string lost = {};
  double share = 0;  // share of the work in fp16
  std::set<std::string> fp32 =
      {};  // operations of the program that compute in fp32 in this candidate
  // By value: the RMS of its difference from fp32, relative to the RMS of the value.
  std::map<std::string, double> distance = {};
  Measurement::Figure worst() const { return figures.worst(); }
  bool fits() const { return worst().fits && lost.empty(); }
};

class PrecisionTrials {
 public:
  // All arguments must outlive the object. `context.measured` is the current choice, which searches
  // modify.
  PrecisionTrials(const Program& program, passes::PassContext& context,
                  const MeasureOptions& options);

  Jobs JobsOf(const std::map<std::string, std::vector<verify::StepInputs>>& steps) const;
  // Runs the program in fp32. Generated steps with sizes that cannot be run are skipped unless none
  // is left, and so are steps after the affordable number of elements. Records magnitudes in
  // `seen`.
  using StatsByName = std::map<std::string, ActivationStats>;
  void RunReferences(Jobs& jobs, StatsByName& seen);
  // Uses the results of the source as references, so that errors of earlier passes count too. If
  // the program exceeds the budget already in fp32, its own results remain the references, because
  // precision cannot fix that.
  void CompareWithSource(Jobs& jobs);

  // Runs a candidate in these summation orders; order 0, that of the kernels, runs all steps. Runs
  // in other orders stop at the first one that does not fit.
  Candidate Try(const Fp32Operations& fp32, Jobs& jobs, const std::vector<int>& orders = {0});
  // Raises the budgets by the floor: the results on the same inputs with only the constants in
  // fp16. Returns false if the floors were already included.
  bool TakeFloors(Jobs& jobs);

  // The operations that candidates can keep in fp32, by name, in program order.
  std::vector<std::string> Narrowed(const Candidate& candidate) const;
  // Returns the current choice extended by `names`.
  Fp32Operations Keeping(std::span<const std::string> names, const passes::Fp32Decision& why) const;
  // Adds the operations with an operand or result for which `is` returns true; `text` gives the
  // reason.
  void Mark(const StatsByName& seen, const std::function<bool(const ActivationStats&)>& is,
            passes::Fp32Reason reason, std::string_view text);
  // Recomputes everything that depends on the step count.
  void Prepare(Job& job) const;
  // Describes in a sentence why the candidate does not fit.
  std::string Evidence(const Candidate& without) const;
  // Describes the inputs in a sentence: "generated", "the given".
  std::string_view Inputs() const { return generated ? "generated" : "the given"; }

  const Program& program;
  passes::PassContext& context;
  const MeasureOptions& options;
  const bool generated;
  Jobs jobs;
  StatsByName seen;             // values of the fp32 program
  bool overruled = false;       // the user requests fp16 for some operations
  bool look_at_values = false;  // compute Candidate::distance
  int runs = 0;                 // number of candidate runs
  double work = 0;  // work of all candidate runs: multiply-adds, or eight for each element
  std::vector<Measurement::Point> tried;  // --precision mixed

 private:
  std::function<void()> Counting();  // reports each sample that is run
  struct Ran;
  void RunReference(Job& job, StatsByName& seen);
  Ran RunCandidate(const Program& made, const Jobs& jobs, size_t which, int order,
                   std::shared_ptr<engine::PreparedWeights> weights, Candidate& candidate);
  static void Judge(const Jobs& jobs, std::span<const Ran> runs, Candidate& candidate);
  engine::EngineOptions Options(engine::EngineOptions::Arithmetic arithmetic) const;
  const Program* Source();

  std::optional<Program> source_, rounded_;  // rounded_: the program with its constants in fp16
  std::map<std::string, std::vector<float>> kept_;  // some elements of each value in the first run
  std::mutex counting_;
  uint64_t counted_ = 0;
};

std::vector<size_t> AllSteps(const Job& job);
double MultiplyAdds(const Jobs& jobs);
// Returns whether the operation computes values whose type candidates can choose.
bool IsMeasured(const Operation& op);
bool ComputesFp32(const Operation& op);
// The key in Fp32Operations: operations of a text file have no other name.
inline const std::string& NameOf(const Operation& op) { return op.results[0]->name; }

}  // namespace mlc::precision
