// lib/text/chat_template.h - what a user says to a chat model, as the model was taught to see it.
//
// Models come with a template in Jinja. It is not interpreted: rows know the families of templates by
// what only they contain, and write one exchange (perhaps a system message, a user message, and the
// beginning of the answer) as they do. Which texts tell a family from another, and what it writes, are
// facts of llama.cpp's src/llama-chat.cpp; the beginning-of-sequence token is left to the tokenizer,
// as there.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mlc {

struct ChatTemplate {
  std::string_view name;
  std::string_view has[3];  // what a template of this family contains; "" are no condition
  bool trims;               // white space around messages is taken away
  // The prompt without a system message and with one: %u is the user's, %s the system's.
  std::string_view alone, with_system;
};

// A template is of the first row whose texts it contains.
std::span<const ChatTemplate> ChatTemplates();
// Null: a template of no known family, or none.
const ChatTemplate* FindChatTemplate(std::string_view jinja);

std::string RenderChat(const ChatTemplate& row, const std::optional<std::string>& system,
                       std::string_view user);

}  // namespace mlc
