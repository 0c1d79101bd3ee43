// Stores weights in the schemes that rules select (lib/compress/rules.h).
//
//   y = conv(x, w)       ->   y = conv(x, w')
//   w = const(dense)          w' = const(encoded: scale q, table[index], values where a mask is set)
//
// Runs once, on the program's own precision before it is narrowed: weights are final (scales and
// normalisations are folded into them), and the measurement of fp16 sees the compressed weights, so
// that it judges rounding only. The pass encoded-constants then stores the encodings. A weight that
// is encoded already, as a constant or by constexpr operations, is decoded first. Must not fire
// without rules, on constants that are not weights (lib/ir/op_def.h) unless a rule names them, on
// weights with fewer than 2048 elements unless named, with NaN or infinity, or if nothing is saved.
// Numeric effect: the error of each scheme, which the report states for each weight.
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "lib/compress/quantise.h"
#include "lib/compress/weight_view.h"
#include "lib/ir/encoding.h"
#include "lib/passes/choose_schemes.h"
#include "lib/passes/equalise_channels.h"
#include "lib/passes/quantise_activations.h"
#include "lib/passes/rewriting.h"
#include "lib/passes/weight_candidates.h"
#include "lib/support/threads.h"

namespace mlc::passes {
namespace {

using compress::Compression;
using compress::InputSums;
using compress::Quantised;
using compress::Rule;
using compress::WeightReport;

constexpr int64_t kLeastElements = 2048;
// Larger weights are compressed one by one, each on all threads.
constexpr int64_t kLarge = int64_t{1} << 20;

// Why a candidate that a rule selects stays as it is; empty: it does not.
std::string WhyUnchanged(const Candidate& candidate) {
  const Tensor& tensor = candidate.tensor;
  if (candidate.is_output) return "it is an output of the model";
  if (tensor.rank() < 2) return "it has fewer than two dimensions";
  if (tensor.size() < kLeastElements && !candidate.named)
    return fmt::format("it has fewer than {} elements", kLeastElements);
  return "";
}

double SquaredDifference(const Tensor& a, const Tensor& b) {
  constexpr int64_t kChunk = int64_t{1} << 16;
  double sum = 0;
  for (int64_t first = 0; first < a.size(); first += kChunk) {
    const int64_t count = std::min(kChunk, a.size() - first);
    const std::vector<float> x = compress::ReadFloats(Dense(a), first, count),
                             y = compress::ReadFloats(Dense(b), first, count);
    for (int64_t i = 0; i < count; ++i) {
      const double d = static_cast<double>(x[i]) - static_cast<double>(y[i]);
      sum += d * d;
    }
  }
  return sum;
}

// Adds the rounding errors of activations in 8 bits to the statistics of inputs. Without them, errors
// of weights would count as harmless where inputs are small, even if rounding errors are larger.
void AddRoundingTo8Bits(compress::InputStatistics& inputs) {
  // A step is a 255th of the range, which is taken to be 12 times the root mean square; the variance of
  // the error is a twelfth of the square of a step.
  constexpr double kShare = 12.0 * 12 / (255.0 * 255 * 12);
  const int64_t columns = inputs.columns;
  for (int64_t set = 0; set < inputs.sets; ++set) {
    double sum = 0;
    for (int64_t c = 0; c < columns; ++c)
      sum += static_cast<double>(inputs.square[set * columns + c]);
    const auto variance = static_cast<float>(kShare * sum / static_cast<double>(columns));
    for (int64_t c = 0; c < columns; ++c) {
      inputs.square[set * columns + c] += variance;
      if (!inputs.products.empty()) inputs.products[(set * columns + c) * columns + c] += variance;
    }
  }
}

class Compressor {
 public:
  Compressor(Program& program, PassContext& context)
      : program_(program),
        compression_(*context.compression),
        context_(context),
        half_(context.precision != PassContext::Precision::kFp32) {}

  bool Run() {
    candidates_ = CollectCandidates(program_);
    if (compression_.decompress)
      Decompress();
    else
      SelectRules(compression_.rules, candidates_);
    std::vector<Candidate*> chosen;
    for (const auto& candidate : candidates_)
      if (Examine(*candidate)) {
        chosen.push_back(candidate.get());
        elements_ += candidate->tensor.size();
        ++weights_;
      }
    Choose(chosen);
    CompressBest(chosen);
    bool changed = std::ranges::any_of(chosen, [](const Candidate* candidate) {
      return candidate->report.equalised || candidate->report.compressed;
    });
    Tune(chosen);
    changed |= QuantiseInputs(chosen);
    if (compression_.evaluate && changed) compression_.loss = compression_.evaluate(program_);
    if (compression_.evaluate_generated && changed)
      compression_.generated_loss = compression_.evaluate_generated(program_);
    for (const auto& candidate : candidates_)
      if (Concerns(*candidate)) compression_.weights.push_back(std::move(candidate->report));
    return changed;
  }

 private:
  DType StoredType(const Candidate& candidate) const {
    return half_ ? DType::kFp16 : candidate.tensor.dtype();
  }

  // Whether the report mentions a constant.
  bool Concerns(const Candidate& candidate) const {
    if (compression_.decompress) return candidate.report.compressed;
    return candidate.subject.weight || candidate.rule || candidate.tensor.size() >= kLeastElements;
  }

  void Decompress() {
    static const Rule kPlain{"", {.values = compress::Scheme::Values::kPlain}};
    for (const auto& candidate : candidates_)
      if (HasEncoding(*candidate)) {
        candidate->rule = &kPlain;
        candidate->scheme = kPlain.scheme;
      }
  }

  // Returns whether the candidate is to be compressed.
  bool Examine(Candidate& candidate) {
    WeightReport& report = candidate.report;
    report.weight = candidate.subject.weight;
    report.bytes_before = report.bytes_after = BytesOf(candidate, StoredType(candidate));
    if (!candidate.rule) {
      report.reason = candidate.subject.weight ? "no rule selects it"
                                               : fmt::format("it is not a weight of {}", report.op);
      return false;
    }
    report.asked = report.used = Text(candidate.rule->scheme);
    if (compression_.decompress) return true;
    report.reason = WhyUnchanged(candidate);
    if (candidate.scheme.values == compress::Scheme::Values::kKept) return false;
    if (!report.reason.empty()) report.used = "none";
    return report.reason.empty();
  }

  void CompressAll(const std::vector<Candidate*>& chosen) {
    // Later groups are measured again, on what earlier ones have become. What is measured once, as from
    // statistics, which only know the weights as they were, serves both.
    const bool again = compression_.most_measures > 1;
    if (again)
      for (const std::vector<Candidate*>& stage : Stages(chosen, 1)) {
        Equalise(chosen, stage);
        for (Candidate* candidate : stage) candidate->inputs = {};
      }
    for (const std::vector<Candidate*>& stage : Stages(chosen, compression_.most_measures)) {
      if (again)
        MeasureUnknown(stage);
      else
        Equalise(chosen, stage);
      std::vector<Candidate*> small;
      for (Candidate* candidate : stage) {
        if (candidate->tensor.size() >= kLarge)
          Compress(*candidate, 0);
        else
          small.push_back(candidate);
      }
      ParallelFor(std::ssize(small), 0, [&](int64_t i) { Compress(*small[i], 1); });
      for (Candidate* candidate : stage) {
        candidate->inputs = {};
        if (candidate->report.compressed) Replace(*candidate);
      }
    }
  }

  // The constants of the program, and what was done to the weights.
  struct State {
    std::vector<std::pair<Operation*, Tensor>> constants;
    std::vector<Candidate> candidates;
  };
  State Save(const std::vector<Candidate*>& chosen) const {
    State state;
    for (const auto& function : program_.functions)
      ForEachOperation(*function, [&](Operation* op) {
        if (op->def->is_const()) state.constants.emplace_back(op, op->val);
      });
    for (Candidate* candidate : chosen) {
      // Inputs take much memory, and are measured again.
      compress::InputStatistics inputs = std::exchange(candidate->inputs, {});
      state.candidates.push_back(*candidate);
      candidate->inputs = std::move(inputs);
    }
    return state;
  }
  static void Restore(const State& state, const std::vector<Candidate*>& chosen) {
    for (const auto& [op, tensor] : state.constants) op->val = tensor;
    for (size_t i = 0; i < chosen.size(); ++i) *chosen[i] = state.candidates[i];
  }

  // Compresses the weights in the schemes that were chosen, and in the alternatives to them, and keeps
  // what loses least.
  void CompressBest(const std::vector<Candidate*>& chosen) {
    if (alternatives_.empty()) return CompressAll(chosen);
    elements_ *= std::ssize(alternatives_) + 1;
    weights_ *= alternatives_.size() + 1;
    const State before = Save(chosen);
    CompressAll(chosen);
    State best = Save(chosen);
    double least = compression_.evaluate(program_).cost();
    for (const Alternative& alternative : alternatives_) {
      Restore(before, chosen);
      for (size_t i = 0; i < alternative.schemes.size(); ++i)
        alternative.candidates[i]->scheme = alternative.schemes[i];
      CompressAll(chosen);
      const double cost = compression_.evaluate(program_).cost();
      if (!(cost < least)) continue;
      least = cost;
      best = Save(chosen);
      compression_.curve[alternative.chosen].chosen = false;
      compression_.curve[alternative.point].chosen = true;
    }
    Restore(best, chosen);
  }

  // Chooses the schemes of the weights of rules with auto.
  void Choose(const std::vector<Candidate*>& chosen) {
    for (const Rule& rule : compression_.rules) {
      if (rule.scheme.values != compress::Scheme::Values::kAuto) continue;
      std::vector<Candidate*> own;
      for (Candidate* candidate : chosen)
        if (candidate->rule == &rule) own.push_back(candidate);
      if (own.empty()) continue;
      for (Candidate* candidate : own)
        if (candidate->decoded) Replace(*candidate);
      if (compression_.measure)
        for (const std::vector<Candidate*>& stage : Stages(own, 1)) Measure(stage);
      constexpr double kTimes = 32;  // each scheme and point
      const bool large = WorkOf(own) * kTimes > kMostWork;
      const auto evaluate = compression_.evaluate;
      int evaluations = 0;
      if (evaluate && compression_.progress)
        compression_.evaluate = [&](const Program& program) {
          compression_.progress({.name = "comparing schemes",
                                 .share = std::min(1.0, static_cast<double>(evaluations++) /
                                                            compression_.most_evaluations)});
          return evaluate(program);
        };
      std::optional<Alternative> alternative = ChooseSchemes(
          program_, rule.scheme, own, StoredType(*own[0]), context_.target, compression_,
          [&](Candidate& candidate, const compress::Scheme& scheme, int threads) {
            compress::Request request = RequestFor(candidate, scheme, threads);
            request.estimate = large;
            return Quantise(candidate, request);
          });
      compression_.evaluate = evaluate;
      // Without inputs, weights are compressed as they were when they were compared.
      if (alternative && compression_.measure) alternatives_.push_back(std::move(*alternative));
    }
    // Only constants can be put back.
    if (!alternatives_.empty())
      for (Candidate* candidate : chosen)
        if (candidate->decoded) Replace(*candidate);
  }

  // The multiply-adds of the assignment of integers and indices. Where it is repeated, the nearest
  // ones show what a scheme is worth if the work would exceed the limit.
  static constexpr double kMostWork = 4e9;
  static double WorkOf(const std::vector<Candidate*>& candidates) {
    double work = 0;
    for (const Candidate* candidate : candidates)
      work += static_cast<double>(candidate->tensor.size() * candidate->inputs.columns);
    return work;
  }

  // Measures the inputs of the weights of a stage, and moves factors to and from them.
  void Equalise(const std::vector<Candidate*>& chosen, const std::vector<Candidate*>& stage) {
    if (!compression_.measure) return;
    MeasureUnknown(stage);
    constexpr double kTimes = 5;  // factors to try
    const bool large = WorkOf(stage) * kTimes > kMostWork;
    EqualiseChannels(chosen,
                     [&](Candidate& candidate, const compress::Scheme& scheme, int threads) {
                       compress::Request request = RequestFor(candidate, scheme, threads);
                       request.estimate = large;
                       return Quantise(candidate, request);
                     });
  }

  // The weights that are compressed with the same measured inputs, in at least so many groups; one
  // group without measuring.
  std::vector<std::vector<Candidate*>> Stages(const std::vector<Candidate*>& chosen,
                                              int groups) const {
    if (!compression_.measure) return {chosen};
    constexpr uint64_t kMostBytes = uint64_t{512} << 20;  // of products
    const auto parts = static_cast<size_t>(std::max(groups, 1)),
               most = (chosen.size() + parts - 1) / parts;
    std::vector<std::vector<Candidate*>> stages;
    uint64_t bytes = 0;
    for (Candidate* candidate : chosen) {
      const auto columns = static_cast<uint64_t>(
          candidate->axes
              ? candidate->tensor.size() / candidate->tensor.dims()[candidate->axes->output]
              : 0);
      const bool products = columns <= compress::kMostColumnsWithProducts;
      const uint64_t own = products ? columns * columns * sizeof(float) : columns;
      if (stages.empty() || stages.back().size() >= most || bytes + own > kMostBytes) {
        stages.emplace_back();
        bytes = 0;
      }
      stages.back().push_back(candidate);
      bytes += own;
    }
    return stages;
  }

  // Measures what the weights are multiplied by whose inputs are not known yet.
  void MeasureUnknown(const std::vector<Candidate*>& stage) {
    std::vector<Candidate*> unknown;
    for (Candidate* candidate : stage)
      if (!candidate->inputs) unknown.push_back(candidate);
    if (compression_.measure && !unknown.empty()) Measure(unknown);
  }
  void Measure(const std::vector<Candidate*>& stage) {
    std::set<const Value*> weights;
    for (const Candidate* candidate : stage)
      weights.insert(candidate->values.begin(), candidate->values.end());
    const std::map<const Value*, InputSums> sums = compression_.measure(program_, weights);
    for (Candidate* candidate : stage) {
      if (!candidate->axes) continue;
      const int64_t outputs = candidate->tensor.dims()[candidate->axes->output];
      std::optional<InputSums> whole;
      for (const Value* value : candidate->values) {
        const auto found = sums.find(value);
        if (found == sums.end()) continue;
        const InputSums& sum = found->second;
        int64_t rows = outputs;
        for (int d = 0; d < candidate->axes->batch; ++d) rows *= candidate->tensor.dims()[d];
        if (rows * sum.columns() != candidate->tensor.size() || rows % sum.sets() != 0) continue;
        if (!whole)
          whole = sum;
        else if (whole->sets() == sum.sets() && whole->has_products() == sum.has_products())
          whole->Add(sum);
      }
      if (!whole) continue;
      candidate->inputs = whole->Means();
      ShrinkCovariances(candidate->inputs);
      if (candidate->scheme.activations) AddRoundingTo8Bits(candidate->inputs);
    }
  }

  compress::Request RequestFor(const Candidate& candidate, const compress::Scheme& scheme,
                               int threads) const {
    compress::Request request{.scheme = scheme,
                              .axes = candidate.axes.value_or(WeightOperand()),
                              .half = half_,
                              .target = context_.target,
                              .threads = threads};
    if (!candidate.inputs) return request;
    const Operation* bias = BiasOf(candidate);
    request.inputs = &candidate.inputs;
    request.bias = bias && bias->val.size() == candidate.tensor.dims()[request.axes.output];
    return request;
  }

  Quantised Quantise(const Candidate& candidate, const compress::Request& request) const {
    return compression_.stored ? compression_.stored->Quantise(candidate.tensor, request)
                               : compress::Quantise(candidate.tensor, request);
  }

  void Compress(Candidate& candidate, int threads) {
    CompressOne(candidate, threads);
    if (!compression_.progress) return;
    const std::lock_guard lock(progress_);
    done_ += candidate.tensor.size();
    ++weights_done_;
    compression_.progress({.name = "compressing weights",
                           .share = static_cast<double>(done_) / static_cast<double>(elements_),
                           .done = weights_done_,
                           .of = weights_,
                           .unit = "weights",
                           .item = candidate.report.name});
  }

  void CompressOne(Candidate& candidate, int threads) {
    WeightReport& report = candidate.report;
    if (candidate.scheme.values == compress::Scheme::Values::kKept) {
      report.used = "none";  // auto has chosen it
      return;
    }
    const compress::Request request = RequestFor(candidate, candidate.scheme, threads);
    Quantised made = Quantise(candidate, request);
    const bool plain = !made.tensor.encoding();
    report.used = Text(made.used);
    report.reason = made.stepped;
    auto leave = [&](std::string why) {
      report.reason = std::move(why);
      report.used = "none";
    };
    if (!made.refused.empty()) return leave(made.refused);
    if (plain && !HasEncoding(candidate)) return;  // fp16: it is plain already
    const uint64_t dense = ByteCount(StoredType(candidate), candidate.tensor.size());
    if (!plain && made.bytes >= dense)
      return leave(
          fmt::format("{} would take {} bytes instead of {}", report.used, made.bytes, dense));
    if (HasEncoding(candidate) && !plain)
      report.reason += fmt::format("{}it was compressed before, so that errors add up",
                                   report.reason.empty() ? "" : "; ");
    report.compressed = true;
    report.bytes_after = made.bytes;
    report.error = made.error;
    report.energy = made.energy;
    report.output_error = made.output_error;
    report.output_energy = made.output_energy;
    if (compression_.tune) candidate.source = std::move(candidate.tensor);
    candidate.tensor = std::move(made.tensor);
    if (made.bias.empty() || made.error == 0) return;
    CorrectBias(*BiasOf(candidate), made.bias);
    report.bias_corrected = true;
  }

  // Trains what was compressed.
  void Tune(const std::vector<Candidate*>& chosen) {
    if (!compression_.tune) return;
    std::vector<Candidate*> compressed;
    std::vector<compress::Tunable> weights;
    for (Candidate* candidate : chosen) {
      if (!candidate->report.compressed) continue;
      compressed.push_back(candidate);
      weights.push_back({.values = {candidate->values.begin(), candidate->values.end()},
                         .source = candidate->source,
                         .encoded = candidate->tensor});
    }
    if (weights.empty()) return;
    compression_.tuned = compression_.tune(program_, weights);
    for (size_t i = 0; i < weights.size(); ++i) {
      Candidate& candidate = *compressed[i];
      if (weights[i].encoded.encoding() == candidate.tensor.encoding()) continue;
      candidate.tensor = weights[i].encoded;
      Replace(candidate);
      // The statistics of the output do not describe trained weights, whose errors make up for each
      // other.
      candidate.report.trained = true;
      candidate.report.error = SquaredDifference(candidate.tensor, candidate.source);
      candidate.report.output_error = candidate.report.output_energy = 0;
    }
  }

  // Quantises the activations of layers with the scheme w8a8.
  bool QuantiseInputs(const std::vector<Candidate*>& chosen) {
    std::set<const Value*> weights;
    for (const Candidate* candidate : chosen)
      if (candidate->scheme.activations && candidate->report.compressed)
        weights.insert(candidate->values.begin(), candidate->values.end());
    if (weights.empty() || !compression_.observe) return false;
    return QuantiseActivations(program_, weights, compression_, context_);
  }

  void Replace(Candidate& candidate) {
    for (Value*& value : candidate.values) {
      if (candidate.named) compression_.named.insert(value->name);
      if (value->is_constant()) {
        value->def->val = candidate.tensor;
        continue;
      }
      Operation* op = value->def;
      const std::string name = value->name;
      Value* made = BuilderBefore(op, context_).Const(candidate.tensor, name);
      ReplaceAllUses(value, made);
      Function* function = op->block->function;
      EraseUnused(op);
      function->Rename(made, name);
      value = made;
    }
    candidate.decoded = false;
  }

  Program& program_;
  Compression& compression_;
  PassContext& context_;
  const bool half_;
  std::vector<std::unique_ptr<Candidate>> candidates_;
  std::vector<Alternative> alternatives_;
  std::mutex progress_;
  int64_t elements_ = 0, done_ = 0;  // of the weights that are compressed
  uint64_t weights_ = 0, weights_done_ = 0;
};

bool RunCompress(Program& program, PassContext& context) {
  if (!context.compression || context.compression->done) return false;
  compress::CheckTarget(context.compression->rules, context.target);
  context.compression->done = true;
  return Compressor(program, context).Run();
}

}  // namespace

extern const PassDef kCompress = {"compress", "store weights in compressed forms", RunCompress};

}  // namespace mlc::passes
