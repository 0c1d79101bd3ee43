#include "lib/precision/minimal_fp32_search.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "lib/passes/def_use_across_blocks.h"

namespace mlc::precision {

namespace {

// Rounds that add only the failing inputs; after these, all confirming inputs are added.
constexpr int kCounterexamples = 3;
// Orders of sums beyond that of the kernels. kOrders of them confirm a choice, fewer if their runs
// would exceed kWorkOfOrders multiply-adds, but at least one; one suffices for a candidate below
// kCalm of its budget. After a failure, candidates run in kOrders more orders, up to kMostOrders.
constexpr int kOrders = 4, kMostOrders = 8;
constexpr double kWorkOfOrders = 4e9, kCalm = 0.5;
// The multiply-adds of all runs after which the search is no longer refined.
constexpr double kWorkOfLeast = 1e11;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<int> Orders(int first, int count) {
  std::vector<int> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

class Search {
 public:
  Search(PrecisionTrials& trials, Jobs confirming)
      : trials_(trials), confirming_(std::move(confirming)) {}

  Candidate Run() {
    const Fp32Operations before = trials_.context.measured;
    Candidate candidate = Choose();
    if (candidate.fits()) try {
        trials_.RunReferences(confirming_, trials_.seen);
        trials_.CompareWithSource(confirming_);
      } catch (const Error&) {
        confirming_.clear();
      }
    for (int i = 1; candidate.fits(); ++i) {
      if (!TakeCounterexamples(i == kCounterexamples)) {
        const std::optional<Candidate> disproved = TakeOrders(candidate);
        if (!disproved) break;
        if (orders_ == kMostOrders) {
          const passes::Fp32Decision why{passes::Fp32Reason::kRounding,
                                         trials_.Evidence(*disproved)};
          trials_.context.measured = trials_.Keeping(trials_.Narrowed(*disproved), why);
          candidate = Try(trials_.context.measured);
          break;
        }
        orders_ += kOrders;
      }
      if (trials_.work < kWorkOfLeast) trials_.context.measured = before;
      candidate = Choose();
    }
    return candidate;
  }

 private:
  Candidate Try(const Fp32Operations& fp32) {
    return trials_.Try(fp32, trials_.jobs, Orders(0, orders_ + 1));
  }

  bool Does(const Candidate& candidate) const {
    return candidate.fits() && candidate.figures.Steady() &&
           (orders_ > 0 || candidate.figures.Safe());
  }

  // Adds the steps (or all steps) on which the current choice fails; returns false if it passes.
  bool TakeCounterexamples(bool all) {
    if (confirming_.empty()) return false;
    const Candidate candidate = trials_.Try(trials_.context.measured, confirming_);
    if (candidate.fits() && candidate.figures.Safe()) return false;
    Take(candidate, 0, all, false);
    return true;
  }

  // Amplified rounding errors make the result depend on the summation order. Runs the choice in
  // further orders; returns the failing candidate, if any, after adding its failing steps, which
  // from then on run in several orders.
  std::optional<Candidate> TakeOrders(const Candidate& chosen) {
    Jobs& jobs = trials_.jobs;
    Jobs ordered = jobs;
    ordered.insert(ordered.end(), confirming_.begin(), confirming_.end());
    for (Job& job : ordered) {
      const std::vector<size_t> all = AllSteps(job);
      job.sensitive = {all.begin(), all.end()};
    }
    const int most = static_cast<int>(
        std::clamp(kWorkOfOrders / std::max(MultiplyAdds(ordered), 1.0), 1.0, double{kOrders}));
    bool calm = chosen.worst().Part() <= kCalm;
    Candidate candidate;
    for (int done = 0; done < most;) {
      const int count = calm ? 1 : most - done;
      candidate = trials_.Try(trials_.context.measured, ordered, Orders(next_order_, count));
      next_order_ += count;
      done += count;
      if (!candidate.fits()) break;
      if (done == most || (calm && candidate.worst().Part() <= kCalm)) return std::nullopt;
      calm = false;
    }
    for (size_t i = 0; i < jobs.size(); ++i)
      jobs[i].sensitive.merge(candidate.lost.empty() ? candidate.figures.Outside(i)
                                                     : std::move(ordered[i].sensitive));
    Take(candidate, jobs.size(), false, true);
    return candidate;
  }

  // Moves steps from the confirming jobs to the measured ones: those on which the candidate fails,
  // or all. `first` is the index of the first confirming job among the jobs of the candidate.
  void Take(const Candidate& candidate, size_t first, bool all, bool sensitive) {
    Jobs& jobs = trials_.jobs;
    // The step with the non-finite value is unknown.
    all = all || !candidate.lost.empty();
    for (size_t i = 0; i < confirming_.size(); ++i) {
      Job& from = confirming_[i];
      const std::set<size_t> outside = candidate.figures.Outside(first + i);
      if (!all && outside.empty()) continue;
      auto to =
          std::ranges::find_if(jobs, [&](const Job& job) { return job.function == from.function; });
      if (to == jobs.end()) to = jobs.insert(to, Job{from.function, {}});
      Job left{from.function, {}};
      for (size_t step = 0; step < from.steps.size(); ++step) {
        Job& into = all || outside.contains(step) ? *to : left;
        if (sensitive && &into == &*to) to->sensitive.insert(to->steps.size());
        into.steps.push_back(std::move(from.steps[step]));
        into.references.push_back(std::move(from.references[step]));
      }
      trials_.Prepare(*to);
      trials_.Prepare(left);
      from = std::move(left);
    }
    std::erase_if(confirming_, [](const Job& job) { return job.steps.empty(); });
  }

  // Returns whether the candidate may select other boxes than fp32, or the same in another order.
  bool SelectsOthers(const Candidate& candidate) const {
    if (candidate.worst().output.empty()) return candidate.figures.resized();
    return !Does(candidate) && candidate.lost.empty();
  }

  // The selection and the order of boxes depend on the low-order bits of all values that they are
  // computed from, so a candidate that fits on some inputs fails on others. Keeps those operations
  // in fp32; returns whether any were added.
  bool KeepSelections() {
    Fp32Operations& measured = trials_.context.measured;
    const size_t before = measured.size();
    for (const Job& job : trials_.jobs) {
      const passes::DefUseGraph flow(*job.function);
      std::set<const Operation*> kept;
      std::vector<const Operation*> todo;
      passes::DefUseGraph::Visited asked;
      ForEachOperation(*const_cast<Function*>(job.function), [&](Operation* op) {
        if (op->def->fp16.needs & Fp16::kSelections) todo.push_back(op);
      });
      while (!todo.empty()) {
        const Operation* op = todo.back();
        todo.pop_back();
        for (const Operands& operands : op->args())
          for (const Operand& operand : operands)
            if (operand.value && !operand.value->is_constant())
              flow.ForEachProducer(operand.value, asked, [&](const Operation* maker) {
                if (maker && kept.insert(maker).second) todo.push_back(maker);
              });
      }
      for (const Operation* op : kept)
        if (IsMeasured(*op) && ComputesFp32(*op))
          measured.emplace(
              NameOf(*op),
              passes::Fp32Decision{
                  passes::Fp32Reason::kIndex,
                  fmt::format("NMS decisions depend on its low-order bits; on {} inputs, fp16 "
                              "selects other boxes",
                              trials_.Inputs())});
    }
    return measured.size() > before;
  }

  // Chooses what stays in fp32 for the known steps.
  Candidate Choose() {
    const Fp32Operations before = trials_.context.measured;
    Candidate candidate = Try(before);
    if (SelectsOthers(candidate) && KeepSelections()) candidate = Try(trials_.context.measured);
    if (Does(candidate)) return candidate;
    const Candidate plain = candidate;
    const Fp32Operations plainly = trials_.context.measured;
    candidate = Segments(candidate);
    if (plain.fits() && !Does(candidate)) {
      candidate = plain;
      trials_.context.measured = plainly;
    }
    return candidate;
  }

  // Splits the program into segments and ranks them by the error that each causes alone in fp16.
  // Keeps as few of the worst segments as possible in fp32, then shrinks these from both ends.
  Candidate Segments(const Candidate& plain) {
    const std::vector<std::string> names = trials_.Narrowed(plain);
    const passes::Fp32Decision why{
        plain.lost.empty() ? passes::Fp32Reason::kRounding : passes::Fp32Reason::kOverflow,
        trials_.Evidence(plain)};
    struct Segment {
      size_t begin, end;
      double harm;
    };
    std::vector<Segment> segments;
    const size_t count = std::min<size_t>(16, names.size());
    for (size_t i = 0; i < count; ++i)
      segments.push_back({names.size() * i / count, names.size() * (i + 1) / count, 0});
    auto keep = [&](const std::vector<Segment>& kept) {
      Fp32Operations fp32 = trials_.context.measured;
      for (const Segment& segment : kept)
        for (size_t i = segment.begin; i < segment.end; ++i) fp32.emplace(names[i], why);
      return fp32;
    };
    for (size_t i = 0; i < count; ++i) {
      std::vector<Segment> others = segments;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      Candidate alone = Try(keep(others));
      segments[i].harm = alone.lost.empty() ? alone.worst().Part() : kInfinity;
    }
    std::ranges::stable_sort(segments,
                             [](const Segment& a, const Segment& b) { return a.harm > b.harm; });
    std::optional<Candidate> best;
    auto fits = [&](const std::vector<Segment>& kept) {
      Candidate candidate = Try(keep(kept));
      bool fit = Does(candidate);
      if (fit) best = std::move(candidate);
      return fit;
    };
    size_t low = 0, high = count;  // too few segments: `low`; enough: `high`
    while (high - low > 1) {
      size_t middle = low + (high - low) / 2;
      auto end = segments.begin() + static_cast<std::ptrdiff_t>(middle);
      (fits({segments.begin(), end}) ? high : low) = middle;
    }
    segments.resize(high);
    // Shrinks the least harmful segments first, from the end and then from the beginning.
    for (size_t i = segments.size(); i-- > 0 && trials_.work < kWorkOfLeast;)
      for (bool from_end : {true, false})
        for (size_t step = (segments[i].end - segments[i].begin + 1) / 2; step > 0; step /= 2) {
          Segment whole = segments[i];
          if (whole.end - whole.begin < step) continue;
          (from_end ? segments[i].end -= step : segments[i].begin += step);
          if (!fits(segments)) segments[i] = whole;
        }
    trials_.context.measured = keep(segments);
    return best ? *best : Try(trials_.context.measured);
  }

  PrecisionTrials& trials_;
  Jobs confirming_;
  int orders_ = 0;                    // further summation orders that candidates must pass
  int next_order_ = kMostOrders + 1;  // reserved for confirmation
};

}  // namespace

Candidate FindMinimalFp32(PrecisionTrials& trials, Jobs confirming) {
  return Search(trials, std::move(confirming)).Run();
}

}  // namespace mlc::precision
