#include "tools/mlc/interface_report.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "lib/coreml/interface_entry.h"
#include "tools/driver/supplied_tensors.h"

namespace mlc::driver {

namespace {

const Shape& ShapeOf(const Type& type) {
  return type.kind == Type::Kind::kState ? type.elements[0].shape : type.shape;
}

}  // namespace

std::string ShownName(const Port& port) {
  if (port.source_name.empty() || port.source_name == port.name) return port.name;
  return fmt::format("{} (from \"{}\")", port.name, port.source_name);
}

std::string InterfaceText(const Function& function, size_t most) {
  std::string text;
  auto sizes = [&](const Port& port, const Shape& shape) {
    std::string allowed = AllowedSizesText(function, port, shape);
    return allowed.empty() ? allowed : ", " + allowed;
  };
  auto ports = [&](std::string_view title, const std::vector<Port>& list, auto value_of) {
    size_t width = 24;
    for (size_t i = 0; i < std::min(most, list.size()); ++i)
      width = std::clamp(ShownName(list[i]).size(), width, size_t{48});
    for (size_t i = 0; i < std::min(most, list.size()); ++i) {
      const Port& port = list[i];
      const Value& value = value_of(i);
      bool image = port.feature != Port::Feature::kMultiArray;
      text += fmt::format("{:<11}{:<{}} {:<6} {}{}{}{}\n", i == 0 ? title : "", ShownName(port),
                          width, TypeText(value.type), ToString(ShapeOf(value.type)),
                          image ? fmt::format(" {}{} image", coreml::ImageName(port.feature),
                                              port.dtype == DType::kFp16 ? " float16" : "")
                                : "",
                          title == "inputs" ? sizes(port, value.type.shape) : "",
                          port.optional ? ", optional" : "");
      if (image && !port.description.empty())
        text += fmt::format("{:<13}{}\n", "", port.description);
    }
    if (list.size() > most) text += fmt::format("{:<11}... {} more\n", "", list.size() - most);
  };
  std::vector<const Value*> inputs = InputValues(function), states = StateValues(function);
  ports("inputs", function.inputs, [&](size_t i) -> const Value& { return *inputs[i]; });
  ports("outputs", function.outputs,
        [&](size_t i) -> const Value& { return *function.body.outputs()[i]; });
  ports("states", function.states, [&](size_t i) -> const Value& { return *states[i]; });
  constexpr size_t kShown = 20;
  if (std::vector<std::string> labels = ClassLabels(function); !labels.empty()) {
    size_t shown = std::min(kShown, labels.size());
    text += fmt::format(
        "{:<11}{}: {}{}\n", "labels", labels.size(),
        fmt::join(labels.begin(), labels.begin() + static_cast<ptrdiff_t>(shown), ", "),
        shown < labels.size() ? fmt::format(", ... {} more (--json has all)", labels.size() - shown)
                              : "");
  }
  return text;
}

}  // namespace mlc::driver
