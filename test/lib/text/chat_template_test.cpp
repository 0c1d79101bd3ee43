// Chat templates: every row is found by its substrings, and its prompts match the documentation of
// the models.
#include "lib/text/chat_template.h"

#include "test/catch.h"

namespace mlc::test {
using namespace text;
namespace {

const ChatTemplate& Named(std::string_view name) {
  for (const ChatTemplate& row : ChatTemplates())
    if (row.name == name) return row;
  throw std::runtime_error("no such row");
}

std::string Rendered(std::string_view name, const std::optional<std::string>& system = {}) {
  return RenderChat(Named(name), system, "Hi ");
}

}  // namespace

TEST_CASE("chat templates: each row is found by its substrings", "[chat_template]") {
  for (const ChatTemplate& row : ChatTemplates()) {
    std::string jinja = "{{ '";
    for (std::string_view mark : row.has) jinja.append(mark).append("' }}{{ '");
    const ChatTemplate* found = FindChatTemplate(jinja);
    INFO(row.name << ": " << (found ? found->name : "none"));
    CHECK(found == &row);
  }
}

TEST_CASE("chat templates: each row contains both messages once, the system message first",
          "[chat_template]") {
  for (const ChatTemplate& row : ChatTemplates()) {
    INFO(row.name);
    const std::string alone = RenderChat(row, {}, "[user]"),
                      both = RenderChat(row, "[system]", "[user]");
    CHECK(alone.find("[user]") == alone.rfind("[user]"));
    CHECK(alone.find('%') == std::string::npos);
    CHECK(both.find('%') == std::string::npos);
    CHECK(both.find("[system]") < both.find("[user]"));
    CHECK(both.find("[user]") != std::string::npos);
  }
}

TEST_CASE("chat templates: empty and unknown templates give null", "[chat_template]") {
  CHECK(!FindChatTemplate(""));
  CHECK(!FindChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}"));
}

TEST_CASE("chat templates: prompts match the documentation of the models", "[chat_template]") {
  // github.com/openai/openai-python, chatml.md; the model cards of Qwen2.5 and SmolLM2.
  CHECK(Rendered("chatml", "Be brief.") ==
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi <|im_end|>\n"
        "<|im_start|>assistant\n");
  // llama.com/docs/model-cards-and-prompt-formats/meta-llama-3, without its <|begin_of_text|>.
  CHECK(Rendered("llama-3", "Be brief.") ==
        "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n");
  // huggingface.co/blog/llama2#how-to-prompt-llama-2
  CHECK(Rendered("llama-2", "Be brief.") == "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi  [/INST]");
  // ai.google.dev/gemma/docs/core/prompt-structure
  CHECK(Rendered("gemma") == "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n");
  // The model card of Phi-3-mini-4k-instruct.
  CHECK(Rendered("phi-3") == "<|user|>\nHi <|end|>\n<|assistant|>\n");
  // The model card of c4ai-command-r-v01.
  CHECK(Rendered("command-r") ==
        "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>Hi<|END_OF_TURN_TOKEN|>"
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>");
  // github.com/mistralai/cookbook, concept-deep-dive/tokenization/chat_templates.md
  CHECK(Rendered("mistral-v1") == " [INST] Hi  [/INST]");
  CHECK(Rendered("mistral-v3") == "[INST] Hi [/INST]");
  CHECK(Rendered("mistral-v3-tekken") == "[INST]Hi [/INST]");
  // The README of deepseek-ai/DeepSeek-Coder.
  CHECK(Rendered("deepseek") == "### Instruction:\nHi \n### Response:\n");
}

}  // namespace mlc::test
