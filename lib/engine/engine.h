// lib/engine/engine.h - executes a function on the CPU.
//
//   Engine engine(*program.main(), {.arithmetic = EngineOptions::Arithmetic::kExact});
//   std::map<std::string, Tensor> outputs = engine.Run({{"x", image}});
//
// Any valid program can be executed: an operation without a fast kernel is computed by the `eval`
// of its row, which defines it. Shapes are inferred from the actual operands, so symbols need no
// values in advance. Constants are decoded once, except for the weights of products, which stay
// encoded (product_weights.h). The caller owns the states and passes them to each run that
// continues a previous one.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lib/engine/product_weights.h"
#include "lib/ir/program.h"

namespace mlc::engine {

struct EngineOptions {
  // kFaithful rounds each fp16 result to fp16, overflow included, as Core ML does on the CPU.
  // kExact keeps such values, outputs included, in fp32. It rounds only at a cast to fp16 whose
  // users are all casts, since the source requests that rounding.
  enum class Arithmetic { kFaithful, kExact };
  Arithmetic arithmetic = Arithmetic::kFaithful;
  // The number of threads for kernels; 0: DefaultThreads(). The engine's only process-wide setting
  // is oneDNN's instruction set, which excludes AMX unless ONEDNN_MAX_CPU_ISA is set.
  int threads = 0;
  // The time limit of one run, checked between operations.
  std::optional<std::chrono::milliseconds> timeout;
  // kFast uses the fastest kernels, including oneDNN; the last digits of sums depend on the
  // processor, the version of oneDNN and the number of threads. kEval uses only the `eval` of each
  // row. kReproducible gives the same bytes as kEval in less time.
  enum class Kernels { kFast, kReproducible, kEval };
  Kernels kernels = Kernels::kFast;
  // Prepared weights, shared by all engines that are given the same object, for any functions and
  // threads. Null: the engine has its own.
  std::shared_ptr<PreparedWeights> weights;
  // Called with the results of every executed operation, in order; a list is passed as one tensor
  // of its elements. It may replace results by tensors of the same type and sizes, and may throw to
  // stop the run.
  std::function<void(const Operation&, std::span<Tensor>)> observe;
};

// The values of a function's states, by MIL name. A missing state is zero.
using States = std::map<std::string, Tensor>;

class Engine {
 public:
  // `function` must outlive the engine and must not change. Throws the located errors of type
  // inference.
  explicit Engine(const Function& function, EngineOptions options = {});
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // Inputs and outputs are passed by MIL name. Inputs must have the declared types (kExact accepts
  // fp32 for fp16) and sizes that agree with the symbols and their bounds; otherwise throws Error
  // "bad-input". Throws Error "timeout" at the time limit, and "resource-limit" if memory is
  // exhausted or a loop does not end. All states start as zero. Several threads may run one engine
  // at the same time, each with its own states.
  std::map<std::string, Tensor> Run(const std::map<std::string, Tensor>& inputs) const;
  // Starts with `states` and stores the final value of every state there; if it throws, they are
  // unchanged. Throws Error "bad-input" for an unknown state or a wrong type. With kExact, fp16
  // states hold fp32.
  std::map<std::string, Tensor> Run(const std::map<std::string, Tensor>& inputs,
                                    States& states) const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

// Prepares and runs the program's default function once.
std::map<std::string, Tensor> Execute(const Program& program,
                                      const std::map<std::string, Tensor>& inputs,
                                      const EngineOptions& options = {});

}  // namespace mlc::engine
