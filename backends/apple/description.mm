#include "backends/apple/description.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "backends/apple/arrays.h"
#include "backends/apple/coreml_errors.h"
#include "backends/apple/images.h"

namespace fs = std::filesystem;

namespace mlc::apple {
namespace {

// Information from metadata.json that MLModelDescription lacks.
struct Listed {
  std::map<std::string, size_t> order;  // index by name, for inputs, outputs and states
  std::set<std::string> bgr;
};

template <class T>
T* As(id object, Class type) {
  return [object isKindOfClass:type] ? static_cast<T*>(object) : nil;
}

// Returns nothing if the file is missing or has another format; models work without it.
Listed ReadListed(const fs::path& bundle, const std::string& function) {
  Listed listed;
  NSString* path = [NSString stringWithUTF8String:(bundle / "metadata.json").c_str()];
  NSData* data = [NSData dataWithContentsOfFile:path];
  if (!data) return listed;
  id json = [NSJSONSerialization JSONObjectWithData:data options:0 error:nullptr];
  NSDictionary* model =
      As<NSDictionary>([As<NSArray>(json, [NSArray class]) firstObject], [NSDictionary class]);
  NSString* wanted =
      function.empty() ? As<NSString>([model objectForKey:@"defaultFunctionName"], [NSString class])
                       : [NSString stringWithUTF8String:function.c_str()];
  for (id each in As<NSArray>([model objectForKey:@"functions"], [NSArray class])) {
    NSDictionary* candidate = As<NSDictionary>(each, [NSDictionary class]);
    if (wanted && [wanted isEqual:[candidate objectForKey:@"name"]]) model = candidate;
  }
  for (NSString* key in @[ @"inputSchema", @"outputSchema", @"stateSchema" ])
    for (id each in As<NSArray>([model objectForKey:key], [NSArray class])) {
      NSDictionary* feature = As<NSDictionary>(each, [NSDictionary class]);
      const std::string name =
          ToText(As<NSString>([feature objectForKey:@"name"], [NSString class]));
      listed.order.emplace(name, listed.order.size());
      if ([@"BGR" isEqual:[feature objectForKey:@"colorspace"]]) listed.bgr.insert(name);
    }
  return listed;
}

// Sizes that differ among the allowed shapes, or have a range, are open.
void ReadShape(MLMultiArrayConstraint* constraint, Described& described) {
  Dims& dims = described.feature.dims;
  dims = ToDims([constraint shape]);
  MLMultiArrayShapeConstraint* shapes = [constraint shapeConstraint];
  if ([shapes type] == MLMultiArrayShapeConstraintTypeEnumerated) {
    for (NSArray<NSNumber*>* shape in [shapes enumeratedShapes]) {
      const Dims other = ToDims(shape);
      for (size_t i = 0; i < std::min(dims.size(), other.size()); ++i)
        if (other[i] != dims[i]) dims[i] = -1;
    }
  } else if ([shapes type] == MLMultiArrayShapeConstraintTypeRange) {
    NSArray<NSValue*>* ranges = [shapes sizeRangeForDimension];
    for (size_t i = 0; i < std::min<size_t>(dims.size(), [ranges count]); ++i)
      if ([[ranges objectAtIndex:i] rangeValue].length > 1) dims[i] = -1;
  }
  // Core ML may describe outputs with no shape or with zeros.
  described.stated = !dims.empty() && std::find(dims.begin(), dims.end(), 0) == dims.end();
  if (!described.stated) dims.assign(dims.size(), -1);
}

void ReadImage(MLImageConstraint* constraint, Described& described) {
  described.feature.kind = runtime::Feature::Kind::kImage;
  described.format = [constraint pixelFormatType];
  described.feature.dtype = ChannelType(described.format);
  described.stated = true;
  const bool fixed = [[constraint sizeConstraint] type] != MLImageSizeConstraintTypeRange &&
                     [[[constraint sizeConstraint] enumeratedImageSizes] count] <= 1;
  described.feature.dims = {1, Channels(described.format), fixed ? [constraint pixelsHigh] : -1,
                            fixed ? [constraint pixelsWide] : -1};
}

Described DescribeOne(MLFeatureDescription* description) {
  Described described;
  runtime::Feature& feature = described.feature;
  feature.name = ToText([description name]);
  described.type = [description type];
  described.optional = [description isOptional];
  switch (described.type) {
    case MLFeatureTypeMultiArray:
      feature.dtype = ToDType([[description multiArrayConstraint] dataType]);
      ReadShape([description multiArrayConstraint], described);
      break;
    case MLFeatureTypeImage:
      ReadImage([description imageConstraint], described);
      break;
    case MLFeatureTypeString:
      feature.kind = runtime::Feature::Kind::kString;
      feature.dtype = DType::kString;
      break;
    case MLFeatureTypeInt64:
      feature.dtype = DType::kInt64;
      break;
    case MLFeatureTypeDouble:
      feature.dtype = DType::kFp64;
      break;
    case MLFeatureTypeDictionary:  // a map from class label to number, in label order
      feature.dtype = DType::kFp64;
      feature.dims = {-1};
      break;
    default:
      throw Error("schema-mismatch", "feature \"{}\" has the unsupported type {}", feature.name,
                  static_cast<int64_t>(described.type));
  }
  return described;
}

std::vector<Described> DescribeAll(NSDictionary<NSString*, MLFeatureDescription*>* descriptions,
                                   const Listed& listed) {
  std::vector<Described> all;
  for (NSString* name in descriptions) {
    all.push_back(DescribeOne([descriptions objectForKey:name]));
    all.back().bgr = listed.bgr.contains(all.back().feature.name);
  }
  auto place = [&](const Described& described) {
    auto it = listed.order.find(described.feature.name);
    return std::pair(it == listed.order.end() ? listed.order.size() : it->second,
                     described.feature.name);
  };
  std::sort(all.begin(), all.end(),
            [&](const Described& a, const Described& b) { return place(a) < place(b); });
  return all;
}

API_AVAILABLE(macos(15.0))
std::vector<runtime::Feature> DescribeStates(MLModelDescription* description) {
  std::vector<runtime::Feature> states;
  NSDictionary<NSString*, MLFeatureDescription*>* descriptions =
      [description stateDescriptionsByName];
  for (NSString* name in descriptions) {
    MLStateConstraint* constraint = [[descriptions objectForKey:name] stateConstraint];
    states.push_back({ToText(name), runtime::Feature::Kind::kState, ToDType([constraint dataType]),
                      ToDims([constraint bufferShape])});
  }
  std::sort(states.begin(), states.end(),
            [](const runtime::Feature& a, const runtime::Feature& b) { return a.name < b.name; });
  return states;
}

}  // namespace

std::shared_ptr<const Description> Describe(MLModelDescription* description, const fs::path& bundle,
                                            const std::string& function) {
  const Listed listed = ReadListed(bundle, function);
  auto described = std::make_shared<Description>();
  described->inputs = DescribeAll([description inputDescriptionsByName], listed);
  described->outputs = DescribeAll([description outputDescriptionsByName], listed);
  for (const Described& each : described->inputs) described->schema.inputs.push_back(each.feature);
  for (const Described& each : described->outputs)
    described->schema.outputs.push_back(each.feature);
  if (@available(macOS 15.0, *)) described->schema.states = DescribeStates(description);
  return described;
}

std::string TypeText(DType dtype, const Dims& dims) {
  std::vector<std::string> sizes;
  for (int64_t dim : dims) sizes.push_back(dim < 0 ? "?" : std::to_string(dim));
  return fmt::format("{} [{}]", Name(dtype), fmt::join(sizes, ", "));
}

bool Fits(const Dims& dims, const Dims& sizes) {
  return std::equal(dims.begin(), dims.end(), sizes.begin(), sizes.end(),
                    [](int64_t dim, int64_t size) { return dim < 0 || dim == size; });
}

}  // namespace mlc::apple
