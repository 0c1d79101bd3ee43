#include "tools/driver/doctor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "backends/coreml/classifier.h"
#include "backends/coreml/manifest.h"
#include "lib/analysis/cost.h"
#include "lib/analysis/fp16_share.h"
#include "lib/analysis/input_ranges.h"
#include "lib/analysis/placement_rules.h"
#include "lib/analysis/weight_bytes.h"
#include "lib/passes/safe_masks.h"
#include "lib/support/counted.h"
#include "lib/support/mapped_file.h"
#include "tools/driver/app_interface.h"
#include "tools/driver/explain.h"
#include "tools/driver/frontends.h"
#include "tools/driver/model_interface.h"
#include "tools/driver/run_tokens.h"
#include "tools/driver/supplied_tensors.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

using analysis::Severity;

// Thresholds of the rules.
constexpr int64_t kLargeInputBytes = 16 << 20;  // copied for each prediction
constexpr int64_t kPictureSide = 16;            // minimum, in pixels
constexpr int64_t kDuplicateBytes = 1024;
constexpr double kLittleFp16 = 0.5;  // share of the work

struct Examined {
  const Program& program;
  const fs::path& model;
  const Frontend& frontend;
  bool source;  // whether the model is a source model
  // A source model or a package compiled by mlc, so that options of `mlc compile` are useful
  // advice.
  bool ours;
  std::optional<coreml::Stated> stated;
  std::vector<Finding>& findings;
  const analysis::Rule* rule = nullptr;  // the rule that is being checked

  // Returns whether the model is or was compiled from an ONNX model, or from an unknown source
  // format.
  bool of_onnx() const {
    return source ? frontend.name == "onnx" : ours && (!stated || stated->source_format == "onnx");
  }
};

// Returns advice for `mlc compile`, or for the converter that made the package.
std::string ToCompile(const Examined& at, std::string options, std::string_view elsewhere) {
  return at.ours ? std::move(options) : fmt::format("{} where the model is converted", elsewhere);
}

void Add(Examined& at, std::string place, std::string text, std::string help) {
  at.findings.push_back(
      {at.rule, at.rule->severity, std::move(place), std::move(text), std::move(help)});
}

std::string Place(const Function& function, std::string_view kind, std::string_view name) {
  std::string text = fmt::format("{} \"{}\"", kind, name);
  return function.program->functions.size() > 1
             ? fmt::format("function \"{}\", {}", function.name, text)
             : text;
}

// The place of a function as a whole.
std::string Place(const Function& function) {
  return function.program->functions.size() > 1 ? fmt::format("function \"{}\"", function.name)
                                                : "";
}

// Calls fn(kind, port, value) for the inputs and outputs of a function.
template <class Fn>
void ForEachPort(const Function& function, Fn&& fn) {
  for (const auto& [port, value] : InputPorts(function)) fn("input", port, value);
  for (size_t i = 0; i < function.outputs.size(); ++i)
    fn("output", function.outputs[i], *function.body.outputs()[i]);
}

bool IsImage(const Port& port) { return port.feature != Port::Feature::kMultiArray; }

// --- names

void ChangedNames(const Function& function, Examined& at) {
  ForEachPort(function, [&](std::string_view kind, const Port& port, const Value&) {
    if (!port.source_name.empty() && port.source_name != port.name)
      Add(at, Place(function, kind, port.name),
          fmt::format("the source calls it \"{}\"", port.source_name),
          fmt::format("use \"{}\" in the app, or rename it in the source", port.name));
  });
}

void ReservedNames(const Function& function, Examined& at) {
  ForEachPort(function, [&](std::string_view kind, const Port& port, const Value&) {
    if (IsSwiftKeyword(port.name))
      Add(at, Place(function, kind, port.name), "the name is a Swift keyword",
          "rename it in the source: the class that Xcode generates has a property of this name");
  });
}

// --- classifiers

// Returns the number of outputs to which --labels could apply.
int64_t OfTheSameSize(const Function& function, int64_t elements) {
  const std::vector<Value*>& outputs = function.body.outputs();
  return std::ranges::count_if(outputs, [&](const Value* value) {
    return value->type.is_tensor() && IsFloat(value->type.dtype) &&
           Product(value->type.shape) == Dim(elements);
  });
}

void Unlabelled(const Function& function, Examined& at) {
  if (coreml::FindClassifier(function)) return;
  ForEachPort(function, [&](std::string_view kind, const Port& port, const Value& value) {
    if (kind != "output" || !value.type.is_tensor() || !IsFloat(value.type.dtype)) return;
    int64_t classes = 1;  // the only size that is not 1
    for (const Dim& dim : value.type.shape) {
      if (!dim.is_constant() || (classes != 1 && dim != Dim(1))) return;
      classes = std::max(classes, dim.constant());
    }
    if (classes < 2 || !coreml::AreShares(value)) return;
    Add(at, Place(function, kind, port.name),
        fmt::format(
            "{} numbers from 0 to 1 without labels: an app gets an array instead of a class",
            classes),
        ToCompile(at,
                  fmt::format("compile with --labels FILE{} if they are class probabilities",
                              OfTheSameSize(function, classes) > 1 && at.of_onnx()
                                  ? " --outputs " + verify::UserName(port)
                                  : ""),
                  "add labels"));
  });
}

void Logits(const Function& function, Examined& at) {
  const Operation* classifier = coreml::FindClassifier(function);
  const Value* probabilities = classifier ? classifier->value("probabilities") : nullptr;
  const Operation* logits = probabilities ? coreml::MakesLogits(probabilities) : nullptr;
  if (!logits) return;
  Add(at, Place(function, "output", classifier->results.back()->name),
      fmt::format("the probabilities are the result of {}, which may be outside 0 to 1",
                  logits->def->name),
      "end the model in a softmax (one label) or sigmoid (several)");
}

// --- sizes

// Returns a few example sizes of a symbol.
std::vector<int64_t> SizesIn(const Symbol& symbol) {
  std::vector<int64_t> sizes;
  for (int64_t size : symbol.enumerated.empty() ? std::vector<int64_t>{1, 4, 8} : symbol.enumerated)
    if (size >= symbol.low && size <= symbol.high && sizes.size() < 3) sizes.push_back(size);
  if (sizes.size() < 2) sizes = {symbol.low, std::min(symbol.high, 2 * symbol.low)};
  return sizes;
}

void OpenDimensions(const Function& function, Examined& at) {
  const std::string sizes = OpenSizesText(function);
  if (sizes.empty()) return;
  std::string help;
  if (IsLanguageModel(function)) {
    help = fmt::format("a language model needs them; compile with --context {} to bound them",
                       std::max<int64_t>(LanguageSizes(function).context / 2, 1));
  } else if (at.ours) {
    std::string fixed, listed;
    std::set<std::string> done;
    for (const std::string& name : analysis::InputSymbols(function)) {
      if (!done.insert(name).second) continue;
      const Symbol& symbol = function.symbols.at(name);
      if (symbol.low >= symbol.high) continue;
      const std::vector<int64_t> some = SizesIn(symbol);
      const char* between = fixed.empty() ? "" : " ";
      fixed += fmt::format("{}--dim {}={}", between, name, some.back());
      listed += fmt::format("{}--dim {}={}", between, name, fmt::join(some, ","));
    }
    help = fmt::format("fix them ({}) or list the few that are needed ({})", fixed, listed);
  } else {
    help = "fix them, or list the few that are needed, where the model is converted";
  }
  Add(at, Place(function), fmt::format("dynamic sizes: {}", sizes),
      help + ": the Neural Engine supports fixed and listed shapes");
}

// Returns whether a size of the input has no bound: compiling a source model adds default bounds.
bool IsUnbounded(const Function& function, const Port& port, const Value& input, bool source) {
  if (std::ranges::any_of(port.shape_range, [](const auto& range) { return range.second < 0; }))
    return true;
  return std::ranges::any_of(input.type.shape, [&](const Dim& dim) {
    const auto name = dim.symbol_and_offset();
    if (!name) return false;
    const Symbol& symbol = function.symbols.at(name->first);
    return symbol.high >= INT32_MAX ||
           (source && symbol.high == Symbol{}.high && symbol.enumerated.empty());
  });
}

// Returns the options that bound the open sizes of an input.
std::string Bounding(const Function& function, const Value& input) {
  std::vector<std::string> names;
  for (const Dim& dim : input.type.shape) dim.CollectSymbols(names);
  std::string options;
  std::set<std::string> done;
  for (const std::string& name : names)
    if (const Symbol& symbol = function.symbols.at(name); done.insert(name).second)
      options += fmt::format("{}--dim {}={}..{}", options.empty() ? "" : " ", name, symbol.low,
                             std::clamp<int64_t>(512, symbol.low, symbol.high));
  return options;
}

void Unbounded(const Function& function, Examined& at) {
  for (const auto& [port, value] : InputPorts(function))
    if (IsUnbounded(function, port, value, at.source))
      Add(at, Place(function, "input", value.name),
          at.source
              ? fmt::format("a size has no upper bound; mlc compile limits it to {}", Symbol{}.high)
              : "a size has no upper bound",
          ToCompile(at, fmt::format("bound it ({})", Bounding(function, value)), "bound it") +
              ": memory and plans are made for the largest size");
}

// Reports the sizes that tools measure and plan with by default.
void DefaultShapes(const Function& function, Examined& at) {
  for (const auto& [port, value] : InputPorts(function)) {
    const Shape& shape = value.type.shape;
    const Dims& given = port.default_shape;
    std::string sizes;
    for (size_t d = 0; d < shape.size(); ++d) {
      auto name = shape[d].symbol_and_offset();
      if (!name) continue;
      const Symbol& symbol = function.symbols.at(name->first);
      const int64_t low = symbol.low + name->second;
      if (symbol.high > symbol.low && (given.size() != shape.size() || given[d] == low))
        sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", shape[d].ToString(), low);
    }
    if (!sizes.empty())
      Add(at, Place(function, "input", value.name),
          fmt::format("the default shape has the smallest sizes, {}", sizes),
          "note that tools such as Xcode's performance report use the default shape");
  }
}

void DataDependent(const Function& function, Examined& at) {
  const std::vector<std::string> known = analysis::InputSymbols(function);
  ForEachPort(function, [&](std::string_view kind, const Port& port, const Value& value) {
    std::vector<std::string> names;
    for (const Dim& dim : value.type.shape) dim.CollectSymbols(names);
    const bool depends = std::ranges::any_of(names, [&](const std::string& name) {
      return std::ranges::find(known, name) == known.end();
    });
    if (kind == "output" && depends)
      Add(at, Place(function, kind, port.name),
          fmt::format("its shape, {}, depends on data", ToString(value.type.shape)),
          "pad to a fixed size in the model, and return the count as another output");
  });
}

void LargeInputs(const Function& function, Examined& at) {
  for (const auto& [port, input] : InputPorts(function)) {
    const Type& type = input.type;
    if (!type.is_tensor() || type.dtype == DType::kString ||
        IsUnbounded(function, port, input, at.source))
      continue;
    const int64_t most = Product(type.shape).Bounds(function.symbols).high;
    const auto bytes = static_cast<double>(ByteCount(type.dtype, 1)) * static_cast<double>(most);
    if (bytes >= static_cast<double>(kLargeInputBytes))
      Add(at, Place(function, "input", input.name),
          fmt::format("up to {:.0f} MB, which are copied for each prediction", bytes / 1e6),
          "bound its sizes, pass a picture as an image, or turn what stays the same into a "
          "constant or a state");
  }
}

// --- types

// Returns whether the input is an attention mask: it affects only softmax operations, is an
// `attn_mask` operand, or has the range of a mask.
bool IsMask(const Function& function, const Value& input) {
  const std::unordered_set<const Operation*> ending = passes::EndInSoftmax(function.body);
  const bool masks =
      std::all_of(input.users.begin(), input.users.end(), [&](const Operation* user) {
        return passes::EndsInSoftmax(*user, ending) ||
               (user->def->Find("attn_mask") >= 0 && user->value("attn_mask") == &input);
      });
  if (input.has_uses() && masks) return true;
  const std::map<std::string, analysis::InputRange> ranges = analysis::InputRanges(function, {});
  const auto range = ranges.find(input.name);
  return range != ranges.end() && range->second.kind == analysis::InputRange::Kind::kMask;
}

void Pictures(const Function& function, Examined& at) {
  if (at.ours && !at.of_onnx()) return;   // --image does not apply to them
  if (IsLanguageModel(function)) return;  // inputs of this shape are masks
  for (const auto& [port, input] : InputPorts(function)) {
    const Shape& shape = input.type.shape;
    if (IsImage(port) || shape.size() != 4 || !IsFloat(input.type.dtype)) continue;
    auto side = [&](const Dim& dim) { return dim.Bounds(function.symbols).high; };
    // Inputs with one channel are often not pictures: those far from square are spectrograms or
    // tables.
    auto is_picture = [&](const Dim& channels, int64_t height, int64_t width) {
      const auto [low, high] = std::minmax(height, width);
      return low >= kPictureSide && (channels == Dim(3) || (channels == Dim(1) && high <= 2 * low));
    };
    const bool first = is_picture(shape[1], side(shape[2]), side(shape[3]));
    const bool last = is_picture(shape[3], side(shape[1]), side(shape[2]));
    if ((!first && !last) || IsMask(function, input)) continue;
    const std::optional<std::string> batch = shape[0].symbol();
    std::string help = "Core ML passes images one at a time: export with a batch of 1";
    if (!at.ours)
      help = "declare it as an image where the model is converted";
    else if (shape[0] == Dim(1) || (batch && function.symbols.at(*batch).low == 1))
      help = fmt::format(
          "compile with --image {}={},1/255,0{}, or the scale and bias that the model was trained "
          "with: an app can then pass camera frames without a conversion on the CPU{}",
          verify::UserName(port), shape[first ? 1 : 3] == Dim(1) ? "gray" : "rgb",
          batch ? fmt::format(" --dim {}=1", *batch) : "",
          first ? ""
                : "; the package transposes it, as Core ML's images have their channels first");
    Add(at, Place(function, "input", input.name),
        fmt::format("{} looks like an image, but is declared as an array", ToString(shape)),
        std::move(help));
  }
}

void WideOutputs(const Function& function, Examined& at) {
  ForEachPort(function, [&](std::string_view kind, const Port& port, const Value& value) {
    if (at.source || kind != "output" || value.type.dtype != DType::kFp32 || !value.def ||
        value.def->results.size() != 1)
      return;
    // An fp32 result of only fp16 operands was widened by the last operation.
    bool narrow = false, other = false;
    for (const Operands& operands : value.def->args())
      for (const Operand& operand : operands)
        if (operand.value && operand.value->type.is_tensor() && !operand.value->is_constant())
          (operand.value->type.dtype == DType::kFp16 ? narrow : other) = true;
    if (narrow && !other)
      Add(at, Place(function, kind, port.name), "computed in fp16 and widened to fp32 at the end",
          ToCompile(at,
                    fmt::format("compile with --io fp16{}, if the app can use fp16",
                                function.opset < Opset::kIos16 ? " --target iOS16" : ""),
                    "declare it as fp16 (from iOS16)"));
  });
}

void LittleFp16(const Program& program, Examined& at) {
  if (at.source) return;
  const double share = analysis::Fp16ShareOf(program).share();
  if (share >= kLittleFp16) return;
  Add(at, "",
      fmt::format("{:.0f} % of the work on floats is in fp16, but the Neural Engine computes in "
                  "fp16 only",
                  100 * share),
      at.stated && at.stated->precision == "fp16"
          ? fmt::format("it is already compiled for fp16: the decisions in {} say why operations "
                        "stay in fp32",
                        coreml::ManifestPath(at.model).string())
          : ToCompile(at, "compile with --precision fp16; mlc verify shows the errors",
                      "compute in fp16"));
}

// --- states

const Type* StateType(const Value& value) {
  return value.type.kind == Type::Kind::kState ? &value.type.elements[0] : nullptr;
}

void States(const Function& function, Examined& at) {
  std::vector<std::string> names;
  for (const auto& input : function.body.inputs)
    if (StateType(*input)) names.push_back(input->name);
  if (!names.empty())
    Add(at, Place(function), fmt::format("it has states: {}", fmt::join(names, ", ")),
        "they require iOS18 or macOS15: ship another package for older systems, and create one "
        "MLState per sequence");
}

void WideStates(const Function& function, Examined& at) {
  for (const auto& input : function.body.inputs)
    if (const Type* type = StateType(*input); type && type->dtype != DType::kFp16)
      Add(at, Place(function, "state", input->name),
          fmt::format("it is {}, but Core ML's states are fp16", Name(type->dtype)),
          "make it fp16");
}

// --- the model as a whole

void Metadata(const Program& program, Examined& at) {
  if (at.source) return;
  const Interface& interface = program.interface;
  std::vector<std::string> missing;
  for (const auto& [name, value] :
       {std::pair{"author", &interface.author}, std::pair{"license", &interface.license},
        std::pair{"description", &interface.short_description}})
    if (value->empty()) missing.push_back(name);
  if (!missing.empty())
    Add(at, "", fmt::format("no {}", fmt::join(missing, ", ")),
        fmt::format("compile with --{} TEXT: Xcode shows it to users of the model",
                    fmt::join(missing, " TEXT --")));
}

void NewerThanNeeded(const Program& program, Examined& at) {
  const int declared = program.interface.specification_version;
  if (at.source || declared == 0) return;
  Opset needed = Opset::kIos15;
  bool half = false;  // an fp16 input or output requires iOS16
  for (const auto& function : program.functions) {
    for (const auto& input : function->body.inputs)
      if (StateType(*input)) needed = std::max(needed, Opset::kIos18);
    ForEachPort(*function, [&](std::string_view, const Port& port, const Value& value) {
      half = half || value.type.dtype == DType::kFp16 || port.dtype == DType::kFp16;
    });
    ForEachOperation(*function, [&](Operation* op) {
      const Opset since = op->form ? op->form->since : op->def->forms.front().since;
      needed = std::max(needed, since);
    });
  }
  if (half) needed = std::max(needed, Opset::kIos16);
  if (program.functions.size() > 1) needed = std::max(needed, Opset::kIos18);
  // iOS16 is the default target of packages; a lower one has no advantage.
  needed = std::max(needed, Opset::kIos16);
  if (static_cast<int>(needed) >= declared) return;
  Add(at, "",
      fmt::format("it declares {}, but its operations require only {}",
                  TargetName(static_cast<Opset>(declared)), TargetName(needed)),
      fmt::format("compile with --target {} to support older systems", TargetName(needed)));
}

void Duplicates(const Program& program, Examined& at) {
  if (at.source) return;  // compiling merges duplicates
  // Equal constants at different offsets, by content.
  std::map<std::string, std::map<std::pair<const MappedFile*, uint64_t>, std::string>> places;
  std::map<std::string, int64_t> sizes;
  // Only constants that share their size with another one are read.
  struct Part {
    const std::string* name;  // name of the weight
    const Tensor* tensor;
    auto Place() const {
      const Tensor::FileView view = tensor->file_view();
      return std::pair(view.file, view.offset);
    }
  };
  std::map<size_t, std::vector<Part>> by_size;
  const std::vector<analysis::Weight> weights = analysis::WeightsOf(program);
  for (const analysis::Weight& weight : weights)
    for (const Tensor& tensor : weight.parts)
      if (static_cast<int64_t>(tensor.byte_size()) >= kDuplicateBytes && tensor.file_view().file)
        by_size[tensor.byte_size()].push_back({&weight.name, &tensor});
  for (const auto& [size, parts] : by_size) {
    if (parts.size() < 2) continue;  // a unique size has no duplicates
    for (const Part& part : parts) {
      const std::string what =
          fmt::format("{} {} {}", Name(part.tensor->dtype()), size, part.tensor->hash());
      places[what].emplace(part.Place(), *part.name);
      sizes[what] = static_cast<int64_t>(size);
    }
  }
  int64_t bytes = 0;
  std::vector<std::string> names;
  for (const auto& [what, copies] : places) {
    if (copies.size() < 2) continue;
    bytes += sizes[what] * (std::ssize(copies) - 1);
    constexpr size_t kShown = 3;
    if (names.size() < kShown) names.push_back(copies.begin()->second);
  }
  if (bytes > 0)
    Add(at, "",
        fmt::format("{:.2f} MB of weights are duplicates: {} ...", static_cast<double>(bytes) / 1e6,
                    fmt::join(names, ", ")),
        fmt::format("mlc opt {} -o OUT.mlpackage keeps one copy of each", at.model.string()));
}

// --- placement

// Rules of placement whose subject the rules above report for the inputs and outputs.
constexpr std::array<std::string_view, 4> kReported = {"fp32", "fp32-port", "open-shape",
                                                       "data-dependent-shape"};
constexpr double kMuchWork = 0.05;  // share of the work outside the Neural Engine

void Placements(const Function& function, Examined& at) {
  if (at.source) return;  // its operations are not those of the package
  const analysis::Placement placement =
      PlacementOf(function, analysis::Unit::kNeuralEngine, analysis::DefaultChip(),
                  analysis::SizesToExamine(function).front());
  for (const RuleImpact& impact : ImpactsOf(placement)) {
    const analysis::PlacementFinding& first = placement.findings[impact.findings[0]];
    const Severity severity = impact.rule->severity;
    if ((severity != Severity::kCannotRun && severity != Severity::kInaccurate) ||
        std::ranges::find(kReported, impact.rule->id) != kReported.end())
      continue;
    const double share = placement.work > 0 ? impact.work / placement.work : 0;
    at.findings.push_back(
        {impact.rule,
         severity == Severity::kInaccurate || share >= kMuchWork ? Severity::kWarning
                                                                 : Severity::kNote,
         Place(function),
         fmt::format("{}: {} on the Neural Engine of {}, first {} \"{}\", {}", impact.rule->meaning,
                     Counted(std::ssize(impact.findings), "operation"),
                     analysis::DefaultChip().name, first.op->def->name, analysis::NameOf(*first.op),
                     first.text),
         fmt::format("mlc explain {} shows all of them, and what to do", at.model.string())});
  }
}

// A rule's check, for each function or for the whole program.
struct Row {
  analysis::Rule rule;
  void (*function)(const Function&, Examined&) = nullptr;
  void (*program)(const Program&, Examined&) = nullptr;
};
constexpr Severity kNote = Severity::kNote, kWarning = Severity::kWarning;
constexpr analysis::Standing kApple = analysis::Standing::kApple, kCode = analysis::Standing::kCode,
                             kClaim = analysis::Standing::kClaim;
constexpr std::array kRows = {
    Row{{"name-changed", kNote, "a name differs from the source's", kCode,
         "coremltools, mil/passes/defs/preprocess.py: names must be MIL identifiers",
         "use the package's name, or rename it in the source"},
        ChangedNames},
    Row{{"name-reserved", kWarning, "a name is a Swift keyword", kApple,
         "The Swift Programming Language, \"Keywords and Punctuation\"", "rename it in the source"},
        ReservedNames},
    Row{{"no-labels", kNote, "class probabilities without labels", kApple,
         "coremltools, docs-guides/source/classifiers.md", "compile with --labels FILE"},
        Unlabelled},
    Row{{"logits-as-probabilities", kWarning, "a classifier without softmax or sigmoid", kApple,
         "Core ML's Model.proto: predictedProbabilitiesName",
         "end the model in a softmax or sigmoid"},
        Logits},
    Row{{"open-size", kNote, "an input has a dynamic size", kApple,
         "apple/coreai-models, neural_engine_rules.md: \"Fully static shapes\"",
         "fix or list the sizes (--dim)"},
        OpenDimensions},
    Row{{"unbounded-size", kWarning, "a dynamic size has no upper bound", kApple,
         "coremltools, docs-guides/source/flexible-inputs.md", "bound the size (--dim)"},
        Unbounded},
    Row{{"small-default", kNote, "the default shape uses the smallest sizes", kApple,
         "coremltools, docs-guides/source/flexible-inputs.md: the default shape",
         "list the most usual size first"},
        DefaultShapes},
    Row{{"data-dependent-size", kWarning, "an output's size depends on the data", kApple,
         "apple/coreai-models, neural_engine_rules.md: \"Fully static shapes\"",
         "pad to a fixed size, and return the count"},
        DataDependent},
    Row{{"large-input", kWarning, "an input of 16 MB or more", kCode,
         "mlc's runner, which copies inputs into multi-arrays",
         "bound its sizes, or pass an image"},
        LargeInputs},
    Row{{"picture-as-array", kNote, "an input looks like an image but is an array", kApple,
         "coremltools, docs-guides/source/image-inputs.md", "compile with --image"},
        Pictures},
    Row{{"widened-output", kNote, "an output is converted from fp16 to fp32", kClaim,
         "maderix/ANE: fp16 inputs and outputs save a third of their time",
         "compile with --io fp16"},
        WideOutputs},
    Row{{"little-fp16", kWarning, "most of the work is not in fp16", kApple,
         "apple/coreai-models, neural_engine_rules.md: \"fp32 falls back to GPU/CPU\"",
         "compile with --precision fp16"},
        nullptr,
        LittleFp16},
    Row{{"states", kNote, "states require iOS18", kApple,
         "coremltools, docs-guides/source/stateful-models.md",
         "ship another package for older systems"},
        States},
    Row{{"state-type", kWarning, "a state is not fp16", kApple,
         "coremltools, docs-guides/source/stateful-models.md", "make it fp16"},
        WideStates},
    Row{{"metadata", kNote, "author, licence or description is missing", kApple,
         "Core ML's Model.proto: Metadata", "compile with --author, --license and --description"},
        nullptr,
        Metadata},
    Row{{"target", kNote, "the declared target is newer than the model needs", kApple,
         "coremltools, docs-guides/source/target-conversion-formats.md", "compile with --target"},
        nullptr,
        NewerThanNeeded},
    Row{{"duplicate-weights", kWarning, "duplicate weights", kCode,
         "coremltools, mil/passes/defs/cleanup/const_deduplication.py",
         "run mlc opt on the package"},
        nullptr,
        Duplicates},
};
constexpr auto kRules = [] {
  std::array<analysis::Rule, kRows.size()> rules{};
  for (size_t i = 0; i < rules.size(); ++i) rules[i] = kRows[i].rule;
  return rules;
}();

}  // namespace

std::span<const analysis::Rule> DoctorRules() { return kRules; }

std::vector<Finding> Examine(const fs::path& model, const ImportOptions& options,
                             Diagnostics& diagnostics) {
  const Program program = Import(model, options, diagnostics);
  std::vector<Finding> findings;
  const Frontend& frontend = FrontendOf(model);
  const bool source = frontend.IsSource();
  bool ours = source;
  for (const auto& function : program.functions)
    ForEachPort(*function, [&](std::string_view, const Port& port, const Value&) {
      ours = ours || port.source_dtype != DType::kNone;  // only set in packages written by mlc
    });
  Examined at{program, model, frontend,
              source,  ours,  source ? std::nullopt : coreml::StatedOf(model),
              findings};
  for (size_t i = 0; i < kRows.size(); ++i) {
    at.rule = &kRules[i];
    if (kRows[i].program) kRows[i].program(program, at);
    if (!kRows[i].function) continue;
    for (const auto& function : program.functions) kRows[i].function(*function, at);
  }
  for (const auto& function : program.functions) Placements(*function, at);
  return findings;
}

}  // namespace mlc::driver
