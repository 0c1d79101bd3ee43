// frontends/safetensors/tokenizer_file.h - a folder's tokenizer as one file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mlc {

// Returns the folder's tokenizer.json with one more member, "tokenizer_config", which holds the
// folder's other settings (tokenizer.h); Hugging Face's tokenizers library ignores it. Empty: there
// is no tokenizer.json. Error "bad-file" for an invalid file. `read` gets the files.
std::string HuggingFaceTokenizerFile(const std::filesystem::path& folder,
                                     std::vector<std::filesystem::path>& read);
// Whether a text is the result of HuggingFaceTokenizerFile.
bool IsHuggingFaceTokenizerFile(std::string_view text);
// How two such texts, whose tokenizers have the same TokenizerSpec, differ in what others read of
// them: the decoder, truncation, padding and dropout of merges; empty: nowhere.
std::string HuggingFaceTokenizerDifference(std::string_view found, std::string_view expected);

}  // namespace mlc
