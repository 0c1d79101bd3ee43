// Loads and calls tagger.mlpackage. Made by mlc inspect --objc (mlc 0.1.0).
//
// Add tagger.mlpackage and this file to the target of the app (with ARC): Xcode compiles the
// package to tagger.mlmodelc in the bundle. The interfaces may move to a header.
//
//     NSError *error = nil;
//     TaggerPredictor *predictor = [[TaggerPredictor alloc]
//         initWithContentsOfURL:[TaggerPredictor URLInBundle] configuration:nil error:&error];
#import <CoreML/CoreML.h>
#import <CoreVideo/CoreVideo.h>
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

/// The outputs of TaggerPredictor.
API_AVAILABLE(ios(18.0), macos(15.0), tvos(18.0), watchos(11.0), visionos(2.0))
@interface TaggerPredictorOutput : NSObject
/// float32 [batch, length, 4]: batch in 1..8, length in 16|32.
@property(nonatomic, readonly) MLMultiArray *h;
/// float32 [1, 1, 1].
@property(nonatomic, readonly) MLMultiArray *score;
- (instancetype)init NS_UNAVAILABLE;
@end

API_AVAILABLE(ios(18.0), macos(15.0), tvos(18.0), watchos(11.0), visionos(2.0))
@interface TaggerPredictor : NSObject
@property(nonatomic, readonly) MLModel *model;

/// tagger.mlmodelc in the bundle of this class.
+ (nullable NSURL *)URLInBundle;

/// Loads a compiled model. The first time takes long for a large model: call it off the
/// main thread.
- (nullable instancetype)initWithContentsOfURL:(NSURL *)url
    configuration:(nullable MLModelConfiguration *)configuration
    error:(NSError **)error;
- (instancetype)init NS_UNAVAILABLE;

/// - tokens: int32 [batch, length]: batch in 1..8, length in 16|32.
/// - in_: float32 [length, 4]: one of [16, 4], [32, 4].
- (nullable TaggerPredictorOutput *)predictionFromTokens:(MLMultiArray *)tokens
    in_:(MLMultiArray *)in_
    error:(NSError **)error;
@end

NS_ASSUME_NONNULL_END

@implementation TaggerPredictorOutput {
    id<MLFeatureProvider> _features;
}

- (instancetype)initWithFeatures:(id<MLFeatureProvider>)features {
    if ((self = [super init])) _features = features;
    return self;
}

- (MLMultiArray *)h {
    return [_features featureValueForName:@"h"].multiArrayValue;
}

- (MLMultiArray *)score {
    return [_features featureValueForName:@"score"].multiArrayValue;
}

@end

@implementation TaggerPredictor

+ (nullable NSURL *)URLInBundle {
    return [[NSBundle bundleForClass:self] URLForResource:@"tagger" withExtension:@"mlmodelc"];
}

- (nullable instancetype)initWithContentsOfURL:(NSURL *)url
    configuration:(nullable MLModelConfiguration *)configuration
    error:(NSError **)error {
    if (!(self = [super init])) return nil;
    MLModelConfiguration *own = configuration ? [configuration copy] : [[MLModelConfiguration alloc] init];
    _model = [MLModel modelWithContentsOfURL:url configuration:own error:error];
    return _model ? self : nil;
}

- (nullable TaggerPredictorOutput *)predictionFromTokens:(MLMultiArray *)tokens
    in_:(MLMultiArray *)in_
    error:(NSError **)error {
    NSMutableDictionary<NSString *, MLFeatureValue *> *values = [NSMutableDictionary dictionary];
    values[@"tokens"] = [MLFeatureValue featureValueWithMultiArray:tokens];
    values[@"in"] = [MLFeatureValue featureValueWithMultiArray:in_];
    MLDictionaryFeatureProvider *features =
        [[MLDictionaryFeatureProvider alloc] initWithDictionary:values error:error];
    if (!features) return nil;
    id<MLFeatureProvider> outputs = [_model predictionFromFeatures:features
                                                           options:[[MLPredictionOptions alloc] init]
                                                             error:error];
    return outputs ? [[TaggerPredictorOutput alloc] initWithFeatures:outputs] : nil;
}

@end
