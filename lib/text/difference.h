// lib/text/difference.h - where two tokenizers differ.
#pragma once

#include <string>

#include "lib/text/tokenizer.h"

namespace mlc {

// The first thing that `found` has otherwise than `expected`, of all that decides about ids, texts and chats:
// "token 17 is \"a\" where the source has \"b\"". Empty: nothing.
std::string Difference(const TokenizerSpec& found, const TokenizerSpec& expected);

}  // namespace mlc
