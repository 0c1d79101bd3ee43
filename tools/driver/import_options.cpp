// Options of all commands that import a model.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lib/compress/rules.h"
#include "lib/support/float_text.h"
#include "tools/driver/image_inputs.h"
#include "tools/driver/input_files.h"
#include "tools/driver/options.h"
#include "tools/driver/supplied_tensors.h"

namespace mlc::driver {

namespace {

Symbol ParseSizes(const std::string& value, const std::string& text) {
  Symbol symbol;
  if (size_t dots = value.find(".."); dots != std::string::npos) {
    std::vector<int64_t> low = IntList("--dim", value.substr(0, dots)),
                         high = IntList("--dim", value.substr(dots + 2));
    if (low.size() != 1 || high.size() != 1)
      throw Error("usage", "--dim: \"{}\" lacks a bound", text)
          .Expected("SYMBOL=LOW..HIGH, e.g. N=1..8");
    symbol.low = low[0];
    symbol.high = high[0];
  } else {
    symbol.enumerated = IntList("--dim", value);
    if (symbol.enumerated.empty()) throw Error("usage", "--dim: \"{}\" has no value", text);
    std::ranges::sort(symbol.enumerated);
    symbol.low = symbol.enumerated.front();
    symbol.high = symbol.enumerated.back();
    if (symbol.enumerated.size() == 1) symbol.enumerated.clear();
  }
  if (symbol.low < 1 || symbol.high < symbol.low || symbol.high > INT32_MAX)
    throw Error("usage", "--dim: \"{}\" is not a range of sizes", text)
        .Expected("sizes from 1 to {}, in order", INT32_MAX);
  return symbol;
}

std::string TextOfSizes(const Symbol& sizes) {
  if (!sizes.enumerated.empty()) return fmt::format("{}", fmt::join(sizes.enumerated, ","));
  return sizes.low == sizes.high ? fmt::format("{}", sizes.low)
                                 : fmt::format("{}..{}", sizes.low, sizes.high);
}

ImportOptions::Replacement ParseReplacement(const std::string& text) {
  auto [key, value] = KeyValue("--replace", text);
  size_t dot = key.rfind('.');
  if (dot == std::string::npos)
    throw Error("usage", "--replace: \"{}\" is not of the form OP.ATTR=V", text);
  return {key.substr(0, dot), key.substr(dot + 1), value};
}

// A number behind the last '=' is a scale; other text is part of the path.
ImportOptions::Lora ParseLora(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals != std::string::npos)
    if (const std::optional<double> scale =
            ParseNumber(std::string_view(text).substr(equals + 1))) {
      if (!std::isfinite(*scale))
        throw Error("usage", "--lora: the scale in \"{}\" is not finite", text);
      return {text.substr(0, equals), *scale};
    }
  if (text.empty()) throw Error("usage", "--lora: the path is empty");
  return {text, 1};
}

std::string TextOfLora(const ImportOptions::Lora& lora) {
  return lora.scale == 1 ? lora.path.string()
                         : fmt::format("{}={}", lora.path.string(), lora.scale);
}

}  // namespace

Option CompressOption(std::string& into, std::string_view help) {
  return {"--compress", "RULE[;RULE]...", help, Into(into, [&into](const std::string& text) {
            into = compress::Text(compress::ParseRules(text));
          })};
}

std::vector<Option> ImportTable(ImportOptions& into) {
  std::vector<Option> table = Grouped(
      OptionGroup::kShapes,
      {Common({"--shape", "INPUT=1,3,224,224", "fix the shape of an input",
               Named(
                   "--shape", into.shapes,
                   [](const std::string& dims, const std::string&) {
                     return IntList("--shape", dims);
                   },
                   [](const Dims& dims) { return fmt::format("{}", fmt::join(dims, ",")); }),
               false, true}),
       Common({"--dim", "SYMBOL=4|1..8|1,2,4", "fix, bound or enumerate a dynamic dimension",
               Named("--dim", into.dims, ParseSizes, TextOfSizes), false, true})});
  Append(
      Grouped(
          OptionGroup::kInputs,
          {Common({"--const", "INPUT=FILE",
                   "replace an input with the constant in a .npy or .pb file",
                   Named(
                       "--const", into.constants,
                       [](const std::string& file, const std::string&) { return ReadTensor(file); },
                       [](const Tensor& tensor) { return "xxh3:" + tensor.hash(); }),
                   false, true}),
           Common({"--outputs", "A,B",
                   "make these values the outputs and drop everything else (default: those of the "
                   "model)",
                   NamesInto(into.outputs)}),
           {"--replace", "OP.ATTR=V",
            "override an attribute on every node with this operator (changes results)",
            Field(
                [&into](const std::string& text) {
                  into.replacements.push_back(ParseReplacement(text));
                },
                [&into] {
                  return Each(into.replacements, [](const ImportOptions::Replacement& one) {
                    return fmt::format("{}.{}={}", one.op, one.attribute, one.value);
                  });
                }),
            false, true},
           Common({"--image", "INPUT=rgb,SCALE,BIAS",
                   "make an input an image (rgb, bgr or gray); the model receives pixel * SCALE + "
                   "BIAS, e.g. "
                   "rgb,1/255,0. With mean=M,std=S it receives (pixel / 255 - M) / S; M or S above "
                   "1 are taken "
                   "as pixel values, without the / 255. Each is one number, or one per channel",
                   Field(
                       [&into](const std::string& text) {
                         auto [name, image] = ParseImageOption(text);
                         AddOnce("--image", into.images, name, std::move(image));
                       },
                       [&into] {
                         return Each(into.images, [](const auto& image) {
                           return ImageOption(image.first, image.second);
                         });
                       }),
                   false, true}),
           {"--io", "source|fp16|tensor",
            "inputs and outputs: as in the source (default), with floats in fp16 (requires iOS16), "
            "or tensors, where a Hugging Face folder would make an image input and a classifier",
            Field(
                [&into](const std::string& text) {
                  if (text != "fp16" && text != "source" && text != "tensor")
                    throw UnknownWord("--io", text, {"source", "fp16", "tensor"});
                  into.io = text == "fp16" ? DType::kFp16 : DType::kNone;
                  into.arrays = text == "tensor";
                },
                [&into] {
                  return into.arrays               ? ValuesOf(std::string("tensor"))
                         : into.io == DType::kFp16 ? ValuesOf(std::string("fp16"))
                                                   : std::nullopt;
                })},
           {"--data-root", "DIR",
            "additional folder that may contain external data files, or the targets of "
            "symbolic links to them (default: only the model's folder)",
            Into(into.data_root,
                 [&into](const std::string& text) {
                   into.data_root = text;
                   if (!std::filesystem::is_directory(into.data_root))
                     throw Error("usage", "--data-root: \"{}\" is not a folder", text);
                 })}}),
      table);
  Append(
      Grouped(
          OptionGroup::kLanguage,
          {{"--runtime", "swift|whisperkit",
            "library with which an app runs the model: swift (swift-transformers; the default), or "
            "whisperkit for Whisper: a folder of three packages",
            Field(
                [&into](const std::string& text) {
                  if (text != "swift" && text != kWhisperKit)
                    throw UnknownWord("--runtime", text, {"swift", kWhisperKit});
                  into.runtime = text;
                },
                [&into]() -> std::optional<Field::Values> {
                  if (into.runtime != kWhisperKit) return std::nullopt;
                  return Field::Values{into.runtime};
                })},
           Common({"--context", "N",
                   "maximum context length of a language model, in tokens (default: 2048, or the "
                   "model's own limit if lower)",
                   Into(into.context, Whole("--context", into.context).set)})}),
      table);
  Append(
      Grouped(OptionGroup::kLanguage,
              {Common({"--mmproj", "FILE",
                       "GGUF file with the tower and projector by which a language model in a GGUF "
                       "file reads pictures (default: none)",
                       Into(into.mmproj)})}),
      table);
  Append(
      Grouped(
          OptionGroup::kLanguage,
          {Common(
               {"--lora", "DIR",
                "adapter of low rank, merged into the weights: a folder of PEFT for a Hugging Face "
                "folder, or a GGUF adapter for a GGUF file. DIR=SCALE multiplies its changes "
                "(default: none)",
                Field([&into](const std::string& text) { into.loras.push_back(ParseLora(text)); },
                      [&into] { return Each(into.loras, TextOfLora); }),
                false, true}),
           {"--lora-inputs", "",
            "keep the matrices of --lora as inputs of the package, which an app fills (default: "
            "they "
            "are merged)",
            Switch(into.lora_inputs)},
           {"--functions", "",
            "make one function for each --lora, over shared weights, beside function main without "
            "adapters (default: all are merged)",
            Switch(into.lora_functions)}}),
      table);
  Append(
      Grouped(OptionGroup::kCompression,
              {Common(CompressOption(
                   into.compress,
                   "compress weights, e.g. int8, pal4:group=16, or conv=int4,first=none; mlc "
                   "compile --help explains rules. @FILE contains one rule per line (default: "
                   "weights are stored as they are)")),
               {"--requant", "int8|int4|lut4|fp16",
                "short form of --compress for language models and encoders: int8 (one scale per "
                "row), int4 "
                "(one scale per 32 elements), lut4 (a table of 16 values per 32 rows), or fp16, "
                "dequantised "
                "(default: keep the source's encoding)",
                Into(into.requant,
                     [&into](const std::string& text) {
                       const std::vector<std::string_view> names = {"int8", "int4", "lut4", "fp16"};
                       if (std::ranges::find(names, text) == names.end())
                         throw UnknownWord("--requant", text, names);
                       into.requant = text;
                     })}}),
      table);
  return table;
}

}  // namespace mlc::driver
