// lib/text/chat_template.h - formats a conversation as a chat model expects it, by running the
// Jinja template that comes with the model.
//
// The variables are those of transformers: messages, tools and documents (none, unless given),
// add_generation_prompt, and the texts of special tokens (bos_token, eos_token ...; as in
// llama.cpp, those that the tokenizer lacks are empty). `messages` is a list of objects in OpenAI's
// format: {"role": "user", "content": "Hi"}.
//
// The text is encoded like a prompt, as llama.cpp does it: the tokenizer adds the token that begins
// a text, so that it is removed from the text, where templates write it, too; and special tokens
// are recognised in all of the text. A message that spells a special token, such as "<|im_end|>",
// therefore yields that token: who passes on messages of others filters them.
#pragma once

#include <ctime>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "lib/text/jinja.h"
#include "lib/text/tokenizer.h"

namespace mlc::text {

class ChatTemplate {
 public:
  // `source`: the template; empty: the tokenizer's. Errors of JinjaTemplate, and "usage" if the
  // tokenizer has no template.
  explicit ChatTemplate(const Tokenizer& tokenizer, std::string_view source = {});

  // `variables` is an object with "messages", and replaces the other variables, too. Errors of
  // JinjaTemplate::Render; "bad-input" for messages that are not a list of objects with a role.
  std::string Render(const nlohmann::ordered_json& variables, std::time_t now) const;

 private:
  JinjaTemplate template_;
  std::vector<std::pair<std::string_view, std::string>> tokens_;  // variables and texts
  std::string begin_;  // text of the token that the tokenizer puts first; may be empty
};

}  // namespace mlc::text
