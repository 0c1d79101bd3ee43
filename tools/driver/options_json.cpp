#include "tools/driver/options_json.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/support/edit_distance.h"
#include "lib/support/float_text.h"
#include "lib/support/json_text.h"

namespace mlc::driver {

namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void Unsuitable(std::string_view field, const Json& value, std::string_view expected) {
  throw Error("usage", "option '{}': {} is not a value of it", field,
              JsonText(value, -1, BadUtf8::kReplace))
      .Expected(std::string(expected));
}

// The text of a value on the command line: a list is separated by commas.
std::string TextOf(std::string_view field, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return JsonText(value);
  if (!value.is_array()) Unsuitable(field, value, "text, a number, or a list of these");
  std::vector<std::string> texts;
  for (const Json& element : value) {
    if (!element.is_string() && !element.is_number())
      Unsuitable(field, value, "text, a number, or a list of these");
    texts.push_back(TextOf(field, element));
  }
  return fmt::format("{}", fmt::join(texts, ","));
}

std::vector<std::string> ValuesFrom(const Option& option, std::string_view field,
                                    const Json& value) {
  const bool named = option.value.find('=') != std::string_view::npos;
  std::vector<std::string> values;
  if (named && value.is_object()) {
    for (const auto& [name, member] : value.items())
      values.push_back(fmt::format("{}={}", name, TextOf(field, member)));
  } else if (option.repeat && value.is_array()) {
    for (const Json& element : value) values.push_back(TextOf(field, element));
  } else {
    values.push_back(TextOf(field, value));
  }
  return values;
}

}  // namespace

namespace {

std::string_view TypeOf(const Option& option) {
  constexpr std::string_view kNumbers[] = {"N", "X", "MS", "MB", "PCT"};
  if (option.IsSwitch()) return "boolean";
  if (option.value.find('=') != std::string_view::npos) return "object";
  if (option.repeat) return "array";
  return std::ranges::find(kNumbers, option.value) == std::end(kNumbers) ? "string" : "number";
}

// The words of "fp16|fp32|mixed"; none if one of them stands for a value.
std::vector<std::string> ChoicesOf(std::string_view value) {
  std::vector<std::string> words;
  for (std::string_view rest = value; value.find('|') != std::string_view::npos;) {
    const size_t end = std::min(rest.find('|'), rest.size());
    words.emplace_back(rest.substr(0, end));
    if (std::ranges::any_of(words.back(), [](unsigned char c) {
          return !std::islower(c) && !std::isdigit(c) && c != '-';
        }))
      return {};
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  return words;
}

// The word in "(default: fp16)" or "(default 0)", or before " (default"; none if the help describes
// the default in more words.
std::string DefaultOf(std::string_view help) {
  constexpr std::string_view kMark = "(default";
  const size_t at = help.find(kMark);
  if (at == std::string_view::npos) return "";
  std::string_view inside = help.substr(at + kMark.size());
  if (inside.starts_with(")")) {  // "fp16 (default), fp32"
    const std::string_view before = help.substr(0, at > 0 ? at - 1 : 0);
    return std::string(before.substr(before.find_last_of(" ,:") + 1));
  }
  inside = inside.substr(0, inside.find_first_of(",;)"));
  inside.remove_prefix(std::min(inside.find_first_not_of(": "), inside.size()));
  return inside.find(' ') == std::string_view::npos ? std::string(inside) : "";
}

}  // namespace

Json OptionsJson(const std::vector<Option>& options) {
  Json list = Json::array();
  for (const Option& option : options) {
    if (!option.name.starts_with("--")) continue;
    Json row{{"name", option.key().substr(2)}, {"type", TypeOf(option)}};
    if (!option.value.empty()) row["value"] = option.value;
    if (const std::vector<std::string> words = ChoicesOf(option.value); !words.empty())
      row["choices"] = words;
    const std::string by_default = DefaultOf(option.help);
    if (option.IsSwitch())
      row["default"] = false;
    else if (const std::optional<double> number = ParseNumber(by_default);
             number && TypeOf(option) == "number")
      row["default"] =
          *number == std::floor(*number) ? Json(static_cast<int64_t>(*number)) : Json(*number);
    else if (!by_default.empty())
      row["default"] = by_default;
    row["required"] = option.required;
    row["doc"] = option.help;
    list.push_back(std::move(row));
  }
  return list;
}

void FillFromJson(const std::vector<Option>& options, std::string_view text) {
  if (text.empty()) return;
  RequireJson(text, "usage", "the options");
  const Json json = ParseJson(text);
  if (!json.is_object()) throw Error("usage", "the options are not a JSON object");
  std::set<std::string> names;
  for (const Option& option : options)
    if (option.name.starts_with("--")) names.insert(option.key().substr(2));
  GivenOptions given;
  for (const auto& [field, value] : json.items()) {
    if (!names.contains(field)) {
      throw Error("usage", "unknown option \"{}\"{}", field, DidYouMean(names, field))
          .Expected("{}", fmt::join(names, ", "));
    }
    const std::string key = "--" + field;
    const Option& option = *std::ranges::find(options, key, &Option::key);
    if (!option.IsSwitch())
      given[key] = ValuesFrom(option, field, value);
    else if (!value.is_boolean())
      Unsuitable(field, value, "true or false");
    else if (value.get<bool>())
      given[key] = {};
  }
  Fill(options, given);
}

}  // namespace mlc::driver
