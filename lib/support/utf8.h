// lib/support/utf8.h - text that becomes part of a package: protobuf and JSON hold UTF-8 only.
#pragma once

#include <string>
#include <string_view>

namespace mlc {

// Offset of the first byte that is no part of a character (RFC 3629: no surrogates, no longer form
// than needed, nothing above U+10FFFF); npos when there is none.
size_t FirstBadUtf8(std::string_view text);
// Error `id` with line and byte, both from 1, and the text so far, unless `text` is UTF-8.
void RequireUtf8(std::string_view text, std::string_view id, const std::string& what);
// Without the byte order mark that some editors put first.
std::string_view WithoutBom(std::string_view text);

}  // namespace mlc
