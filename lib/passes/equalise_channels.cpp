// Operators by name: layers that multiply by a weight, and what is between them.
#include "lib/passes/equalise_channels.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lib/compress/assignment.h"
#include "lib/compress/weight_view.h"
#include "lib/ir/encoding.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {

namespace {

using compress::InputStatistics;
using compress::Quantised;
using compress::Scheme;
using Factors = std::vector<float>;  // by channel

// A tensor whose elements belong to channels: element i to channel_of(i).
template <class F>
Tensor Scaled(const Tensor& tensor, const Factors& factors, bool divided, F channel_of) {
  std::vector<float> numbers = compress::ReadFloats(tensor, 0, tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const float factor = factors[channel_of(i)];
    numbers[i] = divided ? numbers[i] / factor : numbers[i] * factor;
  }
  return Tensor::Of(tensor.dims(), numbers).Cast(tensor.dtype()).InMemory().ComputedFrom(tensor);
}

// The weight of a convolution or linear layer: rows are outputs, columns inputs and kernel positions.
struct Layer {
  Operation* op = nullptr;
  Candidate* candidate = nullptr;  // null: the weight is not compressed
  int64_t rows = 0, columns = 0, kernel = 1, groups = 1;

  Value* weight() const { return op->value("weight"); }
  int64_t inputs() const { return columns / kernel * groups; }
  int64_t input_of(int64_t element) const {
    const int64_t group = element / columns / (rows / groups);
    return group * (columns / kernel) + element % columns / kernel;
  }
};

// The only use of a plain constant.
bool IsOwn(const Value* value) {
  return value && value->is_constant() && value->users.size() == 1 && !value->is_output() &&
         !value->constant().encoding();
}

// The layer or normalisation that computes y, and all operations that use y.
struct Link {
  Layer layer;                     // op is null for a normalisation
  std::vector<Value*> parameters;  // bias; or gamma and beta, whose channels perhaps repeat
  std::vector<Layer> consumers;
  int64_t channels = 0;
};

class Equaliser {
 public:
  Equaliser(const std::vector<Candidate*>& candidates, const QuantiseFn& quantise)
      : candidates_(candidates), quantise_(quantise) {
    for (Candidate* candidate : candidates)
      for (const Value* value : candidate->values) by_value_[value] = candidate;
  }

  void Run() {
    std::set<const Value*> done;
    for (Candidate* candidate : candidates_) {
      if (!IsSubject(candidate) || candidate->values[0]->users.size() != 1) continue;
      const std::optional<Layer> layer = LayerOf(candidate->values[0]->users.front());
      if (!layer) continue;
      const Value* y = layer->op->value("x");
      if (!y || !done.insert(y).second) continue;
      if (std::optional<Link> link = LinkTo(y)) Try(*link);
    }
  }

 private:
  static bool IsCompressed(const Candidate& candidate) {
    return candidate.scheme.values != Scheme::Values::kKept;
  }
  static bool IsSubject(const Candidate* candidate) {
    return candidate && candidate->inputs && IsCompressed(*candidate);
  }

  std::optional<Layer> LayerOf(Operation* op) const {
    if (!op->is("conv") && !op->is("linear")) return std::nullopt;
    Value* weight = op->value("weight");
    if (!IsOwn(weight)) return std::nullopt;
    const Tensor& tensor = weight->constant();
    Layer layer{.op = op, .rows = tensor.dims()[0], .columns = tensor.size() / tensor.dims()[0]};
    layer.kernel = layer.columns / tensor.dims()[1];
    if (op->is("conv")) {
      const Tensor groups = op->constant_or_default("groups");
      if (!groups) return std::nullopt;
      layer.groups = groups.Ints()[0];
    }
    const auto found = by_value_.find(weight);
    if (found != by_value_.end()) {
      const Candidate& candidate = *found->second;
      if (candidate.values.size() > 1 || candidate.scheme.activations || HasEncoding(candidate))
        return std::nullopt;
      if (IsCompressed(candidate)) layer.candidate = found->second;
    }
    return layer;
  }

  // Returns the channels of y that all of its users multiply by weights, and where they come from.
  std::optional<Link> LinkTo(const Value* y) const {
    Link link;
    if (!y->def || y->is_output()) return std::nullopt;
    for (Operation* user : y->users) {
      std::optional<Layer> layer = LayerOf(user);
      if (!layer || layer->op->value("x") != y || user->block != y->def->block) return std::nullopt;
      if (!IsSubject(layer->candidate)) return std::nullopt;
      if (user->def != y->users.front()->def) return std::nullopt;
      link.channels = layer->inputs();
      link.consumers.push_back(std::move(*layer));
    }
    for (const Layer& consumer : link.consumers)
      if (consumer.inputs() != link.channels) return std::nullopt;
    const bool last = link.consumers.front().op->is("linear");  // the axis of the channels
    const Value* at = y;
    for (const Operation* op = y->def; op; op = at->def) {
      if (at != y && (at->is_output() || at->users.size() != 1)) return std::nullopt;
      if (op->block != y->def->block) return std::nullopt;
      if ((op->is("linear") && last) || (op->is("conv") && !last)) {
        std::optional<Layer> layer = LayerOf(at->def);
        if (!layer || layer->rows != link.channels) return std::nullopt;
        if (layer->candidate && !IsSubject(layer->candidate)) return std::nullopt;
        if (!AddParameter(*op, "bias", link)) return std::nullopt;
        link.layer = std::move(*layer);
        return link;
      }
      if (op->is("layer_norm") && last) {
        const auto axes = ConstantAxes(*op, "axes", static_cast<int>(at->type.shape.size()));
        if (!axes || *axes != std::vector<int64_t>{std::ssize(at->type.shape) - 1} ||
            !op->has("gamma") || !AddParameter(*op, "gamma", link) ||
            !AddParameter(*op, "beta", link))
          return std::nullopt;
        return link;
      }
      at = Through(*op, at, last);
      if (!at) return std::nullopt;
    }
    return std::nullopt;
  }

  // Returns the operand whose channels a result has, multiplied by the same factors; null if there is
  // none.
  static const Value* Through(const Operation& op, const Value* result, bool last) {
    // Pooling is along the axes behind the channels, which are those of convolutions.
    if (op.def->homogeneous && (!last || op.def->Find("kernel_sizes") < 0)) return op.value("x");
    // The first features of a normalisation of [x, -x], whose mean is 0.
    if (op.is("slice_by_index") && last) {
      const std::optional<Cut> cut = OnlyCut(op);
      const Value* x = op.value("x");
      const bool first = cut && cut->begin == 0 && cut->axis == std::ssize(x->type.shape) - 1;
      return first && DefinedBy(x, "layer_norm") ? x : nullptr;
    }
    // A gate: the second operand is computed by a layer.
    if (op.is("mul"))
      for (const char* side : {"y", "x"}) {
        const Value* x = op.value(side);
        if (x && x->def && x->type.shape == result->type.shape &&
            (x->def->is("linear") || x->def->is("conv")))
          return x;
      }
    return nullptr;
  }

  static bool AddParameter(const Operation& op, std::string_view param, Link& link) {
    if (op.arg(param).empty()) return true;
    Value* value = op.value(param);
    if (!IsOwn(value) || value->constant().size() % link.channels != 0) return false;
    link.parameters.push_back(value);
    return true;
  }

  // ---- factors

  // The mean square of each channel of y.
  static std::vector<double> SquaresOf(const Link& link) {
    std::vector<double> squares(static_cast<size_t>(link.channels));
    const Layer& layer = link.consumers.front();
    const InputStatistics& inputs = layer.candidate->inputs;
    for (int64_t set = 0; set < inputs.sets; ++set)
      for (int64_t c = 0; c < inputs.columns; ++c)
        squares[layer.input_of(set * layer.rows / inputs.sets * layer.columns + c)] +=
            static_cast<double>(inputs.square[set * inputs.columns + c]) /
            static_cast<double>(layer.kernel);
    return squares;
  }

  // The largest magnitude of each channel in the weights that use it.
  static std::vector<double> GreatestOf(const Link& link) {
    std::vector<double> greatest(static_cast<size_t>(link.channels));
    for (const Layer& layer : link.consumers) {
      const std::vector<float> numbers =
          compress::ReadFloats(layer.candidate->tensor, 0, layer.candidate->tensor.size());
      for (int64_t i = 0; i < std::ssize(numbers); ++i) {
        double& of = greatest[layer.input_of(i)];
        of = std::max(of, std::fabs(static_cast<double>(numbers[i])));
      }
    }
    return greatest;
  }

  // Rounds factors to powers of two near their geometric mean; empty if all are equal. The largest
  // channel of y does not become larger.
  static Factors Rounded(const std::vector<double>& wanted, const std::vector<double>& squares) {
    constexpr double kMost = 4;  // binary orders of magnitude
    double sum = 0, count = 0;
    for (const double x : wanted)
      if (x > 0 && std::isfinite(x)) sum += std::log2(x), count += 1;
    if (count == 0) return {};
    std::vector<double> exponents;
    double before = 0, after = 0;
    for (size_t c = 0; c < wanted.size(); ++c) {
      const double x = wanted[c];
      const bool usable = x > 0 && std::isfinite(x);
      exponents.push_back(
          usable ? std::clamp(std::nearbyint(std::log2(x) - sum / count), -kMost, kMost) : 0);
      const double size = std::sqrt(squares[c]);
      before = std::max(before, size);
      after = std::max(after, size * std::exp2(-exponents.back()));
    }
    if (std::ranges::all_of(exponents, [&](double e) { return e == exponents.front(); })) return {};
    const double more = after > before ? std::ceil(std::log2(after / before)) : 0;
    Factors factors;
    for (const double e : exponents) factors.push_back(static_cast<float>(std::exp2(e + more)));
    return factors;
  }

  static std::vector<Factors> ChoicesFor(const Link& link) {
    const std::vector<double> squares = SquaresOf(link), greatest = GreatestOf(link);
    std::vector<Factors> choices;
    auto add = [&](auto of) {
      std::vector<double> wanted;
      for (int64_t c = 0; c < link.channels; ++c) wanted.push_back(of(c));
      Factors factors = Rounded(wanted, squares);
      if (!factors.empty() && std::ranges::find(choices, factors) == choices.end())
        choices.push_back(std::move(factors));
    };
    // Large inputs need precise weights.
    add([&](int64_t c) { return std::pow(squares[c], 0.25); });
    add([&](int64_t c) { return std::pow(squares[c], 0.125); });
    add([&](int64_t c) { return 1 / greatest[c]; });
    if (!link.layer.op) return choices;
    // The rows of v and the columns of w become alike.
    std::vector<double> rows(static_cast<size_t>(link.channels));
    const Tensor& weight = link.layer.weight()->constant();
    const std::vector<float> numbers = compress::ReadFloats(weight, 0, weight.size());
    for (int64_t i = 0; i < std::ssize(numbers); ++i) {
      double& of = rows[i / link.layer.columns];
      of = std::max(of, std::fabs(static_cast<double>(numbers[i])));
    }
    add([&](int64_t c) { return std::sqrt(rows[c] / greatest[c]); });
    return choices;
  }

  // ---- trying

  // A candidate with other numbers, and other inputs.
  static Candidate With(const Candidate& candidate, Tensor tensor) {
    return {.values = candidate.values,
            .tensor = std::move(tensor),
            .axes = candidate.axes,
            .rule = candidate.rule,
            .scheme = candidate.scheme,
            .named = candidate.named,
            .inputs = candidate.inputs};
  }

  static void Divide(InputStatistics& inputs, const Layer& layer, const Factors& factors) {
    for (int64_t set = 0; set < inputs.sets; ++set) {
      std::vector<float> by;
      for (int64_t c = 0; c < inputs.columns; ++c)
        by.push_back(factors[layer.input_of(set * layer.rows / inputs.sets * layer.columns + c)]);
      float* mean = &inputs.mean[set * inputs.columns];
      float* square = &inputs.square[set * inputs.columns];
      for (int64_t c = 0; c < inputs.columns; ++c) {
        mean[c] /= by[c];
        square[c] /= by[c] * by[c];
      }
      if (inputs.products.empty()) continue;
      float* products = &inputs.products[set * inputs.columns * inputs.columns];
      for (int64_t r = 0; r < inputs.columns; ++r)
        for (int64_t c = 0; c < inputs.columns; ++c) *products++ /= by[r] * by[c];
    }
  }

  // Returns the error that quantising a weight causes, relative to its output, with these factors of
  // its inputs or, if `produces`, of its outputs.
  double CostOf(const Layer& layer, const Factors& factors, bool produces) const {
    const Candidate& candidate = *layer.candidate;
    auto channel_of = [&](int64_t i) { return produces ? i / layer.columns : layer.input_of(i); };
    Candidate changed = With(candidate, Scaled(candidate.tensor, factors, produces, channel_of));
    if (!produces) Divide(changed.inputs, layer, factors);
    const Quantised made = quantise_(changed, changed.scheme, 0);
    if (!made.refused.empty()) return HUGE_VAL;
    const Tensor& weight = candidate.tensor;
    const Tensor back =
        Scaled(Dense(made.tensor).Cast(DType::kFp32), factors, !produces, channel_of);
    const compress::OutputError error = compress::OutputErrorOf(
        compress::ReadFloats(weight, 0, weight.size()), compress::ReadFloats(back, 0, back.size()),
        layer.rows, candidate.inputs, !made.bias.empty(), 0);
    return error.energy > 0 ? error.error / error.energy : 0;
  }

  double CostOf(const Link& link, const Factors& factors) const {
    double cost = link.layer.candidate ? CostOf(link.layer, factors, true) : 0;
    for (const Layer& layer : link.consumers) cost += CostOf(layer, factors, false);
    return cost;
  }

  void Try(const Link& link) const {
    constexpr double kLeastGain = 0.02;
    const std::vector<Factors> choices = ChoicesFor(link);
    if (choices.empty()) return;
    double least = CostOf(link, Factors(static_cast<size_t>(link.channels), 1)) * (1 - kLeastGain);
    const Factors* best = nullptr;
    for (const Factors& factors : choices)
      if (const double cost = CostOf(link, factors); cost < least) {
        least = cost;
        best = &factors;
      }
    if (best) Apply(link, *best);
  }

  void Apply(const Link& link, const Factors& factors) const {
    auto replace = [](Value* value, Candidate* candidate, Tensor tensor) {
      value->def->val = tensor;
      if (!candidate) return;
      candidate->tensor = std::move(tensor);
      candidate->report.equalised = true;
    };
    for (Value* value : link.parameters)
      replace(value, nullptr, Scaled(value->constant(), factors, true, [&](int64_t i) {
                return i % link.channels;
              }));
    if (const Layer& layer = link.layer; layer.op)
      replace(layer.weight(), layer.candidate,
              Scaled(layer.weight()->constant(), factors, true,
                     [&](int64_t i) { return i / layer.columns; }));
    for (const Layer& layer : link.consumers) {
      replace(layer.weight(), layer.candidate,
              Scaled(layer.weight()->constant(), factors, false,
                     [&](int64_t i) { return layer.input_of(i); }));
      Divide(layer.candidate->inputs, layer, factors);
    }
  }

  const std::vector<Candidate*>& candidates_;
  const QuantiseFn& quantise_;
  std::map<const Value*, Candidate*> by_value_;
};

}  // namespace

void EqualiseChannels(const std::vector<Candidate*>& candidates, const QuantiseFn& quantise) {
  Equaliser(candidates, quantise).Run();
}

}  // namespace mlc::passes
