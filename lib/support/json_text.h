// lib/support/json_text.h - JSON of strangers, looked at before anybody builds a tree of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mlc {

struct JsonBounds {
  size_t depth = 64;
  size_t values = size_t{1} << 20;
};

// Error `id`, at line and column of `file`, unless `text` is JSON in which no object has two members
// of one name (JSON lets the last one win, and says nothing); "resource-limit" where it is beyond the
// bounds. What passes is parsed without an error, in memory that the bounds limit.
void RequireJson(std::string_view text, std::string_view id, const std::string& file,
                 const JsonBounds& bounds = {});

// What an exception of the JSON library says, without the name that the library gives it: "type must be
// string, but is number".
std::string JsonFault(std::string_view what);

}  // namespace mlc
