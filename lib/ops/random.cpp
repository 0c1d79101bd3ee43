// Random numbers from Philox4x32-10, keyed by the operation's seed: element i of a result uses word
// i % 4 of block i / 4 of stream 0, so that a seed gives the same numbers on every machine and in
// every run.
//
// In Core ML, the default seed -1 requests numbers that differ between runs. Here, such numbers
// differ between operations (the stream is a hash of the name) but are reproducible. Nothing is
// folded because the operators are not pure.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/ir/program.h"
#include "lib/ops/narrow_result.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"
#include "lib/support/philox.h"

namespace mlc {

namespace {

// The random numbers of one operation.
class Numbers {
 public:
  explicit Numbers(const OpContext& context) : seed_(static_cast<uint64_t>(context.Int("seed"))) {
    const Operation* op = context.operation();
    if (context.Int("seed") != -1 || !op) return;
    stream_ = 0xcbf29ce484222325;  // FNV-1a of the name
    for (unsigned char c : op->name) stream_ = (stream_ ^ c) * 0x100000001b3;
  }
  // The words of block i.
  PhiloxCounter Block(uint64_t i) const { return Philox(seed_, stream_, i); }

 private:
  uint64_t seed_, stream_ = 0;
};

// f(u) for each element, with u uniform in [0, 1) with 24 bits, the precision of fp32.
template <class F>
Tensor MapUniform(EvalContext& context, F&& f) {
  Numbers numbers(context);
  std::vector<double> values(ElementCount(context.out_dims()));
  for (size_t i = 0; i < values.size(); i += 4) {
    PhiloxCounter words = numbers.Block(i / 4);
    for (size_t k = i; k < std::min(i + 4, values.size()); ++k)
      values[k] = f((words[k - i] >> 8) * 0x1p-24);
  }
  return Store(context.out_dtype(), context.out_dims(), values);
}

// The element type of a parameter, or of its default if it is omitted.
DType TypeOf(const OpContext& context, std::string_view name) {
  return context.has(name) ? context.dtype(name) : context.value(name).dtype();
}

// Infers a tensor with the dimensions listed by operand `shape` and the dtype of `parameters`.
void InferDistribution(InferContext& context, std::initializer_list<std::string_view> parameters) {
  const int64_t rank = VectorLength(context, "shape");
  auto dims = context.Elements("shape");
  if (!dims) {
    dims.emplace();
    for (int64_t i = 0; i < rank; ++i) dims->push_back(context.Fresh("random"));
  }
  for (const Dim& dim : *dims)
    if (dim.is_constant() && dim.constant() < 0)
      context.Fail("invalid dimension {} in shape", dim.constant());
  DType dtype = DType::kNone;
  for (std::string_view name : parameters) {
    if (context.has(name) && context.rank(name) != 0)
      context.Fail("{} is {}, expected a scalar", name, context.type(name).ToString());
    if (dtype == DType::kNone || context.has(name)) dtype = TypeOf(context, name);
  }
  context.Result(dtype, *dims);
}

void InferBernoulli(InferContext& context) { InferDistribution(context, {"prob"}); }
void EvalBernoulli(EvalContext& context) {
  double prob = context.Double("prob");
  context.Set(MapUniform(context, [=](double u) { return u < prob ? 1.0 : 0.0; }));
}

void InferNormal(InferContext& context) { InferDistribution(context, {"mean", "stddev"}); }
void EvalNormal(EvalContext& context) {
  Numbers numbers(context);
  double mean = context.Double("mean"), deviation = context.Double("stddev");
  std::vector<double> values(ElementCount(context.out_dims()));
  for (size_t i = 0; i < values.size();
       i += 2) {  // Box-Muller transform: two uniform numbers give two normal ones
    PhiloxCounter words = numbers.Block(i / 4);
    double radius = std::sqrt(-2 * std::log((words[i % 4] + 0.5) * 0x1p-32)),
           angle = 2 * std::numbers::pi * ((words[i % 4 + 1] + 0.5) * 0x1p-32);
    values[i] = mean + deviation * radius * std::cos(angle);
    if (i + 1 < values.size()) values[i + 1] = mean + deviation * radius * std::sin(angle);
  }
  context.Set(Store(context.out_dtype(), context.out_dims(), values));
}

void InferUniform(InferContext& context) { InferDistribution(context, {"low", "high"}); }
// Rounding may produce `high`, which is excluded; such a number becomes `low`.
void EvalUniform(EvalContext& context) {
  double low = context.Double("low"), high = context.Double("high");
  DType dtype = context.out_dtype();
  auto round = [dtype](double x) {
    return dtype == DType::kFp16 ? static_cast<double>(Half(x))
                                 : static_cast<double>(static_cast<float>(x));
  };
  context.Set(MapUniform(context, [=](double u) {
    double x = low + u * (high - low);
    return low < high && round(x) >= high ? low : x;
  }));
}

void InferCategorical(InferContext& context) {
  Shape shape = context.shape("x");
  if (shape.empty() || shape.back() == Dim(0)) context.Fail("x has no classes");
  std::string mode = context.String("mode");
  if (mode != "logits" && mode != "probs")
    context.Fail("mode is \"{}\", expected logits or probs", mode);
  int64_t size = context.Int("size");
  if (size < 0) context.Fail("size is {}", size);
  shape.back() = size;
  context.Result(context.dtype("x"), std::move(shape));
}
// The first class at which the cumulative weight exceeds u times the total.
void EvalCategorical(EvalContext& context) {
  bool logits = context.String("mode") == "logits";
  int64_t events = StaticDims(context.shape("x")).back(), size = context.Int("size"), drawn = 0;
  std::vector<double> weights = context.in("x").Doubles();
  if (size > 0)
    context.Set(MapUniform(context, [&](double u) {
      const double* row = weights.data() + drawn++ / size * events;
      double most = logits ? *std::max_element(row, row + events) : 0, total = 0, sum = 0;
      auto weight = [&](int64_t i) { return logits ? std::exp(row[i] - most) : row[i]; };
      for (int64_t i = 0; i < events; ++i) total += weight(i);
      for (int64_t i = 0; i < events; ++i)
        if ((sum += weight(i)) > u * total) return static_cast<double>(i);
      return static_cast<double>(events - 1);
    }));
  else
    context.Set(Tensor::Full(context.out_dtype(), context.out_dims(), 0));
}

Interval RangeBernoulli(const RangeContext&, int) { return {0, 1}; }
Interval RangeCategorical(const RangeContext& context, int result) {
  return Counts(0, context.Size("x", context.rank("x") - 1) - 1, context.out_dtype(result));
}
Interval RangeUniform(const RangeContext& context, int) {
  return Join(context.in("low"), context.in("high"));
}

constexpr OpRow kRandomRows[] = {
    {.name = "random_bernoulli",
     .doc = "Bernoulli samples: 1 with probability prob, else 0",
     .signatures = {{{kIos15, "shape:int32 prob:T!=0.5 seed:int32!=-1 | T=fp16/fp32"}}},
     .infer = InferBernoulli,
     .eval = EvalBernoulli,
     .effect = Effect::kRandom,
     .range = RangeBernoulli},
    {.name = "random_categorical",
     .doc = "indices sampled with replacement from the distribution along the last dimension",
     .signatures = {{{kIos15,
                      "x:T mode:string!=logits size:int32!=1 seed:int32!=-1 | T=fp16/fp32"}}},
     .infer = InferCategorical,
     .eval = EvalCategorical,
     .effect = Effect::kRandom,
     .range = RangeCategorical},
    {.name = "random_normal",
     .doc = "samples of the normal distribution",
     .signatures = {{{kIos15,
                      "shape:int32 mean:T!=0.0 stddev:T!=1.0 seed:int32!=-1 | T=fp16/fp32"}}},
     .infer = InferNormal,
     .eval = EvalNormal,
     .effect = Effect::kRandom,
     .no_range = "the normal distribution is unbounded"},
    {.name = "random_uniform",
     .doc = "samples of the uniform distribution over [low, high)",
     .signatures = {{{kIos15, "shape:int32 low:T!=0.0 high:T!=1.0 seed:int32!=-1 | T=fp16/fp32"}}},
     .infer = InferUniform,
     .eval = EvalUniform,
     .effect = Effect::kRandom,
     .range = RangeUniform},
};

}  // namespace

std::span<const OpRow> RandomRows() { return kRandomRows; }

}  // namespace mlc
