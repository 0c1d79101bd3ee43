#include "lib/calibration/collect_inputs.h"

#include <algorithm>
#include <optional>

#include "lib/compress/weight_view.h"
#include "lib/engine/engine.h"
#include "lib/ops/sliding_window.h"

namespace mlc::calibration {

namespace {

using compress::InputSums;

constexpr int64_t kMostVectors = 512;

// The vectors that a weight is multiplied by, in sets (lib/compress/input_statistics.h).
struct Vectors {
  int64_t sets = 1, columns = 0;
  bool products = true;
  std::vector<std::vector<float>> by_set;
};

// The operation that uses a weight, with its operands' values.
struct Use {
  const Operation* op;
  std::string_view param;
  Dims weight;             // sizes
  std::string_view input;  // the parameter of what the weight is multiplied by; empty: the result
};

std::vector<float> FloatsOf(const Tensor& tensor) {
  return compress::ReadFloats(tensor, 0, tensor.size());
}

// Evenly spaced numbers below `count`.
std::vector<int64_t> Places(int64_t count) {
  std::vector<int64_t> places;
  const int64_t most = std::min(count, kMostVectors);
  for (int64_t i = 0; i < most; ++i) places.push_back(i * count / most);
  return places;
}

// The weight is multiplied by the last dimension.
Vectors OfLinear(const Use& use, const OpContext&, const Tensor& x, const Dims&) {
  Vectors vectors{.columns = use.weight[1], .by_set = {{}}};
  const std::vector<float> floats = FloatsOf(x);
  for (const int64_t place : Places(x.size() / vectors.columns))
    vectors.by_set[0].insert(vectors.by_set[0].end(), floats.begin() + place * vectors.columns,
                             floats.begin() + (place + 1) * vectors.columns);
  return vectors;
}

// The weight is one side of a product, perhaps a batch of matrices; `x` is the other side.
Vectors OfMatmul(const Use& use, const OpContext& context, const Tensor& x, const Dims& out) {
  const bool left = use.param == "x";  // the weight
  const bool transposed = context.Bool(left ? "transpose_y" : "transpose_x");
  const int rank = x.rank();
  if (rank < 2 || std::ssize(use.weight) < 2) return {};
  // Vectors lie along the contracted dimension.
  const bool contiguous = left == transposed;
  const int64_t rows = x.dims()[rank - 2], columns = x.dims()[rank - 1];
  const int64_t length = contiguous ? columns : rows, count = contiguous ? rows : columns;
  const int64_t sets = ElementCount(Dims(use.weight.begin(), use.weight.end() - 2));
  Vectors vectors{.sets = sets,
                  .columns = length,
                  .by_set = std::vector<std::vector<float>>(static_cast<size_t>(sets))};
  const std::vector<float> floats = FloatsOf(x);
  // Each matrix of the result is the product of one of x and one of the weight.
  const Dims batch(out.begin(), out.end() - 2);
  auto of = [&](const Dims& dims, int64_t flat) {
    const Dims own(dims.begin(), dims.end() - 2);
    int64_t at = 0, step = 1;
    for (int d = static_cast<int>(batch.size()) - 1, e = static_cast<int>(own.size()) - 1; e >= 0;
         --d, --e) {
      const int64_t index = flat % batch[d];
      flat /= batch[d];
      if (own[e] != 1) at += index * step;
      step *= own[e];
    }
    return at;
  };
  const int64_t matrices = ElementCount(batch);
  for (const int64_t place : Places(matrices * count)) {
    const int64_t matrix = place / count, v = place % count;
    std::vector<float>& to = vectors.by_set[of(use.weight, matrix)];
    const float* from = &floats[of(x.dims(), matrix) * rows * columns];
    for (int64_t i = 0; i < length; ++i)
      to.push_back(contiguous ? from[v * columns + i] : from[i * columns + v]);
  }
  return vectors;
}

// The columns are the elements below the kernel, by group.
Vectors OfConv(const Use& use, const OpContext& context, const Tensor& x, const Dims& out) {
  const Geometry g(ReadWindow(context), x.dims(), out);
  const int64_t groups = context.Int("groups"), channels = use.weight[1],
                plane = g.in[0] * g.in[1] * g.in[2], taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
  Vectors vectors{.sets = groups,
                  .columns = channels * taps,
                  .by_set = std::vector<std::vector<float>>(static_cast<size_t>(groups))};
  const std::vector<float> floats = FloatsOf(x);
  const int64_t positions = g.out[0] * g.out[1] * g.out[2];
  for (const int64_t place : Places(x.dims()[0] * positions)) {
    const int64_t n = place / positions, o[3] = {place % positions / (g.out[1] * g.out[2]),
                                                 place / g.out[2] % g.out[1], place % g.out[2]};
    std::array<int64_t, 2> range[3];
    for (int d = 0; d < 3; ++d) range[d] = g.Taps(d, o[d]);
    for (int64_t group = 0; group < groups; ++group) {
      std::vector<float>& to = vectors.by_set[group];
      const size_t begin = to.size();
      to.resize(begin + static_cast<size_t>(vectors.columns));
      for (int64_t c = 0; c < channels; ++c) {
        const float* from = &floats[((n * groups + group) * channels + c) * plane];
        float* column = &to[begin + static_cast<size_t>(c * taps)];
        for (int64_t k0 = range[0][0]; k0 < range[0][1]; ++k0)
          for (int64_t k1 = range[1][0]; k1 < range[1][1]; ++k1)
            for (int64_t k2 = range[2][0]; k2 < range[2][1]; ++k2)
              column[(k0 * g.kernel[1] + k1) * g.kernel[2] + k2] =
                  from[(g.In(0, o[0], k0) * g.in[1] + g.In(1, o[1], k1)) * g.in[2] +
                       g.In(2, o[2], k2)];
      }
    }
  }
  return vectors;
}

// Each element of x is multiplied by the kernel of its channel: columns of a channel have the same
// inputs, at different places of the output, which are not combined.
Vectors OfConvTranspose(const Use& use, const OpContext&, const Tensor& x, const Dims&) {
  const int64_t channels = x.dims()[1], plane = x.size() / x.dims()[0] / channels,
                taps = ElementCount(Dims(use.weight.begin() + 2, use.weight.end()));
  Vectors vectors{.columns = channels * taps, .products = false, .by_set = {{}}};
  const std::vector<float> floats = FloatsOf(x);
  for (const int64_t place : Places(x.dims()[0] * plane))
    for (int64_t c = 0; c < channels; ++c)
      vectors.by_set[0].insert(vectors.by_set[0].end(), static_cast<size_t>(taps),
                               floats[(place / plane * channels + c) * plane + place % plane]);
  return vectors;
}

// The hidden states, of which the result has those of all steps, or that of the last one; it stands for
// the others. For two directions, each vector of the result consists of two states.
Vectors OfStates(const Use& use, const OpContext&, const Tensor& states, const Dims&) {
  const int64_t columns = use.weight[1], length = states.dims().back(),
                begin = use.param.ends_with("_back") ? length - columns : 0;
  Vectors vectors{.columns = columns, .by_set = {{}}};
  const std::vector<float> floats = FloatsOf(states);
  for (const int64_t place : Places(states.size() / length)) {
    const auto from = floats.begin() + place * length + begin;
    vectors.by_set[0].insert(vectors.by_set[0].end(), from, from + columns);
  }
  return vectors;
}

// The weights whose inputs can be told. The inputs of lstm, gru and rnn are sequences of vectors. gru
// multiplies one part of its hidden weights by states that a gate has scaled.
struct Row {
  std::string_view op, weight, input;
  Vectors (*vectors)(const Use& use, const OpContext& context, const Tensor& x, const Dims& out);
};
constexpr Row kRows[] = {
    {"linear", "weight", "x", OfLinear},
    {"matmul", "y", "x", OfMatmul},
    {"matmul", "x", "y", OfMatmul},
    {"conv", "weight", "x", OfConv},
    {"conv_transpose", "weight", "x", OfConvTranspose},
    {"lstm", "weight_ih", "x", OfLinear},
    {"lstm", "weight_ih_back", "x", OfLinear},
    {"lstm", "weight_hh", "", OfStates},
    {"lstm", "weight_hh_back", "", OfStates},
    {"gru", "weight_ih", "x", OfLinear},
    {"gru", "weight_hh", "", OfStates},
    {"rnn", "weight_ih", "x", OfLinear},
    {"rnn", "weight_hh", "", OfStates},
};

struct Counted {
  Use use;
  const Row* row;
  const Value* weight;
};

// The uses of weights in a function, by operation, and the values that they need.
struct WeightUses {
  std::map<const Operation*, std::vector<Counted>> by_op;
  std::set<const Value*> inputs;
};

WeightUses UsesIn(Function& function, const std::set<const Value*>& weights) {
  WeightUses uses;
  ForEachOperation(function, [&](Operation* op) {
    for (const Row& row : kRows) {
      if (!op->is(row.op)) continue;
      const Value* weight = op->value(row.weight);
      const Value* input = row.input.empty() ? op->result() : op->value(row.input);
      if (!weight || !input || !weights.contains(weight)) continue;
      Dims dims;
      for (const Dim& dim : weight->type.shape) dims.push_back(dim.constant());
      uses.by_op[op].push_back({{op, row.weight, std::move(dims), row.input}, &row, weight});
      uses.inputs.insert(input);
    }
  });
  return uses;
}

}  // namespace

int64_t Samples::count() const {
  int64_t most = 0;
  for (const auto& [name, samples] : functions) most = std::max(most, std::ssize(samples));
  return most;
}

Observed Observe(const Program& program, const Samples& samples,
                 const std::set<const Value*>& weights, const std::set<const Value*>& values,
                 int threads, const std::function<void()>& done) {
  Observed observed;
  for (const auto& function : program.functions) {
    const auto given = samples.functions.find(function->name);
    if (given == samples.functions.end()) continue;
    const WeightUses uses = UsesIn(*function, weights);
    if (uses.by_op.empty() && values.empty()) continue;
    std::map<const Value*, Tensor> held;
    auto count = [&](const Value* value, const Tensor& tensor) {
      if (values.contains(value) && IsFloat(tensor.dtype()))
        observed.values[value].Add(FloatsOf(tensor));
    };
    auto observe = [&](const Operation& op, std::span<Tensor> results) {
      if (const auto used = uses.by_op.find(&op); used != uses.by_op.end())
        for (const Counted& counted : used->second) {
          const bool own = counted.use.input.empty();
          const auto x = own ? held.end() : held.find(op.value(counted.use.input));
          if (!own && x == held.end()) continue;
          const Vectors vectors =
              counted.row->vectors(counted.use, OpContext(*op.def, op.args(), &op),
                                   own ? results[0] : x->second, results[0].dims());
          if (vectors.by_set.empty()) continue;
          InputSums& sum = observed.inputs[counted.weight];
          if (sum.sets() == 0)
            sum = InputSums(vectors.sets, vectors.columns,
                            vectors.products && vectors.sets * vectors.columns * vectors.columns <=
                                                    compress::kMostColumnsWithProducts *
                                                        compress::kMostColumnsWithProducts);
          for (int64_t set = 0; set < vectors.sets; ++set)
            sum.Add(set, vectors.by_set[set], threads);
        }
      for (size_t i = 0; i < results.size(); ++i) {
        const Value* result = op.results[i].get();
        if (uses.inputs.contains(result)) held[result] = results[i];
        count(result, results[i]);
      }
    };
    const engine::Engine engine(*function,
                                {.arithmetic = engine::EngineOptions::Arithmetic::kExact,
                                 .threads = threads,
                                 .kernels = engine::EngineOptions::Kernels::kReproducible,
                                 .observe = observe});
    for (const Sample& sample : given->second) {
      engine::States states;
      for (const verify::StepInputs& inputs : sample) {
        held.clear();
        for (const auto& value : function->body.inputs) {
          const auto input = inputs.find(value->name);
          if (input == inputs.end()) continue;
          if (uses.inputs.contains(value.get())) held[value.get()] = input->second;
          count(value.get(), input->second);
        }
        engine.Run(inputs, states);
      }
      if (done) done();
    }
  }
  return observed;
}

}  // namespace mlc::calibration
