// Renders chat templates for chat_templates_test.py. Each line of standard input is an object:
// {"template": TEXT, "variables": {...}, "now": SECONDS}, or without "template" that of the line
// before. Each line of standard output is {"text": TEXT} or {"error": ID, "message": TEXT}.
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "lib/support/error.h"
#include "lib/support/json_text.h"
#include "lib/text/jinja.h"

int main() {
  std::ios::sync_with_stdio(false);
  std::optional<mlc::text::JinjaTemplate> chat;
  std::string source;
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::ordered_json answer;
    try {
      const nlohmann::ordered_json given = mlc::ParseJson(line);
      if (given.contains("template")) {
        source = given["template"].get<std::string>();
        chat.reset();
      }
      if (!chat) chat.emplace(source);
      answer["text"] = chat->Render(given["variables"], given["now"].get<std::time_t>());
    } catch (const mlc::Error& error) {
      answer = {{"error", error.id()}, {"message", error.what()}};
    }
    std::cout << mlc::JsonText(answer, -1, mlc::BadUtf8::kReplace) << "\n";
  }
}
