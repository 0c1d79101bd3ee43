// backends/apple/loaded_model.h - a loaded model: its predictions, states and compute plan.
#pragma once

#import <CoreML/CoreML.h>

#include <filesystem>
#include <memory>
#include <mutex>

#include "backends/apple/arrays.h"
#include "backends/apple/description.h"
#include "backends/apple/objc_ptr.h"

namespace mlc::apple {

// Core ML requires that only one thread uses a model at a time. Concurrent predictions therefore
// wait for each other, except while copying. A hanging prediction blocks this instance, keeps
// everything it uses alive, and does not affect other instances.
class CoreMlModel : public runtime::LoadedModel {
 public:
  CoreMlModel(ObjcPtr<MLModel*> model, ObjcPtr<MLModelConfiguration*> configuration,
              std::filesystem::path bundle, const std::string& function);
  ~CoreMlModel() override;

  const runtime::Schema& schema() const override { return description_->schema; }
  bool one_at_a_time() const override { return true; }
  std::map<std::string, Tensor> Predict(const std::map<std::string, Tensor>& inputs,
                                        runtime::ModelState* state,
                                        runtime::PredictTimings* timings) override;
  std::unique_ptr<runtime::ModelState> NewState() override;
  std::vector<runtime::OperationPlacement> Placements(std::string* why_not) override;

 private:
  id<MLFeatureProvider> Features(const std::map<std::string, Tensor>& inputs,
                                 std::vector<ArrayPool::Lease>& leases);
  std::map<std::string, Tensor> Tensors(id<MLFeatureProvider> features);
  id<MLFeatureProvider> Run(id<MLFeatureProvider> features, runtime::ModelState* state);

  ObjcPtr<MLModel*> model_;
  ObjcPtr<MLModelConfiguration*> configuration_;
  std::filesystem::path bundle_;
  std::shared_ptr<const Description> description_;
  std::shared_ptr<ArrayPool> pool_;
  std::mutex predicting_;
};

}  // namespace mlc::apple
