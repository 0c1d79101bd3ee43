#import <CoreML/CoreML.h>

#include <fmt/ranges.h>

#include "backends/apple/completion.h"
#include "backends/apple/coreml_runtime.h"
#include "backends/apple/loaded_model.h"
#include "backends/apple/system_info.h"

namespace fs = std::filesystem;

namespace mlc::apple {
namespace {

NSURL* ToUrl(const fs::path& path) {
  NSString* text = [NSString stringWithUTF8String:fs::absolute(path).c_str()];
  if (!text) throw Error("bad-name", "{} is not UTF-8", path.string());
  return [NSURL fileURLWithPath:text];
}

MLComputeUnits ToComputeUnits(runtime::Units units) {
  switch (units) {
    case runtime::Units::kAll:
      return MLComputeUnitsAll;
    case runtime::Units::kCpu:
      return MLComputeUnitsCPUOnly;
    case runtime::Units::kGpu:
      return MLComputeUnitsCPUAndGPU;
    case runtime::Units::kAne:
      if (@available(macOS 13.0, *)) return MLComputeUnitsCPUAndNeuralEngine;
      throw NeedsSystem("units ane", "13");
    case runtime::Units::kReference:
      break;
  }
  throw Error("bad-name", "units \"reference\" select the reference engine, not Core ML");
}

void SetHints(MLModelConfiguration* configuration, const runtime::LoadOptions& options) {
  if (!options.reshapes && !options.specialization) return;
  if (@available(macOS 14.4, *)) {
    MLOptimizationHints* hints = [[[MLOptimizationHints alloc] init] autorelease];
    if (options.reshapes)
      [hints setReshapeFrequency:*options.reshapes == runtime::LoadOptions::Reshapes::kFrequent
                                     ? MLReshapeFrequencyHintFrequent
                                     : MLReshapeFrequencyHintInfrequent];
    if (options.specialization) {
      if (@available(macOS 15.0, *))
        [hints
            setSpecializationStrategy:*options.specialization ==
                                              runtime::LoadOptions::Specialization::kFastPrediction
                                          ? MLSpecializationStrategyFastPrediction
                                          : MLSpecializationStrategyDefault];
      else
        throw NeedsSystem("hint about specialization", "15");
    }
    [configuration setOptimizationHints:hints];
  } else {
    throw NeedsSystem("hint about reshapes or specialization", "14.4");
  }
}

// Returns whether the function must be named in the configuration; a single function need not be.
// Error "bad-name".
API_AVAILABLE(macos(15.0))
bool IsOneOfSeveral(const fs::path& model, const std::string& function) {
  NSError* error = nil;
  MLModelAsset* asset = [MLModelAsset modelAssetWithURL:ToUrl(model) error:&error];
  if (!asset) Fail("reading a model's functions", error);
  auto awaited = std::make_shared<Completion<std::vector<std::string>>>();
  [asset functionNamesWithCompletionHandler:^(NSArray<NSString*>* names, NSError* failure) {
    awaited->Finish("reading a model's functions", [&] {
      if (!names) Fail("reading a model's functions", failure);
      std::vector<std::string> all;
      for (NSString* name in names) all.push_back(ToText(name));
      return all;
    });
  }];
  std::vector<std::string> names = awaited->Wait();
  // The list is empty "when the model doesn't use the multi-function configuration" (MLModel.h).
  if (names.empty()) names = {"main"};
  for (const std::string& name : names)
    if (name == function) return names.size() > 1;
  throw Error("bad-name", "the model has no function \"{}\"", function)
      .Expected("{}", fmt::join(names, ", "));
}

ObjcPtr<MLModelConfiguration*> Configure(const fs::path& model,
                                         const runtime::LoadOptions& options) {
  auto configuration = ObjcPtr<MLModelConfiguration*>::Adopt([[MLModelConfiguration alloc] init]);
  CheckUnits(options.units);
  [configuration.get() setComputeUnits:ToComputeUnits(options.units)];
  [configuration.get() setAllowLowPrecisionAccumulationOnGPU:options.low_precision_accumulation];
  SetHints(configuration.get(), options);
  if (options.function.empty()) return configuration;
  if (@available(macOS 15.0, *)) {
    if (IsOneOfSeveral(model, options.function))
      [configuration.get()
          setFunctionName:[NSString stringWithUTF8String:options.function.c_str()]];
  } else if (options.function != "main") {  // older systems only support "main"
    throw NeedsSystem("choice of a function", "15");
  }
  return configuration;
}

class CoreMlRuntime : public runtime::Runtime {
 public:
  runtime::Capabilities capabilities() const override {
    return Enter("asking for devices", SystemCapabilities);
  }
  bool loads_packages() const override { return false; }

  void Compile(const fs::path& package, const fs::path& bundle) override {
    Enter("compiling", [&] {
      auto awaited = std::make_shared<Completion<bool>>();
      ObjcPtr<NSURL*> target(ToUrl(bundle));
      [MLModel compileModelAtURL:ToUrl(package)
               completionHandler:^(NSURL* made, NSError* error) {
                 // Core ML may delete the compiled model once this handler returns.
                 awaited->Finish("compiling", [&] {
                   if (!made) Fail("compiling", error);
                   NSError* refused = nil;
                   if (![[NSFileManager defaultManager] moveItemAtURL:made
                                                                toURL:target.get()
                                                                error:&refused])
                     throw Error("file-io", "cannot move the compiled model: {}", Words(refused))
                         .At({ToText([target.get() path]), ""});
                   return true;
                 });
               }];
      awaited->Wait();
    });
  }

  std::unique_ptr<runtime::LoadedModel> Load(const fs::path& model,
                                             const runtime::LoadOptions& options) override {
    return Enter("loading", [&]() -> std::unique_ptr<runtime::LoadedModel> {
      ObjcPtr<MLModelConfiguration*> configuration = Configure(model, options);
      NSError* error = nil;
      MLModel* loaded = [MLModel modelWithContentsOfURL:ToUrl(model)
                                          configuration:configuration.get()
                                                  error:&error];
      if (!loaded) Fail("loading", error);
      return std::make_unique<CoreMlModel>(ObjcPtr<MLModel*>(loaded), std::move(configuration),
                                           fs::absolute(model), options.function);
    });
  }
};

}  // namespace

std::unique_ptr<runtime::Runtime> MakeCoreMlRuntime() { return std::make_unique<CoreMlRuntime>(); }

}  // namespace mlc::apple
