#include "lib/engine/check_inputs.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "lib/support/edit_distance.h"

namespace mlc::engine {

namespace {

std::string InputText(const Function& function, const Value& value) {
  for (const Port& port : function.inputs)
    if (port.name == value.name && !port.source_name.empty() && port.source_name != value.name)
      return fmt::format("\"{}\" (\"{}\" in the source)", value.name, port.source_name);
  return fmt::format("\"{}\"", value.name);
}

// Returns the option that makes the tensor a valid input: --dim for a symbol, else --shape.
std::string Declaration(const Function& function, const Value& value, const Tensor& tensor,
                        const std::string* symbol) {
  if (!function.states.empty())
    return tensor.dims()[0] != 1 ? "a language model takes one text at a time"
                                 : "compile a language model with option 'context' N for N tokens";
  std::string source = value.name;
  for (const Port& port : function.inputs)
    if (port.name == value.name && !port.source_name.empty()) source = port.source_name;
  std::string shape = fmt::format("option 'shape' {}={}", source, fmt::join(tensor.dims(), ","));
  // For token ids: --shape applies to ONNX models, and encoders of other formats have a symbol for
  // them.
  if (IsInteger(value.type.dtype))
    shape += fmt::format(" (for models that are not ONNX: option 'dim' tokens={})",
                         tensor.dims().back());
  if (!symbol) return fmt::format("compile with {} for inputs of this shape", shape);
  const Symbol& bounds = function.symbols.at(*symbol);
  const Shape& dims = value.type.shape;
  auto axis = std::ranges::find(dims, Dim::Symbol(*symbol)) - dims.begin();
  int64_t size = tensor.dims()[axis];
  std::string sizes =
      fmt::format("{}..{}", std::min(bounds.low, size), std::max(bounds.high, size));
  if (!bounds.enumerated.empty())
    sizes = fmt::format("{},{}", fmt::join(bounds.enumerated, ","), size);
  return fmt::format("compile with option 'dim' {}={}, or with {} for this shape only", *symbol,
                     sizes, shape);
}

// Checks a tensor against the declared dimensions, and records the sizes of symbols that occur in
// it for the first time.
void CheckSymbols(const Function& function, const Value& value, const Tensor& tensor,
                  std::map<std::string, int64_t>& symbols) {
  for (size_t d = 0; d < value.type.shape.size(); ++d) {
    const Dim& declared = value.type.shape[d];
    int64_t size = tensor.dims()[d];
    auto fail = [&](const std::string& expected, const std::string* symbol) {
      throw Error("bad-input", "input {}: dimension {} is {}", InputText(function, value), d, size)
          .Expected(expected)
          .Help(Declaration(function, value, tensor, symbol));
    };
    auto open = declared.symbol_and_offset();
    if (open && !symbols.contains(open->first)) {
      const auto& [name, offset] = *open;
      Symbol bounds = function.symbols.at(name);
      // --dim sets the size of a symbol without an offset.
      const std::string* symbol = offset == 0 ? &name : nullptr;
      if (size - offset < bounds.low || size - offset > bounds.high)
        fail(fmt::format("{} from {} to {}", declared.ToString(), bounds.low + offset,
                         bounds.high + offset),
             symbol);
      std::vector<int64_t>& sizes = bounds.enumerated;
      for (int64_t& each : sizes) each += offset;
      if (!sizes.empty() && !std::ranges::count(sizes, size))
        fail(fmt::format("one of {}", fmt::join(sizes, ", ")), symbol);
      symbols[name] = size - offset;
      continue;
    }
    std::optional<int64_t> expected = declared.Evaluate(symbols);
    if (expected && *expected != size)
      fail(declared.is_constant() ? std::to_string(*expected)
                                  : fmt::format("{} = {}", declared.ToString(), *expected),
           nullptr);
  }
}

}  // namespace

void CheckInputs(const Function& function, const std::map<std::string, Tensor>& inputs,
                 bool exact) {
  std::map<std::string, int64_t> symbols;
  size_t found = 0;
  for (const auto& input : function.body.inputs) {
    const Value& value = *input;
    if (value.type.kind == Type::Kind::kState) continue;
    auto it = inputs.find(value.name);
    if (it == inputs.end() || !it->second)
      throw Error("bad-input", "input {} is missing", InputText(function, value))
          .Expected(value.type.ToString());
    const Tensor& tensor = it->second;
    const bool wider = exact && value.type.dtype == DType::kFp16 && tensor.dtype() == DType::kFp32;
    if ((tensor.dtype() != value.type.dtype && !wider) || tensor.rank() != value.type.rank())
      throw Error("bad-input", "input {} has type {}", InputText(function, value),
                  Type::Tensor(tensor.dtype(), ToShape(tensor.dims())).ToString())
          .Expected(value.type.ToString());
    CheckSymbols(function, value, tensor, symbols);
    ++found;
  }
  if (found == inputs.size()) return;
  std::vector<std::string> names;
  for (const auto& input : function.body.inputs)
    if (input->type.is_tensor()) names.push_back(input->name);
  for (const auto& [name, tensor] : inputs)
    if (std::ranges::find(names, name) == names.end())
      throw Error("bad-input", "unknown input \"{}\"{}", name, DidYouMean(names, name))
          .Expected(names.empty() ? "no inputs" : fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace mlc::engine
