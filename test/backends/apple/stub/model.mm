// Compiling, loading, predictions and states.
#include <stdexcept>

#include "test/backends/apple/stub/objects.h"

namespace fs = std::filesystem;
using namespace mlc::stub;
using mlc::Tensor;

namespace {

// Fails if code calls a method that the simulated system does not have.
void Since(const char* version, const char* what) {
  if (!MLStubAvailable(version))
    [NSException raise:NSInvalidArgumentException format:@"unrecognized selector %s", what];
}

// Enforces Core ML's rule that models and states are used by one thread at a time.
struct Used {
  explicit Used(std::atomic<int>& users) : users(users) {
    if (++users == 1) return;
    --users;
    [NSException raise:NSGenericException format:@"used by two predictions at once"];
  }
  ~Used() { --users; }
  std::atomic<int>& users;
};

std::map<std::string, Tensor> Given(const MLStubModel& model, id<MLFeatureProvider> features) {
  std::map<std::string, Tensor> given;
  for (const MLStubFeature& input : model.inputs) {
    const mlc::runtime::Feature& feature = input.feature;
    MLFeatureValue* value = [features featureValueForName:ToString(feature.name)];
    if (!value) continue;
    switch ([value type]) {
      case MLFeatureTypeMultiArray:
        given[feature.name] = [[value multiArrayValue] tensor];
        break;
      case MLFeatureTypeImage:
        given[feature.name] = FromPixels([value imageBufferValue],
                                         input.port.feature == mlc::Port::Feature::kImageBgr)
                                  .Cast(feature.dtype)
                                  .InMemory();
        break;
      default:
        [NSException raise:NSInvalidArgumentException format:@"an input of another kind"];
    }
  }
  return given;
}

bool Same(const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b) {
  for (const auto& [name, tensor] : a)
    if (!tensor.SameBytes(b.at(name))) return false;
  return true;
}

MLFeatureValue* Value(const MLStubModel& model, const MLStubFeature& output, Tensor tensor) {
  if (output.dictionary) {
    NSMutableDictionary* numbers = [NSMutableDictionary dictionary];
    NSArray* labels = [[MLModelDescription
        of:std::shared_ptr<MLStubModel>(std::shared_ptr<void>(), const_cast<MLStubModel*>(&model))]
        classLabels];
    const std::vector<double> values = tensor.Doubles();
    for (size_t i = 0; i < values.size(); ++i)
      [numbers setObject:[NSNumber numberWithDouble:values[i]] forKey:[labels objectAtIndex:i]];
    return [MLFeatureValue featureValueWithDictionary:numbers error:nullptr];
  }
  if (output.feature.kind == mlc::runtime::Feature::Kind::kString)
    return [MLFeatureValue featureValueWithString:ToString(tensor.strings()[0])];
  if (output.feature.kind == mlc::runtime::Feature::Kind::kImage) {
    CVPixelBufferRef pixels = NewPixels(tensor, output);
    MLFeatureValue* value = [MLFeatureValue featureValueWithPixelBuffer:pixels];
    CVPixelBufferRelease(pixels);
    return value;
  }
  if (output.feature.dtype == mlc::DType::kInt64)
    return [MLFeatureValue featureValueWithInt64:tensor.Int(0)];
  if (Is("wrong-kind")) return [MLFeatureValue featureValueWithString:@"an array"];
  if (Is("wrong-type"))
    tensor =
        tensor.Cast(tensor.dtype() == mlc::DType::kInt32 ? mlc::DType::kFp32 : mlc::DType::kInt32)
            .InMemory();
  if (Is("wrong-shape") && tensor.rank() > 0) {
    mlc::Dims dims = tensor.dims();
    dims.push_back(1);
    tensor = tensor.Reshaped(dims);
  }
  MLMultiArray* array = [MLMultiArray arrayOf:tensor.dtype()
                                         dims:tensor.dims()
                                       padded:Is("pad-outputs")
                                       offset:Is("offset-outputs")];
  [array setTensor:tensor];
  return [MLFeatureValue featureValueWithMultiArray:array];
}

id<MLFeatureProvider> Predict(MLStubModel& model, id<MLFeatureProvider> features,
                              mlc::runtime::ModelState* state, NSError** error) {
  const int64_t number = NextPrediction();
  Used used(model.predictions);
  std::map<std::string, Tensor> inputs = Given(model, features);
  Linger(model.cpu_only ? "cpu-ms" : "device-ms");
  if (At("throw-at", number))
    [NSException raise:@"StubException" format:@"prediction %d", static_cast<int>(number)];
  if (At("throw-cpp-at", number)) throw std::runtime_error("C++ in prediction");
  if (At("error-at", number)) {
    if (error) *error = MakeError("prediction " + std::to_string(number) + " failed");
    return nil;
  }
  if (At("hang-at", number)) {
    Hang();
    if (!Same(inputs, Given(model, features))) ++Counted().disturbed;
  }
  std::map<std::string, Tensor> outputs;
  std::string words;
  if (!Compute(model, inputs, state, outputs, words)) {
    if (error) *error = MakeError(words);
    return nil;
  }
  NSMutableDictionary* values = [NSMutableDictionary dictionary];
  for (const MLStubFeature& output : model.outputs)
    if (!Is("missing-output"))
      [values setObject:Value(model, output, outputs.at(output.feature.name))
                 forKey:ToString(output.feature.name)];
  return [[[MLDictionaryFeatureProvider alloc] initWithDictionary:values
                                                            error:nullptr] autorelease];
}

}  // namespace

@implementation MLPredictionOptions
@end

@implementation MLOptimizationHints
@synthesize reshapeFrequency = _reshapeFrequency;
@synthesize specializationStrategy = _specializationStrategy;
@end

@implementation MLModelConfiguration
@synthesize computeUnits = _computeUnits;
@synthesize allowLowPrecisionAccumulationOnGPU = _allowLowPrecisionAccumulationOnGPU;
- (NSString*)functionName {
  Since("macOS 15.0", "functionName");
  return _functionName;
}
- (void)setFunctionName:(NSString*)name {
  Since("macOS 15.0", "setFunctionName:");
  [_functionName autorelease];
  _functionName = [name copy];
}
- (MLOptimizationHints*)optimizationHints {
  Since("macOS 14.4", "optimizationHints");
  return _optimizationHints;
}
- (void)setOptimizationHints:(MLOptimizationHints*)hints {
  Since("macOS 14.4", "setOptimizationHints:");
  [_optimizationHints autorelease];
  _optimizationHints = [hints retain];
}
- (void)dealloc {
  [_functionName release];
  [_optimizationHints release];
  [super dealloc];
}
@end

@implementation MLModel
+ (NSArray<id<MLComputeDeviceProtocol>>*)availableComputeDevices {
  Since("macOS 14.0", "availableComputeDevices");
  return AllDevices();
}
+ (void)compileModelAtURL:(NSURL*)modelURL
        completionHandler:(void (^)(NSURL* compiledModelURL, NSError* error))handler {
  if (Is("compile-throws")) [NSException raise:@"StubException" format:@"compiling"];
  if (Is("compile-hangs")) return;  // never called
  auto copied = (void (^)(NSURL*, NSError*))Block_copy(handler);
  Answer([copied, package = fs::path([[modelURL path] UTF8String])] {
    const fs::path folder = TemporaryFolder(),
                   bundle = folder / (package.stem().string() + ".mlmodelc");
    std::string words;
    if (Is("compile-fails"))
      copied(nil, MakeError("the compiler failed"));
    else if (!MakeCompiled(package, bundle, words))
      copied(nil, MakeError(words));
    else
      copied([NSURL fileURLWithPath:ToString(bundle.string())], nil);
    Block_release(copied);
    if (Is("delete-compiled") || fs::is_empty(folder)) RemoveFolder(folder);
  });
}

+ (instancetype)modelWithContentsOfURL:(NSURL*)url
                         configuration:(MLModelConfiguration*)configuration
                                 error:(NSError**)error {
  if (Is("load-throws")) [NSException raise:@"StubException" format:@"loading"];
  NSString* function = MLStubAvailable("macOS 15.0") ? [configuration functionName] : nil;
  std::string words = "the model is damaged";
  std::shared_ptr<MLStubModel> model;
  if (!Is("load-fails"))
    model = Open([[url path] UTF8String], function ? [function UTF8String] : "", words);
  if (!model) {
    if (error) *error = MakeError(words);
    return nil;
  }
  if (!model->states.empty() && !MLStubAvailable("macOS 15.0")) {
    if (error) *error = MakeError("the model has states");
    return nil;
  }
  model->cpu_only = [configuration computeUnits] == MLComputeUnitsCPUOnly;
  MLModel* loaded = [[[MLModel alloc] init] autorelease];
  loaded->_owner = new MLStubOwner{std::move(model)};
  return loaded;
}
- (void)dealloc {
  delete _owner;
  [super dealloc];
}
- (MLModelDescription*)modelDescription {
  return [MLModelDescription of:_owner->model];
}
- (id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)input
                                        options:(MLPredictionOptions*)options
                                          error:(NSError**)error {
  if (!_owner->model->states.empty())
    [NSException raise:NSInvalidArgumentException format:@"a model with states needs one"];
  return Predict(*_owner->model, input, nullptr, error);
}
- (id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)inputFeatures
                                     usingState:(MLState*)state
                                        options:(MLPredictionOptions*)options
                                          error:(NSError**)error {
  Since("macOS 15.0", "predictionFromFeatures:usingState:options:error:");
  if (!state || state->_state->model != _owner->model)
    [NSException raise:NSInvalidArgumentException format:@"a state of another model"];
  Used used(state->_state->predictions);
  return Predict(*_owner->model, inputFeatures, state->_state->state.get(), error);
}
- (MLState*)newState {
  Since("macOS 15.0", "newState");
  return [MLState of:_owner->model];
}
@end

@implementation MLState
- (void)getMultiArrayForStateNamed:(NSString*)stateName
                           handler:(void (^)(MLMultiArray* buffer))handler {
  Used used(_state->predictions);
  const std::string name = [stateName UTF8String];
  std::map<std::string, Tensor> all = _state->state->Read();
  const Tensor& tensor = all.at(name);
  MLMultiArray* array = [MLMultiArray arrayOf:tensor.dtype()
                                         dims:tensor.dims()
                                       padded:Is("pad-arrays")
                                       offset:Is("pad-arrays")];
  [array setTensor:tensor];
  handler(array);
  _state->state->Write({{name, [array tensor]}});
}
- (void)dealloc {
  if (_state) {
    delete _state;
    --Counted().states;
  }
  [super dealloc];
}
@end

@implementation MLState (Stub)
+ (MLState*)of:(std::shared_ptr<MLStubModel>)model {
  std::string words;
  std::unique_ptr<mlc::runtime::ModelState> made = MakeState(*model, words);
  if (!made) return nil;
  MLState* state = [[MLState alloc] init];
  state->_state = new MLStubState{std::move(model), std::move(made)};
  ++Counted().states;
  return state;
}
@end

@implementation MLModelAsset
+ (instancetype)modelAssetWithURL:(NSURL*)compiledModelURL error:(NSError**)error {
  Since("macOS 15.0", "modelAssetWithURL:error:");
  MLModelAsset* asset = [[[MLModelAsset alloc] init] autorelease];
  asset->_url = [compiledModelURL retain];
  return asset;
}
- (void)functionNamesWithCompletionHandler:(void (^)(NSArray<NSString*>*, NSError*))handler {
  auto copied = (void (^)(NSArray<NSString*>*, NSError*))Block_copy(handler);
  Answer([copied, bundle = fs::path([[_url path] UTF8String])] {
    std::string words;
    const std::vector<std::string> found = FunctionNames(bundle, words);
    NSMutableArray<NSString*>* names = [NSMutableArray array];
    // Like Core ML, returns none for a model without several functions.
    if (found.size() > 1 || (found.size() == 1 && found[0] != "main"))
      for (const std::string& name : found) [names addObject:ToString(name)];
    if (!words.empty())
      copied(nil, MakeError(words));
    else
      copied(names, nil);
    Block_release(copied);
  });
}
- (void)dealloc {
  [_url release];
  [super dealloc];
}
@end
