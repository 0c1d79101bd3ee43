// lib/text/chat_template.h - formats the prompt of a chat model as in its training data.
//
// Models come with a Jinja template, which is not interpreted. Instead, each row of a table
// identifies a family of templates by characteristic substrings and formats one exchange like that
// family: an optional system message, a user message and the beginning of the answer. The
// substrings and formats are facts from src/llama-chat.cpp of llama.cpp; as there, the tokenizer
// adds the beginning-of-sequence token.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mlc::text {

struct ChatTemplate {
  std::string_view name;
  std::string_view has[3];  // substrings of the templates of this family; "" matches everything
  bool trims;               // strips white space around messages
  // The prompt without and with a system message: %u is the user's message, %s the system message.
  std::string_view alone, with_system;
};

// The first row whose substrings all occur in a template determines its family.
std::span<const ChatTemplate> ChatTemplates();
// Returns null for an empty template or an unknown family.
const ChatTemplate* FindChatTemplate(std::string_view jinja);

std::string RenderChat(const ChatTemplate& row, const std::optional<std::string>& system,
                       std::string_view user);

}  // namespace mlc::text
