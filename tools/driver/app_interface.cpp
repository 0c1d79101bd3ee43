#include "tools/driver/app_interface.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "backends/coreml/classifier.h"
#include "lib/coreml/interface_entry.h"
#include "tools/driver/model_interface.h"
#include "tools/driver/supplied_tensors.h"

namespace mlc::driver {

namespace {

// The Swift Programming Language, "Keywords and Punctuation".
constexpr std::string_view kSwiftKeywords =
    " Any Self as associatedtype await break case catch class continue default defer deinit do "
    "else enum extension fallthrough false fileprivate for func guard if import in init inout "
    "internal is let nil open operator precedencegroup private protocol public repeat rethrows "
    "return self static struct subscript super switch throw throws true try typealias var where "
    "while ";

bool HasWord(std::string_view words, std::string_view word) {
  return words.find(fmt::format(" {} ", word)) != std::string_view::npos;
}

bool IsWordCharacter(unsigned char c) { return c < 0x80 && (std::isalnum(c) || c == '_'); }

// "mobile-net v2" -> "MobileNetV2".
std::string CamelCase(std::string_view text) {
  std::string name;
  bool begins = true;
  for (char c : text) {
    const bool belongs = IsWordCharacter(static_cast<unsigned char>(c)) && c != '_';
    if (belongs)
      name += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = !belongs;
  }
  return name;
}

// Makes identifiers of names, each different from those before.
class Identifiers {
 public:
  explicit Identifiers(const AppLanguage& language) : language_(language) {}

  std::string Of(std::string_view name) {
    std::string base(name);
    for (char& c : base)
      if (!IsWordCharacter(static_cast<unsigned char>(c))) c = '_';
    if (base.find_first_not_of('_') == std::string::npos) base = "value";
    if (std::isdigit(static_cast<unsigned char>(base[0]))) base = "_" + base;
    if (IsOfFamily(base)) base = "the_" + base;
    if (HasWord(language_.taken, base) ||
        (language_.quote == 0 && HasWord(language_.keywords, base)))
      base += '_';
    std::string unique = base;
    for (int number = 2; !used_.insert(unique).second; ++number)
      unique = fmt::format("{}_{}", base, number);
    const bool quoted = language_.quote != 0 && HasWord(language_.keywords, unique);
    return quoted ? language_.quote + unique + language_.quote : unique;
  }

 private:
  // Clang's documentation of automatic reference counting, "Method families": underscores, the
  // word, and then no lowercase letter.
  bool IsOfFamily(std::string_view name) const {
    name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
    return std::ranges::any_of(language_.families, [&](std::string_view family) {
      return name.starts_with(family) &&
             (name.size() == family.size() ||
              !std::islower(static_cast<unsigned char>(name[family.size()])));
    });
  }

  const AppLanguage& language_;
  std::set<std::string> used_;
};

// The names of MLMultiArrayDataType.
std::string_view ElementName(DType dtype) {
  switch (dtype) {
    case DType::kFp16:
      return "float16";
    case DType::kFp32:
      return "float32";
    case DType::kFp64:
      return "double";
    default:
      return Name(dtype);
  }
}

std::string LabelsText(const std::vector<std::string>& labels) {
  constexpr size_t kShown = 5;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(kShown, labels.size()); ++i)
    shown.push_back(fmt::format("\"{}\"", labels[i]));
  return fmt::format("{}{}", fmt::join(shown, ", "), labels.size() > kShown ? ", ..." : ".");
}

AppPort PortOf(const Function& function, const Port& port, const Value& value, bool input) {
  AppPort made;
  made.name = port.name;
  made.optional = input && port.optional;
  const Type& type = value.type.kind == Type::Kind::kState ? value.type.elements[0] : value.type;
  const std::string sizes = AllowedSizesText(function, port, type.shape);
  if (value.def && value.def == coreml::FindClassifier(function)) {
    const std::vector<std::string> labels = ClassLabels(function);
    made.kind = type.is_tensor() ? AppPort::Kind::kLabel : AppPort::Kind::kProbabilities;
    made.dtype = type.is_tensor() ? type.dtype : type.elements[0].dtype;
    made.about =
        type.is_tensor()
            ? "The most probable class."
            : fmt::format("The probability of each of the {}: {}",
                          labels.size() == 1 ? "class" : fmt::format("{} classes", labels.size()),
                          LabelsText(labels));
  } else if (port.feature != Port::Feature::kMultiArray) {
    made.kind = AppPort::Kind::kImage;
    const std::string_view colours = port.feature == Port::Feature::kImageGray ? "Gray" : "Colour";
    made.dtype = port.dtype == DType::kFp16 ? DType::kFp16 : DType::kUint8;
    made.about =
        fmt::format("{} image, width {}, height {}{}{}.", colours, type.shape[3].ToString(),
                    type.shape[2].ToString(), sizes.empty() ? "" : ": ", sizes);
    made.about += made.dtype == DType::kFp16 ? " kCVPixelFormatType_OneComponent16Half."
                  : port.feature == Port::Feature::kImageGray
                      ? " kCVPixelFormatType_OneComponent8."
                      : fmt::format(
                            " kCVPixelFormatType_32BGRA: Core ML puts the channels in the model's "
                            "order ({}).",
                            coreml::ImageName(port.feature));
  } else {
    made.dtype = port.dtype == DType::kNone ? type.dtype : port.dtype;
    // Core ML has no inputs of rank 0 (backends/coreml/emit_description.cpp).
    made.about = fmt::format("{} {}{}{}.", ElementName(made.dtype),
                             type.shape.empty() ? "[1]" : ToString(type.shape),
                             sizes.empty() ? "" : ": ", sizes);
    if (made.optional)
      made.about +=
          fmt::format(" Optional: {} everywhere if absent.", port.default_value.value_or(0));
  }
  if (!port.description.empty()) made.about = port.description + " - " + made.about;
  return made;
}

}  // namespace

std::string_view SwiftKeywords() { return kSwiftKeywords; }

bool IsSwiftKeyword(std::string_view name) { return HasWord(kSwiftKeywords, name); }

AppInterface AppInterfaceOf(const Program& program, Opset needed,
                            const std::filesystem::path& model, const AppLanguage& language) {
  AppInterface made;
  const std::filesystem::path path = model.has_filename() ? model : model.parent_path();
  made.resource = path.stem().string();
  made.package = made.resource + ".mlpackage";
  made.target = needed;
  std::vector<const Function*> functions = {program.main()};
  for (const auto& function : program.functions)
    if (function.get() != program.main()) functions.push_back(function.get());
  std::string stem = CamelCase(made.resource);
  if (stem.empty() || std::isdigit(static_cast<unsigned char>(stem[0]))) stem = "Model" + stem;
  std::set<std::string> classes;
  for (const Function* function : functions) {
    // "Predictor" sets the class apart from the one that Xcode makes of the package's name.
    const std::string part = function == program.main() ? "" : CamelCase(function->name);
    std::string class_name = stem + part + "Predictor";
    for (int number = 2; !classes.insert(class_name).second; ++number)
      class_name = fmt::format("{}{}{}Predictor", stem, part, number);
    AppFunction& one = made.functions.emplace_back(AppFunction{function, class_name, {}, {}, {}});
    Identifiers inputs(language), outputs(language), states(language);
    for (const auto& [port, value] : InputPorts(*function)) {
      one.inputs.push_back(PortOf(*function, port, value, true));
      one.inputs.back().identifier = inputs.Of(port.name);
    }
    for (size_t i = 0; i < function->outputs.size(); ++i) {
      const Port& port = function->outputs[i];
      one.outputs.push_back(PortOf(*function, port, *function->body.outputs()[i], false));
      one.outputs.back().identifier = outputs.Of(port.name);
    }
    const std::vector<const Value*> values = StateValues(*function);
    for (size_t i = 0; i < values.size(); ++i) {
      one.states.push_back(PortOf(*function, function->states[i], *values[i], false));
      one.states.back().identifier = states.Of(function->states[i].name);
    }
    // MLState and MLModelConfiguration.functionName.
    if (!values.empty() || functions.size() > 1) made.target = std::max(made.target, Opset::kIos18);
  }
  return made;
}

std::string Comment(std::string_view begin, std::string_view text) {
  constexpr size_t kWidth = 100;
  std::string lines, line(begin);
  bool empty = true;
  auto end = [&] {
    while (line.ends_with(' ')) line.pop_back();
    lines += line + "\n";
    line = begin;
    empty = true;
  };
  size_t at = 0;
  while (at < text.size()) {
    const auto blank = [&](size_t i) {
      return static_cast<unsigned char>(text[i]) <= ' ' || text[i] == 0x7F;
    };
    while (at < text.size() && blank(at)) ++at;
    size_t stop = at;
    while (stop < text.size() && !blank(stop)) ++stop;
    if (stop == at) break;
    if (!empty && line.size() + 1 + (stop - at) > kWidth) end();
    if (!empty) line += ' ';
    line += text.substr(at, stop - at);
    empty = false;
    at = stop;
  }
  end();
  return lines;
}

std::string OneLine(std::string_view text) {
  std::string line(text);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = ' ';
  return line;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  // No name that Core ML accepts has a control character.
  for (char c : OneLine(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace mlc::driver
