// Operators by name: concat and max_pool, whose results have the values of their operands.
#include "lib/passes/quantise_activations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>

#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

using compress::Histogram;

// The result of a layer, or of the activation function that alone uses it.
Value* Activated(Value* result) {
  Operation* user = SoleUser(result);
  return user && user->def->eight_bit == EightBit::kActivation && user->value("x") == result
             ? user->result()
             : result;
}

// The values of a function that are quantised, in program order.
struct Plan {
  struct Quantised {
    Value* value = nullptr;
    bool everywhere = false;  // for all users, or only for `users`
    size_t group = 0;         // values of one group have the same range; the index of one of them
  };
  std::vector<Quantised> values;
  std::set<const Operation*> users;

  Quantised* Find(const Value* value) {
    const auto at = std::ranges::find(values, value, &Quantised::value);
    return at == values.end() ? nullptr : &*at;
  }
  void Add(Value* value, bool everywhere) {
    if (!value || value->is_constant() || !value->type.is_tensor() || !IsFloat(value->type.dtype))
      return;
    if (Quantised* known = Find(value))
      known->everywhere |= everywhere;
    else
      values.push_back({value, everywhere, values.size()});
  }
  void Join(const Value* a, const Value* b) {
    const Quantised *first = Find(a), *second = Find(b);
    if (!first || !second) return;
    const size_t from = second->group, to = first->group;
    for (Quantised& one : values)
      if (one.group == from) one.group = to;
  }
};

Plan PlanOf(Function& function, const std::set<const Value*>& weights) {
  Plan plan;
  std::vector<Operation*> joined;  // poolings, sums and concatenations
  ForEachOperation(function, [&](Operation* op) {
    const EightBit part = op->def->eight_bit;
    if (part == EightBit::kJoin || op->is("concat")) joined.push_back(op);
    if (part != EightBit::kLayer || !weights.contains(op->value("weight"))) return;
    plan.users.insert(op);
    plan.Add(op->value("x"), false);
    plan.Add(Activated(op->result()), true);
  });
  for (bool changed = !plan.values.empty(); changed;) {
    changed = false;
    for (Operation* op : joined) {
      if (op->is("concat") || plan.users.contains(op)) continue;
      Value *x = op->value("x"), *y = op->def->Find("y") >= 0 ? op->value("y") : x;
      if (!plan.Find(x) || !plan.Find(y)) continue;
      plan.users.insert(op);
      plan.Add(Activated(op->result()), true);
      changed = true;
    }
  }
  for (Operation* op : joined) {
    const Value* result = Activated(op->result());
    if (op->is("max_pool") && result == op->result()) plan.Join(op->value("x"), result);
    if (op->is("concat"))
      for (const Operand& operand : op->arg("values")) plan.Join(op->result(), operand.value);
  }
  return plan;
}

// How the range of an activation is chosen from its values.
enum class Ranges : uint8_t { kExtremes, kPercentile, kLeastError };
constexpr std::array<std::pair<Ranges, std::string_view>, 3> kRanges = {
    {{Ranges::kExtremes, "minimum and maximum"},
     {Ranges::kPercentile, "percentile 99.99"},
     {Ranges::kLeastError, "least squared error"}}};

struct Grid {
  DType dtype = DType::kInt8;
  double scale = 0;
  int zero_point = 0;
};

// A zero point makes kernels slower, and must be worth half the error.
constexpr double kWorthZeroPoint = 0.5;

// The grid whose largest multiples are low and high, or beyond.
Grid GridOver(double low, double high, bool zero_point) {
  if (low >= 0) return {DType::kUint8, high / 255, 0};
  if (!zero_point) return {DType::kInt8, std::max(-low, high) / 127, 0};
  const double scale = (std::max(high, 0.0) - low) / 255;
  return {DType::kUint8, scale, static_cast<int>(std::clamp(std::round(-low / scale), 0.0, 255.0))};
}

double ErrorOf(const Histogram& histogram, const Grid& grid) {
  const bool positive = grid.dtype == DType::kUint8;
  return histogram.Error(grid.scale, positive ? -grid.zero_point : -128,
                         positive ? 255 - grid.zero_point : 127);
}

Grid GridFor(const Histogram& histogram, Ranges ranges) {
  auto low = std::min(static_cast<double>(histogram.low()), 0.0);
  auto high = std::max(static_cast<double>(histogram.high()), 0.0);
  if (ranges == Ranges::kPercentile) {
    constexpr double kLeftOut = 1e-4;  // of all values, on each side
    low = std::max(low, std::min(histogram.Quantile(kLeftOut), 0.0));
    high = std::min(high, std::max(histogram.Quantile(1 - kLeftOut), 0.0));
    if (low == high) return GridFor(histogram, Ranges::kExtremes);
  }
  auto best = [&](bool zero_point) {
    Grid best = GridOver(low, high, zero_point);
    if (ranges != Ranges::kLeastError) return best;
    double least = ErrorOf(histogram, best);
    for (double share = 0.95; share > 0.05; share *= 0.95) {
      const Grid grid = GridOver(low * share, high * share, zero_point);
      if (const double error = ErrorOf(histogram, grid); error < least) {
        least = error;
        best = grid;
      }
    }
    return best;
  };
  const Grid plain = best(false);
  if (low >= 0) return plain;
  const Grid shifted = best(true);
  return ErrorOf(histogram, shifted) < kWorthZeroPoint * ErrorOf(histogram, plain) ? shifted
                                                                                   : plain;
}

// A smaller loss is within the budget int8 of mlc verify (0.05) on other inputs, too.
constexpr double kTolerated = 0.035;
// At most one of four values stays in fp16.
constexpr size_t kLeastQuantised = 4;

// A pair in the program. Its constants are those of one way to choose ranges.
struct Pair {
  std::string value;
  const Histogram* histogram = nullptr;
  std::array<Grid, kRanges.size()> grids;
  Operation *quantise = nullptr, *dequantise = nullptr;
  Value* plain = nullptr;  // what is quantised
  std::vector<Use> uses;

  // Lets the operations use the quantised value, or the plain one.
  void Use8Bits(bool use) const {
    for (const mlc::Use& one : uses)
      one.operation->SetOperand(one, use ? dequantise->result() : plain);
  }
};

void SetGrid(Operation& op, const Grid& grid) {
  auto set = [&](std::string_view param, Tensor tensor) {
    if (Value* constant = op.value(param)) constant->def->val = std::move(tensor);
  };
  set("scale", Tensor::Of<double>({}, {grid.scale}).Cast(op.value("scale")->type.dtype));
  if (op.value("zero_point"))
    set("zero_point", Tensor::Full(op.value("zero_point")->type.dtype, {}, grid.zero_point));
}

class Quantiser {
 public:
  Quantiser(Program& program, const std::set<const Value*>& weights,
            compress::Compression& compression, PassContext& context)
      : program_(program), weights_(weights), compression_(compression), context_(context) {}

  bool Run() {
    std::set<const Value*> values;
    std::vector<std::pair<Function*, Plan>> plans;
    for (const auto& function : program_.functions) {
      plans.emplace_back(function.get(), PlanOf(*function, weights_));
      for (const Plan::Quantised& one : plans.back().second.values) values.insert(one.value);
    }
    if (values.empty()) return false;
    const std::map<const Value*, Histogram> observed = compression_.observe(program_, values);
    std::vector<std::map<size_t, Histogram>> groups(plans.size());
    for (size_t i = 0; i < plans.size(); ++i)
      for (const Plan::Quantised& one : plans[i].second.values)
        if (const auto at = observed.find(one.value); at != observed.end())
          groups[i][one.group].Add(at->second);
    for (size_t i = 0; i < plans.size(); ++i)
      for (const Plan::Quantised& one : plans[i].second.values)
        if (const auto at = groups[i].find(one.group); at != groups[i].end())
          Insert(one, plans[i].second, at->second);
    if (pairs_.empty()) return false;
    Choose();
    return true;
  }

 private:
  void Insert(const Plan::Quantised& quantised, const Plan& plan, const Histogram& histogram) {
    Value* value = quantised.value;
    if (histogram.low() == 0 && histogram.high() == 0) return;  // nothing is known but zeros
    std::vector<Use> uses;
    for (const Use& use : value->users.All())
      if (use.operation && (quantised.everywhere || plan.users.contains(use.operation)))
        uses.push_back(use);
    if (uses.empty()) return;
    Pair pair{.value = value->name, .histogram = &histogram};
    for (const auto& [ranges, name] : kRanges)
      pair.grids[static_cast<size_t>(ranges)] = GridFor(histogram, ranges);
    // All ways have the type of the last one, so that only constants differ.
    const Grid& last = pair.grids.back();
    for (Grid& grid : pair.grids)
      if (grid.dtype != last.dtype || (grid.zero_point != 0) != (last.zero_point != 0)) grid = last;
    Block* block = value->def ? value->def->block : uses[0].operation->block;
    while (!value->def &&
           std::ranges::none_of(block->inputs, [&](const auto& in) { return in.get() == value; }))
      block = block->parent->block;
    Operation* next = value->def ? block->Next(value->def) : block->operations().front();
    Builder builder(*block, context_.diagnostics, next);
    builder.SetName(value->name);
    if (value->def) builder.SetLocation(value->def->location);
    const Tensor scale = Tensor::Of<double>({}, {last.scale}).Cast(value->type.dtype);
    Builder::Args args = {{"input", value},
                          {"scale", builder.Const(scale, value->name + "_scale")},
                          {"output_dtype", std::string(Name(last.dtype))}};
    if (last.zero_point != 0)
      args.emplace_back("zero_point", builder.Const(Tensor::Full(last.dtype, {}, last.zero_point),
                                                    value->name + "_zero_point"));
    Value* quantise = builder.Make("quantize", args);
    args[0] = {"input", quantise};
    std::erase_if(args, [](const Builder::Arg& arg) { return arg.param == "output_dtype"; });
    Value* dequantise = builder.Make("dequantize", std::move(args));
    pair.quantise = quantise->def;
    pair.dequantise = dequantise->def;
    pair.plain = value;
    pair.uses = std::move(uses);
    pair.Use8Bits(true);
    pairs_.push_back(std::move(pair));
  }

  void SetRanges(size_t ranges) {
    for (const Pair& pair : pairs_) {
      SetGrid(*pair.quantise, pair.grids[ranges]);
      SetGrid(*pair.dequantise, pair.grids[ranges]);
    }
  }

  // A few clipped outliers hardly change the energy of the error, but they can be a wrong box or a
  // wrong pixel.
  static double CostOf(const compress::Loss& loss) { return loss.divergence.value_or(loss.peak); }

  // Chooses the ranges that lose least, and the values that lose too much in 8 bits.
  void Choose() {
    size_t chosen = kRanges.size() - 1;
    std::optional<double> least;
    if (compression_.evaluate && compression_.evaluates_observed_kind)
      for (size_t i = 0; i < kRanges.size(); ++i) {
        SetRanges(i);
        const double cost = CostOf(compression_.evaluate(program_));
        if (least && !(cost < *least)) continue;
        least = cost;
        chosen = i;
      }
    SetRanges(chosen);
    if (least && *least > kTolerated) LeaveOut(*least);
    compression_.ranges = kRanges[chosen].second;
    compression_.inputs = compression_.observed_on;
    for (const Pair& pair : pairs_)
      compression_.activations.push_back({pair.value, pair.grids[chosen].dtype,
                                          pair.grids[chosen].scale, pair.grids[chosen].zero_point,
                                          static_cast<double>(pair.histogram->low()),
                                          static_cast<double>(pair.histogram->high())});
  }

  // Leaves the values in fp16 whose 8 bits cost most, until the loss is tolerable: those without which
  // it is least, one after the other, while it becomes less.
  void LeaveOut(double cost) {
    const auto most = std::max<size_t>(pairs_.size() / kLeastQuantised, 1);
    const int evaluations = compression_.most_evaluations - static_cast<int>(kRanges.size() + most);
    if (evaluations <= 0) return;
    std::vector<std::pair<double, size_t>> without;  // the cost without a pair
    // If there are not enough evaluations for all pairs, they are spread over the program.
    const size_t step = (pairs_.size() + evaluations - 1) / evaluations;
    for (size_t i = 0; i < pairs_.size(); i += step) {
      pairs_[i].Use8Bits(false);
      without.emplace_back(CostOf(compression_.evaluate(program_)), i);
      pairs_[i].Use8Bits(true);
    }
    std::ranges::sort(without);
    const double all = cost;
    std::set<size_t> left;
    for (const auto& [alone, i] : without) {
      if (cost <= kTolerated || left.size() == most || alone >= all) break;
      pairs_[i].Use8Bits(false);
      const double next = left.empty() ? alone : CostOf(compression_.evaluate(program_));
      if (next < cost) {
        cost = next;
        left.insert(i);
      } else {
        pairs_[i].Use8Bits(true);
      }
    }
    if (left.empty()) return;
    compression_.loss_in_8_bits = all;
    std::vector<Pair> kept;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      if (left.contains(i)) {
        compression_.activations_left.push_back(pairs_[i].value);
        EraseUnused(pairs_[i].dequantise);
      } else {
        kept.push_back(std::move(pairs_[i]));
      }
    }
    pairs_ = std::move(kept);
  }

  Program& program_;
  const std::set<const Value*>& weights_;
  compress::Compression& compression_;
  PassContext& context_;
  std::vector<Pair> pairs_;
};

}  // namespace

std::set<const Value*> ActivationValues(const Program& program,
                                        const std::set<const Value*>& weights) {
  std::set<const Value*> values;
  for (const auto& function : program.functions)
    for (const Plan::Quantised& one : PlanOf(*function, weights).values) values.insert(one.value);
  return values;
}

bool QuantiseActivations(Program& program, const std::set<const Value*>& weights,
                         compress::Compression& compression, PassContext& context) {
  return Quantiser(program, weights, compression, context).Run();
}

}  // namespace mlc::passes
