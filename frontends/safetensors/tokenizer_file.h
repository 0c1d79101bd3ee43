// frontends/safetensors/tokenizer_file.h - a folder's tokenizer as one file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mlc {

// The folder's tokenizer.json as it is, with one member more, "tokenizer_config": what
// tokenizer_config.json has, and as its chat_template what chat_template.jinja has, where those are there.
// Hugging Face's tokenizers library passes over that member. Empty: there is no tokenizer.json. Error
// "bad-file" where one of them is no JSON object. `read` gets the files.
std::string HuggingFaceTokenizerFile(const std::filesystem::path& folder,
                                     std::vector<std::filesystem::path>& read);
// Whether a text is what that gives.
bool IsHuggingFaceTokenizerFile(std::string_view text);

}  // namespace mlc
