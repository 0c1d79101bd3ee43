// Loads and calls counter.mlpackage. Made by mlc inspect --objc (mlc 0.1.0).
//
// Add counter.mlpackage and this file to the target of the app (with ARC): Xcode compiles the
// package to counter.mlmodelc in the bundle. The interfaces may move to a header.
//
//     NSError *error = nil;
//     CounterPredictor *predictor = [[CounterPredictor alloc]
//         initWithContentsOfURL:[CounterPredictor URLInBundle] configuration:nil error:&error];
#import <CoreML/CoreML.h>
#import <CoreVideo/CoreVideo.h>
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

/// The outputs of CounterPredictor.
API_AVAILABLE(ios(18.0), macos(15.0), tvos(18.0), watchos(11.0), visionos(2.0))
@interface CounterPredictorOutput : NSObject
/// float16 [1, 4]. getBytesWithHandler: gives the bytes, _Float16 at the array's strides.
@property(nonatomic, readonly) MLMultiArray *y;
- (instancetype)init NS_UNAVAILABLE;
@end

API_AVAILABLE(ios(18.0), macos(15.0), tvos(18.0), watchos(11.0), visionos(2.0))
@interface CounterPredictor : NSObject
@property(nonatomic, readonly) MLModel *model;

/// counter.mlmodelc in the bundle of this class.
+ (nullable NSURL *)URLInBundle;

/// Loads a compiled model. The first time takes long for a large model: call it off the
/// main thread.
- (nullable instancetype)initWithContentsOfURL:(NSURL *)url
    configuration:(nullable MLModelConfiguration *)configuration
    error:(NSError **)error;
- (instancetype)init NS_UNAVAILABLE;

/// What the model keeps from one prediction to the next, all zeros at first:
/// - total: float16 [1, 4].
/// getMultiArrayForStateNamed:handler: reads and sets it between predictions. Predictions
/// with the same state must not overlap.
- (MLState *)newState;

/// - x: float16 [1, 4].
- (nullable CounterPredictorOutput *)predictionFromX:(MLMultiArray *)x
    usingState:(MLState *)state
    error:(NSError **)error;
@end

NS_ASSUME_NONNULL_END

@implementation CounterPredictorOutput {
    id<MLFeatureProvider> _features;
}

- (instancetype)initWithFeatures:(id<MLFeatureProvider>)features {
    if ((self = [super init])) _features = features;
    return self;
}

- (MLMultiArray *)y {
    return [_features featureValueForName:@"y"].multiArrayValue;
}

@end

@implementation CounterPredictor

+ (nullable NSURL *)URLInBundle {
    return [[NSBundle bundleForClass:self] URLForResource:@"counter" withExtension:@"mlmodelc"];
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

- (nullable CounterPredictorOutput *)predictionFromX:(MLMultiArray *)x
    usingState:(MLState *)state
    error:(NSError **)error {
    NSMutableDictionary<NSString *, MLFeatureValue *> *values = [NSMutableDictionary dictionary];
    values[@"x"] = [MLFeatureValue featureValueWithMultiArray:x];
    MLDictionaryFeatureProvider *features =
        [[MLDictionaryFeatureProvider alloc] initWithDictionary:values error:error];
    if (!features) return nil;
    id<MLFeatureProvider> outputs = [_model predictionFromFeatures:features
                                                        usingState:state
                                                           options:[[MLPredictionOptions alloc] init]
                                                             error:error];
    return outputs ? [[CounterPredictorOutput alloc] initWithFeatures:outputs] : nil;
}

@end
