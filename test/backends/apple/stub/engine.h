// engine.h - mlc's engine in the place of Core ML's, as plain C++: gcc's Objective-C runtime catches no C++ exceptions.
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
  mlc::Feature feature;  // of an image, the dtype in which the engine wants it
  mlc::Port port;
  bool dictionary = false, output = false;
};

struct MLStubModel {
  MLStubModel();
  ~MLStubModel();
  std::shared_ptr<const mlc::Program> program;
  const mlc::Function* function = nullptr;
  std::unique_ptr<mlc::LoadedModel> loaded;
  std::vector<MLStubFeature> inputs, outputs, states;
  std::vector<std::string> labels;  // of classes, as text
  bool numbered_labels = false;     // they are integers
  std::atomic<int> predictions{0};  // that run
  bool cpu_only = false;            // loaded for the CPU alone
};

struct MLStubState {
  std::shared_ptr<MLStubModel> model;
  std::unique_ptr<mlc::ModelState> state;
  std::atomic<int> predictions{0};
};

namespace mlc::stub {

// All of these say in `words` what went wrong, and return nothing.
bool MakeCompiled(const std::filesystem::path& package, const std::filesystem::path& bundle,
                  std::string& words);
std::vector<std::string> FunctionNames(const std::filesystem::path& bundle, std::string& words);
std::shared_ptr<MLStubModel> Open(const std::filesystem::path& bundle, const std::string& function,
                                  std::string& words);
// Null without a word for a model without states.
std::unique_ptr<ModelState> MakeState(MLStubModel& model, std::string& words);
bool Compute(MLStubModel& model, const std::map<std::string, Tensor>& inputs, ModelState* state,
             std::map<std::string, Tensor>& outputs, std::string& words);
// A new folder; and all that is in it removed.
std::filesystem::path TemporaryFolder();
void RemoveFolder(const std::filesystem::path& folder);

}  // namespace mlc::stub
