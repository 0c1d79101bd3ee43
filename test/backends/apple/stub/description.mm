// The inputs and outputs of a model.
#include "test/backends/apple/stub/objects.h"

using mlc::Dims;
using mlc::stub::Is;

@implementation MLStubRecord
+ (id)of:(std::shared_ptr<MLStubModel>)model feature:(const MLStubFeature*)feature {
  MLStubRecord* record = [[[self alloc] init] autorelease];
  record->_owner = new MLStubOwner{std::move(model)};
  record->_feature = feature;
  return record;
}
- (id)as:(Class)type {
  return [type of:_owner->model feature:_feature];
}
- (void)dealloc {
  delete _owner;
  [super dealloc];
}
@end

namespace {

// Returns the default shape of the feature, or its declared shape if it has none; open sizes become
// 1.
Dims DefaultShape(const MLStubFeature& feature) {
  Dims dims =
      feature.port.default_shape.empty() ? feature.feature.dims : feature.port.default_shape;
  for (int64_t& dim : dims)
    if (dim < 0) dim = 1;
  return dims;
}

bool IsOpen(const MLStubFeature& feature) {
  for (int64_t dim : feature.feature.dims)
    if (dim < 0) return true;
  return false;
}

}  // namespace

@implementation MLMultiArrayShapeConstraint
- (MLMultiArrayShapeConstraintType)type {
  return !_feature->port.enumerated_shapes.empty() ? MLMultiArrayShapeConstraintTypeEnumerated
         : IsOpen(*_feature) && !_feature->output  ? MLMultiArrayShapeConstraintTypeRange
                                                   : MLMultiArrayShapeConstraintTypeUnspecified;
}
- (NSArray<NSValue*>*)sizeRangeForDimension {
  NSMutableArray<NSValue*>* ranges = [NSMutableArray array];
  const Dims dims = DefaultShape(*_feature);
  for (size_t i = 0; i < dims.size(); ++i)
    [ranges
        addObject:[NSValue valueWithRange:_feature->feature.dims[i] < 0 ? NSMakeRange(1, 4096)
                                                                        : NSMakeRange(dims[i], 1)]];
  return ranges;
}
- (NSArray<NSArray<NSNumber*>*>*)enumeratedShapes {
  NSMutableArray<NSArray<NSNumber*>*>* shapes = [NSMutableArray array];
  for (const Dims& shape : _feature->port.enumerated_shapes)
    [shapes addObject:mlc::stub::Numbers(shape)];
  return shapes;
}
@end

@implementation MLMultiArrayConstraint
// Core ML has no shape for outputs with open sizes, because converters write none.
- (NSArray<NSNumber*>*)shape {
  if (_feature->output && IsOpen(*_feature)) return [NSArray array];
  return mlc::stub::Numbers(DefaultShape(*_feature));
}
- (MLMultiArrayDataType)dataType {
  return mlc::stub::DataType(_feature->feature.dtype);
}
- (MLMultiArrayShapeConstraint*)shapeConstraint {
  return [self as:[MLMultiArrayShapeConstraint class]];
}
@end

@implementation MLImageSizeConstraint
- (MLImageSizeConstraintType)type {
  return IsOpen(*_feature) ? MLImageSizeConstraintTypeRange : MLImageSizeConstraintTypeUnspecified;
}
- (NSArray*)enumeratedImageSizes {
  return [NSArray array];
}
@end

@implementation MLImageConstraint
- (NSInteger)pixelsHigh {
  return DefaultShape(*_feature)[2];
}
- (NSInteger)pixelsWide {
  return DefaultShape(*_feature)[3];
}
- (OSType)pixelFormatType {
  return mlc::stub::PixelFormat(*_feature);
}
- (MLImageSizeConstraint*)sizeConstraint {
  return [self as:[MLImageSizeConstraint class]];
}
@end

@implementation MLStateConstraint
- (NSArray<NSNumber*>*)bufferShape {
  return mlc::stub::Numbers(_feature->feature.dims);
}
- (MLMultiArrayDataType)dataType {
  return mlc::stub::DataType(_feature->feature.dtype);
}
@end

@implementation MLFeatureDescription
- (NSString*)name {
  return mlc::stub::ToString(_feature->feature.name);
}
- (MLFeatureType)type {
  if (_feature->dictionary) return MLFeatureTypeDictionary;
  switch (_feature->feature.kind) {
    case mlc::runtime::Feature::Kind::kImage:
      return MLFeatureTypeImage;
    case mlc::runtime::Feature::Kind::kString:
      return MLFeatureTypeString;
    case mlc::runtime::Feature::Kind::kState:
      return MLFeatureTypeState;
    default:
      break;
  }
  return _feature->feature.dtype == mlc::DType::kInt64 ? MLFeatureTypeInt64
                                                       : MLFeatureTypeMultiArray;
}
- (BOOL)isOptional {
  return _feature->port.optional;
}
- (MLMultiArrayConstraint*)multiArrayConstraint {
  return [self as:[MLMultiArrayConstraint class]];
}
- (MLImageConstraint*)imageConstraint {
  return [self as:[MLImageConstraint class]];
}
- (MLStateConstraint*)stateConstraint {
  return [self as:[MLStateConstraint class]];
}
@end

@implementation MLModelDescription
- (NSDictionary<NSString*, MLFeatureDescription*>*)of:(const std::vector<MLStubFeature>&)features {
  NSMutableDictionary* descriptions = [NSMutableDictionary dictionary];
  for (const MLStubFeature& feature : features)
    [descriptions setObject:[MLFeatureDescription of:_owner->model feature:&feature]
                     forKey:mlc::stub::ToString(feature.feature.name)];
  return descriptions;
}
- (NSDictionary<NSString*, MLFeatureDescription*>*)inputDescriptionsByName {
  return [self of:_owner->model->inputs];
}
- (NSDictionary<NSString*, MLFeatureDescription*>*)outputDescriptionsByName {
  return [self of:_owner->model->outputs];
}
- (NSDictionary<NSString*, MLFeatureDescription*>*)stateDescriptionsByName {
  if (!MLStubAvailable("macOS 15.0"))
    [NSException raise:NSInvalidArgumentException
                format:@"unrecognized selector stateDescriptionsByName"];
  return [self of:_owner->model->states];
}
- (NSArray*)classLabels {
  if (_owner->model->labels.empty()) return nil;
  NSMutableArray* labels = [NSMutableArray array];
  for (const std::string& label : _owner->model->labels)
    [labels addObject:_owner->model->numbered_labels
                          ? (id)[NSNumber numberWithLongLong:std::stoll(label)]
                          : (id)mlc::stub::ToString(label)];
  return labels;
}
- (void)dealloc {
  delete _owner;
  [super dealloc];
}
@end

@implementation MLModelDescription (Stub)
+ (MLModelDescription*)of:(std::shared_ptr<MLStubModel>)model {
  MLModelDescription* description = [[[MLModelDescription alloc] init] autorelease];
  description->_owner = new MLStubOwner{std::move(model)};
  return description;
}
@end
