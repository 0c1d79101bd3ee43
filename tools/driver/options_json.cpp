#include "tools/driver/options_json.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/support/edit_distance.h"
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
      const std::string meant = MeantName(names, field);
      throw Error("usage", "unknown option '{}'{}", field,
                  meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant))
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
