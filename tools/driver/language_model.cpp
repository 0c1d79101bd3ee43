#include "tools/driver/language_model.h"

#include "lib/support/milliseconds.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/frontends.h"
#include "tools/driver/runtimes.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/verify.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using Clock = std::chrono::steady_clock;

void RequireLanguageModel(const Function& function, std::string_view what) {
  if (IsLanguageModel(function)) return;
  Error error("usage",
              fmt::format("{}: function \"{}\" is not a language model", what, function.name));
  if (IsEncoder(function))
    throw error.Note("it is an encoder: it computes embeddings and cannot generate text")
        .Help("`mlc run MODEL --tokens 5,17,100` prints its outputs for these tokens");
  throw error.Expected("inputs inputIds and causalMask and an output logits");
}

// Returns a loader for GuardOptions::load; it owns everything that it uses.
std::function<std::unique_ptr<runtime::LoadedModel>()> LoaderOf(
    const fs::path& path, const std::shared_ptr<runtime::Runtime>& runtime,
    const runtime::LoadOptions& load, runtime::Worker::Timeout limit, Diagnostics& diagnostics) {
  return [runtime, load, bundle = CompiledWithin(limit, runtime, path, load.units, diagnostics)] {
    return runtime->Load(bundle.path, load);
  };
}

}  // namespace

LanguageModel::LanguageModel(const fs::path& path, const RunOptions& options, std::string_view what,
                             Diagnostics& diagnostics) {
  const Clock::time_point begin = Clock::now();
  const Frontend& frontend = FrontendOf(path);
  const bool source = frontend.IsSource();
  if (options.bundles_only) RequireBundle(path);
  units_ = options.units.value_or(source ? runtime::Units::kReference : DefaultUnits());
  if (source && units_ != runtime::Units::kReference)
    throw Error("usage",
                fmt::format("--units {}: Core ML runs packages and bundles, but \"{}\" is {}",
                            Name(units_), path.string(), frontend.what))
        .Help("`mlc compile` makes a package from it");
  RefuseHints(options.hints, units_);
  arithmetic_ = options.arithmetic.value_or(source ? engine::EngineOptions::Arithmetic::kExact
                                                   : engine::EngineOptions::Arithmetic::kFaithful);
  program_ = std::make_shared<Program>(ImportToRun(path, options.import, false, diagnostics));
  function_ = options.function ? &FindFunction(*program_, *options.function) : program_->main();
  RequireLanguageModel(*function_, what);
  size_ = LanguageSizes(*function_);

  ReferenceOptions reference{.import = options.import, .arithmetic = arithmetic_};
  reference.timeout = options.timeout;
  runtime::LoadOptions load = options.hints;
  load.units = units_;
  load.function = function_->name;
  runtime_ = MakeRuntime(units_, reference);
  runtime_name_ = runtime_->capabilities().runtime;
  runtime::GuardOptions guard{
      .timeout = options.timeout,
      .breaker = std::make_shared<runtime::CircuitBreaker>(
          runtime::BreakerOptions{.override = runtime::BreakerOptions::Override::kClosed})};
  if (units_ == runtime::Units::kReference) {
    guard.load = [program = program_, function = function_, reference, load] {
      return MakeReferenceModel(program, *function, reference, load);
    };
  } else {
    guard.load_timeout = LoadLimit(units_, options.load_timeout);
    guard.load = LoaderOf(path, runtime_, load, guard.load_timeout, diagnostics);
  }
  model_ = std::make_unique<runtime::GuardedModel>(guard);
  Forget();
  load_ms_ = Milliseconds(begin, Clock::now());
}

bool LanguageModel::computes_in_fp16() const { return ComputesInFp16(*program_); }

void LanguageModel::Forget() {
  state_ = model_->NewState();
  seen_ = 0;
}

Tensor LanguageModel::Append(std::span<const int32_t> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  if (seen_ + count > size_.context)
    throw Error("bad-input", fmt::format("{} tokens and {} more exceed the model's context of {}",
                                         seen_, count, size_.context))
        .Help("run or compile the source model with a larger --context N");
  for (const int32_t token : tokens)
    if (token < 0 || token >= size_.vocabulary)
      throw Error("bad-input", fmt::format("token {} is not in the vocabulary of the model", token))
          .Expected(fmt::format("0 to {}", size_.vocabulary - 1))
          .Help("check that the tokenizer belongs to this model");
  const Predict predict = [this](const std::map<std::string, Tensor>& inputs) {
    return model_->Run(inputs, state_.get()).outputs;
  };
  Tensor logits = AppendTokens(predict, *function_, tokens, seen_);
  seen_ += count;
  return logits;
}

}  // namespace mlc::driver
