// Chat templates: any template renders any variables, or gives an Error, in bounded time and
// memory. Parts: the template, the variables (JSON; without it, a conversation with tools).
#include <nlohmann/json.hpp>

#include "lib/support/error.h"
#include "lib/support/json_text.h"
#include "lib/text/jinja.h"
#include "test/fuzz/file_parts.h"

namespace {

constexpr size_t kParts = 2;
constexpr char kConversation[] = R"({
  "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
               {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f",
                "arguments": {"a": 1.5}}}]}, {"role": "tool", "content": "{}"},
               {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image"}]}],
  "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object",
             "properties": {"a": {"type": "number"}}}}}],
  "documents": null, "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})";

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return mlc::MutateParts(data, size, max_size, seed, kParts);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<std::string> parts = mlc::SplitParts(data, size, kParts);
  try {
    nlohmann::ordered_json variables = mlc::ParseJsonIfValid(parts[1]);
    if (!variables.is_object()) variables = mlc::ParseJson(kConversation);
    mlc::text::JinjaTemplate(parts[0]).Render(variables, 0);
  } catch (const mlc::Error&) {
  }
  return 0;
}
