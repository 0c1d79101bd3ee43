// backends/apple/states.h - the state of a model: an MLState (macOS 15), initially zero.
#pragma once

#import <CoreML/CoreML.h>

#include <memory>
#include <mutex>

#include "backends/apple/description.h"
#include "backends/apple/objc_ptr.h"

namespace mlc::apple {

class API_AVAILABLE(macos(15.0)) CoreMlState : public runtime::ModelState {
 public:
  CoreMlState(MLState* state, std::shared_ptr<const Description> description);
  std::map<std::string, Tensor> Read() const override;
  void Write(const std::map<std::string, Tensor>& values) override;

  MLState* get() const { return state_.get(); }
  const Description* description() const { return description_.get(); }  // description of its model
  // Core ML allows one prediction at a time to use a state. Error "bad-input" if it is in use.
  std::unique_lock<std::mutex> Use() const;

 private:
  ObjcPtr<MLState*> state_;
  std::shared_ptr<const Description> description_;
  mutable std::mutex in_use_;
};

}  // namespace mlc::apple
