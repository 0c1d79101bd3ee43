#include "frontends/safetensors/config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "lib/support/error.h"
#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"

namespace mlc::safetensors {

using JsonValue = nlohmann::json;

namespace {

constexpr size_t kMostBytes = size_t{24} << 20;
// An index has one value per tensor; the largest published ones have about 150,000.
constexpr JsonBounds kBounds = {.depth = 64, .values = size_t{1} << 19};

// Python writes numbers that JSON cannot represent as Infinity and NaN (Mamba's time_step_limit).
// This function turns them into strings, so that reading them as numbers is a type error.
std::string WithoutNonNumbers(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < text.size();) {
    std::string_view rest = text.substr(i);
    size_t size = 0;
    if (!quoted)
      for (std::string_view word : {"-Infinity", "Infinity", "NaN"})
        if (size == 0 && rest.starts_with(word)) size = word.size();
    if (size) {
      out += fmt::format("\"{}\"", rest.substr(0, size));
      i += size;
      continue;
    }
    if (quoted && text[i] == '\\' && rest.size() > 1) {
      out += rest.substr(0, 2);
      i += 2;
      continue;
    }
    if (text[i] == '"') quoted = !quoted;
    out += text[i++];
  }
  return out;
}

std::string Shown(const JsonValue& value) {
  constexpr size_t kLongest = 80;
  if (value.is_structured() && value.size() > kLongest)
    return fmt::format("{} of {} elements", value.is_array() ? "a list" : "an object",
                       value.size());
  std::string text = value.dump(-1, ' ', true);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

// Returns null if the object has no such member, or if the member is null.
const JsonValue* Find(const std::shared_ptr<const void>& object, const std::string& key) {
  if (!object) return nullptr;
  const auto& members = *static_cast<const JsonValue*>(object.get());
  auto member = members.find(key);
  return member == members.end() || member->is_null() ? nullptr : &*member;
}

// The conversions, one function per requested type.
std::optional<int64_t> IntOf(const JsonValue& value) {
  if (!value.is_number()) return {};
  const auto number = value.get<double>();  // exact for every int32
  if (number != std::floor(number) || number < INT32_MIN || number > INT32_MAX) return {};
  return static_cast<int64_t>(number);
}
std::optional<double> NumberOf(const JsonValue& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}
std::optional<bool> BoolOf(const JsonValue& value) {
  return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
}
std::optional<std::string> TextOf(const JsonValue& value) {
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}
template <class T>
auto ListOf(std::optional<T> (*element)(const JsonValue&)) {
  return [element](const JsonValue& value) -> std::optional<std::vector<T>> {
    if (!value.is_array()) return {};
    std::vector<T> list;
    for (const JsonValue& each : value) {
      std::optional<T> converted = element(each);
      if (!converted) return {};
      list.push_back(std::move(*converted));
    }
    return list;
  };
}
std::optional<std::map<std::string, std::string>> TextMapOf(const JsonValue& value) {
  if (!value.is_object()) return {};
  std::map<std::string, std::string> map;
  for (const auto& [name, text] : value.items()) {
    if (!text.is_string()) return {};
    map[name] = text.get<std::string>();
  }
  return map;
}

const JsonValue& Get(const Config& config, const std::shared_ptr<const void>& object,
                     const std::string& key) {
  if (const JsonValue* value = Find(object, key)) return *value;
  throw Error("bad-file", "\"{}\" is missing", config.KeyPath(key))
      .At({config.file(), ""})
      .Help("copy the whole folder of the model again");
}

template <class F>
auto Converted(const Config& config, const std::shared_ptr<const void>& object,
               const std::string& key, std::string_view wanted, F convert) {
  const JsonValue& value = Get(config, object, key);
  auto converted = convert(value);
  if (converted) return *std::move(converted);
  throw Error("bad-file", "\"{}\" is {}", config.KeyPath(key), Shown(value))
      .At({config.file(), fmt::format("key \"{}\"", config.KeyPath(key))})
      .Expected(std::string(wanted));
}

std::string TextIn(const std::filesystem::path& file) {
  std::shared_ptr<const MappedFile> mapped = MappedFile::Open(file);
  if (mapped->size() > kMostBytes)
    throw Error("resource-limit", "the file has {} bytes", mapped->size())
        .At({file.string(), ""})
        .Expected("at most {} bytes", kMostBytes);
  return std::string(AsText(mapped->bytes()));
}

std::shared_ptr<const JsonValue> Parsed(std::string_view given, const std::string& file) {
  std::string text = WithoutNonNumbers(given);
  RequireJson(text, "bad-file", file, kBounds);
  return std::make_shared<const JsonValue>(JsonValue::parse(text));
}

Error NotThis(const std::string& file, std::string_view wanted) {
  return Error("bad-file", "the JSON in this file is not {}", wanted)
      .At({file, ""})
      .Help("copy the whole folder of the model again");
}

std::optional<std::vector<int64_t>> IntListOf(const JsonValue& value) {
  return ListOf(IntOf)(value);
}

}  // namespace

int64_t Truncated(double number) {
  if (std::isnan(number)) return 0;
  return static_cast<int64_t>(std::clamp<double>(number, INT32_MIN, INT32_MAX));
}

Config Config::Read(const std::filesystem::path& file) {
  return Parse(TextIn(file), file.string());
}

Config Config::Parse(std::string_view text, const std::string& file) {
  Config config;
  std::shared_ptr<const JsonValue> object = Parsed(text, file);
  if (!object->is_object()) throw NotThis(file, "an object");
  config.object_ = std::move(object);
  config.file_ = file;
  return config;
}

Config Config::WithDefaults(std::string_view defaults) const {
  Config config = *this;
  auto object = std::make_shared<JsonValue>(JsonValue::parse(defaults));
  if (object_) object->update(*static_cast<const JsonValue*>(object_.get()));
  config.object_ = std::move(object);
  return config;
}

Config Config::With(std::string_view members) const {
  Config config = *this;
  auto object = object_ ? std::make_shared<JsonValue>(*static_cast<const JsonValue*>(object_.get()))
                        : std::make_shared<JsonValue>(JsonValue::object());
  object->update(JsonValue::parse(members));
  config.object_ = std::move(object);
  return config;
}

std::vector<Config> Config::ReadList(const std::filesystem::path& file) {
  std::shared_ptr<const JsonValue> list = Parsed(TextIn(file), file.string());
  if (!list->is_array()) throw NotThis(file.string(), "a list of objects");
  std::vector<Config> configs;
  for (const JsonValue& each : *list) {
    if (!each.is_object()) throw NotThis(file.string(), "a list of objects");
    Config& config = configs.emplace_back();
    config.object_ = {list, &each};
    config.file_ = file.string();
    config.path_ = fmt::format("[{}].", configs.size() - 1);
  }
  return configs;
}

Config::Kind Config::kind(const std::string& key) const {
  const JsonValue* value = Find(object_, key);
  if (!value) return Kind::kNone;
  if (value->is_boolean()) return Kind::kBool;
  if (value->is_number()) return value->is_number_integer() ? Kind::kInt : Kind::kNumber;
  if (value->is_string()) return Kind::kText;
  return value->is_array() ? Kind::kList : Kind::kObject;
}

std::vector<std::string> Config::keys() const {
  std::vector<std::string> keys;
  if (!object_) return keys;
  for (const auto& [key, value] : static_cast<const JsonValue*>(object_.get())->items())
    if (!value.is_null()) keys.push_back(key);
  return keys;
}

int64_t Config::Int(const std::string& key) const {
  return Converted(*this, object_, key, "an integer of 32 bits", IntOf);
}
double Config::Number(const std::string& key) const {
  return Converted(*this, object_, key, "a number", NumberOf);
}
bool Config::Bool(const std::string& key) const {
  return Converted(*this, object_, key, "true or false", BoolOf);
}
std::string Config::Text(const std::string& key) const {
  return Converted(*this, object_, key, "a string", TextOf);
}
std::vector<int64_t> Config::Ints(const std::string& key) const {
  return Converted(*this, object_, key, "a list of integers of 32 bits", ListOf(IntOf));
}
std::vector<std::vector<int64_t>> Config::IntLists(const std::string& key) const {
  if (!has(key)) return {};
  return Converted(*this, object_, key, "a list of lists of integers of 32 bits",
                   ListOf(IntListOf));
}
std::vector<double> Config::Numbers(const std::string& key) const {
  return Converted(*this, object_, key, "a list of numbers", ListOf(NumberOf));
}
std::vector<bool> Config::Bools(const std::string& key) const {
  return Converted(*this, object_, key, "a list of true and false", ListOf(BoolOf));
}
std::vector<std::string> Config::Texts(const std::string& key) const {
  return Converted(*this, object_, key, "a list of strings", ListOf(TextOf));
}
std::map<std::string, std::string> Config::TextMap(const std::string& key) const {
  return Converted(*this, object_, key, "an object of strings", TextMapOf);
}

Config Config::Object(const std::string& key) const {
  auto object_of = [](const JsonValue& value) {
    return value.is_object() ? std::optional(&value) : std::nullopt;
  };
  Config inner = *this;
  inner.object_ = {object_, Converted(*this, object_, key, "an object", object_of)};
  inner.path_ = KeyPath(key) + ".";
  return inner;
}

std::string Config::Json(const std::string& key) const {
  return Get(*this, object_, key).dump(-1, ' ', true);
}

void Config::Refuse(const std::string& key, const std::string& expected) const {
  throw Error("unsupported-architecture", "\"{}\" is {}", KeyPath(key), Json(key))
      .At({file_, fmt::format("key \"{}\"", KeyPath(key))})
      .Expected(expected);
}

}  // namespace mlc::safetensors
