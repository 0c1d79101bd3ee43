// lib/runtime/runtime.h - what runs compiled models, as an interface: Core ML, mlc's engine, and whatever comes, are used
// in one way. Tools hand one in; backends/apple and tools/driver/reference_runtime.h have them.
//
// Tensors are the currency. They are immutable and shared: what a prediction was given up on still reads is alive as long
// as it reads, and what it writes late is its own. No memory of a caller's is ever lent.
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

namespace mlc {

// What a user asks for. kCpu: the CPU alone; kGpu, kAne: this and the CPU; kReference: mlc's engine.
enum class Units { kAll, kCpu, kGpu, kAne, kReference };
std::string_view Name(Units units);                      // as --units has it
std::optional<Units> ParseUnits(std::string_view text);  // nothing for other words

// What computes. That nobody says is a value.
enum class Device { kUnknown, kCpu, kGpu, kAne, kReference };
std::string_view Name(Device device);  // "unknown", "cpu", "gpu", "ane", "reference"
// Whether an operation on `device` is where who asked for `units` wants it: kGpu and kAne let the CPU take what the
// device does not, but who asked did not mean the CPU. kUnknown is where nobody wants it.
bool Allows(Units units, Device device);

// The machine, and what of the runtime it has. Texts are empty where nobody says.
struct Capabilities {
  std::string runtime;          // "Core ML", "mlc's engine"
  std::string runtime_version;  // Core ML's framework, or mlc's own
  std::string os, os_build;     // "macOS 15.1", "24B83"
  std::string chip;             // "Apple M2"
  std::vector<Device> devices;  // that are there, in order of the enum
  // What cannot be done here: "states", and why: "needs macOS 15, this is macOS 14.4".
  struct Missing {
    std::string feature, why;
  };
  std::vector<Missing> missing;
};

struct LoadOptions {
  Units units = Units::kAll;
  std::string function;                     // empty: the model's default function
  bool low_precision_accumulation = false;  // on the GPU
  // Hints, left to the runtime where absent.
  enum class Reshapes { kFrequent, kInfrequent };
  std::optional<Reshapes> reshapes;
  enum class Specialization { kDefault, kFastPrediction };
  std::optional<Specialization> specialization;
  // Called after each operation that ran, where the runtime can tell (Core ML cannot), on the thread that predicts.
  struct OperationRun {
    std::string_view name, op;  // the first result's name; MIL's operator
    std::chrono::steady_clock::time_point begin, end;
  };
  std::function<void(const OperationRun&)> observe;
};

// An input, output or state, as the runtime describes it.
struct Feature {
  enum class Kind { kTensor, kImage, kString, kState };
  std::string name;  // MIL's
  Kind kind = Kind::kTensor;
  DType dtype = DType::kNone;  // of an image: uint8 or fp16, as [1, channels, height, width]
  Dims dims;                   // -1: open; of an output, none where nobody states them
};
struct Schema {
  std::vector<Feature> inputs, outputs, states;
};

// Where the runtime means to compute an operation.
struct OperationPlacement {
  std::string name, op;  // the first result's name; MIL's operator without its opset
  Device preferred = Device::kUnknown;
  std::vector<Device> supported;  // none: unknown
  std::optional<double> cost;     // share of the whole model's, 0..1
};

struct PredictTimings {
  double marshal_in_ms = 0, predict_ms = 0, marshal_out_ms = 0;
};

// What a model remembers between predictions: zeros at first. One prediction at a time may use it.
class ModelState {
 public:
  virtual ~ModelState() = default;
  // By MIL name.
  virtual std::map<std::string, Tensor> Read() const = 0;
  // Error "bad-input" for a state that there is not, or of another type or shape.
  virtual void Write(const std::map<std::string, Tensor>& values) = 0;
};

// One function of one model on its units. Several threads may predict at once, each with a state of its own.
class LoadedModel {
 public:
  virtual ~LoadedModel() = default;
  virtual const Schema& schema() const = 0;
  // Returns whether the runtime itself makes concurrent predictions wait for each other. Callers with
  // deadlines then wait before they call, so that no thread is left behind when their time is up.
  virtual bool one_at_a_time() const { return false; }
  // Inputs and outputs by MIL name, in the model's types. `state` (may be null: zeros) is one of this model's. Error
  // "bad-input" for inputs that the schema does not have so, "schema-mismatch" for outputs that are not as it says,
  // "runtime-failed" with the runtime's own words for all that the runtime refuses or throws, "resource-limit" where
  // memory ran out. `timings` may be null.
  virtual std::map<std::string, Tensor> Predict(const std::map<std::string, Tensor>& inputs,
                                                ModelState* state, PredictTimings* timings) = 0;
  // Null where the model has none. Error "needs-system" where this system cannot.
  virtual std::unique_ptr<ModelState> NewState() = 0;
  // In the order of execution; empty where the runtime does not tell, and `why_not` (may be null) says why.
  virtual std::vector<OperationPlacement> Placements(std::string* why_not) = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual Capabilities capabilities() const = 0;
  // Whether it loads .mlpackage and .mlmodel as they are, and Compile is not needed.
  virtual bool loads_packages() const = 0;
  // Makes the .mlmodelc of a package at `bundle`, where nothing is yet. Error "runtime-failed", "file-io".
  virtual void Compile(const std::filesystem::path& package,
                       const std::filesystem::path& bundle) = 0;
  // Error "bad-name" for a function that there is not, "needs-system" for units, functions and hints that this system
  // lacks, "runtime-failed".
  virtual std::unique_ptr<LoadedModel> Load(const std::filesystem::path& model,
                                            const LoadOptions& options) = 0;
};

// Kinds of failures, as telemetry counts them.
enum class Failure { kCompile, kSchema, kException, kTimeout, kMemory, kParity, kFallback };
inline constexpr int kFailures = 7;
std::string_view Name(Failure failure);  // "compile", "schema", ...
// What an Error of a prediction or a load counts as, by its id.
Failure FailureOf(std::string_view error_id);

}  // namespace mlc
