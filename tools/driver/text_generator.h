// tools/driver/text_generator.h - continues a text with a language model, one token per call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/stop_strings.h"
#include "lib/text/tokenizer.h"
#include "tools/driver/language_model.h"
#include "tools/driver/sampling.h"

namespace mlc::driver {

// Encodes a prompt as a model expects it: special tokens in it are recognised. With `begin`, it
// gets the tokens that begin a text; tokens that would end it are left out.
std::vector<int32_t> PromptTokens(const text::Tokenizer& tokenizer, std::string_view prompt,
                                  bool begin);

class TextGenerator {
 public:
  // Both must outlive this object; `tokenizer` may be null, then there are no texts and no tokens
  // that end an answer. With `continues`, the texts of steps continue the text that was fed: the
  // first one keeps its leading space. Error "usage" for sampling options that contradict each other.
  TextGenerator(LanguageModel& model, const text::Tokenizer* tokenizer,
                const SamplingOptions& sampling, std::vector<std::string> stops,
                bool continues = false);

  // Adds tokens to what the model has read, and begins a new answer. Error "bad-input", which adds
  // none, for tokens that are not in the vocabulary or exceed the context.
  void Feed(std::span<const int32_t> tokens);

  struct Step {
    int32_t token = -1;  // -1: the answer has ended
    std::string text;    // that became certain; the last step has the rest
    bool done = false;
    std::string why;  // for the last step: "token 2 (</s>)", "stop text", "context"
  };
  // Chooses the next token. Error "bad-input" if nothing was fed, and the errors of predicting.
  Step Next();

  // Ends the answer here; the step has the rest of the text.
  Step End(std::string why);
  // Returns whether the text so far ends at a stop text, so that the next step is the last.
  bool at_stop() const { return stops_.stopped(); }

  // All tokens, those fed and those chosen.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  int64_t prompt_tokens() const { return fed_; }
  int64_t processed() const { return model_.seen(); }
  double prompt_ms() const { return prompt_ms_; }  // time of processing the last tokens fed
  void Forget();
  // Replaces all tokens by `tokens`, which are not empty, and begins a new answer after them. What
  // they have in common with those that the model has processed is kept in its state, if that can
  // go back; returns the number of tokens kept. Error "bad-input" as from Feed.
  int64_t Restart(std::span<const int32_t> tokens);
  // Forgets everything and begins as if the model had read `tokens`; `state` is that after them.
  void Start(const runtime::ModelState& state, std::span<const int32_t> tokens);

 private:
  void Begin(std::span<const int32_t> tokens);
  LanguageModel& model_;
  const text::Tokenizer* tokenizer_;
  SamplingOptions sampling_;
  std::vector<std::string> stop_texts_;
  text::StopTexts stops_;
  const bool continues_;
  std::optional<text::StreamDecoder> decoder_;
  std::vector<int32_t> tokens_;
  size_t pending_ = 0;  // tokens at the end that the model has not processed
  int64_t fed_ = 0;
  std::optional<Step> ended_;
  double prompt_ms_ = 0;
};

}  // namespace mlc::driver
