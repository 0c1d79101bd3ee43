// Recurrent layers in fp32: one product of the whole sequence with weight_ih, then for each step a
// small product and the activations, for all rows of the batch at once.
#include "lib/ops/recurrent.h"

#include <algorithm>
#include <limits>

#include "lib/engine/fp32_view.h"
#include "lib/engine/gemm.h"
#include "lib/engine/kernels.h"
#include "lib/engine/vector_math.h"

namespace mlc::engine {

namespace {

void Activate(RecurrentActivation activation, float* x, int64_t count) {
  switch (activation) {
    case RecurrentActivation::kLinear:
      return;
    case RecurrentActivation::kRelu:
      for (int64_t i = 0; i < count; ++i) x[i] = x[i] < 0 ? 0 : x[i];
      return;
    case RecurrentActivation::kSigmoid:
      for (int64_t i = 0; i < count; ++i) x[i] = Sigmoid(x[i]);
      return;
    case RecurrentActivation::kHardSigmoid:
      for (int64_t i = 0; i < count; ++i) {
        float y = 0.2f * x[i] + 0.5f;
        x[i] = y < 0 ? 0 : y > 1 ? 1 : y;
      }
      return;
    case RecurrentActivation::kTanh:
      for (int64_t i = 0; i < count; ++i) x[i] = Tanh(x[i]);
  }
}

using Vector = std::vector<float>;

Vector Operand(const OpContext& context, std::string_view param, std::string_view suffix) {
  std::string name = fmt::format("{}{}", param, suffix);
  if (context.def().Find(name) < 0 || !context.has(name)) return {};
  Fp32View floats(context.value(name));
  return Vector(floats.data(), floats.data() + floats.size());
}

// The constants of one direction in fp32, prepared at the first call. The recurrent weights (hidden
// to hidden) are packed in `parts` groups of adjacent gates.
struct Weights {
  Weights(const OpContext& context, const RecurrentDirection& d, int64_t gates, int64_t parts)
      : direction(d),
        bias(Operand(context, "bias", d.suffix)),
        peephole(Operand(context, "peephole", d.suffix)),
        input_bias(Operand(context, "input_bias", d.suffix)) {
    Vector input = Operand(context, "weight_ih", d.suffix),
           state = Operand(context, "weight_hh", d.suffix);
    RecurrentSizes n(context);
    int64_t rows = gates * n.hidden, part = rows / parts;
    ih = PackColumns({input.data(), 1, n.inputs}, n.inputs, rows);
    for (int64_t i = 0; i < parts; ++i)
      hh.push_back(PackColumns({state.data() + i * part * n.hidden, 1, n.hidden}, n.hidden, part));
  }
  RecurrentDirection direction;
  Columns ih;
  std::vector<Columns> hh;
  Vector bias, peephole, input_bias;
};

// The data of one step: the sums [batch, gates * hidden] of the input's product and bias, and the
// states [batch, hidden].
struct Step {
  int64_t batch, hidden;
  float* sums;
  std::vector<Vector>& states;
};

struct Activations {
  RecurrentActivation gate = {}, cell = {}, output = {};
  float clip = std::numeric_limits<float>::infinity();
  bool reset_after = false;
};

// Computes y [batch, columns] += state [batch, hidden] times weights.
void AddProductOfState(const Vector& state, const Columns& weights, const Step& step,
                       int64_t columns, float* y) {
  AddProduct(PackedRows({state.data(), step.hidden}, step.batch, step.hidden), weights, columns, y,
             columns, 1);
}

void LstmStep(const Weights& weights, const Activations& act, const Step& step, Vector&) {
  Vector &h = step.states[0], &c = step.states[1];
  int64_t n = step.hidden;
  AddProductOfState(h, weights.hh[0], step, 4 * n, step.sums);
  for (int64_t b = 0; b < step.batch; ++b) {
    float *in = step.sums + b * 4 * n, *forget = in + n, *out = in + 2 * n, *fresh = in + 3 * n,
          *cell = c.data() + b * n, *state = h.data() + b * n;
    const float* peephole = weights.peephole.data();
    if (peephole)
      for (int64_t j = 0; j < 2 * n; ++j) in[j] += peephole[j] * cell[j % n];
    Activate(act.gate, in, 2 * n);
    Activate(act.cell, fresh, n);
    for (int64_t j = 0; j < n; ++j) {
      float y = forget[j] * cell[j] + in[j] * fresh[j];
      cell[j] = y > act.clip ? act.clip : y < -act.clip ? -act.clip : y;
    }
    if (peephole)
      for (int64_t j = 0; j < n; ++j) out[j] += peephole[2 * n + j] * cell[j];
    Activate(act.gate, out, n);
    std::copy_n(cell, n, state);
    Activate(act.output, state, n);
    for (int64_t j = 0; j < n; ++j) state[j] *= out[j];
  }
}

void GruStep(const Weights& weights, const Activations& act, const Step& step, Vector& products) {
  Vector& h = step.states[0];
  int64_t n = step.hidden;
  const Vector& bias = weights.bias;
  products.assign(step.batch * 3 * n, 0.0f);
  if (!bias.empty())
    for (size_t i = 0; i < products.size(); ++i) products[i] = bias[i % (3 * n)];
  if (act.reset_after) {
    AddProductOfState(h, weights.hh[0], step, 3 * n, products.data());
    for (int64_t b = 0; b < step.batch; ++b) {
      float *reset = step.sums + b * 3 * n, *fresh = reset + n, *update = reset + 2 * n,
            *state = h.data() + b * n;
      const float* product = products.data() + b * 3 * n;
      for (int64_t j = 0; j < n; ++j) {
        reset[j] += product[j];
        update[j] += product[2 * n + j];
      }
      Activate(act.gate, reset, n);
      Activate(act.gate, update, n);
      for (int64_t j = 0; j < n; ++j) fresh[j] += reset[j] * product[n + j];
      Activate(act.output, fresh, n);
      for (int64_t j = 0; j < n; ++j) state[j] = (1 - update[j]) * fresh[j] + update[j] * state[j];
    }
    return;
  }
  for (size_t i = 0; i < products.size(); ++i) step.sums[i] += products[i];
  // Multiplies the state by the weights of reset and update, then the reset state by those of the
  // output.
  Vector gates(step.batch * n), scaled(step.batch * n);
  auto add = [&](const Vector& x, int64_t gate) {
    std::ranges::fill(gates, 0.0f);
    AddProductOfState(x, weights.hh[gate], step, n, gates.data());
    for (int64_t b = 0; b < step.batch; ++b) {
      float* row = step.sums + b * 3 * n + gate * n;
      for (int64_t j = 0; j < n; ++j) row[j] += gates[b * n + j];
      Activate(gate == 1 ? act.output : act.gate, row, n);
    }
  };
  add(h, 0);
  add(h, 2);
  for (int64_t b = 0; b < step.batch; ++b)
    for (int64_t j = 0; j < n; ++j) scaled[b * n + j] = step.sums[b * 3 * n + j] * h[b * n + j];
  add(scaled, 1);
  for (int64_t b = 0; b < step.batch; ++b) {
    const float *fresh = step.sums + b * 3 * n + n, *update = fresh + n;
    float* state = h.data() + b * n;
    for (int64_t j = 0; j < n; ++j) state[j] = (1 - update[j]) * fresh[j] + update[j] * state[j];
  }
}

void RnnStep(const Weights& weights, const Activations& act, const Step& step, Vector&) {
  Vector& h = step.states[0];
  AddProductOfState(h, weights.hh[0], step, step.hidden, step.sums);
  Activate(act.output, step.sums, step.batch * step.hidden);
  std::copy_n(step.sums, step.batch * step.hidden, h.data());
}

// The step function of an operator, and where its bias is added.
struct Family {
  int64_t gates;
  bool bias_with_input;
  void (*step)(const Weights&, const Activations&, const Step&, Vector&);
};

void Run(EvalContext& context, const Family& family, const std::vector<Weights>& directions,
         const Activations& activations, int threads) {
  RecurrentSizes n(context);
  bool sequence = context.Bool("output_sequence");
  int64_t rows = family.gates * n.hidden,
          width = n.hidden * static_cast<int64_t>(directions.size());
  Fp32View x(context.in("x"));
  Fp32Result y(context.out_dtype(), context.out_dims());
  std::vector<Fp32View> initial;
  std::vector<Fp32Result> finals;
  for (std::string_view name : {"initial_h", "initial_c"}) {
    if (context.def().Find(name) < 0) continue;
    initial.emplace_back(context.in(name));
    finals.emplace_back(context.out_dtype(), Dims{n.batch, width});
  }
  Vector sums(n.steps * n.batch * rows), scratch;
  for (const Weights& weights : directions) {
    const RecurrentDirection& direction = weights.direction;
    std::ranges::fill(sums, 0.0f);
    for (const Vector* bias :
         {family.bias_with_input ? &weights.bias : nullptr, &weights.input_bias})
      if (bias && !bias->empty())
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += (*bias)[i % rows];
    AddProduct(PackedRows({x.data(), n.inputs}, n.steps * n.batch, n.inputs), weights.ih, rows,
               sums.data(), rows, threads);
    int64_t first = direction.half * n.hidden;
    std::vector<Vector> states(initial.size(), Vector(n.batch * n.hidden));
    for (size_t s = 0; s < states.size(); ++s)
      for (int64_t b = 0; b < n.batch; ++b)
        std::copy_n(initial[s].data() + b * width + first, n.hidden,
                    states[s].data() + b * n.hidden);
    auto store = [&](const Vector& state, float* to) {
      for (int64_t b = 0; b < n.batch; ++b)
        std::copy_n(state.data() + b * n.hidden, n.hidden, to + b * width + first);
    };
    for (int64_t t = 0; t < n.steps; ++t) {
      int64_t back = n.steps - 1 - t, from = direction.reads_backward ? back : t,
              to = direction.writes_backward ? back : t;
      family.step(weights, activations,
                  {n.batch, n.hidden, sums.data() + from * n.batch * rows, states}, scratch);
      if (sequence || back == 0) store(states[0], y.data() + (sequence ? to * n.batch * width : 0));
    }
    for (size_t s = 0; s < states.size(); ++s) store(states[s], finals[s].data());
  }
  context.Set(y.Take());
  for (Fp32Result& state : finals) context.Set(state.Take());
}

template <int64_t kGates, bool kBiasWithInput,
          void (*kStep)(const Weights&, const Activations&, const Step&, Vector&)>
Kernel Prepare(const KernelSite& site) {
  const EvalContext& context = site.context;
  if (!IsKernelFloat(context.dtype("x")) || !site.is_constant("weight_ih") ||
      !site.is_constant("weight_hh"))
    return {};
  Activations activations;
  auto choose = [&](std::string_view param, RecurrentActivation& activation) {
    if (context.def().Find(param) >= 0) activation = RecurrentActivationOf(context, param);
  };
  choose("recurrent_activation", activations.gate);
  choose("cell_activation", activations.cell);
  choose("activation", activations.output);
  auto given = [&](std::string_view param) {
    return context.def().Find(param) >= 0 && context.has(param);
  };
  if (given("clip")) activations.clip = static_cast<float>(context.Double("clip"));
  if (given("reset_after")) activations.reset_after = context.Bool("reset_after");
  // The reset gate modifies the state before its product with the output's weights.
  bool separate = kStep == GruStep && !activations.reset_after;
  std::vector<Weights> directions;
  for (const RecurrentDirection& direction : RecurrentDirections(context))
    directions.emplace_back(context, direction, kGates, separate ? kGates : 1);
  return [family = Family{kGates, kBiasWithInput, kStep}, directions = std::move(directions),
          activations, threads = site.threads](EvalContext& call) {
    Run(call, family, directions, activations, threads);
  };
}

constexpr KernelRow kRows[] = {
    {"gru", Prepare<3, false, GruStep>},
    {"lstm", Prepare<4, true, LstmStep>},
    {"rnn", Prepare<1, true, RnnStep>},
};

}  // namespace

std::span<const KernelRow> RecurrentKernels() { return kRows; }

}  // namespace mlc::engine
