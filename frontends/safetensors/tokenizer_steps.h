// frontends/safetensors/tokenizer_steps.h - normalizers and pre-tokenizers of tokenizer.json as steps
// of lib/text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lib/text/tokenizer.h"

namespace mlc {

// Each appends to the steps what an object of the file stands for; null is nothing. Error
// "unsupported-tokenizer" names what is not known, "bad-file" what is missing. `byte_level` becomes
// true where one says that the model gets bytes.
void AddNormalizers(const nlohmann::json& normalizer, std::vector<TextStep>& steps);
void AddPreTokenizers(const nlohmann::json& pre_tokenizer, TokenizerSpec& spec, bool& byte_level);

// A member of an object; null where there is none, or no object.
const nlohmann::json& Member(const nlohmann::json& object, const std::string& name);
// Where a member is missing or null what is given last; Error "bad-file" where it is another type.
std::string Text(const nlohmann::json& object, const std::string& name,
                 const std::string& otherwise);
bool Flag(const nlohmann::json& object, const std::string& name, bool otherwise);

}  // namespace mlc
