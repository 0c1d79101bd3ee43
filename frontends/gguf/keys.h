// frontends/gguf/keys.h - the keys that only some architectures read, and which of them do.
#pragma once

#include <cstdint>
#include <string_view>

namespace mlc {

enum class KeyUse : uint8_t { kIgnored, kOptional, kRequired };

// What llama.cpp does with a key, given without the architecture in front. Keys that it reads of every
// architecture are kOptional.
KeyUse UseOfKey(std::string_view architecture, std::string_view key);

}  // namespace mlc
