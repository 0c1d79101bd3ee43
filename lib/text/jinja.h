// lib/text/jinja.h - chat templates: an interpreter of Jinja as transformers sets it up.
//
//   JinjaTemplate chat(tokenizer.spec().chat_template);
//   std::string prompt = chat.Render({{"messages", messages}, {"add_generation_prompt", true}});
//
// The reference is Jinja2 with transformers' ImmutableSandboxedEnvironment: trim_blocks,
// lstrip_blocks, break and continue, generation blocks, its tojson, raise_exception and
// strftime_now. The values are Python's, texts of them included. As in llama.cpp, but not in that
// sandbox, lists and dictionaries have the methods that change them. Not supported, and refused by
// name: other templates (include, import, extends, block), recursive loops, autoescape, integers
// beyond 64 bits, and filters, methods and functions of little use in prompts.
//
// Templates are untrusted: time, memory, depth and the length of the text are limited.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mlc::text {

class JinjaTemplate {
 public:
  // Error "chat-template", with line and column, for a syntax error or what is not supported;
  // "resource-limit" for a template that is too long or nested too deeply.
  explicit JinjaTemplate(std::string_view source);
  ~JinjaTemplate();
  JinjaTemplate(JinjaTemplate&&) noexcept;
  JinjaTemplate& operator=(JinjaTemplate&&) noexcept;

  // `variables` is an object. `now` is the time of strftime_now, which is printed as local time.
  // Error "chat-template" for what raises an exception in Jinja, raise_exception included, and for
  // what is not supported; "resource-limit".
  std::string Render(const nlohmann::ordered_json& variables, std::time_t now) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace mlc::text
