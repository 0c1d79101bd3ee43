// frontends/safetensors/tokenizer.h - reads tokenizer.json of Hugging Face's tokenizers library and
// the additional settings of tokenizer_config.json.
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

// Parses the texts of tokenizer.json and tokenizer_config.json ("": none). Errors refer to the text as
// `file`.
text::TokenizerSpec ParseHuggingFaceTokenizer(std::string_view tokenizer, std::string_view config,
                                              const std::string& file);

// Returns the folder's other tokenizer settings as a JSON object: the contents
// of tokenizer_config.json, with "chat_template" from chat_template.jinja and "eos_token_id" from
// generation_config.json, where these files exist. Returns "" if there are no settings.
std::string HuggingFaceTokenizerConfig(const std::filesystem::path& folder,
                                       std::vector<std::filesystem::path>* files = nullptr);

// The files of a tokenizer, as Hugging Face's libraries and swift-transformers look for them.
struct HuggingFaceTexts {
  std::string tokenizer;  // tokenizer.json; empty: no tokenizer
  std::string config;     // tokenizer_config.json; empty: none
  std::string model;      // config.json; empty: none
};

// Returns the texts of a folder; `config` is that of HuggingFaceTokenizerConfig. All are empty if
// there is no tokenizer.json. Error "bad-file" for an invalid file. `read` receives the names of the
// files.
HuggingFaceTexts ReadHuggingFaceTexts(const std::filesystem::path& folder,
                                      std::vector<std::filesystem::path>& read);
// Describes how two texts of tokenizer.json with the same TokenizerSpec differ in settings that only other tools
// use: the decoder, truncation, padding and dropout of merges. Returns an empty string if they do
// not differ.
std::string HuggingFaceTokenizerDifference(std::string_view found, std::string_view expected);

}  // namespace mlc::safetensors
