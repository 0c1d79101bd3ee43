#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "lib/ir/target_systems.h"
#include "tools/driver/app_code.h"
#include "tools/driver/app_interface.h"
#include "tools/driver/version.h"

namespace mlc::driver {

namespace {

// C11 6.4.1, the words of Objective-C, and macros and types of the headers of both.
constexpr std::string_view kObjectiveCKeywords =
    " BOOL Class FALSE I IMP INFINITY MAX MIN NAN NO NULL Nil SEL TRUE YES _Alignas _Alignof "
    "_Atomic _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local assert "
    "asm auto bool break bycopy byref case char complex const continue default do double else "
    "enum errno extern false float for goto id if in inline inout int long nil nonnull nullable "
    "oneway out register restrict return short signed sizeof static stderr stdin stdout struct "
    "switch true typedef typeof union unsigned void volatile ";

// Properties and methods of NSObject, and names that the code below uses beside inputs and outputs.
constexpr std::string_view kObjectiveCTaken =
    " autorelease class configuration dealloc debugDescription description error features "
    "finalize hash isProxy load initialize model options outputs release retain retainCount self "
    "state super superclass values zone ";
constexpr std::array<std::string_view, 5> kFamilies = {"alloc", "copy", "init", "mutableCopy",
                                                       "new"};

std::string ObjectiveCAvailability(Opset target) {
  std::vector<std::string> systems;
  for (const SystemRelease& release : SystemsOf(target)) {
    std::string system(release.system);
    std::ranges::transform(system, system.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
    systems.push_back(fmt::format("{}({}.0)", system, release.version));
  }
  return fmt::format("API_AVAILABLE({})", fmt::join(systems, ", "));
}

struct ObjectiveCType {
  std::string type;        // with the space or star behind it
  std::string attributes;  // of a property that holds it
  std::string value;       // the property of MLFeatureValue that reads it
};
ObjectiveCType ObjectiveCTypeOf(const AppPort& port) {
  const bool text = port.dtype == DType::kString;
  switch (port.kind) {
    case AppPort::Kind::kImage:
      return {"CVPixelBufferRef ", "nonatomic, readonly", "imageBufferValue"};
    case AppPort::Kind::kLabel:
      return text ? ObjectiveCType{"NSString *", "nonatomic, readonly", "stringValue"}
                  : ObjectiveCType{"int64_t ", "nonatomic, readonly", "int64Value"};
    case AppPort::Kind::kProbabilities:
      return {fmt::format("NSDictionary<{} *, NSNumber *> *", text ? "NSString" : "NSNumber"),
              "nonatomic, readonly", "dictionaryValue"};
    default:
      return {"MLMultiArray *", "nonatomic, readonly", "multiArrayValue"};
  }
}

// The type as it stands in parentheses.
std::string Cast(const AppPort& port) {
  std::string type = ObjectiveCTypeOf(port).type;
  if (type.ends_with(' ')) type.pop_back();
  return type;
}

std::string ObjectiveCAbout(const AppPort& port, bool input) {
  std::string about = port.about;
  if (port.kind == AppPort::Kind::kArray && port.dtype == DType::kFp16 && !input)
    about += " getBytesWithHandler: gives the bytes, _Float16 at the array's strides.";
  return about;
}

// "predictionFromX:y:usingState:error:" with its arguments.
std::string PredictionMethod(const AppFunction& function) {
  std::vector<std::string> parts;
  for (const AppPort& port : function.inputs) {
    // The first word of the selector is one with the verb before it.
    std::string label = port.identifier;
    if (parts.empty()) {
      if (label[0] >= 'a' && label[0] <= 'z') label[0] += 'A' - 'a';
      label = "predictionFrom" + label;
    }
    parts.push_back(fmt::format("{}:({}{}){}", label, port.optional ? "nullable " : "", Cast(port),
                                port.identifier));
  }
  if (!function.states.empty())
    parts.push_back(
        fmt::format("{}:(MLState *)state", parts.empty() ? "predictionUsingState" : "usingState"));
  parts.push_back(parts.empty() ? "predictionWithError:(NSError **)error"
                                : "error:(NSError **)error");
  return fmt::format("- (nullable {}Output *){}", function.class_name, fmt::join(parts, "\n    "));
}

constexpr std::string_view kLoadMethod =
    "- (nullable instancetype)initWithContentsOfURL:(NSURL *)url\n"
    "    configuration:(nullable MLModelConfiguration *)configuration\n"
    "    error:(NSError **)error";
constexpr std::string_view kPictureMethod =
    "- (nullable MLFeatureValue *)imageOfPicture:(CGImageRef)picture\n"
    "    forInput:(NSString *)input\n"
    "    options:(nullable NSDictionary<MLFeatureValueImageOption, id> *)options\n"
    "    error:(NSError **)error";

bool HasImage(const AppFunction& function) {
  return std::ranges::find(function.inputs, AppPort::Kind::kImage, &AppPort::kind) !=
         function.inputs.end();
}

std::string Declarations(const AppInterface& app, const AppFunction& function) {
  const std::string available = ObjectiveCAvailability(app.target);
  std::string text = fmt::format("/// The outputs of {}.\n{}\n@interface {}Output : NSObject\n",
                                 function.class_name, available, function.class_name);
  for (const AppPort& port : function.outputs) {
    const ObjectiveCType type = ObjectiveCTypeOf(port);
    text += Comment("/// ", ObjectiveCAbout(port, false)) +
            fmt::format("@property({}) {}{};\n", type.attributes, type.type, port.identifier);
  }
  text += fmt::format(
      "- (instancetype)init NS_UNAVAILABLE;\n@end\n\n{}{}\n@interface {} : NSObject\n"
      "@property(nonatomic, readonly) MLModel *model;\n\n",
      app.several()
          ? Comment("/// ", fmt::format("The function \"{}\"{}.", function.function->name,
                                        &function == app.functions.data() ? ", the default" : ""))
          : "",
      available, function.class_name);
  text += fmt::format(
      "/// {}.mlmodelc in the bundle of this class.\n+ (nullable NSURL *)URLInBundle;\n\n"
      "/// Loads a compiled model. The first time takes long for a large model: call it off the\n"
      "/// main thread.\n{};\n- (instancetype)init NS_UNAVAILABLE;\n\n",
      OneLine(app.resource), kLoadMethod);
  if (!function.states.empty()) {
    text += "/// What the model keeps from one prediction to the next, all zeros at first:\n";
    for (const AppPort& port : function.states)
      text += Comment("/// ", fmt::format("- {}: {}", port.name, port.about));
    text +=
        "/// getMultiArrayForStateNamed:handler: reads and sets it between predictions. "
        "Predictions\n"
        "/// with the same state must not overlap.\n- (MLState *)newState;\n\n";
  }
  for (const AppPort& port : function.inputs)
    text += Comment("/// ", fmt::format("- {}: {}", port.identifier, ObjectiveCAbout(port, true)));
  text += PredictionMethod(function) + ";\n";
  if (HasImage(function))
    text += fmt::format(
        "\n/// Scales a picture to the size of an image input and converts it to its pixel format; "
        "the\n"
        "/// imageBufferValue of the result is the input. To crop instead of stretching, pass\n"
        "/// @{{MLFeatureValueImageOptionCropAndScale : @(VNImageCropAndScaleOptionCenterCrop)}}.\n"
        "{};\n",
        kPictureMethod);
  return text + "@end\n";
}

std::string Definitions(const AppInterface& app, const AppFunction& function) {
  std::string text = fmt::format(
      R"(@implementation {0}Output {{
    id<MLFeatureProvider> _features;
}}

- (instancetype)initWithFeatures:(id<MLFeatureProvider>)features {{
    if ((self = [super init])) _features = features;
    return self;
}}
)",
      function.class_name);
  for (const AppPort& port : function.outputs) {
    const ObjectiveCType type = ObjectiveCTypeOf(port);
    const std::string value =
        fmt::format("[_features featureValueForName:@{}].{}", Quoted(port.name), type.value);
    text += fmt::format(
        "\n- ({}){} {{\n    return {}{};\n}}\n", Cast(port), port.identifier,
        port.kind == AppPort::Kind::kProbabilities ? fmt::format("({})", Cast(port)) : "", value);
  }
  text += fmt::format(
      R"(
@end

@implementation {0}

+ (nullable NSURL *)URLInBundle {{
    return [[NSBundle bundleForClass:self] URLForResource:@{1} withExtension:@"mlmodelc"];
}}

{2} {{
    if (!(self = [super init])) return nil;
    MLModelConfiguration *own = configuration ? [configuration copy] : [[MLModelConfiguration alloc] init];
{3}    _model = [MLModel modelWithContentsOfURL:url configuration:own error:error];
    return _model ? self : nil;
}}
)",
      function.class_name, Quoted(app.resource), kLoadMethod,
      app.several() ? fmt::format("    own.functionName = @{};\n", Quoted(function.function->name))
                    : "");
  const bool state = !function.states.empty();
  if (state) text += "\n- (MLState *)newState {\n    return [_model newState];\n}\n";
  text += fmt::format(
      "\n{} {{\n    NSMutableDictionary<NSString *, MLFeatureValue *> *values ="
      " [NSMutableDictionary dictionary];\n",
      PredictionMethod(function));
  for (const AppPort& port : function.inputs)
    text += fmt::format(
        "    {}values[@{}] = [MLFeatureValue featureValueWith{}:{}];\n",
        port.optional ? fmt::format("if ({}) ", port.identifier) : "", Quoted(port.name),
        port.kind == AppPort::Kind::kImage ? "PixelBuffer" : "MultiArray", port.identifier);
  text += fmt::format(
      R"(    MLDictionaryFeatureProvider *features =
        [[MLDictionaryFeatureProvider alloc] initWithDictionary:values error:error];
    if (!features) return nil;
    id<MLFeatureProvider> outputs = [_model predictionFromFeatures:features{}
                                                           options:[[MLPredictionOptions alloc] init]
                                                             error:error];
    return outputs ? [[{}Output alloc] initWithFeatures:outputs] : nil;
}}
)",
      state ? "\n                                                        usingState:state" : "",
      function.class_name);
  if (HasImage(function))
    text += fmt::format(
        R"(
{} {{
    MLImageConstraint *constraint =
        _model.modelDescription.inputDescriptionsByName[input].imageConstraint;
    return [MLFeatureValue featureValueWithCGImage:picture
                                        constraint:constraint
                                           options:options
                                             error:error];
}}
)",
        kPictureMethod);
  return text + "\n@end\n";
}

}  // namespace

std::string ObjectiveCCode(const InspectResult& result, const std::filesystem::path& model) {
  const AppLanguage language{kObjectiveCKeywords, kObjectiveCTaken, 0, kFamilies};
  const AppInterface app = AppInterfaceOf(*result.program, result.needed, model, language);
  const std::string& main = app.functions[0].class_name;
  std::string text =
      Comment("// ", fmt::format("Loads and calls {}. Made by mlc inspect --objc (mlc {}).",
                                 app.package, kVersion)) +
      "//\n" +
      Comment("// ",
              fmt::format("Add {} and this file to the target of the app (with ARC): Xcode "
                          "compiles the package to {}.mlmodelc in the bundle. The interfaces "
                          "may move to a header.",
                          app.package, app.resource)) +
      "//\n"
      "//     NSError *error = nil;\n" +
      fmt::format("//     {0} *predictor = [[{0} alloc]\n", main) +
      fmt::format(
          "//         initWithContentsOfURL:[{} URLInBundle] configuration:nil error:&error];\n",
          main) +
      "#import <CoreML/CoreML.h>\n#import <CoreVideo/CoreVideo.h>\n"
      "#import <Foundation/Foundation.h>\n\nNS_ASSUME_NONNULL_BEGIN\n";
  for (const AppFunction& function : app.functions) text += "\n" + Declarations(app, function);
  text += "\nNS_ASSUME_NONNULL_END\n";
  for (const AppFunction& function : app.functions) text += "\n" + Definitions(app, function);
  return text;
}

}  // namespace mlc::driver
