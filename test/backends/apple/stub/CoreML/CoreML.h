// CoreML/CoreML.h - the part of Core ML's public interface that backends/apple uses (test only):
// names, types, values and introducing versions of macOS as in Apple's documentation.
// stub/README.md describes the implementation.
#pragma once

#import <CoreVideo/CoreVideo.h>
#import <Foundation/Foundation.h>

// On a Mac, the compiler rejects unguarded uses of these.
#ifndef API_AVAILABLE
#define MLC_STUB_ios(version) __attribute__((availability(ios, introduced = version)))
#define MLC_STUB_macos(version) __attribute__((availability(macos, introduced = version)))
#define MLC_STUB_tvos(version) __attribute__((availability(tvos, introduced = version)))
#define MLC_STUB_watchos(version) __attribute__((availability(watchos, introduced = version)))
#define MLC_STUB_visionos(version)  // clang 16 does not know it
#define MLC_STUB_EACH1(a) MLC_STUB_##a
#define MLC_STUB_EACH2(a, ...) MLC_STUB_##a MLC_STUB_EACH1(__VA_ARGS__)
#define MLC_STUB_EACH3(a, ...) MLC_STUB_##a MLC_STUB_EACH2(__VA_ARGS__)
#define MLC_STUB_EACH4(a, ...) MLC_STUB_##a MLC_STUB_EACH3(__VA_ARGS__)
#define MLC_STUB_EACH5(a, ...) MLC_STUB_##a MLC_STUB_EACH4(__VA_ARGS__)
#define MLC_STUB_SIXTH(a, b, c, d, e, f, ...) f
#define API_AVAILABLE(...)                                                                    \
  MLC_STUB_SIXTH(__VA_ARGS__, MLC_STUB_EACH5, MLC_STUB_EACH4, MLC_STUB_EACH3, MLC_STUB_EACH2, \
                 MLC_STUB_EACH1, )                                                            \
  (__VA_ARGS__)
#endif

#ifndef __APPLE__
// `@available(macOS 15.0, *)` asks the stub (switch macos=VERSION), because compilers on other
// systems treat it as true.
#ifdef __cplusplus
extern "C"
#endif
    BOOL
    MLStubAvailable(const char* version);
#define available(version, others) selector(self) && MLStubAvailable(#version)
#endif

typedef NS_ENUM(NSInteger, MLComputeUnits) {
  MLComputeUnitsCPUOnly = 0,
  MLComputeUnitsCPUAndGPU = 1,
  MLComputeUnitsAll = 2,
  MLComputeUnitsCPUAndNeuralEngine API_AVAILABLE(macos(13.0)) = 3,
};

typedef NS_ENUM(NSInteger, MLMultiArrayDataType) {
  MLMultiArrayDataTypeDouble = 0x10000 | 64,
  MLMultiArrayDataTypeFloat32 = 0x10000 | 32,
  MLMultiArrayDataTypeFloat16 = 0x10000 | 16,
  MLMultiArrayDataTypeInt32 = 0x20000 | 32,
};

typedef NS_ENUM(NSInteger, MLFeatureType) {
  MLFeatureTypeInvalid = 0,
  MLFeatureTypeInt64 = 1,
  MLFeatureTypeDouble = 2,
  MLFeatureTypeString = 3,
  MLFeatureTypeImage = 4,
  MLFeatureTypeMultiArray = 5,
  MLFeatureTypeDictionary = 6,
  MLFeatureTypeSequence = 7,
  MLFeatureTypeState API_AVAILABLE(macos(15.0)) = 8,
};

// --- Values ---

@interface MLMultiArray : NSObject {
 @public
  struct MLStubArray* _array;
}
- (instancetype)initWithShape:(NSArray<NSNumber*>*)shape
                     dataType:(MLMultiArrayDataType)dataType
                        error:(NSError**)error;
- (instancetype)initWithDataPointer:(void*)dataPointer
                              shape:(NSArray<NSNumber*>*)shape
                           dataType:(MLMultiArrayDataType)dataType
                            strides:(NSArray<NSNumber*>*)strides
                        deallocator:(void (^)(void* bytes))deallocator
                              error:(NSError**)error;
@property(readonly, nonatomic) MLMultiArrayDataType dataType;
@property(readonly, nonatomic) NSArray<NSNumber*>* shape;
@property(readonly, nonatomic) NSArray<NSNumber*>* strides;
@property(readonly, nonatomic) NSInteger count;
@property(readonly, nonatomic) void* dataPointer;
- (void)getBytesWithHandler:(void (^)(const void* bytes, NSInteger size))handler
    API_AVAILABLE(macos(12.3));
- (void)getMutableBytesWithHandler:
    (void (^)(void* mutableBytes, NSInteger size, NSArray<NSNumber*>* strides))handler
    API_AVAILABLE(macos(12.3));
@end

@interface MLFeatureValue : NSObject {
 @public
  MLFeatureType _type;
  id _object;
  CVPixelBufferRef _pixels;
}
+ (instancetype)featureValueWithInt64:(int64_t)value;
+ (instancetype)featureValueWithDouble:(double)value;
+ (instancetype)featureValueWithString:(NSString*)value;
+ (instancetype)featureValueWithMultiArray:(MLMultiArray*)value;
+ (instancetype)featureValueWithPixelBuffer:(CVPixelBufferRef)value;
+ (instancetype)featureValueWithDictionary:(NSDictionary*)value error:(NSError**)error;
@property(readonly, nonatomic) MLFeatureType type;
@property(readonly, nonatomic) int64_t int64Value;
@property(readonly, nonatomic) double doubleValue;
@property(readonly, nonatomic) NSString* stringValue;
@property(readonly, nonatomic) MLMultiArray* multiArrayValue;
@property(readonly, nonatomic) NSDictionary* dictionaryValue;
@property(readonly, nonatomic) CVPixelBufferRef imageBufferValue;
@end

@protocol MLFeatureProvider
@property(readonly, nonatomic) NSSet<NSString*>* featureNames;
- (MLFeatureValue*)featureValueForName:(NSString*)featureName;
@end

@interface MLDictionaryFeatureProvider : NSObject <MLFeatureProvider> {
  NSDictionary* _values;
}
- (instancetype)initWithDictionary:(NSDictionary<NSString*, id>*)dictionary error:(NSError**)error;
@end

// --- Descriptions ---

typedef NS_ENUM(NSInteger, MLMultiArrayShapeConstraintType) {
  MLMultiArrayShapeConstraintTypeUnspecified = 1,
  MLMultiArrayShapeConstraintTypeEnumerated = 2,
  MLMultiArrayShapeConstraintTypeRange = 3,
};
typedef NS_ENUM(NSInteger, MLImageSizeConstraintType) {
  MLImageSizeConstraintTypeUnspecified = 0,
  MLImageSizeConstraintTypeEnumerated = 2,
  MLImageSizeConstraintTypeRange = 3,
};

// All descriptions of the stub are views of one feature of a model, which they keep alive.
@interface MLStubRecord : NSObject {
 @public
  struct MLStubOwner* _owner;
  const struct MLStubFeature* _feature;
}
@end
@interface MLMultiArrayShapeConstraint : MLStubRecord
@property(readonly, nonatomic) MLMultiArrayShapeConstraintType type;
@property(readonly, nonatomic) NSArray<NSValue*>* sizeRangeForDimension;
@property(readonly, nonatomic) NSArray<NSArray<NSNumber*>*>* enumeratedShapes;
@end
@interface MLMultiArrayConstraint : MLStubRecord
@property(readonly, nonatomic) NSArray<NSNumber*>* shape;
@property(readonly, nonatomic) MLMultiArrayDataType dataType;
@property(readonly, nonatomic) MLMultiArrayShapeConstraint* shapeConstraint;
@end
@interface MLImageSizeConstraint : MLStubRecord
@property(readonly, nonatomic) MLImageSizeConstraintType type;
@property(readonly, nonatomic) NSArray* enumeratedImageSizes;
@end
@interface MLImageConstraint : MLStubRecord
@property(readonly, nonatomic) NSInteger pixelsHigh;
@property(readonly, nonatomic) NSInteger pixelsWide;
@property(readonly, nonatomic) OSType pixelFormatType;
@property(readonly, nonatomic) MLImageSizeConstraint* sizeConstraint;
@end
API_AVAILABLE(macos(15.0))
@interface MLStateConstraint : MLStubRecord
@property(readonly, nonatomic) NSArray<NSNumber*>* bufferShape;
@property(readonly, nonatomic) MLMultiArrayDataType dataType;
@end
@interface MLFeatureDescription : MLStubRecord
@property(readonly, nonatomic) NSString* name;
@property(readonly, nonatomic) MLFeatureType type;
@property(readonly, nonatomic, getter=isOptional) BOOL optional;
@property(readonly, nonatomic) MLMultiArrayConstraint* multiArrayConstraint;
@property(readonly, nonatomic) MLImageConstraint* imageConstraint;
@property(readonly, nonatomic) MLStateConstraint* stateConstraint API_AVAILABLE(macos(15.0));
@end
@interface MLModelDescription : NSObject {
 @public
  struct MLStubOwner* _owner;
}
@property(readonly, nonatomic)
    NSDictionary<NSString*, MLFeatureDescription*>* inputDescriptionsByName;
@property(readonly, nonatomic)
    NSDictionary<NSString*, MLFeatureDescription*>* outputDescriptionsByName;
@property(readonly, nonatomic)
    NSDictionary<NSString*, MLFeatureDescription*>* stateDescriptionsByName API_AVAILABLE(
        macos(15.0));
@property(readonly, nonatomic) NSArray* classLabels;
@end

// Only declared: what code of apps calls, and backends/apple does not.
typedef struct CGImage* CGImageRef;
typedef NSString* MLFeatureValueImageOption;
extern MLFeatureValueImageOption const MLFeatureValueImageOptionCropAndScale;
@interface MLFeatureValue (MLImageConversion)
+ (instancetype)featureValueWithCGImage:(CGImageRef)cgImage
                             constraint:(MLImageConstraint*)constraint
                                options:(NSDictionary<MLFeatureValueImageOption, id>*)options
                                  error:(NSError**)error;
@end

// --- Models ---

typedef NS_ENUM(NSInteger, MLReshapeFrequencyHint) {
  MLReshapeFrequencyHintFrequent = 0,
  MLReshapeFrequencyHintInfrequent = 1,
} API_AVAILABLE(macos(14.4));
typedef NS_ENUM(NSInteger, MLSpecializationStrategy) {
  MLSpecializationStrategyDefault = 0,
  MLSpecializationStrategyFastPrediction = 1,
} API_AVAILABLE(macos(15.0));

API_AVAILABLE(macos(14.4))
@interface MLOptimizationHints : NSObject {
  MLReshapeFrequencyHint _reshapeFrequency;
  MLSpecializationStrategy _specializationStrategy;
}
@property(nonatomic) MLReshapeFrequencyHint reshapeFrequency;
@property(nonatomic) MLSpecializationStrategy specializationStrategy API_AVAILABLE(macos(15.0));
@end

@interface MLModelConfiguration : NSObject {
  MLComputeUnits _computeUnits;
  BOOL _allowLowPrecisionAccumulationOnGPU;
  NSString* _functionName;
  id _optimizationHints;
}
@property(nonatomic) MLComputeUnits computeUnits;
@property(nonatomic) BOOL allowLowPrecisionAccumulationOnGPU;
@property(nonatomic, copy) NSString* functionName API_AVAILABLE(macos(15.0));
@property(nonatomic, retain) MLOptimizationHints* optimizationHints API_AVAILABLE(macos(14.4));
@end

@interface MLPredictionOptions : NSObject
@end

API_AVAILABLE(macos(15.0))
@interface MLState : NSObject {
 @public
  struct MLStubState* _state;
}
- (void)getMultiArrayForStateNamed:(NSString*)stateName
                           handler:(void (^)(MLMultiArray* buffer))handler;
@end

@protocol MLComputeDeviceProtocol;
@interface MLModel : NSObject {
 @public
  struct MLStubOwner* _owner;
}
+ (void)compileModelAtURL:(NSURL*)modelURL
        completionHandler:(void (^)(NSURL* compiledModelURL, NSError* error))handler
    API_AVAILABLE(macos(13.0));
+ (instancetype)modelWithContentsOfURL:(NSURL*)url
                         configuration:(MLModelConfiguration*)configuration
                                 error:(NSError**)error;
@property(class, readonly, nonatomic)
    NSArray<id<MLComputeDeviceProtocol>>* availableComputeDevices API_AVAILABLE(macos(14.0));
@property(readonly, nonatomic) MLModelDescription* modelDescription;
- (id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)input
                                        options:(MLPredictionOptions*)options
                                          error:(NSError**)error;
- (id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)inputFeatures
                                     usingState:(MLState*)state
                                        options:(MLPredictionOptions*)options
                                          error:(NSError**)error API_AVAILABLE(macos(15.0));
- (MLState*)newState API_AVAILABLE(macos(15.0));
@end

API_AVAILABLE(macos(13.0))
@interface MLModelAsset : NSObject {
  NSURL* _url;
}
+ (instancetype)modelAssetWithURL:(NSURL*)compiledModelURL
                            error:(NSError**)error API_AVAILABLE(macos(15.0));
- (void)functionNamesWithCompletionHandler:
    (void (^)(NSArray<NSString*>* functionNames, NSError* error))handler API_AVAILABLE(macos(15.0));
@end

// --- Devices and the compute plan ---

API_AVAILABLE(macos(14.0))
@protocol MLComputeDeviceProtocol <NSObject>
@end
API_AVAILABLE(macos(14.0))
@interface MLCPUComputeDevice : NSObject <MLComputeDeviceProtocol>
@end
API_AVAILABLE(macos(14.0))
@interface MLGPUComputeDevice : NSObject <MLComputeDeviceProtocol>
@end
API_AVAILABLE(macos(14.0))
@interface MLNeuralEngineComputeDevice : NSObject <MLComputeDeviceProtocol>
@end

API_AVAILABLE(macos(14.4))
@interface MLComputePlanDeviceUsage : NSObject {
 @public
  NSArray<id<MLComputeDeviceProtocol>>* _supportedComputeDevices;
  id<MLComputeDeviceProtocol> _preferredComputeDevice;
}
@property(readonly, nonatomic) NSArray<id<MLComputeDeviceProtocol>>* supportedComputeDevices;
@property(readonly, nonatomic) id<MLComputeDeviceProtocol> preferredComputeDevice;
@end
API_AVAILABLE(macos(14.4))
@interface MLComputePlanCost : NSObject {
 @public
  double _weight;
}
@property(readonly, nonatomic) double weight;
@end

API_AVAILABLE(macos(14.4))
@interface MLModelStructureProgramNamedValueType : NSObject {
 @public
  NSString* _name;
}
@property(readonly, nonatomic) NSString* name;
@end
@class MLModelStructureProgramBlock;
API_AVAILABLE(macos(14.4))
@interface MLModelStructureProgramOperation : NSObject {
 @public
  NSString* _operatorName;
  NSArray* _outputs;
  NSArray* _blocks;
}
@property(readonly, nonatomic) NSString* operatorName;
@property(readonly, nonatomic) NSArray<MLModelStructureProgramNamedValueType*>* outputs;
@property(readonly, nonatomic) NSArray<MLModelStructureProgramBlock*>* blocks;
@end
API_AVAILABLE(macos(14.4))
@interface MLModelStructureProgramBlock : NSObject {
 @public
  NSArray* _operations;
}
@property(readonly, nonatomic) NSArray<MLModelStructureProgramOperation*>* operations;
@end
API_AVAILABLE(macos(14.4))
@interface MLModelStructureProgramFunction : NSObject {
 @public
  MLModelStructureProgramBlock* _block;
}
@property(readonly, nonatomic) MLModelStructureProgramBlock* block;
@end
API_AVAILABLE(macos(14.4))
@interface MLModelStructureProgram : NSObject {
 @public
  NSDictionary* _functions;
}
@property(readonly, nonatomic) NSDictionary<NSString*, MLModelStructureProgramFunction*>* functions;
@end
API_AVAILABLE(macos(14.4))
@interface MLModelStructure : NSObject {
 @public
  MLModelStructureProgram* _program;
}
@property(readonly, nonatomic) MLModelStructureProgram* program;
@end
API_AVAILABLE(macos(14.4))
@interface MLComputePlan : NSObject {
 @public
  MLModelStructure* _modelStructure;
  NSArray* _devices;
  double _share;  // of each operation
}
+ (void)loadContentsOfURL:(NSURL*)url
            configuration:(MLModelConfiguration*)configuration
        completionHandler:(void (^)(MLComputePlan* computePlan, NSError* error))handler;
@property(readonly, nonatomic) MLModelStructure* modelStructure;
- (MLComputePlanDeviceUsage*)computeDeviceUsageForMLProgramOperation:
    (MLModelStructureProgramOperation*)operation;
- (MLComputePlanCost*)estimatedCostOfMLProgramOperation:
    (MLModelStructureProgramOperation*)operation;
@end
