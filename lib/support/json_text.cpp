#include "lib/support/json_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "lib/support/error.h"

namespace mlc {

namespace {

using Json = nlohmann::json;

class Checker : public nlohmann::json_sax<Json> {
 public:
  Checker(std::string_view text, std::string_view id, const std::string& file,
          const JsonBounds& bounds)
      : text_(text), id_(id), file_(file), bounds_(bounds) {}

  bool null() override { return Value(); }
  bool boolean(bool) override { return Value(); }
  bool number_integer(int64_t) override { return Value(); }
  bool number_unsigned(uint64_t) override { return Value(); }
  bool number_float(double, const std::string&) override { return Value(); }
  bool string(std::string&) override { return Value(); }
  bool binary(Json::binary_t&) override { return Value(); }
  bool start_object(size_t) override { return Open(); }
  bool start_array(size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& name) override {
    if (open_.back().insert(name).second) return true;
    throw Error(id_, "duplicate key \"{}\" in an object", name.substr(0, kShown))
        .At({file_, ""})
        .Expected("unique keys");
  }
  bool parse_error(size_t position, const std::string&, const Json::exception& error) override {
    Refuse(position ? position - 1 : 0, error.what());
  }
  // Reports the parser's message `why` from "syntax error" on.
  [[noreturn]] void Refuse(size_t at, std::string_view why) const {
    std::string_view before = text_.substr(0, at);
    size_t line = std::ranges::count(before, '\n');
    size_t column = before.size() - (line ? before.rfind('\n') + 1 : 0);
    Error refusal(id_, "invalid JSON");
    refusal.At({file_, fmt::format("line {}:{}", line + 1, column + 1)});
    why.remove_prefix(std::min(why.find("syntax error"), why.size()));
    if (!why.empty() && why.size() <= 2 * kShown) refusal.Note(std::string(why));
    throw refusal.Expected("JSON as specified in RFC 8259");
  }

 private:
  static constexpr size_t kShown = 80;

  bool Value() {
    if (++values_ > bounds_.values)
      throw Error("resource-limit", "too many values")
          .At({file_, ""})
          .Expected("at most {} values", bounds_.values);
    return true;
  }
  bool Open() {
    if (open_.size() == bounds_.depth)
      throw Error("resource-limit", "lists and objects are nested too deeply")
          .At({file_, ""})
          .Expected("at most {} levels", bounds_.depth);
    open_.emplace_back();
    return Value();
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_, id_;
  const std::string& file_;
  JsonBounds bounds_;
  size_t values_ = 0;
  std::vector<std::unordered_set<std::string>> open_;  // the keys of each open object
};

}  // namespace

nlohmann::ordered_json ParseJson(std::string_view text) {
  return nlohmann::ordered_json::parse(text);
}

nlohmann::ordered_json ParseJsonIfValid(std::string_view text) {
  return nlohmann::ordered_json::parse(text, nullptr, false);
}

std::string JsonText(const nlohmann::ordered_json& json, int indent, BadUtf8 bad) {
  using Handler = nlohmann::ordered_json::error_handler_t;
  return json.dump(indent, ' ', false,
                   bad == BadUtf8::kReplace ? Handler::replace : Handler::strict);
}

nlohmann::ordered_json NumberJson(double value, bool whole) {
  constexpr double kMostExact = 9007199254740992.0;  // 2^53
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (whole && value == std::floor(value) && std::fabs(value) <= kMostExact)
    return static_cast<int64_t>(value);
  return value;
}

double NumberFromJson(const nlohmann::ordered_json& json) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!json.is_string()) return json.get<double>();
  return json == "nan"   ? std::numeric_limits<double>::quiet_NaN()
         : json == "inf" ? kInfinity
                         : -kInfinity;
}

std::string JsonFault(std::string_view what) {
  const size_t end = what.starts_with("[json.exception") ? what.find("] ") : what.npos;
  return std::string(end == what.npos ? what : what.substr(end + 2));
}

void RequireJson(std::string_view text, std::string_view id, const std::string& file,
                 const JsonBounds& bounds) {
  Checker checker(text, id, file, bounds);
  // The parser would treat a zero byte as the end of the text.
  if (size_t zero = text.find('\0'); zero != std::string_view::npos) checker.Refuse(zero, "");
  Json::sax_parse(text.data(), text.data() + text.size(), &checker);
}

}  // namespace mlc
