#include "lib/passes/fp16_sensitivity.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "lib/passes/fp16_cancellation.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {

bool HasFp32(const Operation& op) {
  for (const Operands& operands : op.args())
    for (const Operand& operand : operands)
      if (IsFp32(operand.type())) return true;
  return std::ranges::any_of(op.results, [](const auto& result) { return IsFp32(result->type); });
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

// Returns whether the constant has few elements and all are integral.
bool HoldsWhole(const Tensor& constant) {
  constexpr int64_t kLooked = 65536;
  if (constant.size() > kLooked) return false;
  const Pin<float> numbers = constant.data<float>();
  return std::ranges::all_of(numbers, [](float x) { return std::trunc(x) == x; });
}

bool IsCastToInteger(const Operation& op) {
  return IsCast(op) && IsInteger(op.result()->type.dtype);
}

// Returns whether the operation creates integral values or compares with integral values.
bool IsWhole(const Operation& op) { return Is(op, Fp16::kAsksWhole) || IsCastToInteger(op); }

// Returns whether the operation subtracts two run-time values, for example the distance of two
// positions.
bool IsDifference(const Operation& op) {
  const Value *x = op.is("sub") ? op.value("x") : nullptr, *y = x ? op.value("y") : nullptr;
  return y && !x->is_constant() && !y->is_constant();
}

bool IsCoordinates(const Use& use) {
  return use.operation &&
         use.operation->def->fp16.IsWide(
             use.operation->def->canonical().params[static_cast<size_t>(use.parameter)].name);
}

// A requirement for precision that is propagated from an operation to those that compute its
// operands.
struct Demand {
  Test starts;
  Test joins;                // whether an operation that computes an operand is included
  Test shared = Any;         // include it although it has other users, which may read it narrowed
  Test passes = Any;         // propagate the requirement to its own operands
  bool floats = false;       // follow only fp32 values
  bool coordinates = false;  // a use as coordinates also starts the propagation
};

bool ComputesFp32(const Operation& op) {
  return !op.def->is_const() && !op.def->is_constexpr() && op.blocks.empty() && HasFp32(op);
}

class Finder {
 public:
  Finder(const Function& function, const DefUseGraph& flow) : flow_(flow) {
    ForEachOperation(const_cast<Function&>(function), [&](Operation* op) {
      if (ComputesFp32(*op)) operations_.push_back(op);
      ForEachUse(*op, [&](const Use& use, const Value* value) {
        if (IsCoordinates(use)) coordinates_.push_back(value);
      });
    });
  }

  std::unordered_map<const Operation*, Fp32Decision> Run() {
    auto none = [](const Operation&) { return false; };
    Say(Fp32Reason::kOverflow, "sums of integer products exceed the range of fp16",
        Follow({.starts = [&](const Operation& op) { return StartsWholeSum(op); },
                .joins = Carries<Fp16::kWholeSums>,
                .shared = none}));
    Operations products = FindProducts();
    Say(Fp32Reason::kIndex, "its low-order bits decide a rounding or a comparison",
        Follow({.starts = StartsStep(), .joins = Any, .passes = IsLight, .floats = true}));
    auto untouched = [&](auto starts) {
      return Follow(
          {.starts = [&](const Operation& op) { return starts(op) && !products.contains(&op); },
           .joins = Any,
           .floats = true});
    };
    Say(Fp32Reason::kIndex,
        "its low-order bits decide a selection, and no product has rounded them",
        untouched([&](const Operation& op) { return Chooses(op) && !IsQuantisation(op); }));
    Say(Fp32Reason::kRounding, "subtracting a large mean leaves only low-order bits",
        untouched(SubtractsLargeMean));
    Say(Fp32Reason::kOverflow, "the mean of squares and the squared mean cancel",
        Follow({.starts = Among(FindVariances(operations_)),
                .joins = Any,
                .passes = IsLight,
                .floats = true}));
    Say(Fp32Reason::kOverflow, "sums of squares and a product of the same values cancel",
        Follow({.starts = Among(FindDistances(operations_)),
                .joins = Any,
                .passes = IsLight,
                .floats = true}));
    Say(Fp32Reason::kOverflow, "squares and sums of many values exceed the range of fp16",
        FindLargeSums(operations_), products);
    NormProducts norms = FindNormProducts(operations_);
    Say(Fp32Reason::kOverflow, "products of norms exceed the range of fp16",
        Follow({.starts = Among(std::move(norms.operations)),
                .joins = [&](const Operation& op) { return !norms.norms.contains(&op); },
                .passes = IsLight,
                .floats = true}),
        products);
    Operations carried = FindCarried();
    Say(Fp32Reason::kLoop, "a loop-carried value depends on the low-order bits of its factor",
        Follow({.starts = Among(FindFading(carried)),
                .joins = [](const Operation& op) { return IsLight(op) && op.results.size() == 1; },
                .passes = IsLight,
                .floats = true}));
    Say(Fp32Reason::kLoop, "a loop-carried value would accumulate rounding errors in fp16",
        carried);
    Say(Fp32Reason::kLoop, "a loop writes into a variable that stays in fp32", FindFilled());
    Say(Fp32Reason::kAngle, "angles need more precision than fp16 has",
        Follow({.starts = Needs<Fp16::kAngles>, .joins = Carries<Fp16::kAngles>, .shared = none}));
    const Operations logarithms = Follow(
        {.starts = Needs<Fp16::kLogarithms>, .joins = Carries<Fp16::kLogarithms>, .shared = none});
    Say(Fp32Reason::kLogarithm, "a logarithm of small values needs more range than fp16 has",
        logarithms);
    Say(Fp32Reason::kLogarithm, "it scales the features of a front end, which stays in fp32",
        FindFeatures(logarithms));
    Say(Fp32Reason::kIndex, "selecting boxes needs more precision than fp16 has",
        Follow({.starts = Needs<Fp16::kSelections>, .joins = Carries<Fp16::kSelections>}));
    Say(Fp32Reason::kOverflow, "sums of integer products exceed the range of fp16",
        TakesWholeSums());
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
          op,
          is_count(*op)
              ? Fp32Decision{Fp32Reason::kIndex, "fp16 represents integers up to 2048 only"}
              : Fp32Decision{Fp32Reason::kAngle, "coordinates need more precision than fp16 has"});
    return std::move(reasons_);
  }

 private:
  void Say(Fp32Reason reason, std::string_view text, const Operations& operations,
           const Operations& estimated = {}) {
    for (const Operation* op : operations) {
      Fp32Decision decision{reason, std::string(text), estimated.contains(op)};
      const auto [known, added] = reasons_.try_emplace(op, decision);
      // Measuring may overrule an estimate, but no other reason.
      if (!added && known->second.estimated && !decision.estimated) known->second = decision;
    }
  }

  // Calls visit(const Use&, const Value*) for each operand of `op` that is not a literal.
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
  void ForEachConsumer(const Operation& op, DefUseGraph::Visited& passed, F&& visit) const {
    for (const std::unique_ptr<Value>& result : op.results)
      flow_.ForEachConsumer(result.get(), passed, visit);
  }

  Operations Follow(const Demand& demand) const {
    Operations members, start;
    std::vector<const Operation*> open;
    DefUseGraph::Visited asked;
    auto add = [&](const Operation* op) {
      if (members.insert(op).second) open.push_back(op);
    };
    auto ask = [&](const Value* value) {
      flow_.ForEachProducer(value, asked, [&](const Operation* maker) {
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
    // Remove operations with other users, which will read their results narrowed.
    DefUseGraph::Visited read, narrowed;
    auto narrow = [&](const Use& use) {
      if (members.contains(use.operation) || (demand.coordinates && IsCoordinates(use))) return;
      flow_.ForEachProducer(ValueAt(use), narrowed, [&](const Operation* maker) {
        if (maker && !start.contains(maker) && !demand.shared(*maker) && members.erase(maker))
          open.push_back(maker);
      });
    };
    const size_t all = open.size();
    for (size_t i = 0; i < all; ++i) ForEachConsumer(*open[i], read, narrow);
    for (size_t i = all; i < open.size(); ++i)
      ForEachUse(*open[i], [&](const Use& use, const Value*) { narrow(use); });
    return members;
  }

  // Returns the logarithms at the end of front ends, and the operations on their results up to the
  // next product with weights. A front end computes features, such as a spectrogram, from inputs by
  // operations of `kept` alone, among them a product with weights.
  Operations FindFeatures(const Operations& kept) const {
    Operations before, weighted, features;
    for (const Operation* op : operations_) {
      const bool weighs = op->def->weights || Is(*op, Fp16::kMain);
      bool from_inputs = kept.contains(op), is_weighted = weighs;
      bool from_features = false, from_others = false;
      // Chains of loops have many producers, most of which decide nothing.
      auto is_open = [&] { return from_inputs || (!features.empty() && !from_others && !weighs); };
      ForEachUse(*op, [&](const Use&, const Value* value) {
        if (!is_open() || !IsFp32(value->type) || IsWeight(value)) return;
        flow_.ForEachProducer(value, [&](const Operation* maker) {
          if (maker && IsCast(*maker) && !IsFp32(maker->value("x")->type)) return true;  // a count
          from_inputs = from_inputs && (!maker || before.contains(maker));
          is_weighted = is_weighted || weighted.contains(maker);
          (features.contains(maker) ? from_features : from_others) = true;
          return is_open();
        });
      });
      if (from_inputs) before.insert(op);
      if (from_inputs && is_weighted) weighted.insert(op);
      if ((weighted.contains(op) && Needs<Fp16::kLogarithms>(*op)) ||
          (from_features && !from_others && !weighs))
        features.insert(op);
    }
    return features;
  }

  bool IsWholeNumber(const Value* value, int depth = 0) const {
    if (depth > 8) return false;
    if (const auto& origins = flow_.Origins(value); !origins.empty())
      return std::ranges::all_of(
          origins, [&](const Value* origin) { return IsWholeNumber(origin, depth + 1); });
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

  // Returns whether the operation sums products of integral values, as integer convolutions do.
  bool StartsWholeSum(const Operation& op) const {
    if (!Needs<Fp16::kWholeSums>(op)) return false;
    for (const Operands& operands : op.args())
      for (const Operand& operand : operands)
        if (operand.value && !IsWeight(operand.value) && !IsWholeNumber(operand.value))
          return false;
    return true;
  }

  // Returns the users of sums of integer products, directly or after conversions and additions.
  Operations TakesWholeSums() const {
    Operations sums, takers;
    std::vector<const Operation*> open;
    DefUseGraph::Visited passed;
    for (const Operation* op : operations_)
      if (StartsWholeSum(*op) && sums.insert(op).second) open.push_back(op);
    for (size_t i = 0; i < open.size(); ++i)
      ForEachConsumer(*open[i], passed, [&](const Use& use) {
        const Operation* op = use.operation;
        if (!op) return;
        if (ComputesFp32(*op)) takers.insert(op);
        bool whole = op->is("mul") && IsInteger(op->result()->type.dtype);
        if ((whole || Is(*op, Fp16::kKeepsSums)) && sums.insert(op).second) open.push_back(op);
      });
    return takers;
  }

  // Returns whether the integral values of a rounding stay numbers: after additions and clamps they
  // become floats again, and no operation uses them as an index. If given, `all` receives the
  // operations that preserve integrality.
  bool IsQuantisation(const Operation& op, Operations* all = nullptr) const {
    if (!op.is("round") || !Needs<Fp16::kSteps>(op)) return false;
    Operations seen = {&op};
    std::vector<const Operation*> open = {&op};
    for (size_t i = 0; i < open.size(); ++i)
      for (const std::unique_ptr<Value>& result : open[i]->results) {
        bool integers = IsInteger(result->type.dtype), numbers = true;
        flow_.ForEachConsumer(result.get(), [&](const Use& use) {
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

  // Returns elementwise updates of loop-carried values.
  Operations FindCarried() const {
    Operations carried;
    for (const Operation* op : operations_) {
      Operations seen;
      if (op->block->parent && LeadsTo(*op, *op, seen)) carried.insert(op);
    }
    return carried;
  }

  // Returns operations that update a part of a loop-carried variable: in fp16 the whole variable
  // would be cast twice in each iteration.
  Operations FindFilled() const {
    Operations filled;
    for (const Operation* op : operations_) {
      if (!op->block->parent || op->def->work || op->results.size() != 1) continue;
      for (const Use& use : op->result()->outputs.All()) {
        const auto& inputs = use.block->inputs;
        if (use.index >= std::ssize(inputs)) continue;  // the output of a branch
        ForEachUse(*op, [&](const Use&, const Value* value) {
          if (value == inputs[use.index].get()) filled.insert(op);
        });
      }
    }
    return filled;
  }

  // Returns functions whose results are factors of loop-carried values, with the data movement
  // after them. In fp16, exp(-0.001) keeps a quarter of its difference from 1, and a thousand
  // iterations compute its thousandth power.
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

  // Returns whether elements of `goal` reach the operands of `op`, possibly in the next iteration
  // of a loop.
  bool LeadsTo(const Operation& op, const Operation& goal, Operations& seen) const {
    constexpr size_t kMostSeen = 32;
    if (!op.def->elementwise() && op.def->moves == Moves::kNone) return false;
    bool leads = false;
    ForEachUse(op, [&](const Use&, const Value* value) {
      if (!IsFp32(value->type)) return;
      flow_.ForEachProducer(value, [&](const Operation* maker) {
        if (leads || seen.size() > kMostSeen) return false;
        leads =
            maker && (maker == &goal || (seen.insert(maker).second && LeadsTo(*maker, goal, seen)));
        return !leads;
      });
    });
    return leads;
  }

  // Returns whether an operation is discontinuous, as listed in the header.
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

  // Returns all products and the operations that depend on them.
  Operations FindProducts() const {
    Operations products, readers;
    DefUseGraph::Visited passed;
    for (const Operation* op : operations_)
      if (op->def->work || readers.contains(op)) {
        products.insert(op);
        ForEachConsumer(*op, passed, [&](const Use& use) { readers.insert(use.operation); });
      }
    return products;
  }

  // Returns whether the results are rounded values, indices or booleans.
  static bool Chooses(const Operation& op) {
    if (Needs<Fp16::kSteps>(op)) return true;
    if (op.is("shape")) return false;
    return std::ranges::any_of(op.results, [](const auto& result) {
      return result->type.is_tensor() && !IsFloat(result->type.dtype);
    });
  }

  // Returns whether the value is the result of a discontinuous operation, possibly scaled or
  // converted.
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

  // Returns whether the operation compares values that were scaled up.
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

  // Returns the operations whose values are computed from integers only.
  Operations FindCounts() const {
    Operations counts, seeds;
    std::vector<const Operation*> open;
    DefUseGraph::Visited counted, made, others;
    for (const Operation* op : operations_)
      if (const Value* x = IsCast(*op) ? op->value("x") : nullptr; x && IsInteger(x->type.dtype)) {
        seeds.insert(op);
        counts.insert(op);
        open.push_back(op);
      }
    for (size_t i = 0; i < open.size(); ++i)
      for (const std::unique_ptr<Value>& result : open[i]->results)
        if (IsFp32(result->type))
          flow_.ForEachConsumer(result.get(), counted, [&](const Use& use) {
            const Operation* op = use.operation;
            if (op && ComputesFp32(*op) && (Carries<Fp16::kCounts>(*op) || IsWhole(*op)) &&
                counts.insert(op).second)
              open.push_back(op);
          });
    // Remove operations that also depend on other values.
    auto drop_readers = [&](const Value* value) {
      if (!IsFp32(value->type)) return;
      flow_.ForEachConsumer(value, others, [&](const Use& use) {
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

  const DefUseGraph& flow_;
  std::vector<const Operation*> operations_;  // operations that compute in fp32
  std::vector<const Value*> coordinates_;     // values that are used as coordinates
  std::unordered_map<const Operation*, Fp32Decision> reasons_;
};

}  // namespace

std::unordered_map<const Operation*, Fp32Decision> FindFp16Sensitive(const Function& function,
                                                                     const DefUseGraph& flow) {
  return Finder(function, flow).Run();
}

}  // namespace mlc::passes
