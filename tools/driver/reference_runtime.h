// tools/driver/reference_runtime.h - mlc's engine as a runtime: whatever mlc reads, on any machine.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "lib/engine/engine.h"
#include "lib/runtime/runtime.h"
#include "tools/driver/import.h"

namespace mlc {

struct ReferenceOptions {
  ImportOptions import;  // sizes, of models that have open ones
  // Absent: exact for a source model, faithful for what Core ML runs.
  std::optional<EngineOptions::Arithmetic> arithmetic;
  int threads = 0;  // 0: DefaultThreads()
  std::optional<std::chrono::milliseconds>
      timeout;  // of one prediction, looked at between operations
};

// A LoadedModel over a function of a program that is there already. `weights` (may be null): as in EngineOptions.
std::unique_ptr<LoadedModel> MakeReferenceModel(std::shared_ptr<const Program> program,
                                                const Function& function,
                                                const ReferenceOptions& options,
                                                const LoadOptions& load,
                                                std::shared_ptr<PreparedWeights> weights = nullptr);

// Loads sources, packages, bundles and MIL text; units are kAll or kReference. Compile() makes the bundle that
// `mlc precompile` makes. Both may be abandoned, and tell nobody what is worth a note: who imports the model does.
std::unique_ptr<Runtime> MakeReferenceRuntime(const ReferenceOptions& options);

}  // namespace mlc
