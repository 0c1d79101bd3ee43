// tools/runtime/model.h - a loaded function of a model, which its handles share.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/driver/benchmark.h"
#include "tools/driver/model.h"
#include "tools/driver/options.h"
#include "tools/runtime/call.h"

namespace mlc::abi {

// What the functions of a model share. `model` refers to `diagnostics`.
struct LoadedModel {
  Diagnostics diagnostics;
  std::unique_ptr<driver::Model> model;
  std::optional<runtime::Units> units_requested;
  runtime::BreakerOptions breaker;
  std::shared_ptr<driver::Trace> trace;  // null unless the options ask for it
  std::mutex mutex;                      // guards `model`, which is not thread-safe
};

// The names of one kind of port, and their indices by either name.
struct Ports {
  std::vector<runtime::Feature> features;
  std::vector<std::string> source_names;
  std::unordered_map<std::string_view, size_t> by_name;
  // Returns the index, or -1.
  int32_t Find(std::string_view name) const;
};

class LoadedFunction {
 public:
  // Loads a function of the model.
  LoadedFunction(std::shared_ptr<LoadedModel> owner, const Function& loaded);
  LoadedFunction(const LoadedFunction&) = delete;
  LoadedFunction& operator=(const LoadedFunction&) = delete;

  const Ports* PortsOf(int32_t kind) const;  // null for an unknown kind
  // What another instance of the function shares with this one.
  runtime::GuardOptions Guard() const;

  const std::shared_ptr<LoadedModel> model;
  const Function& function;
  std::shared_ptr<runtime::Telemetry> telemetry;
  std::shared_ptr<runtime::CircuitBreaker> breaker;
  std::shared_ptr<runtime::GuardedModel> instance;
  Ports inputs, outputs, states;
  std::vector<const Value*> input_values;
  std::string schema;  // JSON
};

// Options of loading, bound to the records that they fill.
struct LoadOptions {
  driver::BenchmarkOptions run;
  int threads = 0;
  bool breaker = false, trace = false;
};
// Loads the default function, or the one that the options name.
mlc_model* LoadModel(const LoadOptions& options,
                     const std::function<std::unique_ptr<driver::Model>(
                         const driver::ModelOptions& options, Diagnostics& diagnostics)>& make);

}  // namespace mlc::abi

struct mlc_model {
  std::shared_ptr<mlc::abi::LoadedFunction> function;
};
// Requests share the slot of the states that they use.
struct mlc_state {
  std::shared_ptr<mlc::abi::LoadedFunction> function;
  std::shared_ptr<std::unique_ptr<mlc::runtime::ModelState>> slot;
};
