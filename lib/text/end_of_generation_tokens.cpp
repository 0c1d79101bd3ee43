#include "lib/text/end_of_generation_tokens.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace mlc::text {
namespace {

struct Row {
  std::string_view text;
  bool turn;           // ends a turn; used as eot if the file names none
  bool answer = true;  // ends an answer
};
constexpr Row kRows[] = {
    {"<|eot_id|>", true},
    {"<|im_end|>", true},
    {"<|end|>", true},
    {"<end_of_turn>", true},
    {"<|endoftext|>", true},
    {"<|end_of_text|>", true},
    {"<EOT>", true},
    {"_<EOT>", true},
    {"[EOT]", true},
    {"<\uff5cend\u2581of\u2581sentence\uff5c>", true},
    {"<end_of_utterance>", true},
    {"<|return|>", false},
    {"<|call|>", false},
    {"<|flush|>", false},
    {"<|calls|>", false},
    {"</s>", false},
    {"<|eom_id|>", false},
    {"[EOS]", false},
    {"<eos>", false},
    {"<turn|>", false},
    {"<|tool_response>", false},
    {"[e~[", false},
    // Tokens for infilling.
    {"<|fim_pad|>", false},
    {"<fim-pad>", false},
    {"<fim_pad>", false},
    {"<PAD>", false},
    {"[PAD]", false},
    {"<|fim_repo|>", false},
    {"<|repo_name|>", false},
    {"<fim-repo>", false},
    {"<REPO>", false},
    {"<reponame>", false},
    {"<|file_sep|>", false},
    {"<|fim_prefix|>", false, false},
    {"<fim-prefix>", false, false},
    {"<fim_prefix>", false, false},
    {"<\uff5cfim\u2581begin\uff5c>", false, false},
    {"<PRE>", false, false},
    {"\u2581<PRE>", false, false},
    {"<|code_prefix|>", false, false},
    {"<|prefix|>", false, false},
    {"<|fim_suffix|>", false, false},
    {"<fim-suffix>", false, false},
    {"<fim_suffix>", false, false},
    {"<\uff5cfim\u2581hole\uff5c>", false, false},
    {"<SUF>", false, false},
    {"\u2581<SUF>", false, false},
    {"<|code_suffix|>", false, false},
    {"<|suffix|>", false, false},
    {"<|fim_middle|>", false, false},
    {"<fim-middle>", false, false},
    {"<fim_middle>", false, false},
    {"<\uff5cfim\u2581end\uff5c>", false, false},
    {"<MID>", false, false},
    {"\u2581<MID>", false, false},
    {"<|code_middle|>", false, false},
    {"<|middle|>", false, false},
};
// gpt-oss: the markers of its channels are part of the visible text.
constexpr std::string_view kShown[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

}  // namespace

void MarkSpecialTokens(TokenizerSpec& spec) {
  auto wanted = [](std::string_view text) {
    return std::any_of(std::begin(kRows), std::end(kRows),
                       [&](const Row& row) { return row.text == text; }) ||
           std::find(std::begin(kShown), std::end(kShown), text) != std::end(kShown);
  };
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    const std::string& text = spec.tokens[id];
    // All known texts begin with one of these bytes.
    if (!text.empty() && std::string_view("<[_\xe2").find(text[0]) != std::string_view::npos &&
        wanted(text))
      ids[text] = static_cast<int32_t>(id);
  }
  auto find = [&](std::string_view text) {
    auto found = ids.find(text);
    return found == ids.end() ? -1 : found->second;
  };
  auto mark = [&](int32_t id, TokenType type) {
    if (spec.types.empty()) spec.types.assign(spec.tokens.size(), TokenType::kNormal);
    spec.types[static_cast<size_t>(id)] = type;
  };
  for (const Row& row : kRows) {
    int32_t id = find(row.text);
    if (id < 0) continue;
    if (row.turn && spec.eot < 0) spec.eot = id;
    if (row.answer) spec.ends.push_back(id);
    mark(id, TokenType::kControl);
  }
  for (std::string_view text : kShown)
    if (int32_t id = find(text); id >= 0) mark(id, TokenType::kUserDefined);
  auto not_an_end = [&](int32_t id, TokenType type) {
    std::erase(spec.ends, id);
    if (spec.eot == id) spec.eot = -1;
    mark(id, type);
  };
  // If the vocabulary has "<|return|>" or "<|flush|>", and "<|call|>" or "<|calls|>", then
  // "<|end|>" ends only a part of an answer. If it has "<|tool_response>", then "</s>" is ordinary
  // text.
  const bool parts = (find("<|return|>") >= 0 || find("<|flush|>") >= 0) &&
                     (find("<|call|>") >= 0 || find("<|calls|>") >= 0);
  if (parts && find("<|end|>") >= 0) not_an_end(find("<|end|>"), TokenType::kUserDefined);
  if (find("<|tool_response>") >= 0 && find("</s>") >= 0)
    not_an_end(find("</s>"), TokenType::kNormal);
}

}  // namespace mlc::text
