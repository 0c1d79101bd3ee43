// lib/precision/trials.h - runs of a program in fp32, and of candidates: what becomes of it when some
// of its operations stay fp32 and the others are narrowed. The searches (rounding.h, least.h) choose
// among them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/analysis/cost.h"
#include "lib/precision/figures.h"
#include "lib/precision/measure.h"
#include "lib/precision/seen.h"

namespace mlc {

// Operations that stay fp32 and why, by name: PassContext::measured.
using Fp32Operations = std::map<std::string, WhyFp32>;

// A function with the inputs of its runs and what it shall compute.
struct Job {
  const Function* function;
  std::vector<StepInputs> steps;
  std::set<size_t> sensitive = {};  // steps that are run with sums in other orders, too
  Cost cost = {};                   // of all steps
  std::vector<StepResults> references = {};
  std::vector<Budgets> budgets = {};  // of each kSamplesOfOneFloor steps
  bool floor_taken = false;
};
using Jobs = std::vector<Job>;

struct Candidate {
  Figures figures = {};
  // The first value that is infinite or NaN where it is a number in fp32; empty: none.
  std::string lost = {};
  double share = 0;                 // of the work, in fp16
  std::set<std::string> fp32 = {};  // operations of the program that compute in fp32 here
  // By value, how far it is from the one in fp32: the RMS of the difference over that of the value.
  std::map<std::string, double> distance = {};
  Measurement::Figure worst() const { return figures.worst(); }
  bool fits() const { return worst().fits && lost.empty(); }
};

class Trials {
 public:
  // All outlive it. `context.measured` is the choice so far, which searches change.
  Trials(const Program& program, PassContext& context, const MeasureOptions& options);

  Jobs JobsOf(const std::map<std::string, std::vector<StepInputs>>& steps) const;
  // Runs the program in fp32. Steps at whose sizes it cannot be run are left out where they are made
  // up, as long as one can; so are those after as many elements as are affordable. How great numbers
  // are goes into `seen`.
  using SeenByName = std::map<std::string, Seen>;
  void RunReferences(Jobs& jobs, SeenByName& seen);
  // Likewise, and what the source computes is the reference, so that the error of what passes rewrote
  // counts, too; unless it is outside without any fp16, about which nothing can be done here.
  void CompareWithSource(Jobs& jobs);

  // In these orders of sums, of which 0 is the kernels' own and for all steps. Runs in other orders
  // end with the first that does not fit.
  Candidate Try(const Fp32Operations& fp32, Jobs& jobs, const std::vector<int>& orders = {0});
  // What the program makes of the same inputs when only its constants are in fp16 raises what is
  // allowed. False where that was taken already.
  bool TakeFloors(Jobs& jobs);

  // Names of operations that candidates can keep in fp32, in program order.
  std::vector<std::string> Narrowed(const Candidate& candidate) const;
  // What all of `names` in [begin, end) add to the choice so far.
  Fp32Operations Keeping(std::span<const std::string> names, const WhyFp32& why) const;
  // Adds the operations that take or make numbers of which `is` is true, with what that says.
  void Mark(const SeenByName& seen, const std::function<bool(const Seen&)>& is, Fp32Reason reason,
            std::string_view text);
  // What hangs on how many steps the job has.
  void Prepare(Job& job) const;
  // What is wrong with a candidate, in a sentence.
  std::string Evidence(const Candidate& without) const;
  // What the inputs are called in a sentence: "made-up", "the given".
  std::string_view Inputs() const { return made_up ? "made-up" : "the given"; }

  const Program& program;
  PassContext& context;
  const MeasureOptions& options;
  const bool made_up;
  Jobs jobs;
  SeenByName seen;              // of the fp32 program's values
  bool overruled = false;       // by what the user asks for in fp16
  bool look_at_values = false;  // Candidate::distance is wanted
  int runs = 0;                 // of candidates
  double work = 0;  // of all runs of candidates: multiply-adds, or eight for each element
  std::vector<Measurement::Point> tried;  // of --precision mixed

 private:
  struct Ran;
  void RunReference(Job& job, SeenByName& seen);
  Ran RunCandidate(const Program& made, const Jobs& jobs, size_t which, int order,
                   std::shared_ptr<PreparedWeights> weights, Candidate& candidate);
  static void Judge(const Jobs& jobs, std::span<const Ran> runs, Candidate& candidate);
  EngineOptions Options(EngineOptions::Arithmetic arithmetic) const;
  const Program* Source();

  std::optional<Program> source_, rounded_;         // the latter: with its constants in fp16
  std::map<std::string, std::vector<float>> kept_;  // some elements of the first run's values
};

std::vector<size_t> AllSteps(const Job& job);
double MultiplyAdds(const Jobs& jobs);
// Whether it computes something of which candidates can choose the type.
bool IsMeasured(const Operation& op);
bool ComputesFp32(const Operation& op);
// What an operation is called in Fp32Operations: those of a text have no other name.
inline const std::string& NameOf(const Operation& op) { return op.results[0]->name; }

}  // namespace mlc
