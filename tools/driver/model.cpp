#include "tools/driver/model.h"

#include "lib/support/milliseconds.h"
#include "tools/driver/frontends.h"
#include "tools/driver/run_passes.h"
#include "tools/driver/runtimes.h"
#include "tools/driver/supplied_tensors.h"

namespace fs = std::filesystem;

namespace mlc::driver {

std::string_view Name(engine::EngineOptions::Arithmetic arithmetic) {
  return arithmetic == engine::EngineOptions::Arithmetic::kExact ? "exact" : "faithful";
}

std::string_view Describe(engine::EngineOptions::Arithmetic arithmetic) {
  return arithmetic == engine::EngineOptions::Arithmetic::kExact
             ? "exact: computes in fp32"
             : "faithful: rounds fp16 results to fp16";
}

namespace {

void CheckHints(const ModelOptions& options, runtime::Units units) {
  for (auto [name, given] : {std::pair{"--low-precision", options.hints.low_precision_accumulation},
                             {"--reshapes", options.hints.reshapes.has_value()},
                             {"--specialization", options.hints.specialization.has_value()}})
    if (given && units == runtime::Units::kReference)
      throw Error("usage", "{} applies to Core ML, not to the reference engine", name)
          .Expected("--units all, cpu, gpu or ane");
}

// Reports units, hints and restrictions that do not suit the model, before it is imported.
void CheckOptions(const fs::path& path, const ModelOptions& options, runtime::Units units) {
  const Frontend& frontend = FrontendOf(path);
  if (options.bundles_only && frontend.format != Format::kBundle)
    throw Error("usage", "--no-compile: \"{}\" is {}", path.string(), frontend.what)
        .Expected("a compiled bundle (.mlmodelc)")
        .Help(frontend.IsSource() ? "`mlc compile MODEL -o MODEL.mlmodelc` makes one"
                                  : "`mlc precompile` makes one from a package");
  if (frontend.IsSource() && units != runtime::Units::kReference)
    throw Error("usage", "--units {}: Core ML runs packages and bundles, but \"{}\" is {}",
                Name(units), path.string(), frontend.what)
        .Help("`mlc compile` makes a package from it");
  CheckHints(options, units);
}

}  // namespace

Model::Model(const fs::path& path, const ModelOptions& options, Diagnostics& diagnostics)
    : path_(path), options_(options), diagnostics_(diagnostics) {
  is_source_ = FrontendOf(path).IsSource();
  units_ = options.units.value_or(is_source_ ? runtime::Units::kReference : DefaultUnits());
  arithmetic_ =
      options.arithmetic.value_or(is_source_ ? engine::EngineOptions::Arithmetic::kExact
                                             : engine::EngineOptions::Arithmetic::kFaithful);
  CheckOptions(path, options, units_);
  runtime_ = MakeRuntime(units_, {});
  const auto begin = std::chrono::steady_clock::now();
  program_ = std::make_shared<Program>(
      ImportToRun(path, options.import, options.may_lack_sizes, diagnostics));
  read_ms_ = MillisecondsSince(begin);
  function_ = options.function ? &FindFunction(*program_, *options.function) : program_->main();
}

Model::Model(std::shared_ptr<const Program> program, const ModelOptions& options,
             Diagnostics& diagnostics)
    : options_(options), diagnostics_(diagnostics), program_(std::move(program)) {
  units_ = options.units.value_or(DefaultUnits());
  is_source_ = units_ == runtime::Units::kReference;
  arithmetic_ = options.arithmetic.value_or(engine::EngineOptions::Arithmetic::kExact);
  CheckHints(options, units_);
  runtime_ = MakeRuntime(units_, {});
  function_ = options.function ? &FindFunction(*program_, *options.function) : program_->main();
  if (is_source_) return;
  auto folder = std::make_shared<TemporaryFolder>();
  path_ = folder->path / "program.mlpackage";
  Program written = Clone(*program_);
  WriteProgram(written, path_, false, diagnostics);
  options_.temporary = std::move(folder);
}

runtime::Worker::Timeout Model::load_limit() const {
  return LoadLimit(units_, options_.load_timeout);
}

bool Model::Compile() {
  if (compiled_ || units_ == runtime::Units::kReference) return false;
  compiled_ = std::make_shared<CompiledModel>(
      options_.temporary
          ? runtime::Worker().Run(
                [runtime = runtime_, path = path_, units = units_, held = options_.temporary] {
                  return CompiledFor(*runtime, path, units);
                },
                load_limit())
          : CompiledWithin(load_limit(), runtime_, path_, units_, diagnostics_));
  return compiled_->made;
}

std::unique_ptr<runtime::GuardedModel> Model::Load(runtime::GuardOptions guard) {
  return Load(function(), std::move(guard));
}

std::unique_ptr<runtime::GuardedModel> Model::Load(const Function& function,
                                                   runtime::GuardOptions guard) {
  guard.load = LoaderOf(function);
  guard.timeout = options_.timeout;
  guard.load_timeout = load_limit();
  return std::make_unique<runtime::GuardedModel>(std::move(guard));
}

Model::Loader Model::LoaderOf(const Function& function) {
  Compile();
  runtime::LoadOptions load = options_.hints;
  load.units = units_;
  load.function = function.name;
  if (units_ == runtime::Units::kReference)
    // The guard limits the time, and ends the run.
    return ReferenceLoader(function, arithmetic_, std::nullopt, std::move(load));
  return [runtime = runtime_, compiled = compiled_, load, held = options_.temporary] {
    return runtime->Load(compiled->path, load);
  };
}

Model::Loader Model::ReferenceLoaderOf(const Function& function) const {
  return ReferenceLoader(function, arithmetic_, options_.timeout,
                         {.units = runtime::Units::kReference});
}

std::unique_ptr<runtime::LoadedModel> Model::LoadReference(const Function& function) const {
  return ReferenceLoader(function, engine::EngineOptions::Arithmetic::kFaithful, std::nullopt,
                         {.units = runtime::Units::kReference})();
}

Model::Loader Model::ReferenceLoader(const Function& function,
                                     engine::EngineOptions::Arithmetic arithmetic,
                                     std::optional<std::chrono::milliseconds> timeout,
                                     runtime::LoadOptions load) const {
  ReferenceOptions options{.arithmetic = arithmetic, .threads = options_.threads};
  options.timeout = timeout;
  return [program = program_, &function, options, load = std::move(load), weights = weights_,
          held = options_.temporary] {
    return MakeReferenceModel(program, function, options, load, weights);
  };
}

}  // namespace mlc::driver
