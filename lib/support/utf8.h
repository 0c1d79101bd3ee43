// lib/support/utf8.h - validation of text that becomes part of a package: protobuf and JSON strings
// must be UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace mlc {

// The offset of the first byte that is not part of a valid character (RFC 3629: no surrogates, no
// overlong forms, nothing above U+10FFFF); npos if the text is valid.
size_t FirstBadUtf8(std::string_view text);
// Throws Error `id`, with line and byte (both from 1) and the text before the fault, unless `text`
// is UTF-8.
void RequireUtf8(std::string_view text, std::string_view id, const std::string& what);
// Strips a leading byte order mark, which some editors write.
std::string_view WithoutBom(std::string_view text);

}  // namespace mlc
