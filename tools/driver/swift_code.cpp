#include <fmt/ranges.h>

#include <algorithm>

#include "lib/ir/target_systems.h"
#include "tools/driver/app_code.h"
#include "tools/driver/app_interface.h"
#include "tools/driver/run_tokens.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/version.h"

namespace mlc::driver {

namespace {

// Members with a meaning of their own, and names that the code below uses beside properties.
constexpr std::string_view kSwiftTaken = " Protocol Self Type features init self values ";

std::string Availability(Opset target) {
  std::string systems;
  for (const SystemRelease& release : SystemsOf(target))
    systems += fmt::format("{} {}.0, ", release.system, release.version);
  return fmt::format("@available({}*)", systems);
}

// The scalar of MLShapedArray; "" for types that it lacks, or lacks on some systems (Float16 on Intel
// Macs): these stay MLMultiArray.
std::string_view Scalar(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
      return "Float";
    case DType::kFp64:
      return "Double";
    case DType::kInt32:
      return "Int32";
    default:
      return "";
  }
}

std::string TypeOf(const AppPort& port) {
  const std::string_view key = port.dtype == DType::kString ? "String" : "Int64";
  switch (port.kind) {
    case AppPort::Kind::kImage:
      return "CVPixelBuffer";
    case AppPort::Kind::kLabel:
      return std::string(key);
    case AppPort::Kind::kProbabilities:
      return fmt::format("[{}: Double]", key);
    default:
      return Scalar(port.dtype).empty() ? "MLMultiArray"
                                        : fmt::format("MLShapedArray<{}>", Scalar(port.dtype));
  }
}

// The expression that makes an MLFeatureValue of an input.
std::string ValueOf(const AppPort& port) {
  const std::string_view label = port.kind == AppPort::Kind::kImage ? "pixelBuffer"
                                 : Scalar(port.dtype).empty()       ? "multiArray"
                                                                    : "shapedArray";
  return fmt::format("MLFeatureValue({}: {})", label, port.identifier);
}

// The expression that reads an output from `features`.
std::string Reading(const AppPort& port) {
  const std::string value = fmt::format("features.featureValue(for: {})!", Quoted(port.name));
  switch (port.kind) {
    case AppPort::Kind::kImage:
      return value + ".imageBufferValue!";
    case AppPort::Kind::kLabel:
      return value + (port.dtype == DType::kString ? ".stringValue" : ".int64Value");
    case AppPort::Kind::kProbabilities:
      return fmt::format("{}.dictionaryValue as! {}", value, TypeOf(port));
    default:
      return Scalar(port.dtype).empty()
                 ? value + ".multiArrayValue!"
                 : fmt::format("{}({}.multiArrayValue!)", TypeOf(port), value);
  }
}

// How to make and read an array that is no MLShapedArray.
std::string AboutOf(const AppPort& port, bool input) {
  std::string about = port.about;
  if (port.kind == AppPort::Kind::kArray && port.dtype == DType::kFp16)
    about += input ? " MLMultiArray(MLShapedArray<Float16>(scalars: ..., shape: ...)) makes one."
                   : " MLShapedArray<Float>(converting: ...) reads it as Float.";
  return about;
}

std::string InputStruct(const AppFunction& function) {
  std::string text = "    struct Input {\n";
  for (const AppPort& port : function.inputs)
    text += Comment("        /// ", AboutOf(port, true)) +
            fmt::format("        var {}: {}{}\n", port.identifier, TypeOf(port),
                        port.optional ? "? = nil" : "");
  if (!function.inputs.empty()) text += "\n";
  const bool optional = std::ranges::any_of(function.inputs, &AppPort::optional);
  std::string required;
  for (const AppPort& port : function.inputs)
    if (!port.optional)
      required += fmt::format("                {}: {},\n", Quoted(port.name), ValueOf(port));
  required = required.empty() ? "[:]" : "[\n" + required + "            ]";
  text += "        func features() throws -> MLFeatureProvider {\n";
  text += fmt::format("            {} values: [String: MLFeatureValue] = {}\n",
                      optional ? "var" : "let", required);
  for (const AppPort& port : function.inputs)
    if (port.optional)
      text += fmt::format("            if let {0} = {0} {{ values[{1}] = {2} }}\n", port.identifier,
                          Quoted(port.name), ValueOf(port));
  return text +
         "            return try MLDictionaryFeatureProvider(dictionary: values)\n"
         "        }\n"
         "    }\n";
}

std::string OutputStruct(const AppFunction& function) {
  std::string text = "    struct Output {\n";
  for (const AppPort& port : function.outputs)
    text += Comment("        /// ", AboutOf(port, false)) +
            fmt::format("        let {}: {}\n", port.identifier, TypeOf(port));
  text += "\n        init(_ features: MLFeatureProvider) {\n";
  for (const AppPort& port : function.outputs)
    text += fmt::format("            {} = {}\n", port.identifier, Reading(port));
  return text + "        }\n    }\n";
}

std::string Loading(const AppInterface& app, const AppFunction& function) {
  std::string text = fmt::format(
      R"(    let model: MLModel

    init(model: MLModel) {{ self.model = model }}

    /// Loads a compiled model, by default {0}.mlmodelc in the bundle of this class. The first time
    /// takes long for a large model, since the system prepares it for the device.
    static func load(
        contentsOf url: URL? = nil, configuration: MLModelConfiguration = MLModelConfiguration()
    ) async throws -> {1} {{
        let bundled = Bundle(for: {1}.self).url(forResource: {2}, withExtension: "mlmodelc")
        guard let url = url ?? bundled else {{ throw CocoaError(.fileNoSuchFile) }}
)",
      OneLine(app.resource), function.class_name, Quoted(app.resource));
  if (app.several())
    text += fmt::format(
        R"(        let configuration = configuration.copy() as! MLModelConfiguration
        configuration.functionName = {}
)",
        Quoted(function.function->name));
  return text +
         fmt::format(
             R"(        let model = try await MLModel.load(contentsOf: url, configuration: configuration)
        return {}(model: model)
    }}
)",
             function.class_name);
}

std::string Predicting(const AppInterface& app, const AppFunction& function) {
  const bool state = !function.states.empty();
  std::string text;
  if (state) {
    text += "\n    /// What the model keeps from one prediction to the next, all zeros at first:\n";
    for (const AppPort& port : function.states)
      text += Comment("    /// ", fmt::format("- {}: {}", port.name, port.about));
    text += fmt::format(
        R"(    /// `state.withMultiArray(for: {}) {{ array in ... }}` reads and sets it between predictions.
    func makeState() -> MLState {{ model.makeState() }}

    // Predictions with the same state must not overlap.
)",
        Quoted(function.states[0].name));
  } else {
    text += "\n";
  }
  const std::string_view parameter = state ? ", state: MLState" : "",
                         argument = state ? ", using: state" : "";
  // Asynchronous predictions: iOS17; with a state, iOS18 as the state itself.
  const std::string guard =
      app.target < Opset::kIos17 ? fmt::format("    {}\n", Availability(Opset::kIos17)) : "";
  for (const bool asynchronous : {false, true})
    text += fmt::format(
        R"({0}{1}    func prediction(
        _ input: Input{2}, options: MLPredictionOptions = MLPredictionOptions()
    ) {3}throws -> Output {{
        Output(try {4}model.prediction(from: input.features(){5}, options: options))
    }}
)",
        asynchronous ? "\n" : "", asynchronous ? guard : "", parameter,
        asynchronous ? "async " : "", asynchronous ? "await " : "", argument);
  return text;
}

std::string Pictures(const AppFunction& function) {
  const auto image = std::ranges::find(function.inputs, AppPort::Kind::kImage, &AppPort::kind);
  if (image == function.inputs.end()) return "";
  return fmt::format(
      R"(
    /// Scales a picture to the size of an image input and converts it to its pixel format. To crop
    /// instead of stretching, pass [.cropAndScale: VNImageCropAndScaleOption.centerCrop.rawValue].
    func pixelBuffer(
        _ picture: CGImage, input: String = {}, options: [MLFeatureValue.ImageOption: Any]? = nil
    ) throws -> CVPixelBuffer {{
        let constraint = model.modelDescription.inputDescriptionsByName[input]!.imageConstraint!
        return try MLFeatureValue(cgImage: picture, constraint: constraint, options: options)
            .imageBufferValue!
    }}
)",
      Quoted(image->name));
}

bool Generates(const AppFunction& function) {
  return IsLanguageModel(*function.function) && function.inputs.size() == 2 &&
         !function.states.empty();
}

// The numbers of tokens that a call takes: all of them if listed, otherwise the largest.
struct CallSizes {
  std::vector<int64_t> listed;
  int64_t most;
};
CallSizes SizesOfCall(const Function& function) {
  // Parts of a prompt keep the logits of a call small.
  constexpr int64_t kPart = 128;
  const auto values = InputValues(function);
  const Value& ids = **std::ranges::find(values, "inputIds", &Value::name);
  const Dim& size = ids.type.shape[1];
  if (size.is_constant()) return {{size.constant()}, size.constant()};
  const auto open = size.symbol_and_offset();
  CallSizes sizes{{}, size.Bounds(function.symbols).high};
  if (open)
    for (int64_t listed : function.symbols.at(open->first).enumerated)
      sizes.listed.push_back(listed + open->second);
  std::ranges::sort(sizes.listed);
  if (sizes.listed.empty()) sizes.most = std::min(sizes.most, kPart);
  return sizes;
}

// The loop over tokens (lib/networks/decoder.h describes the inputs).
std::string Generation(const AppInterface& app, const AppFunction& function) {
  const auto values = InputValues(*function.function);
  const Value& mask = **std::ranges::find(values, "causalMask", &Value::name);
  const Value& logits = **std::ranges::find(function.function->body.outputs(), "logits",
                                            [](const Value* value) { return value->name; });
  const LanguageSize size = LanguageSizes(*function.function);
  const CallSizes sizes = SizesOfCall(*function.function);
  const bool fixed = mask.type.shape[3].is_constant();
  auto scalar = [](const Value& value) {
    return value.type.dtype == DType::kFp16 ? "Float16" : "Float";
  };
  // An array of this type as the property of the input has it.
  auto array = [&](const Value& value, std::string_view arguments) {
    std::string text = fmt::format("MLShapedArray<{}>({})", scalar(value), arguments);
    return value.type.dtype == DType::kFp16 ? fmt::format("MLMultiArray({})", text) : text;
  };
  // A memberwise initializer has the order of the properties, which is that of the package.
  auto input = [&](const std::string& ids, const std::string& masked) {
    std::vector<std::string> arguments;
    for (const AppPort& port : function.inputs)
      arguments.push_back(fmt::format("            {}: {}", port.identifier,
                                      port.name == "inputIds" ? ids : masked));
    return fmt::format("        let input = Input(\n{})\n", fmt::join(arguments, ",\n"));
  };
  const bool half = mask.type.dtype == DType::kFp16 || logits.type.dtype == DType::kFp16;
  std::string text = half ? "\n#if !((os(macOS) || targetEnvironment(macCatalyst)) && "
                            "arch(x86_64))  // no Float16\n"
                          : "\n";
  text += fmt::format(
      R"({0}
extension {1} {{
    /// The most tokens that the state holds: those of the prompt and of the answer.
    static let context = {2}

    /// Continues a prompt and returns the new text: none if the prompt exceeds the context.
    ///
    /// - Parameters:
    ///   - prompt: Tokens, of tokenizer.encode(text:) or of a conversation:
    ///     tokenizer.applyChatTemplate(messages: [["role": "user", "content": "..."]])
    ///   - tokenizer: From the folder with tokenizer.json, tokenizer_config.json and config.json:
    ///     AutoTokenizer.from(modelFolder: folder)
    ///   - stops: Tokens that end the answer besides the tokenizer's own, such as
    ///     tokenizer.convertTokenToId("<|im_end|>").
    ///   - progress: Is given the new text so far after each token.
    func generate(
        _ prompt: [Int], tokenizer: any Tokenizer, limit: Int = 256, stops: Set<Int> = [],
        progress: (String) -> Void = {{ _ in }}
    ) async throws -> String {{
        let state = makeState()
        var seen = 0  // the tokens that the state holds
        var next = prompt
        var answer: [Int] = []
        while answer.count < limit, !next.isEmpty, seen + next.count <= Self.context {{
            // A long prompt is read in parts; the scores after the last one count.
            var scores: [{3}] = []
            while !next.isEmpty {{
                let part = Array(next.prefix({4}))
                scores = try await self.scores(after: part, seen: seen, state: state)
                seen += part.count
                next.removeFirst(part.count)
                try Task.checkCancellation()
            }}
            // The most probable token. For more variety, draw one from the softmax of the scores.
            let token = scores.indices.max {{ scores[$0] < scores[$1] }}!
            if token == tokenizer.eosTokenId || stops.contains(token) {{ break }}
            answer.append(token)
            next = [token]
            progress(tokenizer.decode(tokens: answer))
        }}
        return tokenizer.decode(tokens: answer)
    }}

    /// The scores of all {5} tokens of the vocabulary to come after `tokens`, which follow the `seen`
    /// ones that the state holds.
    private func scores(after tokens: [Int], seen: Int, state: MLState) async throws -> [{3}] {{
)",
      Availability(app.target), function.class_name, size.context, scalar(logits), sizes.most,
      size.vocabulary);
  if (fixed) {
    text += sizes.listed.empty()
                ? "        let size = tokens.count\n"
                : fmt::format("        let size = [{}].first {{ $0 >= tokens.count }}!\n",
                              fmt::join(sizes.listed, ", "));
    text += fmt::format(
        R"(        // A token sees itself and what is before it; what it must not see has -40000. Tokens that
        // see nothing fill the call up.
        var mask = [{}](repeating: -40_000, count: size * Self.context)
        for row in tokens.indices {{
            for column in 0...(seen + row) {{ mask[row * Self.context + column] = 0 }}
        }}
        let ids = tokens.map {{ Int32($0) }} + [Int32](repeating: 0, count: size - tokens.count)
{})",
        scalar(mask),
        input("MLShapedArray(scalars: ids, shape: [1, size])",
              array(mask, "scalars: mask, shape: [1, 1, size, Self.context]")));
  } else {
    text += fmt::format(
        R"(        // The model hides later tokens by itself, so the mask is 0 for all tokens so far.
        let all = seen + tokens.count
{})",
        input("MLShapedArray(scalars: tokens.map { Int32($0) }, shape: [1, tokens.count])",
              array(mask, "repeating: 0, shape: [1, 1, tokens.count, all]")));
  }
  const std::string logits_text =
      logits.type.dtype == DType::kFp16 ? "MLShapedArray<Float16>(output.logits)" : "output.logits";
  text += fmt::format(
      R"(        let output = try await prediction(input, state: state)
        return {}[0][tokens.count - 1].scalars
    }}
}}
)",
      logits_text);
  return half ? text + "#endif\n" : text;
}

std::string Example(const AppInterface& app) {
  const AppFunction& function = app.functions[0];
  std::vector<std::string> arguments;
  bool image = false;  // pixelBuffer() has the first image as its default
  for (const AppPort& port : function.inputs) {
    if (port.optional) continue;
    std::string argument = port.identifier;
    if (port.kind == AppPort::Kind::kImage) {
      argument = fmt::format("predictor.pixelBuffer(picture{})",
                             image ? fmt::format(", input: {}", Quoted(port.name)) : "");
      image = true;
    }
    arguments.push_back(fmt::format("{}: {}", port.identifier, argument));
  }
  std::string text =
      fmt::format("//     let predictor = try await {}.load()\n", function.class_name);
  if (Generates(function))
    return text +
           "//     let tokenizer = try await AutoTokenizer.from(modelFolder: folder)\n"
           "//     let answer = try await predictor.generate(\n"
           "//         tokenizer.encode(text: \"Once upon a time\"), tokenizer: tokenizer)\n";
  const bool state = !function.states.empty();
  if (state) text += "//     let state = predictor.makeState()\n";
  return text + fmt::format("//     let output = try await predictor.prediction(.init({}){})\n",
                            fmt::join(arguments, ", "), state ? ", state: state" : "");
}

}  // namespace

std::string SwiftCode(const InspectResult& result, const std::filesystem::path& model) {
  const AppLanguage language{SwiftKeywords(), kSwiftTaken, '`', {}};
  const AppInterface app = AppInterfaceOf(*result.program, result.needed, model, language);
  const bool generates = std::ranges::any_of(app.functions, Generates);
  auto has = [&](auto list, AppPort::Kind kind) {
    return std::ranges::any_of(app.functions, [&](const AppFunction& function) {
      return std::ranges::find(function.*list, kind, &AppPort::kind) != (function.*list).end();
    });
  };
  std::string text =
      Comment("// ", fmt::format("Loads and calls {}. Made by mlc inspect --swift (mlc {}).",
                                 app.package, kVersion));
  text += "//\n";
  text +=
      Comment("// ", fmt::format("Add {} and this file to the target of the app: Xcode compiles "
                                 "the package to {}.mlmodelc in the bundle.",
                                 app.package, app.resource));
  text += "//\n" + Example(app);
  if (has(&AppFunction::inputs, AppPort::Kind::kImage)) text += "import CoreGraphics\n";
  text += "import CoreML\n";
  if (has(&AppFunction::inputs, AppPort::Kind::kImage) ||
      has(&AppFunction::outputs, AppPort::Kind::kImage))
    text += "import CoreVideo\n";
  text += "import Foundation\n";
  if (generates)
    text += "import Tokenizers  // product of https://github.com/huggingface/swift-transformers\n";
  for (const AppFunction& function : app.functions) {
    text += "\n";
    if (app.several())
      text +=
          Comment("/// ", fmt::format("The function \"{}\"{}.", function.function->name,
                                      &function == app.functions.data() ? ", the default" : ""));
    text += fmt::format("{}\nfinal class {} {{\n", Availability(app.target), function.class_name);
    text += InputStruct(function) + "\n" + OutputStruct(function) + "\n" + Loading(app, function) +
            Predicting(app, function) + Pictures(function) + "}\n";
    if (Generates(function)) text += Generation(app, function);
  }
  return text;
}

}  // namespace mlc::driver
