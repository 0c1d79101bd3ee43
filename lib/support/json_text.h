// lib/support/json_text.h - validation of untrusted JSON text, parsing and writing.
//
// json.hpp's parser and writer are templates of thousands of lines. They are called here rather
// than in each source that uses JSON, so that they are compiled once.
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

// Throws the exception of json.hpp if `text` is not JSON.
nlohmann::ordered_json ParseJson(std::string_view text);
// The result is_discarded() if `text` is not JSON.
nlohmann::ordered_json ParseJsonIfValid(std::string_view text);

// What becomes of bytes in strings that are not UTF-8: the exception of json.hpp, or U+FFFD.
enum class BadUtf8 { kThrow, kReplace };
// The text in one line, or on lines that are indented by a multiple of `indent` spaces.
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1,
                     BadUtf8 bad = BadUtf8::kThrow);

// The message of a JSON library exception without its prefix: "type must be string, but is number".
std::string JsonFault(std::string_view what);

}  // namespace mlc
