// tools/runtime/predict.h - what predictions, requests and pools share.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/runtime/guarded_model.h"
#include "tools/runtime/model.h"

struct mlc_results {
  std::shared_ptr<mlc::abi::LoadedFunction> function;
  std::vector<mlc::Tensor> tensors;         // in the order of the ports
  std::vector<mlc::Pin<std::byte>> pinned;  // their elements; empty for strings
  std::string timings;                      // JSON
};

struct mlc_request {
  std::shared_ptr<mlc::abi::LoadedFunction> function;
  std::map<std::string, mlc::Tensor> inputs;  // by MIL name; owned
  std::shared_ptr<std::unique_ptr<mlc::runtime::ModelState>> state;
};

namespace mlc::abi {

// Adds the values of optional inputs. Error "bad-input" if another input is missing.
void Complete(const LoadedFunction& function, std::map<std::string, Tensor>& inputs);

// Error "usage" for a negative number.
runtime::Worker::Timeout TimeoutFrom(int64_t ms);

std::unique_ptr<mlc_results> ResultsOf(const std::shared_ptr<LoadedFunction>& function,
                                       const runtime::Prediction& prediction);

}  // namespace mlc::abi
