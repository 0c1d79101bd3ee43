#include "lib/precision/rounding.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "lib/analysis/fp16_share.h"
#include "lib/passes/fp16_sensitivity.h"

namespace mlc::precision {

namespace {

// The fixed cost of a candidate for each operation of the program, in multiply-adds.
constexpr double kWorkOfOperation = 1e5;
// If the error on the first inputs is below this part of every budget, the further inputs are not run:
// in most programs, no output is near its budget on any inputs.
constexpr double kSurelyWithin = 0.2;
// The most orders of sums, the kernels' own included (sum_order_perturbation.h).
constexpr size_t kMostOrders = 8;
// The attempts to keep a value within fp16; each keeps more of the preceding operations in fp32.
constexpr int kMostMended = 12;
// Rounding errors below kDistance, 8 units in the last place, are not attributed to an operation.
constexpr double kDistance = 0x1p-8, kLeastDistance = 0x1p-12;

class Search {
 public:
  Search(PrecisionTrials& trials, double affordable) : trials_(trials), affordable_(affordable) {
    for (const Job& job : trials_.jobs) {
      for (const auto& [op, work] : analysis::WorkOfOperations(*job.function)) {
        if (!op->results.empty()) work_[NameOf(*op)] += work;
        all_work_ += work;
      }
      ForEachOperation(*const_cast<Function*>(job.function),
                       [&](Operation* op) { operations_.push_back(op); });
    }
    for (const Operation* op : operations_)
      for (const auto& result : op->results) makers_[result->name] = op;
  }

  Candidate Run(Jobs more, Measurement& measurement) {
    Candidate candidate = Mended(Try(trials_.context.measured));
    if (candidate.lost.empty() && !more.empty() && candidate.worst().Part() >= kSurelyWithin)
      candidate = LookCloser(std::move(candidate), std::move(more));
    measurement.plain = candidate.worst();
    if (candidate.lost.empty() && !candidate.worst().fits) {
      candidate = Spend(std::move(candidate));
      if (!candidate.worst().fits) measurement.mixed_share = ShareThatFits(candidate);
    }
    measurement.beyond = candidate.figures.Beyond();
    return candidate;
  }

 private:
  Candidate Try(const Fp32Operations& fp32) {
    spent_ += WorkOfTry();
    return trials_.Try(fp32, trials_.jobs);
  }
  // Runs a choice with sums in several orders, as many as affordable, on the steps that `sensitive`
  // returns for each job. Order 0 runs all steps, unless `known` says that it was run before.
  template <class Steps>
  Candidate TryOrders(const Fp32Operations& fp32, Jobs& jobs, bool known, Steps&& sensitive) {
    std::vector<int> orders(kMostOrders);
    std::iota(orders.begin(), orders.end(), known ? 1 : 0);
    while (orders.size() > 1 && !CanRun(jobs, static_cast<double>(orders.size())))
      orders.pop_back();
    spent_ += static_cast<double>(orders.size()) * WorkOf(jobs);
    for (size_t i = 0; i < jobs.size(); ++i) jobs[i].sensitive = sensitive(i);
    return trials_.Try(fp32, jobs, orders);
  }

  // Returns whether a choice brings all outputs within their budgets on all inputs, with a margin and
  // for sums in other orders: other kernels round differently, and a few elements may fit by chance.
  bool Suffices(const Fp32Operations& fp32, Candidate& candidate) {
    candidate = Try(fp32);
    if (!candidate.fits() || !candidate.figures.Safe()) return false;
    for (Jobs* jobs : {&trials_.jobs, &confirming_}) {
      if (jobs->empty() || !CanRun(*jobs)) continue;
      const Candidate other = TryOrders(fp32, *jobs, false, [&](size_t i) {
        const std::vector<size_t> all = AllSteps((*jobs)[i]);
        return std::set<size_t>(all.begin(), all.end());
      });
      candidate.figures.Add(other.figures);
      if (!other.fits() || !other.figures.Safe() || !other.figures.Steady()) return false;
    }
    return true;
  }
  // Adds the figures of the current choice on the further inputs to those of the candidate. Where
  // they are close to a limit or beyond, sums in other orders count as well.
  void Confirm(Candidate& candidate) {
    spent_ += WorkOf(confirming_);
    confirmed_ = trials_.Try(trials_.context.measured, confirming_);
    if (std::ranges::any_of(confirming_, &Job::floor_taken)) spent_ += WorkOf(confirming_);
    candidate.figures.Add(confirmed_.figures);
    if (candidate.lost.empty()) candidate.lost = confirmed_.lost;
    if (!confirmed_.lost.empty() || confirmed_.figures.Safe() || !CanRun(confirming_)) return;
    const Candidate other = TryOrders(trials_.context.measured, confirming_, true,
                                      [&](size_t i) { return confirmed_.figures.Outside(i); });
    candidate.figures.Add(other.figures);
  }
  double WorkOf(const Jobs& jobs) const {
    double work = kWorkOfOperation * static_cast<double>(operations_.size());
    for (const Job& job : jobs)
      work += std::max(job.cost.multiply_adds, analysis::kWorkOfElement * job.cost.elements);
    return work;
  }
  double WorkOfTry() const { return WorkOf(trials_.jobs); }
  bool CanRun(const Jobs& jobs, double times = 1) const {
    return !trials_.generated || spent_ + times * WorkOf(jobs) <= affordable_;
  }
  bool CanTry() const { return CanRun(trials_.jobs); }

  // Keeps operations in fp32 until no value is infinite or NaN that is finite in fp32.
  Candidate Mended(Candidate candidate) {
    std::map<std::string, size_t> kept;  // number of operations kept because of a value
    for (int i = 0; i < kMostMended && !candidate.lost.empty(); ++i) {
      const passes::Fp32Decision why{passes::Fp32Reason::kOverflow, trials_.Evidence(candidate)};
      size_t& count = kept[candidate.lost];
      count = count == 0 ? 2 : 4 * count;
      const std::vector<std::string> names = Before(candidate.lost, count, candidate);
      if (names.empty()) break;
      trials_.context.measured = trials_.Keeping(names, why);
      candidate = Try(trials_.context.measured);
    }
    if (!candidate.lost.empty()) {
      const passes::Fp32Decision why{passes::Fp32Reason::kOverflow, trials_.Evidence(candidate)};
      trials_.context.measured = trials_.Keeping(trials_.Narrowed(candidate), why);
      candidate = Try(trials_.context.measured);
    }
    return candidate;
  }

  // Calls visit(op) for the operations that produce the operands of `op`.
  template <class F>
  void ForEachProducer(const Operation& op, F&& visit) const {
    for (const Operands& operands : op.args())
      for (const Operand& operand : operands)
        if (operand.value && !operand.value->is_constant() && passes::IsFp32(operand.type()) &&
            operand.value->def)
          visit(*operand.value->def);
  }

  // Returns the producer of `value` and the operations before it that the candidate computes in
  // fp16, nearest first.
  std::vector<std::string> Before(const std::string& value, size_t most,
                                  const Candidate& candidate) const {
    std::vector<std::string> names;
    auto it = makers_.find(value);
    if (it == makers_.end()) return names;
    std::deque<const Operation*> open{it->second};
    std::unordered_set<const Operation*> seen{it->second};
    while (!open.empty() && names.size() < most) {
      const Operation* op = open.front();
      open.pop_front();
      if (IsMeasured(*op) && ComputesFp32(*op) && !candidate.fp32.contains(NameOf(*op)))
        names.push_back(NameOf(*op));
      ForEachProducer(*op, [&](const Operation& maker) {
        if (seen.insert(&maker).second) open.push_back(&maker);
      });
    }
    return names;
  }

  // Judges the choice on the further inputs, too. Those on which it fails become jobs.
  Candidate LookCloser(Candidate candidate, Jobs more) {
    try {
      trials_.RunReferences(more, trials_.seen);
    } catch (const Error&) {
      return candidate;
    }
    confirming_ = std::move(more);
    spent_ += WorkOf(confirming_);  // of the references
    Confirm(candidate);
    const bool lost = !confirmed_.lost.empty();
    for (size_t i = 0; i < confirming_.size(); ++i) {
      const Job& all = confirming_[i];
      Job job = all;
      // The step with the value that is lost is unknown, and the states of a step depend on those before.
      if (!lost && !verify::HasStates(*all.function)) {
        job.steps.clear();
        job.references.clear();
        for (size_t step : confirmed_.figures.Outside(i)) {
          job.steps.push_back(all.steps[step]);
          job.references.push_back(all.references[step]);
        }
      } else if (!lost && confirmed_.figures.Outside(i).empty()) {
        continue;
      }
      if (job.steps.empty()) continue;
      trials_.Prepare(job);
      // The floor of all samples applies to each of them.
      job.budgets = all.budgets;
      job.floor_taken = all.floor_taken;
      trials_.jobs.push_back(std::move(job));
    }
    if (!lost) return candidate;
    confirming_.clear();
    return Mended(Try(trials_.context.measured));
  }

  // Walks back from the outputs that exceed their budgets and collects operations that are outputs
  // or whose users are all collected, up to `share` of the work.
  std::vector<std::string> Tail(const Candidate& candidate, double share) const {
    const std::unordered_set<const Operation*> wanted = BeforeOutputs(candidate);
    std::unordered_set<const Operation*> tail;
    std::vector<std::string> names;
    double left = share * all_work_;
    for (auto it = operations_.rbegin(); it != operations_.rend(); ++it) {
      const Operation* op = *it;
      if (!wanted.contains(op) || !IsMeasured(*op) || !ComputesFp32(*op)) continue;
      const bool last = std::ranges::all_of(op->results, [&](const auto& result) {
        return std::all_of(result->users.begin(), result->users.end(), [&](const Operation* user) {
          return tail.contains(user) || !wanted.contains(user) || IsMeasured(*user) == false ||
                 candidate.fp32.contains(NameOf(*user));
        });
      });
      if (!last || !Take(*op, candidate, left, names)) continue;
      tail.insert(op);
    }
    return names;
  }

  // Walks forward from the inputs and collects operations whose producers are all collected, up to
  // `share` of the work.
  std::vector<std::string> Head(const Candidate& candidate, double share) const {
    std::unordered_set<const Operation*> head;
    std::vector<std::string> names;
    double left = share * all_work_;
    for (const Operation* op : operations_) {
      if (!IsMeasured(*op) || !ComputesFp32(*op)) continue;
      bool first = true;
      ForEachProducer(*op, [&](const Operation& maker) {
        first = first && (head.contains(&maker) || !ComputesFp32(maker));
      });
      if (first && Take(*op, candidate, left, names)) head.insert(op);
    }
    return names;
  }

  // Collects the operation that amplifies the error most, and the operations before it.
  std::vector<std::string> Amplifier(const Candidate& candidate, double share) const {
    const std::unordered_set<const Operation*> wanted = BeforeOutputs(candidate);
    const Operation* worst = nullptr;
    double most = 1;
    for (const Operation* op : operations_) {
      if (!wanted.contains(op) || op->results.empty()) continue;
      auto own = candidate.distance.find(op->results[0]->name);
      if (own == candidate.distance.end() || own->second < kDistance) continue;
      double before = kLeastDistance;
      ForEachProducer(*op, [&](const Operation& maker) {
        for (const auto& result : maker.results)
          if (auto it = candidate.distance.find(result->name); it != candidate.distance.end())
            before = std::max(before, it->second);
      });
      if (own->second / before <= most) continue;
      most = own->second / before;
      worst = op;
    }
    std::vector<std::string> names;
    if (!worst) return names;
    double left = share * all_work_;
    std::deque<const Operation*> open{worst};
    std::unordered_set<const Operation*> seen{worst};
    while (!open.empty()) {
      const Operation* op = open.front();
      open.pop_front();
      if (IsMeasured(*op) && ComputesFp32(*op) && !Take(*op, candidate, left, names)) continue;
      ForEachProducer(*op, [&](const Operation& maker) {
        if (seen.insert(&maker).second) open.push_back(&maker);
      });
    }
    return names;
  }

  // Adds the operation if its work fits in what is left; returns true also for operations already
  // in fp32.
  bool Take(const Operation& op, const Candidate& candidate, double& left,
            std::vector<std::string>& names) const {
    if (candidate.fp32.contains(NameOf(op))) return true;
    if (std::ranges::count(names, NameOf(op))) return true;
    auto own = work_.find(NameOf(op));
    const double work = own == work_.end() ? 0 : own->second;
    if (work > left) return false;
    left -= work;
    names.push_back(NameOf(op));
    return true;
  }

  // Returns all operations that outputs outside their budgets depend on.
  std::unordered_set<const Operation*> BeforeOutputs(const Candidate& candidate) const {
    std::set<std::string> names;
    for (const Measurement::Figure& figure : candidate.figures.Beyond())
      names.insert(figure.output);
    std::unordered_set<const Operation*> before;
    std::vector<const Operation*> open;
    for (const Job& job : trials_.jobs) {
      const std::vector<Value*> outputs = job.function->body.outputs();
      for (size_t i = 0; i < outputs.size() && i < job.function->outputs.size(); ++i)
        if (names.contains(verify::UserName(job.function->outputs[i])) && outputs[i]->def &&
            before.insert(outputs[i]->def).second)
          open.push_back(outputs[i]->def);
    }
    for (size_t i = 0; i < open.size(); ++i)
      for (const Operands& operands : open[i]->args())
        for (const Operand& operand : operands)
          if (operand.value && operand.value->def && before.insert(operand.value->def).second)
            open.push_back(operand.value->def);
    return before;
  }

  // Tries to bring the outputs within their budgets with at most kRoundingShare of the work in
  // fp32.
  Candidate Spend(Candidate candidate) {
    const passes::Fp32Decision why{passes::Fp32Reason::kRounding, trials_.Evidence(candidate)};
    using Choose = std::vector<std::string> (Search::*)(const Candidate&, double) const;
    constexpr Choose kChoices[] = {&Search::Tail, &Search::Amplifier, &Search::Head};
    for (const Choose choose : kChoices) {
      std::vector<std::string> names = (this->*choose)(candidate, kRoundingShare);
      if (names.empty() || !CanTry()) continue;
      Fp32Operations fp32 = trials_.Keeping(names, why);
      Candidate other;
      if (!Suffices(fp32, other)) continue;
      // Reduces the share as far as the remaining work allows.
      for (double share = kRoundingShare / 4; CanTry(); share = 0) {
        names = (this->*choose)(candidate, share);
        if (names.empty()) break;
        Fp32Operations fewer = trials_.Keeping(names, why);
        Candidate less;
        if (!Suffices(fewer, less)) break;
        other = std::move(less);
        fp32 = std::move(fewer);
        if (share == 0) break;
      }
      trials_.context.measured = std::move(fp32);
      return other;
    }
    return candidate;
  }

  // Returns a share of the work in fp32, counted from the outputs, that brings all outputs within
  // their budgets; nothing if that is too expensive to find out or none was found.
  std::optional<double> ShareThatFits(const Candidate& candidate) {
    const passes::Fp32Decision why{passes::Fp32Reason::kRounding, trials_.Evidence(candidate)};
    double misses = kRoundingShare, fits = 1;
    for (int i = 0; i < 3; ++i) {
      if (!CanTry()) break;
      const double share = std::sqrt(misses * fits);
      const Candidate other = Try(trials_.Keeping(Tail(candidate, share), why));
      (other.fits() ? fits : misses) = other.fits() ? std::min(share, 1 - other.share) : share;
      if (misses >= fits) break;
    }
    return fits < 1 ? std::optional(fits) : std::nullopt;
  }

  PrecisionTrials& trials_;
  const double affordable_;
  double spent_ = 0;
  Jobs confirming_;                           // the further inputs; empty before they are run
  Candidate confirmed_;                       // the last candidate that ran on them
  std::vector<const Operation*> operations_;  // operations of all functions, in order
  // By name, which operations of several functions may share: a choice applies to all of them.
  std::map<std::string, double> work_;
  double all_work_ = 0;
  std::map<std::string, const Operation*> makers_;  // by the name of the result
};

}  // namespace

Candidate SearchDefault(PrecisionTrials& trials, Jobs more, double affordable,
                        Measurement& measurement) {
  return Search(trials, affordable).Run(std::move(more), measurement);
}

}  // namespace mlc::precision
