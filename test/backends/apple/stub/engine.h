// engine.h - the reference engine as a substitute for Core ML's, in plain C++, because gcc's
// Objective-C runtime does not catch C++ exceptions.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/ir/program.h"
#include "lib/runtime/runtime.h"

// One input, output or state of a function.
struct MLStubFeature {
  mlc::runtime::Feature feature;  // for an image, the dtype that the engine expects
  mlc::Port port;
  bool dictionary = false, output = false;
};

struct MLStubModel {
  MLStubModel();
  ~MLStubModel();
  std::shared_ptr<const mlc::Program> program;
  const mlc::Function* function = nullptr;
  std::unique_ptr<mlc::runtime::LoadedModel> loaded;
  std::vector<MLStubFeature> inputs, outputs, states;
  std::vector<std::string> labels;  // class labels as text
  bool numbered_labels = false;     // the labels are integers
  std::atomic<int> predictions{0};  // running predictions
  bool cpu_only = false;            // loaded for the CPU only
};

struct MLStubState {
  std::shared_ptr<MLStubModel> model;
  std::unique_ptr<mlc::runtime::ModelState> state;
  std::atomic<int> predictions{0};
};

namespace mlc::stub {

// On failure, these functions store a message in `words` and return nothing.
bool MakeCompiled(const std::filesystem::path& package, const std::filesystem::path& bundle,
                  std::string& words);
std::vector<std::string> FunctionNames(const std::filesystem::path& bundle, std::string& words);
std::shared_ptr<MLStubModel> Open(const std::filesystem::path& bundle, const std::string& function,
                                  std::string& words);
// Returns null without a message for a model without states.
std::unique_ptr<runtime::ModelState> MakeState(MLStubModel& model, std::string& words);
bool Compute(MLStubModel& model, const std::map<std::string, Tensor>& inputs,
             runtime::ModelState* state, std::map<std::string, Tensor>& outputs,
             std::string& words);
// Creates a new folder; removes a folder with its contents.
std::filesystem::path TemporaryFolder();
void RemoveFolder(const std::filesystem::path& folder);

}  // namespace mlc::stub
