#include "tools/driver/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "lib/support/edit_distance.h"
#include "lib/support/float_text.h"
#include "lib/support/threads.h"

namespace mlc::driver {

std::vector<Option> Grouped(OptionGroup group, std::vector<Option> rows) {
  for (Option& row : rows) row.group = group;
  return rows;
}

Option Common(Option row) {
  row.common = true;
  return row;
}

void Fill(const std::vector<Option>& options, const GivenOptions& given) {
  for (const Option& option : options) {
    auto it = given.find(option.key());
    if (it == given.end() || !option.field.set) continue;
    if (option.IsSwitch()) option.field.set("");
    for (const std::string& value : it->second) option.field.set(value);
  }
}

GivenOptions ParseOptions(const std::vector<Option>& options,
                          const std::vector<std::string>& words) {
  GivenOptions given;
  std::vector<std::string> unknown;
  for (size_t i = 0; i < words.size(); ++i) {
    size_t equals = words[i].starts_with("--") ? words[i].find('=') : std::string::npos;
    std::string name = words[i].substr(0, equals);
    auto option = std::ranges::find(options, name, &Option::name);
    if (option == options.end() || (option->IsSwitch() && equals != std::string::npos)) {
      unknown.push_back(words[i]);
      continue;
    }
    std::vector<std::string>& values = given[name];
    if (option->IsSwitch()) continue;
    std::string value = equals != std::string::npos ? words[i].substr(equals + 1)
                        : ++i < words.size()        ? words[i]
                                                    : "";
    if (value.empty())
      throw Error("usage", "options: {}: 1 required {} missing", name, option->value);
    values.push_back(std::move(value));
    if (values.size() > 1 && !option->repeat)
      throw Error("usage", "options: {} is given more than once", name);
  }
  if (!unknown.empty())
    throw Error("usage", "options: The following {} not expected: {}",
                unknown.size() == 1 ? "argument was" : "arguments were", fmt::join(unknown, " "));
  return given;
}

std::optional<size_t> PlaceIn(const Option& option, std::string_view value) {
  if (!option.value.ends_with("FILE") && !option.value.ends_with("DIR")) return std::nullopt;
  if (option.value.ends_with("=FILE")) return value.rfind('=') + 1;
  // "fp16|FILE": values listed before FILE are keywords, not paths; "generated:N" has a number.
  for (std::string_view rest = option.value; rest.find('|') != rest.npos;) {
    const size_t end = rest.find('|');
    const std::string_view keyword = rest.substr(0, end);
    if (keyword == value) return std::nullopt;
    if (keyword.ends_with(":N") && value.starts_with(keyword.substr(0, keyword.size() - 1)))
      return std::nullopt;
    rest.remove_prefix(end + 1);
  }
  return 0;
}

Error UnknownWord(std::string_view option, std::string_view text,
                  const std::vector<std::string_view>& words, std::string expected) {
  if (expected.empty())
    expected = fmt::format("{}{}{}", fmt::join(words.begin(), words.end() - 1, ", "),
                           words.size() > 1 ? " or " : "", words.back());
  return Error("usage", "{}: \"{}\" is unknown{}", option, text, DidYouMean(words, text))
      .Expected(std::move(expected));
}

Field Into(std::vector<std::string>& several) {
  return [&several](const std::string& text) { several.push_back(text); };
}

Field Switch(bool& field, bool to) {
  return {[&field, to](const std::string&) { field = to; },
          [&field, to] { return field == to ? std::optional(Field::Values{}) : std::nullopt; }};
}

int64_t ParseInt(std::string_view option, std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    throw Error("usage", "{}: \"{}\" is not a whole number", option, text);
  return value;
}

Option ThreadsOption(int& into, std::string_view help) {
  return {"--threads", "N", help, [&into](const std::string& text) {
            const int64_t threads = ParseInt("--threads", text);
            if (threads < 0 || threads > kMostThreads)
              throw Error("usage", "--threads: {}", threads).Expected("0 to {}", kMostThreads);
            into = static_cast<int>(threads);
          }};
}

double NumberWithin(std::string_view option, const std::string& text, double low, double high,
                    std::string_view expected) {
  const std::optional<double> value = ParseNumber(text);
  if (!value || *value < low || *value > high)
    throw Error("usage", "{}: \"{}\"", option, text).Expected(std::string(expected));
  return *value;
}

std::chrono::milliseconds ParseDuration(std::string_view option, std::string_view text) {
  struct Unit {
    std::string_view name;
    int64_t milliseconds;
  };
  constexpr Unit kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  constexpr int64_t kMost = 1'000'000'000'000;  // 31 years
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    int64_t count = 0;
    const char* last = text.data() + text.size() - unit.name.size();
    auto [end, error] = std::from_chars(text.data(), last, count);
    if (error == std::errc() && end == last && count > 0 && count <= kMost / unit.milliseconds)
      return std::chrono::milliseconds(count * unit.milliseconds);
  }
  throw Error("usage", "{}: \"{}\" is not a duration", option, text)
      .Expected("a whole number with a unit: 250ms, 90s, 30m or 1h");
}

std::pair<std::string, std::string> KeyValue(std::string_view option, const std::string& text) {
  size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw Error("usage", "{}: \"{}\" is not of the form NAME=VALUE", option, text);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<int64_t> IntList(std::string_view option, const std::string& text) {
  std::vector<int64_t> values;
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    size_t comma = std::min(text.find(',', begin), text.size());
    values.push_back(ParseInt(option, std::string_view(text).substr(begin, comma - begin)));
    begin = comma + 1;
  }
  return values;
}

std::vector<int64_t> ParseTokens(const std::string& text) {
  if (text.empty()) throw Error("usage", "--tokens requires at least one token");
  return IntList("--tokens", text);
}

Field NamesInto(std::vector<std::string>& names) {
  auto set = [&names](const std::string& text) {
    for (size_t begin = 0; begin < text.size();) {
      size_t comma = std::min(text.find(',', begin), text.size());
      names.push_back(text.substr(begin, comma - begin));
      begin = comma + 1;
    }
  };
  return {set, [&names] { return ValuesOf(fmt::format("{}", fmt::join(names, ","))); }};
}

void Append(std::vector<Option> rows, std::vector<Option>& table) {
  table.insert(table.end(), rows.begin(), rows.end());
}

std::vector<Option> Only(std::vector<Option> table, std::initializer_list<std::string_view> names) {
  std::erase_if(table, [&](const Option& option) {
    return std::ranges::find(names, option.name) == names.end();
  });
  return table;
}

std::vector<Option> Without(std::vector<Option> table,
                            std::initializer_list<std::string_view> names) {
  std::erase_if(table, [&](const Option& option) {
    return std::ranges::find(names, option.name) != names.end();
  });
  return table;
}

}  // namespace mlc::driver
