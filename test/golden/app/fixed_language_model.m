// Loads and calls fixed.mlpackage. Made by mlc inspect --objc (mlc 0.1.0).
//
// Add fixed.mlpackage and this file to the target of the app (with ARC): Xcode compiles the package
// to fixed.mlmodelc in the bundle. The interfaces may move to a header.
//
//     NSError *error = nil;
//     FixedPredictor *predictor = [[FixedPredictor alloc]
//         initWithContentsOfURL:[FixedPredictor URLInBundle] configuration:nil error:&error];
#import <CoreML/CoreML.h>
#import <CoreVideo/CoreVideo.h>
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

/// The outputs of FixedPredictor.
API_AVAILABLE(ios(18.0), macos(15.0), tvos(18.0), watchos(11.0), visionos(2.0))
@interface FixedPredictorOutput : NSObject
/// float16 [1, tokens, 50]: tokens in 1|16. getBytesWithHandler: gives the bytes, _Float16 at the
/// array's strides.
@property(nonatomic, readonly) MLMultiArray *logits;
- (instancetype)init NS_UNAVAILABLE;
@end

API_AVAILABLE(ios(18.0), macos(15.0), tvos(18.0), watchos(11.0), visionos(2.0))
@interface FixedPredictor : NSObject
@property(nonatomic, readonly) MLModel *model;

/// fixed.mlmodelc in the bundle of this class.
+ (nullable NSURL *)URLInBundle;

/// Loads a compiled model. The first time takes long for a large model: call it off the
/// main thread.
- (nullable instancetype)initWithContentsOfURL:(NSURL *)url
    configuration:(nullable MLModelConfiguration *)configuration
    error:(NSError **)error;
- (instancetype)init NS_UNAVAILABLE;

/// What the model keeps from one prediction to the next, all zeros at first:
/// - keyCache: float16 [2, 1, 16, 1, 96].
/// - valueCache: float16 [2, 1, 16, 1, 96].
/// getMultiArrayForStateNamed:handler: reads and sets it between predictions. Predictions
/// with the same state must not overlap.
- (MLState *)newState;

/// - inputIds: int32 [1, tokens]: one of [1, 1], [1, 16].
/// - causalMask: float16 [1, 1, tokens, 96]: one of [1, 1, 1, 96], [1, 1, 16, 96].
- (nullable FixedPredictorOutput *)predictionFromInputIds:(MLMultiArray *)inputIds
    causalMask:(MLMultiArray *)causalMask
    usingState:(MLState *)state
    error:(NSError **)error;
@end

NS_ASSUME_NONNULL_END

@implementation FixedPredictorOutput {
    id<MLFeatureProvider> _features;
}

- (instancetype)initWithFeatures:(id<MLFeatureProvider>)features {
    if ((self = [super init])) _features = features;
    return self;
}

- (MLMultiArray *)logits {
    return [_features featureValueForName:@"logits"].multiArrayValue;
}

@end

@implementation FixedPredictor

+ (nullable NSURL *)URLInBundle {
    return [[NSBundle bundleForClass:self] URLForResource:@"fixed" withExtension:@"mlmodelc"];
}

- (nullable instancetype)initWithContentsOfURL:(NSURL *)url
    configuration:(nullable MLModelConfiguration *)configuration
    error:(NSError **)error {
    if (!(self = [super init])) return nil;
    MLModelConfiguration *own = configuration ? [configuration copy] : [[MLModelConfiguration alloc] init];
    _model = [MLModel modelWithContentsOfURL:url configuration:own error:error];
    return _model ? self : nil;
}

- (MLState *)newState {
    return [_model newState];
}

- (nullable FixedPredictorOutput *)predictionFromInputIds:(MLMultiArray *)inputIds
    causalMask:(MLMultiArray *)causalMask
    usingState:(MLState *)state
    error:(NSError **)error {
    NSMutableDictionary<NSString *, MLFeatureValue *> *values = [NSMutableDictionary dictionary];
    values[@"inputIds"] = [MLFeatureValue featureValueWithMultiArray:inputIds];
    values[@"causalMask"] = [MLFeatureValue featureValueWithMultiArray:causalMask];
    MLDictionaryFeatureProvider *features =
        [[MLDictionaryFeatureProvider alloc] initWithDictionary:values error:error];
    if (!features) return nil;
    id<MLFeatureProvider> outputs = [_model predictionFromFeatures:features
                                                        usingState:state
                                                           options:[[MLPredictionOptions alloc] init]
                                                             error:error];
    return outputs ? [[FixedPredictorOutput alloc] initWithFeatures:outputs] : nil;
}

@end
