// lib/text/tokenizer_difference.h - compares two tokenizers.
#pragma once

#include <string>

#include "lib/text/tokenizer.h"

namespace mlc::text {

// Describes the first difference between `found` and `expected` that affects ids, texts or chats:
// "token 17 is \"a\" where the source has \"b\"". Empty if there is none.
std::string Difference(const TokenizerSpec& found, const TokenizerSpec& expected);

}  // namespace mlc::text
