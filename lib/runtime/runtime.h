// lib/runtime/runtime.h - the interface to engines that run compiled models, such as Core ML and
// the reference engine. Tools pass an implementation: backends/apple or
// tools/driver/reference_runtime.h.
//
// Inputs and outputs are Tensors, which are immutable and shared. An abandoned prediction therefore
// keeps its inputs alive and writes only to its own memory; it never borrows memory of the caller.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc::runtime {

// The units a user requests. kCpu: the CPU only; kGpu, kAne: that unit and the CPU; kReference: the
// reference engine.
enum class Units { kAll, kCpu, kGpu, kAne, kReference };
std::string_view Name(Units units);                      // the value of --units
std::optional<Units> ParseUnits(std::string_view text);  // nothing for an unknown name

// The device that computes an operation; kUnknown if the runtime does not report it.
enum class Device { kUnknown, kCpu, kGpu, kAne, kReference };
std::string_view Name(Device device);  // "unknown", "cpu", "gpu", "ane", "reference"
// Returns whether `device` satisfies a request for `units`. kGpu and kAne allow the CPU to run
// unsupported operations, but the CPU does not satisfy the request. kUnknown satisfies none.
bool Allows(Units units, Device device);

// The machine and the runtime. Unknown texts are empty.
struct Capabilities {
  std::string runtime;          // "Core ML", "mlc's engine"
  std::string runtime_version;  // version of the Core ML framework or of mlc
  std::string os, os_build;     // "macOS 15.1", "24B83"
  std::string chip;             // "Apple M2"
  std::vector<Device> devices;  // available devices, in enum order
  // A missing feature, such as "states", and the reason: "requires macOS 15, this is macOS 14.4".
  struct Missing {
    std::string feature, why;
  };
  std::vector<Missing> missing;
};

struct LoadOptions {
  Units units = Units::kAll;
  std::string function;                     // empty selects the default function
  bool low_precision_accumulation = false;  // on the GPU
  // Hints; if absent, the runtime decides.
  enum class Reshapes { kFrequent, kInfrequent };
  std::optional<Reshapes> reshapes;
  enum class Specialization { kDefault, kFastPrediction };
  std::optional<Specialization> specialization;
  // Called after each operation on the predicting thread, if the runtime supports it (Core ML does
  // not).
  struct OperationRun {
    std::string_view name, op;  // name of the first result; MIL operator
    std::chrono::steady_clock::time_point begin, end;
  };
  std::function<void(const OperationRun&)> observe;
};

// An input, output or state as described by the runtime.
struct Feature {
  enum class Kind { kTensor, kImage, kString, kState };
  std::string name;  // MIL name
  Kind kind = Kind::kTensor;
  DType dtype = DType::kNone;  // for an image: uint8 or fp16, as [1, channels, height, width]
  Dims dims;  // -1 for an open dimension; empty for outputs without a declared shape
};
struct Schema {
  std::vector<Feature> inputs, outputs, states;
};

// The planned placement of an operation.
struct OperationPlacement {
  std::string name, op;  // name of the first result; MIL operator without its opset
  Device preferred = Device::kUnknown;
  std::vector<Device> supported;  // empty if unknown
  std::optional<double> cost;     // share of the cost of the model, 0 to 1
};

struct PredictTimings {
  double marshal_in_ms = 0, predict_ms = 0, marshal_out_ms = 0;
};

// The values that a model keeps between predictions, initially zero. Only one prediction at a time
// may use it.
class ModelState {
 public:
  virtual ~ModelState() = default;
  // Keyed by MIL name.
  virtual std::map<std::string, Tensor> Read() const = 0;
  // Error "bad-input" for an unknown state or a wrong type or shape.
  virtual void Write(const std::map<std::string, Tensor>& values) = 0;
};

// One function of a model, loaded for the compute units in LoadOptions. Several threads may predict
// concurrently, each with its own state.
class LoadedModel {
 public:
  virtual ~LoadedModel() = default;
  virtual const Schema& schema() const = 0;
  // Returns whether the runtime serializes concurrent predictions. Callers with deadlines then wait
  // before the call, so that no thread is abandoned when their time is up.
  virtual bool one_at_a_time() const { return false; }
  // Inputs and outputs are keyed by MIL name and have the types of the model. `state` must belong
  // to this model; null means zeros. `timings` may be null. Errors: "bad-input" for inputs that do
  // not match the schema; "schema-mismatch" for outputs that do not; "runtime-failed", with the
  // message of the runtime, if it rejects the call or throws; "resource-limit" if memory is
  // exhausted.
  virtual std::map<std::string, Tensor> Predict(const std::map<std::string, Tensor>& inputs,
                                                ModelState* state, PredictTimings* timings) = 0;
  // Returns null if the model has no states. Error "needs-system" if this system does not support
  // them.
  virtual std::unique_ptr<ModelState> NewState() = 0;
  // In execution order. Empty if the runtime does not report placements; `why_not`, which may be
  // null, then gets the reason.
  virtual std::vector<OperationPlacement> Placements(std::string* why_not) = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual Capabilities capabilities() const = 0;
  // Returns whether Load accepts .mlpackage and .mlmodel directly, without Compile.
  virtual bool loads_packages() const = 0;
  // Compiles a package to an .mlmodelc at `bundle`, which must not exist. Error "runtime-failed",
  // "file-io".
  virtual void Compile(const std::filesystem::path& package,
                       const std::filesystem::path& bundle) = 0;
  // Error "bad-name" for an unknown function; "needs-system" for units, functions and hints that
  // this system lacks; "runtime-failed".
  virtual std::unique_ptr<LoadedModel> Load(const std::filesystem::path& model,
                                            const LoadOptions& options) = 0;
};

// The kinds of failures that telemetry counts.
enum class Failure { kCompile, kSchema, kException, kTimeout, kMemory, kParity, kFallback };
inline constexpr int kFailures = 7;
std::string_view Name(Failure failure);  // "compile", "schema", ...
// Classifies the Error of a prediction or load by its id.
Failure FailureOf(std::string_view error_id);

}  // namespace mlc::runtime
