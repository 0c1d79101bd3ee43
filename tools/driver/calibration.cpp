#include "tools/driver/calibration.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "frontends/gguf/imatrix.h"
#include "lib/analysis/cost.h"
#include "lib/calibration/collect_inputs.h"
#include "lib/calibration/end_to_end_loss.h"
#include "lib/passes/quantise_activations.h"
#include "lib/passes/weight_candidates.h"
#include "lib/support/atomic_install.h"
#include "lib/support/counted.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "tools/driver/frontends.h"
#include "tools/driver/import.h"
#include "tools/driver/run_tokens.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/tokenizer.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using calibration::Sample;
using calibration::Samples;

constexpr std::string_view kGenerated = "generated:";
constexpr int64_t kMostSamples = 4096;
// Tokens of a chunk of text, and of all chunks, which are evenly spaced in a longer text.
constexpr int64_t kChunk = 512, kMostTokens = 64 * kChunk;
// The seed differs from that of `mlc verify`, which tests on other inputs.
constexpr uint64_t kSeed = 1000;
// Larger open dimensions, such as a batch, show little more.
constexpr double kMostWorkOfSample = 1e8;
// Generated samples: without --calibrate, for the ranges of activations, and for comparing programs
// that run fast.
constexpr int64_t kFewSamples = 4, kObservedSamples = 16, kComparedSamples = 64;
// The multiply-adds of all runs together, once for statistics and twice for comparing programs: a
// minute or two on a processor of 2024.
constexpr double kMostWork = 1e11;
// Training compressed weights takes longer than measuring them, and gains more.
constexpr double kMostTuningWork = 2e12;

void RequireFinite(const Samples& samples) {
  for (const auto& [function, of] : samples.functions)
    for (size_t i = 0; i < of.size(); ++i)
      for (const verify::StepInputs& inputs : of[i])
        for (const auto& [name, tensor] : inputs) {
          if (!IsFloat(tensor.dtype())) continue;
          const std::vector<double> values = tensor.Doubles();
          const auto bad = std::ranges::find_if(values, [](double x) { return std::isnan(x); });
          if (bad == values.end()) continue;
          throw Error("bad-input", "--calibrate: input \"{}\" of sample {} is NaN at element {}",
                      name, i, bad - values.begin())
              .Expected("numbers that the model is meant for");
        }
}

// Splits inputs that hold several samples along their first dimension.
std::vector<std::map<std::string, Tensor>> Split(const Function& function,
                                                 std::map<std::string, Tensor> given) {
  int64_t count = 1;
  for (const Value* value : InputValues(function)) {
    const auto found = given.find(value->name);
    if (found == given.end() || value->type.rank() == 0 || !value->type.shape[0].is_constant())
      continue;
    const Tensor& tensor = found->second;
    const int64_t size = value->type.shape[0].constant();
    if (tensor.rank() != value->type.rank() || size == 0 || tensor.dims()[0] % size != 0) continue;
    count = std::max(count, tensor.dims()[0] / size);
  }
  std::vector<std::map<std::string, Tensor>> split(static_cast<size_t>(count), given);
  if (count == 1) return split;
  for (const Value* value : InputValues(function)) {
    const auto found = given.find(value->name);
    if (found == given.end() || value->type.rank() == 0 || !value->type.shape[0].is_constant())
      continue;
    const int64_t size = value->type.shape[0].constant();
    if (found->second.rank() == 0 || found->second.dims()[0] != size * count) continue;
    for (int64_t i = 0; i < count; ++i)
      split[i][value->name] = found->second.Rows(i * size, (i + 1) * size);
  }
  return split;
}

Samples FromFolder(const fs::path& folder, const Program& program, media::Fit fit) {
  Samples samples;
  bool any = false;
  for (const auto& function : program.functions) {
    Sample steps;
    for (const std::map<std::string, Tensor>& given :
         ReadSamples(*function, folder, program.functions.size() > 1, fit)) {
      any = any || !given.empty();
      for (const std::map<std::string, Tensor>& one : Split(*function, given))
        steps.push_back(MakeInputs(*function, one));
    }
    std::vector<Sample>& into = samples.functions[function->name];
    if (verify::HasStates(*function))
      into.push_back(std::move(steps));
    else
      for (verify::StepInputs& step : steps) into.push_back({std::move(step)});
  }
  if (!any)
    throw Error("usage", "--calibrate: \"{}\" contains no inputs", folder.string())
        .Expected(
            "NAME.npy, NAME.png, in_NAME.npy or input_<k>.pb, in DIR/0, DIR/1, ... for several "
            "samples, or pictures "
            "or sounds alone for a model with one input, or a text file for a language model");
  samples.description = "the given inputs, " + Counted(samples.count(), "sample");
  return samples;
}

// The inputs for tokens, as AppendTokens and RunEncoder would pass them.
Sample ForTokens(const Function& function, std::vector<int32_t> tokens) {
  if (IsEncoder(function)) return {EncoderInputs(function, {{tokens.begin(), tokens.end()}})};
  Sample sample;
  const int64_t vocabulary = LanguageSizes(function).vocabulary;
  const Predict predict = [&](const std::map<std::string, Tensor>& inputs) {
    sample.push_back(inputs);
    // Logits that nobody reads.
    const int64_t rows = inputs.at("inputIds").dims()[1];
    return std::map<std::string, Tensor>{
        {"logits", Tensor::Full(DType::kFp32, {1, rows, vocabulary}, 0)}};
  };
  AppendTokens(predict, function, tokens, 0);
  return sample;
}

Samples FromText(const fs::path& file, const fs::path& model, const Program& program) {
  const text::Tokenizer tokenizer = LoadTokenizer(model);
  const auto mapped = MappedFile::Open(file);
  const std::vector<int32_t> tokens = tokenizer.Encode(AsText(mapped->bytes()), true, false);
  Samples samples;
  int64_t chunks = 0, length = 0;
  for (const auto& function : program.functions) {
    const bool language = IsLanguageModel(*function);
    if (!language && !IsEncoder(*function)) continue;
    const int64_t context = language ? LanguageSizes(*function).context : kChunk;
    length = std::min(kChunk, context);
    const int64_t whole = std::ssize(tokens) / length;
    if (whole == 0)
      throw Error("usage", "--calibrate: \"{}\" has {} tokens", file.string(), tokens.size())
          .Expected("{} or more", length);
    chunks = std::min(whole, kMostTokens / length);
    for (int64_t i = 0; i < chunks; ++i) {
      const auto begin = tokens.begin() + i * whole / chunks * length;
      std::vector<int32_t> chunk(begin, begin + length);
      if (tokenizer.BeginOfText() >= 0) chunk[0] = tokenizer.BeginOfText();
      samples.functions[function->name].push_back(ForTokens(*function, std::move(chunk)));
    }
  }
  if (samples.functions.empty())
    throw Error("usage", "--calibrate: \"{}\" is a text, but the model takes no tokens",
                file.string())
        .Expected("a folder with NAME.npy for each input");
  samples.description = fmt::format("text, {} of {} tokens", Counted(chunks, "chunk"), length);
  return samples;
}

Samples Generated(int64_t count, const Program& program, uint64_t seed = kSeed) {
  Samples samples{.generated = true};
  for (const auto& function : program.functions) {
    std::vector<Sample>& into = samples.functions[function->name];
    for (int64_t i = 0; i < count; ++i) {
      const analysis::GeneratedInputOptions options{
          .seed = seed, .sample = static_cast<int>(i), .most_work = kMostWorkOfSample};
      into.push_back({analysis::GenerateInputs(*function, {}, options).tensors});
    }
  }
  samples.description = "generated inputs, " + Counted(count, "sample");
  return samples;
}

// A language model imported from a GGUF file has the names of the importance matrix.
calibration::Statistics FromImatrix(const fs::path& path) {
  const gguf::Imatrix imatrix = gguf::ReadImatrix(path);
  calibration::Statistics statistics;
  for (const auto& [name, importance] : imatrix.tensors)
    statistics.AddSquares(LegalName(name), importance.matrices, importance.columns,
                          importance.squares, importance.counts);
  statistics.SetDescription(imatrix.chunks > 0
                                ? fmt::format("an importance matrix of {} chunks", imatrix.chunks)
                                : std::string("an importance matrix"));
  return statistics;
}

std::map<const Value*, compress::Histogram> ValuesFrom(const calibration::Statistics& statistics,
                                                       const std::set<const Value*>& values) {
  std::map<const Value*, compress::Histogram> histograms;
  for (const Value* value : values)
    if (const auto found = statistics.values().find(value->name);
        found != statistics.values().end())
      histograms.emplace(value, found->second);
  return histograms;
}

// The inputs that `mlc verify` generates by default.
Samples VerifiedByDefault(const Program& program) {
  Samples samples{.generated = true};
  for (const auto& function : program.functions) {
    std::vector<Sample>& into = samples.functions[function->name];
    const bool stateful = verify::HasStates(*function);
    const int64_t count = stateful ? verify::kStatefulSteps : analysis::DefaultSamples(*function);
    for (int i = 0; i < count; ++i) {
      if (into.empty() || !stateful) into.emplace_back();
      into.back().push_back(analysis::GenerateInputs(*function, {}, {.sample = i}).tensors);
    }
  }
  return samples;
}

// The sizes of open dimensions that inputs have.
analysis::SymbolSizes SizesOf(const Function& function, const verify::StepInputs& inputs) {
  analysis::SymbolSizes sizes;
  for (const Value* value : InputValues(function)) {
    const auto given = inputs.find(value->name);
    if (given == inputs.end()) continue;
    for (int d = 0; d < given->second.rank(); ++d)
      if (const auto open = value->type.shape[d].symbol_and_offset())
        sizes[open->first] = given->second.dims()[d] - open->second;
  }
  return sizes;
}

// The multiply-adds of runs on all samples.
double WorkOf(const Samples& samples, const Program& program) {
  double work = 0;
  for (const auto& [name, of] : samples.functions) {
    const Function& function = *verify::FunctionNamed(program, name);
    for (const Sample& sample : of)
      for (const verify::StepInputs& inputs : sample)
        work += analysis::CostOf(function, SizesOf(function, inputs)).multiply_adds;
  }
  return work;
}

}  // namespace

calibration::Samples ReadCalibration(const std::string& given, const fs::path& model,
                                     const Program& program, media::Fit fit) {
  if (given.starts_with(kGenerated)) {
    int64_t count = 0;
    const char* end = given.data() + given.size();
    const auto [at, error] = std::from_chars(given.data() + kGenerated.size(), end, count);
    if (error != std::errc() || at != end || count < 1 || count > kMostSamples)
      throw Error("usage", "--calibrate: \"{}\" is not a number of samples", given)
          .Expected("generated:N with N from 1 to {}", kMostSamples);
    return Generated(count, program);
  }
  const fs::path path = given;
  if (path.extension() == ".txt") return FromText(path, model, program);
  return FromFolder(path, program, fit);
}

bool HoldsStatistics(const std::string& given) {
  return calibration::Statistics::IsFile(given) || gguf::IsImatrix(given);
}

precision::MeasureInputs ForMeasuring(const Samples& samples, const Program& program) {
  precision::MeasureInputs inputs;
  inputs.generated = samples.generated;
  inputs.description = samples.description;
  for (const auto& [name, of] : samples.functions)
    for (const Sample& sample : of) {
      std::vector<verify::StepInputs>& steps = inputs.steps[name];
      // States continue from step to step, so that only the first sample begins with initial ones.
      if (!steps.empty() && verify::HasStates(*verify::FunctionNamed(program, name))) break;
      steps.insert(steps.end(), sample.begin(), sample.end());
    }
  return inputs;
}

Measuring::Measuring(const std::string& given, const fs::path& model, const Program& program,
                     media::Fit fit) {
  if (HoldsStatistics(given)) {
    statistics_ = calibration::Statistics::IsFile(given) ? calibration::Statistics::Read(given)
                                                         : FromImatrix(given);
    try {
      samples_ = Generated(kFewSamples, program);
    } catch (const Error&) {
      return;  // nothing to compare programs on
    }
  } else {
    samples_ = ReadCalibration(given, model, program, fit);
  }
  std::set<std::string> logits;
  for (const auto& function : program.functions)
    if (IsLanguageModel(*function)) logits.insert("logits");
  work_ += WorkOf(samples_, program);
  // Enough evaluations to weigh a hundred weights.
  constexpr double kWeights = 100;
  const double of_sample = work_ / static_cast<double>(std::max<int64_t>(samples_.count(), 1));
  const auto most = static_cast<int64_t>(
      std::clamp(kMostWork / (kWeights * of_sample), 1.0, static_cast<double>(kMostSamples)));
  // Weights are fitted to the inputs that they are calibrated on. Others, where they can be
  // generated, tell better which program is closer to the source, even if they are fewer.
  if (samples_.generated)
    compared_ = Generated(std::min(most, kComparedSamples), program, kSeed + 1);
  const Samples& compared = compared_.functions.empty() ? samples_ : compared_;
  compared_on_ = compared.description;
  loss_work_ = of_sample * static_cast<double>(std::min(most, compared.count()));
  loss_.emplace(compared, most, logits);
  if (!statistics_) tuner_.emplace(samples_, logits, work_, kMostTuningWork);
  try {
    generated_ = VerifiedByDefault(program);
  } catch (const Error&) {
    return;  // inputs of unknown size, for example
  }
  // Programs that take long to run are not run once more.
  if (WorkOf(generated_, program) > kMostWork / 2) return;
  generated_loss_.emplace(generated_, kMostSamples, std::move(logits));
}

void Measuring::Prepare(const Program& program, compress::Compression& compression, bool calibrate,
                        bool train) {
  constexpr double kMostCalls = 16, kMostEvaluations = 2000;
  if (statistics_) {
    compression.inputs = compression.observed_on = statistics_->Description();
    compression.measure = [this](const Program&, const std::set<const Value*>& weights) {
      std::map<const Value*, compress::InputSums> sums;
      for (const Value* weight : weights) {
        ++asked_;
        const auto found = statistics_->weights().find(weight->name);
        if (found == statistics_->weights().end()) continue;
        const std::string &hash = found->second.hash, own = calibration::HashOf(*weight);
        if (hash.empty() || own.empty() || hash == own) {
          ++found_;
          sums.emplace(weight, found->second.sums.Unpack());
        } else {
          different_ = weight->name;
        }
      }
      return sums;
    };
    compression.observe = [this](const Program&, const std::set<const Value*>& values) {
      return ValuesFrom(*statistics_, values);
    };
  } else {
    if (calibrate) {
      RequireFinite(samples_);
      compression.inputs = samples_.description;
      compression.most_measures = static_cast<int>(std::clamp(kMostWork / work_, 1.0, kMostCalls));
      compression.measure = [this](const Program& measured, const std::set<const Value*>& weights) {
        return calibration::Observe(measured, samples_, weights, {}).inputs;
      };
    }
    compression.observed_on = samples_.description;
    compression.evaluates_observed_kind = true;
    compression.observe = [this](const Program& measured, const std::set<const Value*>& values) {
      return calibration::Observe(measured, samples_, {}, values).values;
    };
  }
  if (calibrate && train && tuner_ && tuner_->Aim(program))
    compression.tune = [this, &compression](const Program& changed,
                                            std::vector<compress::Tunable>& weights) {
      return (*tuner_)(changed, weights, compression.progress);
    };
  if (!loss_) return;
  compression.most_evaluations =
      static_cast<int>(std::clamp(2 * kMostWork / loss_work_, 1.0, kMostEvaluations));
  // Nobody asked for these runs: they are few, and what cannot be run is not.
  const bool asked = calibrate && !statistics_;
  constexpr int kLeastEvaluations = 20;
  if (!asked && compression.most_evaluations < kLeastEvaluations) return;
  try {
    (*loss_)(program);
  } catch (const Error&) {
    if (asked) throw;
    return;
  }
  compression.evaluated_on = compared_on_;
  compression.evaluate = [this](const Program& changed) { return (*loss_)(changed); };
  if (!generated_loss_) return;
  try {
    (*generated_loss_)(program);
  } catch (const Error&) {
    return;
  }
  compression.evaluate_generated = [this](const Program& changed) {
    return (*generated_loss_)(changed);
  };
}

void Measuring::MeasureAgain(const Program& program, compress::Compression& compression) {
  if (compression.activations.empty()) return;
  auto update = [&](std::optional<calibration::EndToEndLoss>& measure,
                    std::optional<compress::Loss>& loss) {
    if (!measure || !loss) return;
    const compress::Loss now = (*measure)(program, engine::EngineOptions::Arithmetic::kFaithful);
    loss->noise = std::max(loss->noise, now.noise);
    loss->peak = std::max(loss->peak, now.peak);
    for (const auto& [output, peak] : now.peaks)
      loss->peaks[output] = std::max(loss->peaks[output], peak);
  };
  update(loss_, compression.loss);
  update(generated_loss_, compression.generated_loss);
}

void Measuring::RequireUsed() const {
  if (!statistics_ || asked_ == 0 || found_ > 0) return;
  throw Error("bad-input", "--calibrate: the statistics are those of another model: {}",
              different_.empty() ? std::string("no weight has a name that they contain")
                                 : fmt::format("weight \"{}\" has other elements", different_))
      .Help(
          "mlc calibrate MODEL --inputs DIR -o STATS, with the options that are given here, makes "
          "those of this model");
}

std::unique_ptr<Measuring> MeasuringFor(const std::optional<compress::Compression>& compression,
                                        const std::string& given, const fs::path& model,
                                        const Program& program, media::Fit fit) {
  if (!given.empty()) return std::make_unique<Measuring>(given, model, program, fit);
  if (!compression) return nullptr;
  auto any = [&](auto applies) { return std::ranges::any_of(compression->rules, applies); };
  const bool observes = any([](const compress::Rule& rule) { return rule.scheme.activations; });
  const bool chooses = any([](const compress::Rule& rule) {
    return rule.scheme.values == compress::Scheme::Values::kAuto;
  });
  if (!observes && !chooses) return nullptr;
  try {
    const int64_t samples = observes ? kObservedSamples : kFewSamples;
    return std::make_unique<Measuring>(fmt::format("{}{}", kGenerated, samples), model, program,
                                       fit);
  } catch (const Error& error) {
    if (observes)
      throw Error("usage", "option 'compress' w8a8 requires --calibrate: {}", error.text())
          .Help("--calibrate DIR takes the ranges of activations from your own inputs");
    return nullptr;  // inputs of unknown size, for example; schemes are chosen by weights alone
  }
}

namespace {

// Drops the samples of other shards.
void Keep(const CalibrateOptions::Shard& shard, const std::string& given, Samples& samples) {
  if (samples.count() < shard.count)
    throw Error("usage", "--shard: \"{}\" has {} samples", given, samples.count())
        .Expected("at least {}, one for each shard", shard.count);
  for (auto& [function, all] : samples.functions) {
    const int64_t size = std::ssize(all);
    const auto at = [&](int64_t index) { return all.begin() + size * index / shard.count; };
    all = std::vector<calibration::Sample>(std::make_move_iterator(at(shard.index - 1)),
                                           std::make_move_iterator(at(shard.index)));
  }
}

void Add(calibration::Statistics part, std::optional<calibration::Statistics>& all) {
  if (all)
    all->Add(part);
  else
    all.emplace(std::move(part));
}

CalibrateResult Written(const calibration::Statistics& all, const fs::path& output) {
  all.Write(output);
  return {.inputs = all.Description(),
          .samples = all.samples(),
          .weights = std::ssize(all.weights()),
          .values = std::ssize(all.values()),
          .bytes = fs::file_size(output)};
}

}  // namespace

CalibrateResult MergeStatistics(const std::vector<std::string>& parts, const fs::path& output) {
  Staging(output, Staging::kFile);  // reports conflicts early
  std::optional<calibration::Statistics> all;
  for (const std::string& file : parts) Add(calibration::Statistics::Read(file), all);
  MLC_CHECK(all.has_value(), "there is nothing to merge");
  return Written(*all, output);
}

CalibrateResult Calibrate(const fs::path& model, const CalibrateOptions& options,
                          Diagnostics& diagnostics) {
  if (options.inputs.empty())
    throw Error("usage", "--inputs is missing")
        .Help("--inputs DIR names a folder with NAME.npy for each input of the model");
  if (calibration::Statistics::IsFile(model))
    throw Error("usage", "\"{}\" holds statistics and is no model", model.string())
        .Help("mlc calibrate MODEL --inputs A --inputs B -o STATS adds statistics up");
  Staging(options.output, Staging::kFile);  // reports conflicts early
  // The weights and values have the names and elements that the pass compress finds.
  Program program = FrontendOf(model).format == Format::kSource
                        ? CompileProgram(model, options.compile, diagnostics, &passes::kCompress)
                        : Import(model, options.compile.import, diagnostics);
  std::set<const Value*> weights;
  for (const auto& candidate : passes::CollectCandidates(program))
    if (candidate->subject.weight)
      weights.insert(candidate->values.begin(), candidate->values.end());
  const std::set<const Value*> values = passes::ActivationValues(program, weights);
  std::optional<calibration::Statistics> all;
  for (const std::string& given : options.inputs) {
    if (calibration::Statistics::IsFile(given)) {
      Add(calibration::Statistics::Read(given), all);
      continue;
    }
    Samples samples = ReadCalibration(given, model, program, options.compile.fit);
    if (options.shard) Keep(*options.shard, given, samples);
    RequireFinite(samples);
    Add(calibration::Statistics::Collect(program, samples, weights, values, options.progress), all);
  }
  CalibrateResult result = Written(*all, options.output);
  for (const Value* weight : weights)
    if (!all->weights().contains(weight->name)) result.without.push_back(weight->name);
  std::ranges::sort(result.without);
  return result;
}

}  // namespace mlc::driver
