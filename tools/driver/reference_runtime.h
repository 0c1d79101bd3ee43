// tools/driver/reference_runtime.h - the reference engine as a runtime for all supported formats,
// on any machine.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "lib/engine/engine.h"
#include "lib/runtime/runtime.h"
#include "tools/driver/import.h"

namespace mlc::driver {

struct ReferenceOptions {
  ImportOptions import;  // sizes, for models with open dimensions
  // Absent: exact for a source model, faithful for Core ML's formats.
  std::optional<engine::EngineOptions::Arithmetic> arithmetic;
  int threads = 0;  // 0: DefaultThreads()
  std::optional<std::chrono::milliseconds>
      timeout;  // for one prediction; checked between operations
};

// Wraps a function of an existing program as a LoadedModel. `weights` (may be null): as in
// EngineOptions.
std::unique_ptr<runtime::LoadedModel> MakeReferenceModel(
    std::shared_ptr<const Program> program, const Function& function,
    const ReferenceOptions& options, const runtime::LoadOptions& load,
    std::shared_ptr<engine::PreparedWeights> weights = nullptr);

// Loads source models, packages, bundles and MIL text; units are kAll or kReference. Compile()
// writes the same bundle as `mlc precompile`. Both calls may be abandoned. They report no notes,
// because the caller that imports the model does.
std::unique_ptr<runtime::Runtime> MakeReferenceRuntime(const ReferenceOptions& options);

}  // namespace mlc::driver
