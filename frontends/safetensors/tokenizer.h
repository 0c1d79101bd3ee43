// frontends/safetensors/tokenizer.h - reads tokenizer.json of Hugging Face's tokenizers library and
// the additional settings of tokenizer_config.json, and writes both to one file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer.h"

namespace mlc::safetensors {

// Reads the tokenizer of a folder with a tokenizer.json, or of such a file. The special ids and the
// chat template are those of tokenizer_config.json and chat_template.jinja in its folder. Errors:
// "unsupported-tokenizer" with the name of a component that lib/text does not support, "bad-file",
// "file-io", "resource-limit". `files`, if not null, receives the files that were read.
text::TokenizerSpec ReadHuggingFaceTokenizer(const std::filesystem::path& path,
                                             std::vector<std::filesystem::path>* files = nullptr);

// Parses the texts of tokenizer.json and tokenizer_config.json ("": none). A tokenizer.json with a
// member "tokenizer_config", as written by mlc next to packages, needs no other file. Errors refer
// to the text as `file`.
text::TokenizerSpec ParseHuggingFaceTokenizer(std::string_view tokenizer, std::string_view config,
                                              const std::string& file);

// Returns the folder's other tokenizer settings as the JSON object "tokenizer_config": the contents
// of tokenizer_config.json, with "chat_template" from chat_template.jinja and "eos_token_id" from
// generation_config.json, where these files exist. Returns "" if there are no settings.
std::string HuggingFaceTokenizerConfig(const std::filesystem::path& folder,
                                       std::vector<std::filesystem::path>* files = nullptr);

// Returns the folder's tokenizer.json with an additional member, "tokenizer_config", for the
// folder's other settings; Hugging Face's tokenizers library ignores it. Returns an
// empty string if there is no tokenizer.json. Error "bad-file" for an invalid file. `read` receives
// the names of the files.
std::string HuggingFaceTokenizerFile(const std::filesystem::path& folder,
                                     std::vector<std::filesystem::path>& read);
// Returns whether a text is the result of HuggingFaceTokenizerFile.
bool IsHuggingFaceTokenizerFile(std::string_view text);
// Describes how two such texts with the same TokenizerSpec differ in settings that only other tools
// use: the decoder, truncation, padding and dropout of merges. Returns an empty string if they do
// not differ.
std::string HuggingFaceTokenizerDifference(std::string_view found, std::string_view expected);

}  // namespace mlc::safetensors
