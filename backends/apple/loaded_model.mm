#include "backends/apple/loaded_model.h"

#include <algorithm>
#include <chrono>

#include "backends/apple/compute_plan.h"
#include "backends/apple/coreml_errors.h"
#include "backends/apple/images.h"
#include "backends/apple/states.h"
#include "backends/apple/system_info.h"

namespace mlc::apple {
namespace {

using Clock = std::chrono::steady_clock;
double Milliseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

NSString* ToString(const std::string& text) {
  NSString* string = [NSString stringWithUTF8String:text.c_str()];
  if (!string) throw Error("bad-input", "a string is not UTF-8");
  return string;
}

void CheckInput(const Described& input, const Tensor& tensor) {
  const runtime::Feature& feature = input.feature;
  // Pixels may be of any numeric type.
  const bool right = input.type == MLFeatureTypeImage ? tensor.dtype() != DType::kString
                                                      : tensor.dtype() == feature.dtype;
  if (!right || !Fits(feature.dims, tensor.dims()))
    throw Error("bad-input", "input \"{}\" has type {}", feature.name,
                TypeText(tensor.dtype(), tensor.dims()))
        .Expected(TypeText(feature.dtype, feature.dims));
}

MLFeatureValue* ToValue(const Described& input, const Tensor& tensor, ArrayPool& pool,
                        std::vector<ArrayPool::Lease>& leases) {
  switch (input.type) {
    case MLFeatureTypeImage: {
      PixelBuffer pixels = ToPixels(tensor, input.format, input.bgr);
      return [MLFeatureValue featureValueWithPixelBuffer:pixels.get()];
    }
    case MLFeatureTypeString:
      return [MLFeatureValue featureValueWithString:ToString(tensor.strings()[0])];
    case MLFeatureTypeInt64:
      return [MLFeatureValue featureValueWithInt64:tensor.Int(0)];
    case MLFeatureTypeDouble:
      return [MLFeatureValue featureValueWithDouble:tensor.Doubles()[0]];
    case MLFeatureTypeMultiArray:
      leases.push_back(pool.Take(tensor.dtype(), tensor.dims()));
      Fill(leases.back().get(), tensor);
      return [MLFeatureValue featureValueWithMultiArray:leases.back().get()];
    default:
      break;
  }
  throw Error("bad-input", "input \"{}\" has an unsupported type", input.feature.name)
      .Expected("a multi-array, an image, an integer, a double or a dictionary");
}

// The numbers of a map from labels, in the label order of the model if it lists the labels, else
// sorted by key.
Tensor Numbers(NSDictionary* dictionary, MLModelDescription* description) {
  NSArray* labels = [description classLabels];
  if ([labels count] != [dictionary count])
    labels = [[dictionary allKeys] sortedArrayUsingSelector:@selector(compare:)];
  std::vector<double> numbers;
  for (id label in labels) {
    NSNumber* number = [dictionary objectForKey:label];
    if (!number)
      throw Error("schema-mismatch", "Core ML returned no number for a label of the model");
    numbers.push_back([number doubleValue]);
  }
  return Tensor::Vector(numbers);
}

Tensor FromValue(const Described& output, MLFeatureValue* value, MLModelDescription* description) {
  switch (output.type) {
    case MLFeatureTypeMultiArray:
      return ToTensor([value multiArrayValue]);
    case MLFeatureTypeImage:
      return ToTensor([value imageBufferValue], output.bgr);
    case MLFeatureTypeString:
      return Tensor::String(ToText([value stringValue]));
    case MLFeatureTypeInt64:
      return Tensor::Scalar<int64_t>([value int64Value]);
    case MLFeatureTypeDouble:
      return Tensor::Scalar<double>([value doubleValue]);
    case MLFeatureTypeDictionary:
      return Numbers([value dictionaryValue], description);
    default:
      break;
  }
  throw Error("schema-mismatch", "output \"{}\" has an unsupported type", output.feature.name)
      .Expected("a multi-array, an image, an integer, a double or a dictionary");
}

}  // namespace

CoreMlModel::CoreMlModel(ObjcPtr<MLModel*> model, ObjcPtr<MLModelConfiguration*> configuration,
                         std::filesystem::path bundle, const std::string& function)
    : model_(std::move(model)),
      configuration_(std::move(configuration)),
      bundle_(std::move(bundle)),
      description_(Describe([model_.get() modelDescription], bundle_, function)),
      pool_(std::make_shared<ArrayPool>()) {}

CoreMlModel::~CoreMlModel() {
  // Releasing a model runs much code of Core ML.
  @autoreleasepool {
    pool_.reset();
    model_ = {};
    configuration_ = {};
  }
}

id<MLFeatureProvider> CoreMlModel::Features(const std::map<std::string, Tensor>& inputs,
                                            std::vector<ArrayPool::Lease>& leases) {
  NSMutableDictionary<NSString*, MLFeatureValue*>* values = [NSMutableDictionary dictionary];
  for (const auto& [name, tensor] : inputs) {
    auto input = std::find_if(description_->inputs.begin(), description_->inputs.end(),
                              [&](const Described& each) { return each.feature.name == name; });
    if (input == description_->inputs.end())
      throw Error("bad-input", "the model has no input \"{}\"", name);
    CheckInput(*input, tensor);
    [values setObject:ToValue(*input, tensor, *pool_, leases) forKey:ToString(name)];
  }
  for (const Described& input : description_->inputs)
    if (!input.optional && !inputs.contains(input.feature.name))
      throw Error("bad-input", "input \"{}\" is missing", input.feature.name)
          .Expected(TypeText(input.feature.dtype, input.feature.dims));
  NSError* error = nil;
  MLDictionaryFeatureProvider* features =
      [[[MLDictionaryFeatureProvider alloc] initWithDictionary:values error:&error] autorelease];
  if (!features) Fail("accepting the inputs", error);
  return features;
}

id<MLFeatureProvider> CoreMlModel::Run(id<MLFeatureProvider> features, runtime::ModelState* state) {
  MLPredictionOptions* options = [[[MLPredictionOptions alloc] init] autorelease];
  NSError* error = nil;
  id<MLFeatureProvider> results = nil;
  if (description_->schema.states.empty()) {
    std::lock_guard lock(predicting_);
    results = [model_.get() predictionFromFeatures:features options:options error:&error];
  } else if (@available(macOS 15.0, *)) {
    std::unique_ptr<runtime::ModelState> zeros;
    if (!state) {
      zeros = NewState();
      state = zeros.get();
    }
    auto* own = dynamic_cast<CoreMlState*>(state);
    if (!own || own->description() != description_.get())
      throw Error("bad-input", "the state belongs to another model or another instance");
    auto use = own->Use();
    std::lock_guard lock(predicting_);
    results = [model_.get() predictionFromFeatures:features
                                        usingState:own->get()
                                           options:options
                                             error:&error];
  } else {
    throw NeedsSystem("states", "15");
  }
  if (!results) Fail("predicting", error);
  return results;
}

std::map<std::string, Tensor> CoreMlModel::Tensors(id<MLFeatureProvider> features) {
  std::map<std::string, Tensor> tensors;
  for (const Described& output : description_->outputs) {
    const runtime::Feature& feature = output.feature;
    MLFeatureValue* value = [features featureValueForName:ToString(feature.name)];
    if (!value || [value type] != output.type)
      throw Error("schema-mismatch", "Core ML returned {} output \"{}\"",
                  value ? "another kind of" : "no", feature.name);
    Tensor tensor = FromValue(output, value, [model_.get() modelDescription]);
    if (tensor.dtype() != feature.dtype || (output.stated && !Fits(feature.dims, tensor.dims())))
      throw Error("schema-mismatch", "Core ML returned output \"{}\" as {}", feature.name,
                  TypeText(tensor.dtype(), tensor.dims()))
          .Expected(TypeText(feature.dtype, feature.dims));
    tensors[feature.name] = std::move(tensor);
  }
  return tensors;
}

std::map<std::string, Tensor> CoreMlModel::Predict(const std::map<std::string, Tensor>& inputs,
                                                   runtime::ModelState* state,
                                                   runtime::PredictTimings* timings) {
  return Enter("predicting", [&] {
    std::vector<ArrayPool::Lease> leases;  // held until Core ML returns
    const Clock::time_point begin = Clock::now();
    id<MLFeatureProvider> features = Features(inputs, leases);
    const Clock::time_point given = Clock::now();
    id<MLFeatureProvider> results = Run(features, state);
    const Clock::time_point done = Clock::now();
    std::map<std::string, Tensor> outputs = Tensors(results);
    if (timings)
      *timings = {Milliseconds(begin, given), Milliseconds(given, done),
                  Milliseconds(done, Clock::now())};
    return outputs;
  });
}

std::unique_ptr<runtime::ModelState> CoreMlModel::NewState() {
  return Enter("creating a state", [&]() -> std::unique_ptr<runtime::ModelState> {
    if (@available(macOS 15.0, *)) {
      if (description_->schema.states.empty()) return nullptr;
      MLState* state = [model_.get() newState];
      if (!state) Fail("creating a state", nil);
      auto made = std::make_unique<CoreMlState>(state, description_);
      [state release];  // `new` returned a reference
      return made;
    }
    return nullptr;  // systems without states cannot load models with states
  });
}

std::vector<runtime::OperationPlacement> CoreMlModel::Placements(std::string* why_not) {
  return Enter("planning", [&]() -> std::vector<runtime::OperationPlacement> {
    std::string reason;
    std::vector<runtime::OperationPlacement> placements;
    if (@available(macOS 14.4, *))
      placements = PlacementsOf(bundle_, configuration_.get(), reason);
    else
      reason = NeedsSystem("compute plan", "14.4").text();
    if (why_not) *why_not = reason;
    return placements;
  });
}

}  // namespace mlc::apple
