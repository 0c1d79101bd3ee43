#include "tools/driver/model_interface.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "backends/coreml/classifier.h"
#include "tools/driver/supplied_tensors.h"

namespace mlc::driver {

std::vector<std::string> ClassLabels(const Function& function) {
  const Operation* classifier = coreml::FindClassifier(function);
  Tensor classes = classifier ? classifier->constant("classes") : Tensor();
  if (!classes) return {};
  if (classes.dtype() == DType::kString) return classes.strings();
  std::vector<std::string> labels;
  for (int64_t label : classes.Ints()) labels.push_back(std::to_string(label));
  return labels;
}

std::string SizesText(const Function& function, const Dim& dim) {
  auto open = dim.symbol_and_offset();
  if (!open) return "";
  Symbol symbol = function.symbols.at(open->first);
  for (int64_t& size : symbol.enumerated) size += open->second;
  return fmt::format(
      "{} in {}", dim.ToString(),
      symbol.enumerated.empty()
          ? fmt::format("{}..{}", symbol.low + open->second,
                        symbol.high >= INT32_MAX ? "" : std::to_string(symbol.high + open->second))
          : fmt::format("{}", fmt::join(symbol.enumerated, "|")));
}

std::string ShapesText(const Port& port) {
  std::vector<std::string> shapes;
  for (const Dims& dims : port.enumerated_shapes)
    shapes.push_back(fmt::format("[{}]", fmt::join(dims, ", ")));
  return fmt::format("{}", fmt::join(shapes, ", "));
}

std::string AllowedSizesText(const Function& function, const Port& port, const Shape& shape) {
  if (port.enumerated_shapes.size() > 1 && port.enumerated_shapes[0].size() > 1)
    return "one of " + ShapesText(port);
  std::vector<std::string> texts;
  for (const Dim& dim : shape)
    if (std::string text = SizesText(function, dim);
        !text.empty() && std::ranges::find(texts, text) == texts.end())
      texts.push_back(text);
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string OpenSizesText(const Function& function) {
  std::vector<std::string> texts;
  for (const Value* input : InputValues(function))
    for (const Dim& dim : input->type.shape)
      if (std::string text = SizesText(function, dim);
          !text.empty() && std::ranges::find(texts, text) == texts.end())
        texts.push_back(text);
  return fmt::format("{}", fmt::join(texts, ", "));
}

void SetClassLabels(Program& program, const std::vector<std::string>& labels,
                    Diagnostics& diagnostics) {
  coreml::MakeClassifier(program, labels, diagnostics);
}

std::string InputNameOf(const Function& function, const std::string& name) {
  const auto port = std::ranges::find(function.inputs, name, &Port::name);
  return port != function.inputs.end() && !port->source_name.empty() ? port->source_name : name;
}

}  // namespace mlc::driver
