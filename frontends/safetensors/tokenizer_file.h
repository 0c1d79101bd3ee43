// frontends/safetensors/tokenizer_file.h - writes a folder's tokenizer to one file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mlc::safetensors {

// Returns the folder's tokenizer.json with an additional member, "tokenizer_config", for the
// folder's other settings (tokenizer.h); Hugging Face's tokenizers library ignores it. Returns an
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
