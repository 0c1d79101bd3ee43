// lib/engine/engine.h - executes a function on the CPU.
//
//   Engine engine(*program.main(), {.arithmetic = EngineOptions::Arithmetic::kExact});
//   std::map<std::string, Tensor> outputs = engine.Run({{"x", image}});
//
// Any program runs: an operation without a fast kernel is computed by its row's `eval`, which
// defines it. Shapes are inferred from the actual operands, so symbols need no values beforehand.
// Constants are decoded once, but for the weights of products, which stay as they are (weights.h).
// States belong to the caller, who hands them to every run that shall go on where another ended.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lib/engine/weights.h"
#include "lib/ir/program.h"

namespace mlc {

struct EngineOptions {
  // kFaithful: what the program types as fp16 is rounded to fp16 after each operation, as Core ML's
  // CPU does, overflow included. kExact: such values are fp32, outputs too, except that a cast to
  // fp16 whose result only other casts read rounds its operand: the source asks for the rounding.
  enum class Arithmetic { kFaithful, kExact };
  Arithmetic arithmetic = Arithmetic::kFaithful;
  // Of kernels; 0: DefaultThreads(). The process has no other setting of ours but oneDNN's
  // instruction set, which stays below AMX unless ONEDNN_MAX_CPU_ISA says otherwise.
  int threads = 0;
  // Of one Run; looked at between operations.
  std::optional<std::chrono::milliseconds> timeout;
  // kFast: what is fastest here, oneDNN's products too; sums differ in their last digits between
  // processors, versions of oneDNN and numbers of threads. kEval: the rows' `eval` alone.
  // kReproducible: the bytes of kEval, in less time.
  enum class Kernels { kFast, kReproducible, kEval };
  Kernels kernels = Kernels::kFast;
  // What is made of weights once; engines that are given the same share it, whatever functions and
  // threads they have. Null: the engine's own.
  std::shared_ptr<PreparedWeights> weights;
  // Sees the results of every operation that ran, in order; lists as one tensor, their elements in
  // a row. May put others of the same type and sizes in their place, and throw to stop.
  std::function<void(const Operation&, std::span<Tensor>)> observe;
};

// What the states of a function hold, by MIL name. One that is not there is zero.
using States = std::map<std::string, Tensor>;

class Engine {
 public:
  // `function` must outlive the engine and stay as it is. Throws what inference throws, located.
  explicit Engine(const Function& function, EngineOptions options = {});
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // Inputs and outputs by MIL name. Inputs must have the declared types (an fp16 input may be given
  // as fp32 under kExact), sizes that agree with each other's symbols, and lie within the symbols'
  // bounds: Error "bad-input" otherwise. Error "timeout" when time runs out, "resource-limit" when
  // memory or a loop without end does. All states are zero at first. Several threads may run one
  // engine at once, each with states of its own.
  std::map<std::string, Tensor> Run(const std::map<std::string, Tensor>& inputs) const;
  // Begins with `states` and leaves in it what every state holds in the end; when it throws, they
  // are as they were. Error "bad-input" for a state that there is not, or of another type; under
  // kExact fp16 states hold fp32.
  std::map<std::string, Tensor> Run(const std::map<std::string, Tensor>& inputs,
                                    States& states) const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

// Prepares and runs once. The program's default function.
std::map<std::string, Tensor> Execute(const Program& program,
                                      const std::map<std::string, Tensor>& inputs,
                                      const EngineOptions& options = {});

}  // namespace mlc
