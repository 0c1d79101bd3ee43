#include "lib/text/chat_template.h"

#include <algorithm>

namespace mlc::text {

namespace {

// Name | has | trims | alone | with a system message. The order matters, because similar templates
// contain the same markers.
// clang-format off
constexpr ChatTemplate kTemplates[] = {
    {"phi-4", {"<|im_start|>", "<|im_sep|>"}, false,
     "<|im_start|>user<|im_sep|>%u<|im_end|><|im_start|>assistant<|im_sep|>",
     "<|im_start|>system<|im_sep|>%s<|im_end|><|im_start|>user<|im_sep|>%u<|im_end|>"
     "<|im_start|>assistant<|im_sep|>"},
    {"smolvlm", {"<|im_start|>", "<end_of_utterance>"}, false,
     "<|im_start|>User: %u<end_of_utterance>\nAssistant:",
     "<|im_start|>%s\n\nUser: %u<end_of_utterance>\nAssistant:"},
    {"chatml", {"<|im_start|>"}, false,
     "<|im_start|>user\n%u<|im_end|>\n<|im_start|>assistant\n",
     "<|im_start|>system\n%s<|im_end|>\n<|im_start|>user\n%u<|im_end|>\n<|im_start|>assistant\n"},
    {"mistral-v7", {"[INST]", "[SYSTEM_PROMPT]"}, false,
     "[INST] %u[/INST]",
     "[SYSTEM_PROMPT] %s[/SYSTEM_PROMPT][INST] %u[/INST]"},
    {"mistral-v1", {"' [INST] ' + system_message"}, false,
     " [INST] %u [/INST]",
     " [INST] %s\n\n%u [/INST]"},
    {"mistral-v1", {" [INST]", "[AVAILABLE_TOOLS]"}, false,
     " [INST] %u [/INST]",
     " [INST] %s\n\n%u [/INST]"},
    {"mistral-v3-tekken", {"\"[INST]\"", "[AVAILABLE_TOOLS]"}, false,
     "[INST]%u[/INST]",
     "[INST]%s\n\n%u[/INST]"},
    {"mistral-v3", {"[INST]", "[AVAILABLE_TOOLS]"}, false,
     "[INST] %u[/INST]",
     "[INST] %s\n\n%u[/INST]"},
    {"llama-2-strip", {"[INST]", "content.strip()"}, true,
     "[INST] %u [/INST]",
     "[INST] <<SYS>>\n%s\n<</SYS>>\n\n%u [/INST]"},
    {"llama-2", {"bos_token + '[INST]"}, false,
     "[INST] %u [/INST]",
     "[INST] <<SYS>>\n%s\n<</SYS>>\n\n%u [/INST]"},
    {"llama-2", {"[INST]", "<<SYS>>"}, false,
     "[INST] %u [/INST]",
     "[INST] <<SYS>>\n%s\n<</SYS>>\n\n%u [/INST]"},
    {"llama-2-plain", {"[INST]"}, false,
     "[INST] %u [/INST]",
     "[INST] %s\n%u [/INST]"},
    {"phi-3", {"<|assistant|>", "<|end|>"}, false,
     "<|user|>\n%u<|end|>\n<|assistant|>\n",
     "<|system|>\n%s<|end|>\n<|user|>\n%u<|end|>\n<|assistant|>\n"},
    {"chatglm-4", {"[gMASK]<sop>"}, false,
     "[gMASK]<sop><|user|>\n%u<|assistant|>\n",
     "[gMASK]<sop><|system|>\n%s<|user|>\n%u<|assistant|>\n"},
    {"exaone-moe", {"<|assistant|>", "<|user|>", "<|tool_declare|>"}, true,
     "<|user|>\n%u<|endofturn|>\n<|assistant|>\n",
     "<|system|>\n%s<|endofturn|>\n<|user|>\n%u<|endofturn|>\n<|assistant|>\n"},
    {"falcon-3", {"<|assistant|>", "<|user|>", "</s>"}, false,
     "<|user|>\n%u\n<|assistant|>\n",
     "<|system|>\n%s\n<|user|>\n%u\n<|assistant|>\n"},
    {"glm-edge", {"<|assistant|>", "<|user|>"}, false,
     "<|user|>\n%u<|assistant|>",
     "<|system|>\n%s<|user|>\n%u<|assistant|>"},
    {"glm-edge", {"<|{{ item['role'] }}|>", "<|begin_of_image|>"}, false,
     "<|user|>\n%u<|assistant|>",
     "<|system|>\n%s<|user|>\n%u<|assistant|>"},
    {"zephyr", {"<|user|>", "<|endoftext|>"}, false,
     "<|user|>\n%u<|endoftext|>\n<|assistant|>\n",
     "<|system|>\n%s<|endoftext|>\n<|user|>\n%u<|endoftext|>\n<|assistant|>\n"},
    {"monarch", {"bos_token + message['role']"}, false,
     "user\n%u</s>\n<s>assistant\n",
     "system\n%s</s>\n<s>user\n%u</s>\n<s>assistant\n"},
    {"gemma", {"<start_of_turn>"}, true,
     "<start_of_turn>user\n%u<end_of_turn>\n<start_of_turn>model\n",
     "<start_of_turn>user\n%s\n\n%u<end_of_turn>\n<start_of_turn>model\n"},
    {"orion", {"'\\n\\nAssistant: ' + eos_token"}, false,
     "Human: %u\n\nAssistant: </s>",
     "Human: %s\n\n%u\n\nAssistant: </s>"},
    {"openchat", {"GPT4 Correct "}, false,
     "GPT4 Correct User: %u<|end_of_turn|>GPT4 Correct Assistant:",
     "%s<|end_of_turn|>GPT4 Correct User: %u<|end_of_turn|>GPT4 Correct Assistant:"},
    {"vicuna-orca", {"USER: ", "ASSISTANT: ", "SYSTEM: "}, false,
     "USER: %u\nASSISTANT:",
     "SYSTEM: %s\nUSER: %u\nASSISTANT:"},
    {"vicuna", {"USER: ", "ASSISTANT: "}, false,
     "USER: %u\nASSISTANT:",
     "%s\n\nUSER: %u\nASSISTANT:"},
    {"deepseek", {"### Instruction:", "<|EOT|>"}, false,
     "### Instruction:\n%u\n### Response:\n",
     "%s### Instruction:\n%u\n### Response:\n"},
    {"command-r", {"<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>"}, true,
     "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>%u<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|>"
     "<|CHATBOT_TOKEN|>",
     "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>%s<|END_OF_TURN_TOKEN|>"
     "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>%u<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|>"
     "<|CHATBOT_TOKEN|>"},
    {"llama-3", {"<|start_header_id|>", "<|end_header_id|>"}, true,
     "<|start_header_id|>user<|end_header_id|>\n\n%u<|eot_id|><|start_header_id|>assistant"
     "<|end_header_id|>\n\n",
     "<|start_header_id|>system<|end_header_id|>\n\n%s<|eot_id|>"
     "<|start_header_id|>user<|end_header_id|>\n\n%u<|eot_id|><|start_header_id|>assistant"
     "<|end_header_id|>\n\n"},
    {"chatglm-3", {"[gMASK]sop"}, false,
     "[gMASK]sop<|user|>\n %u<|assistant|>",
     "[gMASK]sop<|system|>\n %s<|user|>\n %u<|assistant|>"},
    {"minicpm", {"<用户>"}, true,
     "<用户>%u<AI>",
     "%s<用户>%u<AI>"},
    {"deepseek-2", {"'Assistant: ' + message['content'] + eos_token"}, false,
     "User: %u\n\nAssistant:",
     "%s\n\nUser: %u\n\nAssistant:"},
    {"deepseek-3", {"<｜Assistant｜>", "<｜User｜>", "<｜end▁of▁sentence｜>"}, false,
     "<｜User｜>%u<｜Assistant｜>",
     "%s\n\n<｜User｜>%u<｜Assistant｜>"},
    {"exaone-3", {"[|system|]", "[|assistant|]", "[|endofturn|]"}, true,
     "[|user|]%u\n[|assistant|]",
     "[|system|]%s[|endofturn|]\n[|user|]%u\n[|assistant|]"},
    {"rwkv-world", {"rwkv-world"}, true,
     "User: %u\n\nAssistant:",
     "System: %s\n\nUser: %u\n\nAssistant:"},
    {"rwkv-world", {"{{- 'User: ' + message['content']|trim + '\\n\\n' -}}"}, true,
     "User: %u\n\nAssistant:",
     "System: %s\n\nUser: %u\n\nAssistant:"},
    {"granite", {"<|start_of_role|>"}, false,
     "<|start_of_role|>user<|end_of_role|>%u<|end_of_text|>\n<|start_of_role|>assistant"
     "<|end_of_role|>",
     "<|start_of_role|>system<|end_of_role|>%s<|end_of_text|>\n"
     "<|start_of_role|>user<|end_of_role|>%u<|end_of_text|>\n<|start_of_role|>assistant"
     "<|end_of_role|>"},
    {"megrez", {"<|role_start|>"}, false,
     "<|role_start|>user<|role_end|>%u<|turn_end|><|role_start|>assistant<|role_end|>",
     "<|role_start|>system<|role_end|>%s<|turn_end|><|role_start|>user<|role_end|>%u<|turn_end|>"
     "<|role_start|>assistant<|role_end|>"},
    {"llama-4", {"<|header_start|>", "<|header_end|>"}, true,
     "<|header_start|>user<|header_end|>\n\n%u<|eot|><|header_start|>assistant<|header_end|>\n\n",
     "<|header_start|>system<|header_end|>\n\n%s<|eot|>"
     "<|header_start|>user<|header_end|>\n\n%u<|eot|><|header_start|>assistant<|header_end|>\n\n"},
    {"gpt-oss", {"<|start|>", "<|channel|>"}, false,
     "<|start|>user<|message|>%u<|end|><|start|>assistant",
     "<|start|>system<|message|>%s<|end|><|start|>user<|message|>%u<|end|><|start|>assistant"},
    {"kimi-k2", {"<|im_assistant|>assistant<|im_middle|>"}, false,
     "<|im_user|>user<|im_middle|>%u<|im_end|><|im_assistant|>assistant<|im_middle|>",
     "<|im_system|>system<|im_middle|>%s<|im_end|><|im_user|>user<|im_middle|>%u<|im_end|>"
     "<|im_assistant|>assistant<|im_middle|>"},
    {"seed-oss", {"<seed:bos>"}, false,
     "<seed:bos>user\n%u<seed:eos><seed:bos>assistant\n",
     "<seed:bos>system\n%s<seed:eos><seed:bos>user\n%u<seed:eos><seed:bos>assistant\n"},
    {"grok-2", {"'Assistant: '  + message['content'] + '<|separator|>"}, true,
     "Human: %u<|separator|>\n\nAssistant:",
     "System: %s<|separator|>\n\nHuman: %u<|separator|>\n\nAssistant:"},
    {"solar-open", {"<|begin|>", "<|end|>", "<|content|>"}, false,
     "<|begin|>user<|content|>%u<|end|><|begin|>assistant",
     "<|begin|>system<|content|>%s<|end|><|begin|>user<|content|>%u<|end|><|begin|>assistant"},
};
// clang-format on

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

}  // namespace

std::span<const ChatTemplate> ChatTemplates() { return kTemplates; }

const ChatTemplate* FindChatTemplate(std::string_view jinja) {
  for (const ChatTemplate& row : kTemplates)
    if (std::all_of(std::begin(row.has), std::end(row.has),
                    [&](std::string_view text) { return jinja.find(text) != jinja.npos; }))
      return &row;
  return nullptr;
}

std::string RenderChat(const ChatTemplate& row, const std::optional<std::string>& system,
                       std::string_view user) {
  const std::string_view pattern = system ? row.with_system : row.alone;
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const bool message = pattern[i] == '%' && i + 1 < pattern.size();
    if (!message) {
      text += pattern[i];
      continue;
    }
    const std::string_view content = pattern[++i] == 'u' ? user : std::string_view(*system);
    text += row.trims ? Trimmed(content) : content;
  }
  return text;
}

}  // namespace mlc::text
