#include "lib/passes/digits.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "lib/passes/delicate.h"
#include "lib/passes/match.h"

namespace mlc {

bool HasFp32(const Operation& op) {
  for (const Operands& operands : op.args())
    for (const Operand& operand : operands)
      if (IsFp32(operand.type())) return true;
  return std::any_of(op.results.begin(), op.results.end(),
                     [](const auto& result) { return IsFp32(result->type); });
}

bool IsWeight(const Value* value) {
  return value->is_constant() || (value->def && value->def->def->is_constexpr());
}

const Operation* MadeOfOne(const Value& value, const Value*& from) {
  const Operation* op = value.def;
  from = nullptr;
  if (!op || !(op->def->elementwise() || op->def->moves != Moves::kNone)) return nullptr;
  for (const Operands& operands : op->args())
    for (const Operand& operand : operands) {
      if (!operand.value || operand.value->is_constant()) continue;
      if (from) return nullptr;
      from = operand.value;
    }
  return from ? op : nullptr;
}

namespace {

using Test = std::function<bool(const Operation&)>;

template <Fp16::Digits digits>
bool Needs(const Operation& op) {
  return op.def->fp16.needs & digits;
}
template <Fp16::Digits digits>
bool Carries(const Operation& op) {
  return op.def->fp16.carries & digits;
}

bool Any(const Operation&) { return true; }
bool IsLight(const Operation& op) { return op.def->elementwise() || op.def->moves != Moves::kNone; }
Test Among(Operations operations) {
  return [among = std::move(operations)](const Operation& op) { return among.contains(&op); };
}

// Few enough numbers to look at, and each is whole.
bool HoldsWhole(const Tensor& constant) {
  constexpr int64_t kLooked = 65536;
  if (constant.size() > kLooked) return false;
  const Pin<float> numbers = constant.data<float>();
  return std::all_of(numbers.begin(), numbers.end(), [](float x) { return std::trunc(x) == x; });
}

bool IsCastToInteger(const Operation& op) {
  return IsCast(op) && IsInteger(op.result()->type.dtype);
}

// What makes whole numbers, or asks how numbers compare with whole ones.
bool IsWhole(const Operation& op) { return Is(op, Fp16::kAsksWhole) || IsCastToInteger(op); }

// What two run-time numbers differ by: of counts, how far places are apart.
bool IsDifference(const Operation& op) {
  const Value *x = op.is("sub") ? op.value("x") : nullptr, *y = x ? op.value("y") : nullptr;
  return y && !x->is_constant() && !y->is_constant();
}

bool IsCoordinates(const Use& use) {
  return use.operation &&
         use.operation->def->fp16.IsWide(
             use.operation->def->canonical().params[static_cast<size_t>(use.parameter)].name);
}

// A demand for digits that goes back from an operation to those that make its operands.
struct Demand {
  Test starts;
  Test joins;                // of those that make an operand
  Test shared = Any;         // joins for one of several uses; the others may read it narrowed
  Test passes = Any;         // and asks the same of its own operands
  bool floats = false;       // goes through fp32 values only
  bool coordinates = false;  // a use as those is as good as one by an operation
};

bool ComputesFp32(const Operation& op) {
  return !op.def->is_const() && !op.def->is_constexpr() && op.blocks.empty() && HasFp32(op);
}

class Finder {
 public:
  Finder(const Function& function, const Flow& flow) : flow_(flow) {
    ForEachOperation(const_cast<Function&>(function), [&](Operation* op) {
      if (ComputesFp32(*op)) operations_.push_back(op);
      ForEachUse(*op, [&](const Use& use, const Value* value) {
        if (IsCoordinates(use)) coordinates_.push_back(value);
      });
    });
  }

  std::unordered_map<const Operation*, WhyFp32> Run() {
    auto none = [](const Operation&) { return false; };
    Say(Fp32Reason::kOverflow, "sums of products of whole numbers leave fp16",
        Follow({.starts = [&](const Operation& op) { return StartsWholeSum(op); },
                .joins = Carries<Fp16::kWholeSums>,
                .shared = none}));
    Operations products = FindProducts();
    Say(Fp32Reason::kIndex, "its last digits decide a step",
        Follow({.starts = StartsStep(), .joins = Any, .passes = IsLight, .floats = true}));
    auto untouched = [&](auto starts) {
      return Follow(
          {.starts = [&](const Operation& op) { return starts(op) && !products.contains(&op); },
           .joins = Any,
           .floats = true});
    };
    Say(Fp32Reason::kIndex, "its last digits decide, and nothing before has lost any",
        untouched([&](const Operation& op) { return Chooses(op) && !IsQuantisation(op); }));
    Say(Fp32Reason::kRounding, "a mean that is subtracted leaves the last digits only",
        untouched(SubtractsLargeMean));
    Say(Fp32Reason::kOverflow, "a mean of squares and the square of the mean cancel",
        Follow({.starts = Among(FindVariances(operations_)),
                .joins = Any,
                .passes = IsLight,
                .floats = true}));
    Say(Fp32Reason::kOverflow, "sums of squares and a product of the same numbers cancel",
        Follow({.starts = Among(FindDistances(operations_)),
                .joins = Any,
                .passes = IsLight,
                .floats = true}));
    Say(Fp32Reason::kOverflow, "squares and sums of many numbers leave fp16",
        FindLargeSums(operations_), products);
    NormProducts norms = FindNormProducts(operations_);
    Say(Fp32Reason::kOverflow, "products of norms leave fp16",
        Follow({.starts = Among(std::move(norms.operations)),
                .joins = [&](const Operation& op) { return !norms.norms.contains(&op); },
                .passes = IsLight,
                .floats = true}),
        products);
    Operations carried = FindCarried();
    Say(Fp32Reason::kLoop, "a number that a loop carries fades by the last digits of its factor",
        Follow({.starts = Among(FindFading(carried)),
                .joins = [](const Operation& op) { return IsLight(op) && op.results.size() == 1; },
                .passes = IsLight,
                .floats = true}));
    Say(Fp32Reason::kLoop, "a number that a loop adds to keeps its digits", carried);
    Say(Fp32Reason::kLoop, "a loop writes into what stays fp32", FindFilled());
    Say(Fp32Reason::kAngle, "fp16 loses the digits that functions of angles need",
        Follow({.starts = Needs<Fp16::kAngles>, .joins = Carries<Fp16::kAngles>, .shared = none}));
    Say(Fp32Reason::kLogarithm, "fp16 loses the small numbers that a logarithm tells apart",
        Follow({.starts = Needs<Fp16::kLogarithms>,
                .joins = Carries<Fp16::kLogarithms>,
                .shared = none}));
    Say(Fp32Reason::kIndex, "fp16 boxes and scores are too coarse to select from",
        Follow({.starts = Needs<Fp16::kSelections>, .joins = Carries<Fp16::kSelections>}));
    Say(Fp32Reason::kOverflow, "sums of products of whole numbers leave fp16", TakesWholeSums());
    Operations counts = FindCounts();
    auto is_count = [&](const Operation& op) { return counts.contains(&op); };
    auto may = [&](const Operation& op) { return is_count(op) || Carries<Fp16::kAngles>(op); };
    for (const Operation* op : Follow({.starts =
                                           [&](const Operation& op) {
                                             return is_count(op) &&
                                                    (IsWhole(op) || IsDifference(op));
                                           },
                               .joins = may,
                               .shared = is_count,
                               .coordinates = true}))
      reasons_.try_emplace(
          op, is_count(*op) ? WhyFp32{Fp32Reason::kIndex, "fp16 counts to 2048 only"}
                            : WhyFp32{Fp32Reason::kAngle, "fp16 is too coarse for coordinates"});
    return std::move(reasons_);
  }

 private:
  void Say(Fp32Reason reason, std::string_view text, const Operations& operations,
           const Operations& estimated = {}) {
    for (const Operation* op : operations)
      reasons_.try_emplace(op, WhyFp32{reason, std::string(text), estimated.contains(op)});
  }

  // Calls visit(const Use&, const Value*) with the operands of `op`, but for literals.
  template <class F>
  static void ForEachUse(const Operation& op, F&& visit) {
    for (size_t p = 0; p < op.args().size(); ++p)
      for (size_t i = 0; i < op.args()[p].size(); ++i)
        if (const Value* value = op.args()[p][i].value)
          visit(
              Use{const_cast<Operation*>(&op), op.block, static_cast<int>(p), static_cast<int>(i)},
              value);
  }

  static const Value* ValueAt(const Use& use) {
    return use.operation ? use.operation->args()[use.parameter][use.index].value
                         : use.block->outputs()[use.index];
  }

  // Calls `visit` with each use of a result.
  template <class F>
  void ForEachReader(const Operation& op, Flow::Passed& passed, F&& visit) const {
    for (const std::unique_ptr<Value>& result : op.results)
      flow_.ForEachReader(result.get(), passed, visit);
  }

  Operations Follow(const Demand& demand) const {
    Operations members, start;
    std::vector<const Operation*> open;
    Flow::Passed asked;
    auto add = [&](const Operation* op) {
      if (members.insert(op).second) open.push_back(op);
    };
    auto ask = [&](const Value* value) {
      flow_.ForEachMaker(value, asked, [&](const Operation* maker) {
        if (maker && ComputesFp32(*maker) && demand.joins(*maker)) add(maker);
      });
    };
    for (const Operation* op : operations_)
      if (demand.starts(*op)) {
        start.insert(op);
        add(op);
      }
    if (demand.coordinates)
      for (const Value* value : coordinates_) ask(value);
    for (size_t i = 0; i < open.size(); ++i)
      if (demand.passes(*open[i]) || start.contains(open[i]))
        ForEachUse(*open[i], [&](const Use&, const Value* value) {
          if (!demand.floats || IsFp32(value->type)) ask(value);
        });
    // Without those that something else reads, which then reads them narrowed.
    Flow::Passed read, narrowed;
    auto narrow = [&](const Use& use) {
      if (members.contains(use.operation) || (demand.coordinates && IsCoordinates(use))) return;
      flow_.ForEachMaker(ValueAt(use), narrowed, [&](const Operation* maker) {
        if (maker && !start.contains(maker) && !demand.shared(*maker) && members.erase(maker))
          open.push_back(maker);
      });
    };
    const size_t all = open.size();
    for (size_t i = 0; i < all; ++i) ForEachReader(*open[i], read, narrow);
    for (size_t i = all; i < open.size(); ++i)
      ForEachUse(*open[i], [&](const Use& use, const Value*) { narrow(use); });
    return members;
  }

  bool IsWholeNumber(const Value* value, int depth = 0) const {
    if (depth > 8) return false;
    if (const auto& origins = flow_.Origins(value); !origins.empty())
      return std::all_of(origins.begin(), origins.end(),
                         [&](const Value* origin) { return IsWholeNumber(origin, depth + 1); });
    const Operation* op = value->def;
    if (!op) return false;
    if (IsCast(*op)) return op->value("x") && IsInteger(op->value("x")->type.dtype);
    if (Is(*op, Fp16::kMakesWhole)) return true;
    if (!Is(*op, Fp16::kKeepsWhole)) return false;
    for (const Operands& operands : op->args())
      for (const Operand& operand : operands)
        if (IsFp32(operand.type()) &&
            !(operand.constant() ? HoldsWhole(operand.constant())
                                 : IsWholeNumber(operand.value, depth + 1)))
          return false;
    return true;
  }

  // Sums of products of whole numbers, as integer convolutions have them.
  bool StartsWholeSum(const Operation& op) const {
    if (!Needs<Fp16::kWholeSums>(op)) return false;
    for (const Operands& operands : op.args())
      for (const Operand& operand : operands)
        if (operand.value && !IsWeight(operand.value) && !IsWholeNumber(operand.value))
          return false;
    return true;
  }

  // What takes sums of products of whole numbers, as they are or converted and added to.
  Operations TakesWholeSums() const {
    Operations sums, takers;
    std::vector<const Operation*> open;
    Flow::Passed passed;
    for (const Operation* op : operations_)
      if (StartsWholeSum(*op) && sums.insert(op).second) open.push_back(op);
    for (size_t i = 0; i < open.size(); ++i)
      ForEachReader(*open[i], passed, [&](const Use& use) {
        const Operation* op = use.operation;
        if (!op) return;
        if (ComputesFp32(*op)) takers.insert(op);
        bool whole = op->is("mul") && IsInteger(op->result()->type.dtype);
        if ((whole || Is(*op, Fp16::kKeepsSums)) && sums.insert(op).second) open.push_back(op);
      });
    return takers;
  }

  // Whether the whole numbers of a rounding are numbers on: with all that is added to them and bounds
  // them they become floats again, and no place in anything.
  // `all`, if any, gets what keeps them whole.
  bool IsQuantisation(const Operation& op, Operations* all = nullptr) const {
    if (!op.is("round") || !Needs<Fp16::kSteps>(op)) return false;
    Operations seen = {&op};
    std::vector<const Operation*> open = {&op};
    for (size_t i = 0; i < open.size(); ++i)
      for (const std::unique_ptr<Value>& result : open[i]->results) {
        bool integers = IsInteger(result->type.dtype), numbers = true;
        flow_.ForEachReader(result.get(), [&](const Use& use) {
          const Operation* reader = use.operation;
          numbers = numbers && (reader || !integers);
          if (!reader || !numbers) return;
          bool goes_on = integers ? !IsFloat(reader->results[0]->type.dtype)
                                  : IsCastToInteger(*reader) || Is(*reader, Fp16::kKeepsWhole);
          bool moves = reader->def->moves != Moves::kNone && use.parameter == 0;
          if (integers && !reader->def->elementwise() && !moves && !reader->is("dequantize"))
            numbers = false;
          else if (goes_on && seen.insert(reader).second)
            open.push_back(reader);
        });
        if (!numbers) return false;
      }
    if (all) all->merge(seen);
    return true;
  }

  // What a loop makes of a number that it carries and gives back, element by element.
  Operations FindCarried() const {
    Operations carried;
    for (const Operation* op : operations_) {
      Operations seen;
      if (op->block->parent && LeadsTo(*op, *op, seen)) carried.insert(op);
    }
    return carried;
  }

  // What writes into a variable of a loop a part of which it gives back as it was: all of it would be
  // cast in each step, twice.
  Operations FindFilled() const {
    Operations filled;
    for (const Operation* op : operations_) {
      if (!op->block->parent || op->def->work || op->results.size() != 1) continue;
      for (const Use& use : op->result()->outputs.All()) {
        const auto& inputs = use.block->inputs;
        if (use.index >= std::ssize(inputs)) continue;  // of a branch
        ForEachUse(*op, [&](const Use&, const Value* value) {
          if (value == inputs[use.index].get()) filled.insert(op);
        });
      }
    }
    return filled;
  }

  // Functions whose results are factors of what a loop carries, with what moves those: of exp(-0.001)
  // fp16 keeps a quarter of what it differs by from 1, and a thousand steps take its thousandth power.
  static Operations FindFading(const Operations& carried) {
    Operations fading;
    for (const Operation* op : carried)
      if (Is(*op, Fp16::kProduct))
        ForEachUse(*op, [&](const Use&, const Value* value) {
          Operations moves;
          const Operation* maker = value->def;
          while (maker && maker->def->moves != Moves::kNone && maker->value("x")) {
            moves.insert(maker);
            maker = maker->value("x")->def;
          }
          if (!maker || !maker->def->elementwise() || !Is(*maker, Fp16::kRough)) return;
          fading.insert(maker);
          fading.merge(moves);
        });
    return fading;
  }

  // Whether elements of `goal` become operands of `op`, if only in the next round of a loop.
  bool LeadsTo(const Operation& op, const Operation& goal, Operations& seen) const {
    constexpr size_t kMostSeen = 32;
    if (!op.def->elementwise() && op.def->moves == Moves::kNone) return false;
    bool leads = false;
    ForEachUse(op, [&](const Use&, const Value* value) {
      if (!IsFp32(value->type)) return;
      flow_.ForEachMaker(value, [&](const Operation* maker) {
        if (leads || seen.size() > kMostSeen) return false;
        leads =
            maker && (maker == &goal || (seen.insert(maker).second && LeadsTo(*maker, goal, seen)));
        return !leads;
      });
    });
    return leads;
  }

  // What decides a step, as the header of this file lists.
  Test StartsStep() const {
    Operations steps, quantised;
    for (const Operation* op : operations_)
      if (Needs<Fp16::kSteps>(*op) && !IsQuantisation(*op, &quantised)) steps.insert(op);
    for (const Operation* op : operations_) {
      const Value* x = IsCastToInteger(*op) ? op->value("x") : nullptr;
      if ((x && IsFp32(x->type) && !quantised.contains(op)) || ComparesScaled(*op))
        steps.insert(op);
    }
    for (const Operation* op : operations_)
      if (IsDifference(*op) &&
          (ComesFrom(*op->value("x"), steps) || ComesFrom(*op->value("y"), steps)))
        steps.insert(op);
    return Among(std::move(steps));
  }

  // Products, and what is made of their results.
  Operations FindProducts() const {
    Operations products, readers;
    Flow::Passed passed;
    for (const Operation* op : operations_)
      if (op->def->work || readers.contains(op)) {
        products.insert(op);
        ForEachReader(*op, passed, [&](const Use& use) { readers.insert(use.operation); });
      }
    return products;
  }

  // Whether results are steps, places or truths of numbers.
  static bool Chooses(const Operation& op) {
    if (Needs<Fp16::kSteps>(op)) return true;
    if (op.is("shape")) return false;
    return std::any_of(op.results.begin(), op.results.end(), [](const auto& result) {
      return result->type.is_tensor() && !IsFloat(result->type.dtype);
    });
  }

  // Whether the value is the steps of a number, scaled or converted.
  static bool ComesFrom(const Value& value, const Operations& steps) {
    const Value* at = &value;
    for (int i = 0; i < 4 && at; ++i) {
      if (at->def && Is(*at->def, Fp16::kMakesWhole) && steps.contains(at->def)) return true;
      const Operation* op = MadeOfOne(*at, at);
      if (op && IsCastToInteger(*op) && steps.contains(op)) return true;
      if (!op || !(Scales(*op, at) || IsCast(*op) || op->def->moves != Moves::kNone)) return false;
    }
    return false;
  }

  // Whether numbers are compared that were multiplied by more than 1.
  static bool ComparesScaled(const Operation& op) {
    if (!Is(op, Fp16::kAsksWhole) || !op.def->elementwise() ||
        op.result()->type.dtype != DType::kBool)
      return false;
    for (std::string_view param : {"x", "y"}) {
      const Value* at = op.value(param);
      for (int i = 0; i < 4 && at && IsFp32(at->type); ++i) {
        const Operation* maker = MadeOfOne(*at, at);
        if (!maker) break;
        Value* scaled = nullptr;
        if (std::optional<double> scale = ScaleOf(*maker, scaled); scale && std::fabs(*scale) > 1)
          return true;
      }
    }
    return false;
  }

  // Operations whose numbers come from integers alone.
  Operations FindCounts() const {
    Operations counts, seeds;
    std::vector<const Operation*> open;
    Flow::Passed counted, made, others;
    for (const Operation* op : operations_)
      if (const Value* x = IsCast(*op) ? op->value("x") : nullptr; x && IsInteger(x->type.dtype)) {
        seeds.insert(op);
        counts.insert(op);
        open.push_back(op);
      }
    for (size_t i = 0; i < open.size(); ++i)
      for (const std::unique_ptr<Value>& result : open[i]->results)
        if (IsFp32(result->type))
          flow_.ForEachReader(result.get(), counted, [&](const Use& use) {
            const Operation* op = use.operation;
            if (op && ComputesFp32(*op) && (Carries<Fp16::kCounts>(*op) || IsWhole(*op)) &&
                counts.insert(op).second)
              open.push_back(op);
          });
    // Without those that have other numbers as well.
    auto drop_readers = [&](const Value* value) {
      if (!IsFp32(value->type)) return;
      flow_.ForEachReader(value, others, [&](const Use& use) {
        if (!seeds.contains(use.operation) && counts.erase(use.operation))
          open.push_back(use.operation);
      });
    };
    const size_t all = open.size();
    for (size_t i = 0; i < all; ++i)
      ForEachUse(*open[i], [&](const Use&, const Value* value) {
        flow_.ForEachSource(value, made, [&](const Value* source) {
          const Operation* maker = source->def;
          if (!maker || (!maker->def->is_const() && !counts.contains(maker))) drop_readers(source);
        });
      });
    for (size_t i = all; i < open.size(); ++i)
      for (const std::unique_ptr<Value>& result : open[i]->results) drop_readers(result.get());
    return counts;
  }

  const Flow& flow_;
  std::vector<const Operation*> operations_;  // that compute with fp32
  std::vector<const Value*> coordinates_;     // values that are used as those
  std::unordered_map<const Operation*, WhyFp32> reasons_;
};

}  // namespace

std::unordered_map<const Operation*, WhyFp32> FindNeededDigits(const Function& function,
                                                               const Flow& flow) {
  return Finder(function, flow).Run();
}

}  // namespace mlc
