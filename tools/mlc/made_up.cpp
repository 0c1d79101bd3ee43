#include "tools/mlc/made_up.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tools/mlc/model.h"

namespace mlc {

const std::vector<Flag>& MadeUpFlags() {
  static const std::vector<Flag> flags = {
      {"--seed", "N", "of inputs that are made up, where none are given (default 0)"},
      {"--input-range", "NAME=LO..HI",
       "the values of a made-up input (default: what the program does with it tells)", false, true},
  };
  return flags;
}

namespace {

// Least and greatest value of what an input holds.
std::pair<double, double> ValuesOf(const Port& port, DType dtype) {
  if (port.feature != Port::Feature::kMultiArray) return {0, 255};
  if (dtype == DType::kBool) return {0, 1};
  if (IsFloat(dtype)) {
    double most = dtype == DType::kFp16 ? 65504 : std::numeric_limits<float>::max();
    return {-most, most};
  }
  bool is_signed = Name(dtype).starts_with("int");
  double span = std::ldexp(1.0, std::min(Bits(dtype), 32));
  return is_signed ? std::pair{-span / 2, span / 2 - 1} : std::pair{0.0, span - 1};
}

void CheckRange(const Port& port, const Value& value, const std::string& text, double low,
                double high) {
  DType dtype = port.source_dtype == DType::kNone ? value.type.dtype : port.source_dtype;
  bool whole = !IsFloat(dtype) || port.feature != Port::Feature::kMultiArray;
  auto [least, greatest] = ValuesOf(port, dtype);
  if (low < least || high > greatest ||
      (whole && (low != std::floor(low) || high != std::floor(high))))
    throw Error("usage",
                fmt::format("--input-range: \"{}\" are no values of {}", text, Name(dtype)))
        .Expected(fmt::format("{}numbers from {:.10g} to {:.10g}", whole ? "whole " : "", least,
                              greatest));
}

}  // namespace

MadeUpOptions ReadMadeUp(const Invocation& invocation, const Program& program) {
  MadeUpOptions options;
  options.seed = static_cast<uint64_t>(invocation.Int("--seed", 0));
  for (const std::string& text : invocation.all("--input-range")) {
    // Names may hold '=', ranges do not.
    size_t equals = text.rfind('='), dots = text.rfind("..");
    double low = 0, high = 0;
    auto number = [&](size_t begin, size_t end, double& value) {
      auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
      return error == std::errc() && stop == text.data() + end && std::isfinite(value);
    };
    if (equals == std::string::npos || dots == std::string::npos || dots < equals ||
        !number(equals + 1, dots, low) || !number(dots + 2, text.size(), high))
      throw Error("usage", fmt::format("--input-range: \"{}\" has no NAME=LO..HI form", text));
    if (low > high)
      throw Error("usage", fmt::format("--input-range: \"{}\": the bounds are not in order", text));
    std::string name = text.substr(0, equals);
    bool known = false;
    std::string names;
    for (const auto& function : program.functions) {
      std::vector<const Value*> values = InputValues(*function);
      for (size_t i = 0; i < function->inputs.size(); ++i) {
        const Port& port = function->inputs[i];
        names +=
            (names.empty() ? "" : ", ") + (port.source_name.empty() ? port.name : port.source_name);
        if (port.source_name != name && port.name != name) continue;
        known = true;
        CheckRange(port, *values[i], text, low, high);
      }
    }
    if (!known)
      throw Error("usage", fmt::format("--input-range: the model has no input \"{}\"", name))
          .Expected(names);
    if (!options.ranges.emplace(name, std::pair(low, high)).second)
      throw Error("usage", fmt::format("--input-range: \"{}\" is given twice", name));
  }
  return options;
}

namespace {
const std::string& NameOfInput(const Function& function, const std::string& name) {
  for (const Port& port : function.inputs)
    if (port.name == name && !port.source_name.empty()) return port.source_name;
  return name;
}
}  // namespace

std::string MadeUpText(const Function& function, const std::map<std::string, InputRange>& made,
                       const MadeUpOptions& options, int samples) {
  constexpr size_t kShown = 12;
  if (made.empty()) return "";
  std::string text = fmt::format("inputs made up from seed {}, {} sample{}:\n", options.seed,
                                 samples, samples == 1 ? "" : "s");
  size_t shown = 0;
  for (const auto& [name, range] : made) {
    if (++shown > kShown) break;
    text += fmt::format("  {}: {}{}\n", NameOfInput(function, name), Describe(range),
                        range.why.empty() ? "" : fmt::format(" ({})", range.why));
  }
  if (made.size() > kShown) text += fmt::format("  and {} more\n", made.size() - kShown);
  return text;
}

std::string MadeUpJson(const Function& function, const std::map<std::string, InputRange>& made,
                       const MadeUpOptions& options, int samples) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const auto& [name, range] : made) {
    Json entry{{"name", NameOfInput(function, name)}, {"values", Describe(range)}};
    if (std::isfinite(range.low)) entry["low"] = range.low;
    if (std::isfinite(range.high)) entry["high"] = range.high;
    if (!range.why.empty()) entry["because"] = range.why;
    list.push_back(std::move(entry));
  }
  return Json{
      {"function", function.name}, {"seed", options.seed}, {"samples", samples}, {"inputs", list}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mlc
