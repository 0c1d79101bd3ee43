// tools/driver/model.h - a model of any format that is loaded on a runtime.
//
// A Model is imported when it is constructed. For Core ML it is compiled at the first load, or
// taken from the cache of compiled models. It can be loaded as several instances, which are called
// with time limits (lib/runtime/guarded_model.h). Instances and loaders own everything that they
// use and may outlive the Model. Not thread-safe.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/engine/engine.h"
#include "lib/runtime/guarded_model.h"
#include "lib/support/temporary_folder.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/import.h"

namespace mlc::driver {

struct ModelOptions {
  ImportOptions import;
  std::optional<std::string> function;  // absent: the program's default function
  // Absent: the reference engine for a source model, DefaultUnits() for Core ML's formats.
  std::optional<runtime::Units> units;
  // The arithmetic of the reference engine. Absent: exact for a source model, faithful for Core
  // ML's formats.
  std::optional<engine::EngineOptions::Arithmetic> arithmetic;
  int threads = 0;                                   // of the reference engine; 0: DefaultThreads()
  std::optional<std::chrono::milliseconds> timeout;  // aborts a prediction that takes longer
  // For each of: compiling with Core ML, loading with it, and requesting its compute plan. Absent:
  // ten minutes.
  std::optional<std::chrono::milliseconds> load_timeout;
  runtime::LoadOptions hints;  // units and function are set by Model
  bool bundles_only = false;   // accept only a .mlmodelc
  // True if import.shapes and import.dims may contain names that the model does not have, because
  // they are those of another model.
  bool may_lack_sizes = false;
  // The folder of a temporary model, which is removed with the last instance. Such a model is not
  // cached.
  std::shared_ptr<const TemporaryFolder> temporary;
};

// The units and the arithmetic that compute the results of a model.
struct Executor {
  runtime::Units units = runtime::Units::kReference;
  // Of the reference engine.
  engine::EngineOptions::Arithmetic arithmetic = engine::EngineOptions::Arithmetic::kExact;
  std::string runtime;  // "mlc's engine"
};

class Model {
 public:
  // Throws the errors of Import; Error "usage" for units, hints or `bundles_only` that do not suit
  // the model; "bad-name" for an unknown function; "no-coreml". `diagnostics` must outlive this
  // object.
  Model(const std::filesystem::path& path, const ModelOptions& options, Diagnostics& diagnostics);

  // The model of a program that no file contains, which is shared. The arithmetic is that of a source
  // model by default. Core ML runs it from a temporary package.
  Model(std::shared_ptr<const Program> program, const ModelOptions& options,
        Diagnostics& diagnostics);

  const std::filesystem::path& path() const { return path_; }
  const std::shared_ptr<const Program>& program() const { return program_; }
  const Function& function() const { return *function_; }
  bool is_source() const { return is_source_; }
  double read_ms() const { return read_ms_; }  // the time of importing a file
  runtime::Units units() const { return units_; }
  engine::EngineOptions::Arithmetic arithmetic() const { return arithmetic_; }
  runtime::Capabilities capabilities() const { return runtime_->capabilities(); }
  Executor executor() const { return {units_, arithmetic_, capabilities().runtime}; }
  // The limit for a load; none for the reference engine, which always terminates.
  runtime::Worker::Timeout load_limit() const;

  // Compiles the model unless that was done before or is not needed. Returns false if it was found
  // in the cache. Throws the errors of CompiledWithin.
  bool Compile();
  // Compiles and loads a function (absent: function()). The fields load, timeout and load_timeout
  // of `guard` are set by this call.
  std::unique_ptr<runtime::GuardedModel> Load(runtime::GuardOptions guard = {});
  std::unique_ptr<runtime::GuardedModel> Load(const Function& function,
                                              runtime::GuardOptions guard = {});

  using Loader = std::function<std::unique_ptr<runtime::LoadedModel>()>;
  // Compiles, and returns a loader without time limits.
  Loader LoaderOf(const Function& function);
  // Returns a loader on the reference engine. Its instances share prepared weights.
  Loader ReferenceLoaderOf(const Function& function) const;
  // Loads a function on the reference engine in faithful arithmetic, to compare with.
  std::unique_ptr<runtime::LoadedModel> LoadReference(const Function& function) const;

 private:
  Loader ReferenceLoader(const Function& function, engine::EngineOptions::Arithmetic arithmetic,
                         std::optional<std::chrono::milliseconds> timeout,
                         runtime::LoadOptions load) const;

  std::filesystem::path path_;
  ModelOptions options_;
  Diagnostics& diagnostics_;
  bool is_source_ = false;
  double read_ms_ = 0;
  runtime::Units units_ = runtime::Units::kReference;
  engine::EngineOptions::Arithmetic arithmetic_ = engine::EngineOptions::Arithmetic::kExact;
  std::shared_ptr<runtime::Runtime> runtime_;
  std::shared_ptr<const Program> program_;
  const Function* function_ = nullptr;
  std::shared_ptr<const CompiledModel> compiled_;  // null for the reference engine
  std::shared_ptr<engine::PreparedWeights> weights_ = std::make_shared<engine::PreparedWeights>();
};

// "exact", "faithful".
std::string_view Name(engine::EngineOptions::Arithmetic arithmetic);
// Descriptions for display: "exact: computes in fp32", "faithful: rounds fp16 results to fp16".
std::string_view Describe(engine::EngineOptions::Arithmetic arithmetic);

}  // namespace mlc::driver
