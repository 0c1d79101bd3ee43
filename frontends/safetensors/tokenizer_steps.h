// frontends/safetensors/tokenizer_steps.h - converts normalizers and pre-tokenizers of
// tokenizer.json to steps of lib/text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lib/text/tokenizer.h"

namespace mlc::safetensors {

// Append the steps for an object of the file; null adds no step. Errors: "unsupported-tokenizer"
// for an unknown component, "bad-file" for a missing member. `byte_level` is set to true if a
// component converts text to bytes.
void AddNormalizers(const nlohmann::json& normalizer, std::vector<text::TextStep>& steps);
void AddPreTokenizers(const nlohmann::json& pre_tokenizer, text::TokenizerSpec& spec,
                      bool& byte_level);

// Returns a member of an object; null if there is none, or if `object` is not an object.
const nlohmann::json& Member(const nlohmann::json& object, const std::string& name);
// Return a member's value, or the last argument if the member is missing or null. Error "bad-file"
// if it has another type.
std::string Text(const nlohmann::json& object, const std::string& name,
                 const std::string& otherwise);
bool Flag(const nlohmann::json& object, const std::string& name, bool otherwise);

}  // namespace mlc::safetensors
