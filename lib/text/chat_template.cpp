#include "lib/text/chat_template.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/support/error.h"

namespace mlc::text {

namespace {

using Json = nlohmann::ordered_json;

std::string_view SourceOf(const Tokenizer& tokenizer, std::string_view source) {
  if (!source.empty()) return source;
  if (tokenizer.spec().chat_template.empty())
    throw Error("usage", "the model has no chat template")
        .Help(
            "choose one with option 'chat-template', or write the prompt in the format that the "
            "model was trained on, without option 'chat'; special tokens in it are recognised");
  return tokenizer.spec().chat_template;
}

std::string TextOfToken(const Tokenizer& tokenizer, int32_t id) {
  return id >= 0 ? tokenizer.Piece(id, true) : std::string();
}

void CheckMessages(const Json& variables) {
  const auto messages = variables.find("messages");
  const bool right =
      messages != variables.end() && messages->is_array() &&
      std::all_of(messages->begin(), messages->end(), [](const Json& message) {
        return message.is_object() && message.contains("role") && message["role"].is_string();
      });
  if (!right)
    throw Error("bad-input", "the messages of a conversation must be a list of objects with a role")
        .Expected(R"([{"role": "user", "content": "Hello"}])");
}

}  // namespace

ChatTemplate::ChatTemplate(const Tokenizer& tokenizer, std::string_view source)
    : template_(SourceOf(tokenizer, source)),
      begin_(TextOfToken(tokenizer, tokenizer.BeginOfText())) {
  const TokenizerSpec& spec = tokenizer.spec();
  for (const auto& [name, id] : {std::pair{"bos_token", spec.bos},
                                 {"eos_token", spec.eos},
                                 {"unk_token", spec.unk},
                                 {"sep_token", spec.sep},
                                 {"cls_token", spec.cls},
                                 {"pad_token", spec.pad},
                                 {"mask_token", spec.mask}})
    tokens_.emplace_back(name, TextOfToken(tokenizer, id));
}

std::string ChatTemplate::Render(const Json& variables, std::time_t now) const {
  CheckMessages(variables);
  Json all{{"tools", nullptr}, {"documents", nullptr}, {"add_generation_prompt", true}};
  for (const auto& [name, text] : tokens_) all[std::string(name)] = text;
  all.update(variables);
  std::string text = template_.Render(all, now);
  if (!begin_.empty() && text.starts_with(begin_)) text.erase(0, begin_.size());
  return text;
}

}  // namespace mlc::text
