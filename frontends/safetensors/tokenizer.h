// frontends/safetensors/tokenizer.h - tokenizer.json of Hugging Face's tokenizers library, and what
// tokenizer_config.json adds to it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer.h"

namespace mlc {

// Of a folder with a tokenizer.json, or of such a file. special ids and the chat template are those of
// tokenizer_config.json and chat_template.jinja in its folder. Error "unsupported-tokenizer" for
// a part that lib/text has nothing for, by its name in the file; "bad-file", "file-io",
// "resource-limit". `files`, if any, gets what was read.
TokenizerSpec ReadHuggingFaceTokenizer(const std::filesystem::path& path,
                                       std::vector<std::filesystem::path>* files = nullptr);

// The same of texts: tokenizer.json, and tokenizer_config.json ("": none). A tokenizer.json that has
// "tokenizer_config" among its members, as mlc writes it beside packages, needs no other file.
// `file` is what errors name.
TokenizerSpec ParseHuggingFaceTokenizer(std::string_view tokenizer, std::string_view config,
                                        const std::string& file);

// What else a folder says of its tokenizer, as the one object that "tokenizer_config" is:
// tokenizer_config.json with the chat template of chat_template.jinja and the "eos_token_id" of
// generation_config.json, where there are such. "": nothing.
std::string HuggingFaceTokenizerConfig(const std::filesystem::path& folder,
                                       std::vector<std::filesystem::path>* files = nullptr);

}  // namespace mlc
