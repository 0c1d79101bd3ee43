// lib/support/json_text.h - validates untrusted JSON text; parses and writes JSON.
//
// json.hpp's parser and writer are templates of thousands of lines, which each source that calls
// them compiles. Sources therefore call ParseJson and JsonText, unless they need other settings.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mlc {

struct JsonBounds {
  size_t depth = 64;
  size_t values = size_t{1} << 20;
};

// Throws Error `id`, with line and column in `file`, unless `text` is valid JSON without duplicate
// keys (JSON libraries silently keep the last one). Error "resource-limit" if it exceeds the
// limits. Valid text can then be parsed without an error and in bounded memory.
void RequireJson(std::string_view text, std::string_view id, const std::string& file,
                 const JsonBounds& bounds = {});

// Parses `text`. Throws the exception of json.hpp if it is not JSON.
nlohmann::ordered_json ParseJson(std::string_view text);
// Parses `text`. If it is not JSON, the result is_discarded().
nlohmann::ordered_json ParseJsonIfValid(std::string_view text);

// The treatment of strings that are not UTF-8: json.hpp's exception is thrown, or invalid bytes are
// replaced by U+FFFD.
enum class BadUtf8 { kThrow, kReplace };
// Returns the text on one line, or with one line per member that is indented by multiples of
// `indent` spaces.
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1,
                     BadUtf8 bad = BadUtf8::kThrow);

// A number, or "inf", "-inf" or "nan", which JSON has no numbers for. `whole`: a number without a
// fraction is written as an integer.
nlohmann::ordered_json NumberJson(double value, bool whole = false);
// The reverse.
double NumberFromJson(const nlohmann::ordered_json& json);

// The message of a JSON library exception without its prefix: "type must be string, but is number".
std::string JsonFault(std::string_view what);

}  // namespace mlc
