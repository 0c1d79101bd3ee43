// lib/support/json_text.h - validation of untrusted JSON text before it is parsed into a tree.
#pragma once

#include <cstddef>
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

// The message of a JSON library exception without its prefix: "type must be string, but is number".
std::string JsonFault(std::string_view what);

}  // namespace mlc
