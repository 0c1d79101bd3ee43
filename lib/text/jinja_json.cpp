// JSON to values, and values to the JSON of Python's json.dumps.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/text/jinja_value.h"
#include "lib/text/unicode.h"

namespace mlc::text::jinja {

using Json = nlohmann::ordered_json;

namespace {

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  void Write(const Value& value, int level) {
    const Nested nested(runtime_);
    switch (value.type) {
      case Type::kNone:
        return Add("null");
      case Type::kBool:
        return Add(value.boolean ? "true" : "false");
      case Type::kInt:
        return Add(fmt::format("{}", value.integer));
      case Type::kFloat:
        return Add(Number(value.number));
      case Type::kString:
        return Quote(*value.text);
      case Type::kList:
      case Type::kTuple: {
        bool first = true;
        Add("[");
        for (const Value& item : value.list->items) {
          Separate(first, level);
          Write(item, level + 1);
        }
        return Close("]", first, level);
      }
      case Type::kDict: {
        std::vector<std::pair<Value, Value>> items = value.dict->items;
        runtime_.Memory(items.size() * 2 * sizeof(Value));
        if (style_.sorted)
          std::stable_sort(items.begin(), items.end(), [&](const auto& a, const auto& b) {
            return Compare(runtime_, a.first, b.first, "<") < 0;
          });
        bool first = true;
        Add("{");
        for (const auto& [key, item] : items) {
          Separate(first, level);
          if (key.is(Type::kString))
            Quote(*key.text);
          else if (key.number_like() || key.none())
            Add("\""), Write(key, level), Add("\"");
          else
            runtime_.Fail(
                fmt::format("keys must be str, int, float, bool or None, not {}", TypeName(key)));
          Add(style_.key);
          Write(item, level + 1);
        }
        return Close("}", first, level);
      }
      case Type::kUndefined:
        runtime_.Fail(*value.text + ", so that it has no JSON");
      default:
        runtime_.Fail(fmt::format("Object of type {} is not JSON serializable", TypeName(value)));
    }
  }
  std::string text;

 private:
  void Add(std::string_view more) {
    runtime_.Memory(more.size());
    text += more;
  }
  void NewLine(int level) {
    Add("\n");
    for (int i = 0; i < level; ++i) Add(*style_.indent);
  }
  void Separate(bool& first, int level) {
    if (!first) Add(style_.item);
    first = false;
    if (style_.indent) NewLine(level + 1);
  }
  void Close(std::string_view end, bool first, int level) {
    if (style_.indent && !first) NewLine(level);
    Add(end);
  }
  static std::string Number(double number) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    return FloatText(number);
  }
  void Quote(std::string_view plain) {
    runtime_.Memory(plain.size());
    text += '"';
    for (size_t at = 0; at < plain.size();) {
      const size_t begin = at;
      const auto code = static_cast<uint32_t>(NextCharacter(plain, at));
      constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f", kLetters = "\"\\nrtbf";
      const size_t escape = code < 0x80 ? kEscaped.find(static_cast<char>(code)) : kEscaped.npos;
      if (escape != kEscaped.npos)
        text += {'\\', kLetters[escape]};
      else if (code < 0x20 || (style_.ascii && code >= 0x7f && code < 0x10000 && code != 0x7f))
        text += fmt::format("\\u{:04x}", code);
      else if (style_.ascii && code >= 0x10000)
        text += fmt::format("\\u{:04x}\\u{:04x}", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
      else
        text += plain.substr(begin, at - begin);
    }
    text += '"';
  }

  Runtime& runtime_;
  const JsonStyle& style_;
};

}  // namespace

Value FromJson(Runtime& runtime, const Json& json) {
  const Nested nested(runtime);
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::Bool(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::Int(json.get<int64_t>());
    case Json::value_t::number_unsigned: {
      const auto number = json.get<uint64_t>();
      if (number > static_cast<uint64_t>(INT64_MAX))
        runtime.Unsupported("an integer beyond 64 bits");
      return Value::Int(static_cast<int64_t>(number));
    }
    case Json::value_t::number_float:
      return Value::Float(json.get<double>());
    case Json::value_t::string:
      return runtime.String(ValidUtf8(json.get_ref<const std::string&>()));
    case Json::value_t::array: {
      std::vector<Value> items;
      for (const Json& each : json) items.push_back(FromJson(runtime, each));
      return runtime.NewList(std::move(items));
    }
    case Json::value_t::object: {
      const Value made = runtime.NewDict();
      for (const auto& [key, each] : json.items())
        Insert(runtime, *made.dict, runtime.String(ValidUtf8(key)), FromJson(runtime, each));
      return made;
    }
    default:
      return {};
  }
}

std::string ToJson(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  writer.Write(value, 0);
  return std::move(writer.text);
}

}  // namespace mlc::text::jinja
