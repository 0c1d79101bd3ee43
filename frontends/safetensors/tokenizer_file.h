// frontends/safetensors/tokenizer_file.h - a folder's tokenizer as one file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mlc {

// The folder's tokenizer.json as it is, with one member more, "tokenizer_config", which has what else the
// folder says of it (tokenizer.h); Hugging Face's tokenizers library passes over that. Empty: there is no
// tokenizer.json. Error "bad-file" where a file is not what it should be. `read` gets the files.
std::string HuggingFaceTokenizerFile(const std::filesystem::path& folder,
                                     std::vector<std::filesystem::path>& read);
// Whether a text is what that gives.
bool IsHuggingFaceTokenizerFile(std::string_view text);
// How two such texts, whose tokenizers have the same TokenizerSpec, differ in what others read of them: the
// decoder, truncation, padding and dropout of merges; empty: nowhere.
std::string HuggingFaceTokenizerDifference(std::string_view found, std::string_view expected);

}  // namespace mlc
