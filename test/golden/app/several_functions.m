// Loads and calls steps.mlpackage. Made by mlc inspect --objc (mlc 0.1.0).
//
// Add steps.mlpackage and this file to the target of the app (with ARC): Xcode compiles the package
// to steps.mlmodelc in the bundle. The interfaces may move to a header.
//
//     NSError *error = nil;
//     StepsPredictor *predictor = [[StepsPredictor alloc]
//         initWithContentsOfURL:[StepsPredictor URLInBundle] configuration:nil error:&error];
#import <CoreML/CoreML.h>
#import <CoreVideo/CoreVideo.h>
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

/// The outputs of StepsPredictor.
API_AVAILABLE(ios(18.0), macos(15.0), tvos(18.0), watchos(11.0), visionos(2.0))
@interface StepsPredictorOutput : NSObject
/// float32 [1, 4].
@property(nonatomic, readonly) MLMultiArray *y;
- (instancetype)init NS_UNAVAILABLE;
@end

/// The function "main", the default.
API_AVAILABLE(ios(18.0), macos(15.0), tvos(18.0), watchos(11.0), visionos(2.0))
@interface StepsPredictor : NSObject
@property(nonatomic, readonly) MLModel *model;

/// steps.mlmodelc in the bundle of this class.
+ (nullable NSURL *)URLInBundle;

/// Loads a compiled model. The first time takes long for a large model: call it off the
/// main thread.
- (nullable instancetype)initWithContentsOfURL:(NSURL *)url
    configuration:(nullable MLModelConfiguration *)configuration
    error:(NSError **)error;
- (instancetype)init NS_UNAVAILABLE;

/// - x: float32 [1, 4].
- (nullable StepsPredictorOutput *)predictionFromX:(MLMultiArray *)x
    error:(NSError **)error;
@end

/// The outputs of StepsPreFillPredictor.
API_AVAILABLE(ios(18.0), macos(15.0), tvos(18.0), watchos(11.0), visionos(2.0))
@interface StepsPreFillPredictorOutput : NSObject
/// float32 [8, 4].
@property(nonatomic, readonly) MLMultiArray *y;
/// int32 [1].
@property(nonatomic, readonly) MLMultiArray *next;
- (instancetype)init NS_UNAVAILABLE;
@end

/// The function "pre_fill".
API_AVAILABLE(ios(18.0), macos(15.0), tvos(18.0), watchos(11.0), visionos(2.0))
@interface StepsPreFillPredictor : NSObject
@property(nonatomic, readonly) MLModel *model;

/// steps.mlmodelc in the bundle of this class.
+ (nullable NSURL *)URLInBundle;

/// Loads a compiled model. The first time takes long for a large model: call it off the
/// main thread.
- (nullable instancetype)initWithContentsOfURL:(NSURL *)url
    configuration:(nullable MLModelConfiguration *)configuration
    error:(NSError **)error;
- (instancetype)init NS_UNAVAILABLE;

/// - x: float32 [8, 4].
/// - place: int32 [1].
- (nullable StepsPreFillPredictorOutput *)predictionFromX:(MLMultiArray *)x
    place:(MLMultiArray *)place
    error:(NSError **)error;
@end

NS_ASSUME_NONNULL_END

@implementation StepsPredictorOutput {
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

@implementation StepsPredictor

+ (nullable NSURL *)URLInBundle {
    return [[NSBundle bundleForClass:self] URLForResource:@"steps" withExtension:@"mlmodelc"];
}

- (nullable instancetype)initWithContentsOfURL:(NSURL *)url
    configuration:(nullable MLModelConfiguration *)configuration
    error:(NSError **)error {
    if (!(self = [super init])) return nil;
    MLModelConfiguration *own = configuration ? [configuration copy] : [[MLModelConfiguration alloc] init];
    own.functionName = @"main";
    _model = [MLModel modelWithContentsOfURL:url configuration:own error:error];
    return _model ? self : nil;
}

- (nullable StepsPredictorOutput *)predictionFromX:(MLMultiArray *)x
    error:(NSError **)error {
    NSMutableDictionary<NSString *, MLFeatureValue *> *values = [NSMutableDictionary dictionary];
    values[@"x"] = [MLFeatureValue featureValueWithMultiArray:x];
    MLDictionaryFeatureProvider *features =
        [[MLDictionaryFeatureProvider alloc] initWithDictionary:values error:error];
    if (!features) return nil;
    id<MLFeatureProvider> outputs = [_model predictionFromFeatures:features
                                                           options:[[MLPredictionOptions alloc] init]
                                                             error:error];
    return outputs ? [[StepsPredictorOutput alloc] initWithFeatures:outputs] : nil;
}

@end

@implementation StepsPreFillPredictorOutput {
    id<MLFeatureProvider> _features;
}

- (instancetype)initWithFeatures:(id<MLFeatureProvider>)features {
    if ((self = [super init])) _features = features;
    return self;
}

- (MLMultiArray *)y {
    return [_features featureValueForName:@"y"].multiArrayValue;
}

- (MLMultiArray *)next {
    return [_features featureValueForName:@"next"].multiArrayValue;
}

@end

@implementation StepsPreFillPredictor

+ (nullable NSURL *)URLInBundle {
    return [[NSBundle bundleForClass:self] URLForResource:@"steps" withExtension:@"mlmodelc"];
}

- (nullable instancetype)initWithContentsOfURL:(NSURL *)url
    configuration:(nullable MLModelConfiguration *)configuration
    error:(NSError **)error {
    if (!(self = [super init])) return nil;
    MLModelConfiguration *own = configuration ? [configuration copy] : [[MLModelConfiguration alloc] init];
    own.functionName = @"pre_fill";
    _model = [MLModel modelWithContentsOfURL:url configuration:own error:error];
    return _model ? self : nil;
}

- (nullable StepsPreFillPredictorOutput *)predictionFromX:(MLMultiArray *)x
    place:(MLMultiArray *)place
    error:(NSError **)error {
    NSMutableDictionary<NSString *, MLFeatureValue *> *values = [NSMutableDictionary dictionary];
    values[@"x"] = [MLFeatureValue featureValueWithMultiArray:x];
    values[@"place"] = [MLFeatureValue featureValueWithMultiArray:place];
    MLDictionaryFeatureProvider *features =
        [[MLDictionaryFeatureProvider alloc] initWithDictionary:values error:error];
    if (!features) return nil;
    id<MLFeatureProvider> outputs = [_model predictionFromFeatures:features
                                                           options:[[MLPredictionOptions alloc] init]
                                                             error:error];
    return outputs ? [[StepsPreFillPredictorOutput alloc] initWithFeatures:outputs] : nil;
}

@end
