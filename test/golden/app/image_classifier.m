// Loads and calls fruit-v2.mlpackage. Made by mlc inspect --objc (mlc 0.1.0).
//
// Add fruit-v2.mlpackage and this file to the target of the app (with ARC): Xcode compiles the
// package to fruit-v2.mlmodelc in the bundle. The interfaces may move to a header.
//
//     NSError *error = nil;
//     FruitV2Predictor *predictor = [[FruitV2Predictor alloc]
//         initWithContentsOfURL:[FruitV2Predictor URLInBundle] configuration:nil error:&error];
#import <CoreML/CoreML.h>
#import <CoreVideo/CoreVideo.h>
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

/// The outputs of FruitV2Predictor.
API_AVAILABLE(ios(16.0), macos(13.0), tvos(16.0), watchos(9.0))
@interface FruitV2PredictorOutput : NSObject
/// The most probable class.
@property(nonatomic, readonly) NSString *classLabel;
/// The probability of each of the 6 classes: "apple", "banana", "cherry", "grape", "orange", ...
@property(nonatomic, readonly) NSDictionary<NSString *, NSNumber *> *classLabel_probs;
- (instancetype)init NS_UNAVAILABLE;
@end

API_AVAILABLE(ios(16.0), macos(13.0), tvos(16.0), watchos(9.0))
@interface FruitV2Predictor : NSObject
@property(nonatomic, readonly) MLModel *model;

/// fruit-v2.mlmodelc in the bundle of this class.
+ (nullable NSURL *)URLInBundle;

/// Loads a compiled model. The first time takes long for a large model: call it off the
/// main thread.
- (nullable instancetype)initWithContentsOfURL:(NSURL *)url
    configuration:(nullable MLModelConfiguration *)configuration
    error:(NSError **)error;
- (instancetype)init NS_UNAVAILABLE;

/// - image: Colour image, width 64, height 48. kCVPixelFormatType_32BGRA: Core ML puts the channels
/// in the model's order (rgb).
- (nullable FruitV2PredictorOutput *)predictionFromImage:(CVPixelBufferRef)image
    error:(NSError **)error;

/// Scales a picture to the size of an image input and converts it to its pixel format; the
/// imageBufferValue of the result is the input. To crop instead of stretching, pass
/// @{MLFeatureValueImageOptionCropAndScale : @(VNImageCropAndScaleOptionCenterCrop)}.
- (nullable MLFeatureValue *)imageOfPicture:(CGImageRef)picture
    forInput:(NSString *)input
    options:(nullable NSDictionary<MLFeatureValueImageOption, id> *)options
    error:(NSError **)error;
@end

NS_ASSUME_NONNULL_END

@implementation FruitV2PredictorOutput {
    id<MLFeatureProvider> _features;
}

- (instancetype)initWithFeatures:(id<MLFeatureProvider>)features {
    if ((self = [super init])) _features = features;
    return self;
}

- (NSString *)classLabel {
    return [_features featureValueForName:@"classLabel"].stringValue;
}

- (NSDictionary<NSString *, NSNumber *> *)classLabel_probs {
    return (NSDictionary<NSString *, NSNumber *> *)[_features featureValueForName:@"classLabel_probs"].dictionaryValue;
}

@end

@implementation FruitV2Predictor

+ (nullable NSURL *)URLInBundle {
    return [[NSBundle bundleForClass:self] URLForResource:@"fruit-v2" withExtension:@"mlmodelc"];
}

- (nullable instancetype)initWithContentsOfURL:(NSURL *)url
    configuration:(nullable MLModelConfiguration *)configuration
    error:(NSError **)error {
    if (!(self = [super init])) return nil;
    MLModelConfiguration *own = configuration ? [configuration copy] : [[MLModelConfiguration alloc] init];
    _model = [MLModel modelWithContentsOfURL:url configuration:own error:error];
    return _model ? self : nil;
}

- (nullable FruitV2PredictorOutput *)predictionFromImage:(CVPixelBufferRef)image
    error:(NSError **)error {
    NSMutableDictionary<NSString *, MLFeatureValue *> *values = [NSMutableDictionary dictionary];
    values[@"image"] = [MLFeatureValue featureValueWithPixelBuffer:image];
    MLDictionaryFeatureProvider *features =
        [[MLDictionaryFeatureProvider alloc] initWithDictionary:values error:error];
    if (!features) return nil;
    id<MLFeatureProvider> outputs = [_model predictionFromFeatures:features
                                                           options:[[MLPredictionOptions alloc] init]
                                                             error:error];
    return outputs ? [[FruitV2PredictorOutput alloc] initWithFeatures:outputs] : nil;
}

- (nullable MLFeatureValue *)imageOfPicture:(CGImageRef)picture
    forInput:(NSString *)input
    options:(nullable NSDictionary<MLFeatureValueImageOption, id> *)options
    error:(NSError **)error {
    MLImageConstraint *constraint =
        _model.modelDescription.inputDescriptionsByName[input].imageConstraint;
    return [MLFeatureValue featureValueWithCGImage:picture
                                        constraint:constraint
                                           options:options
                                             error:error];
}

@end
