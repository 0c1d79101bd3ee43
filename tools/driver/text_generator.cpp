#include "tools/driver/text_generator.h"

#include <algorithm>
#include <chrono>

#include "lib/support/milliseconds.h"

namespace mlc::driver {

std::vector<int32_t> PromptTokens(const text::Tokenizer& tokenizer, std::string_view prompt,
                                  bool begin) {
  std::vector<int32_t> tokens = tokenizer.Encode(prompt, begin, true);
  if (!begin) return tokens;
  // The tokenizer's end tokens would end the prompt, too, and are removed.
  const text::TokenizerSpec& spec = tokenizer.spec();
  const std::vector<int32_t> end = spec.has_template ? spec.after
                                   : spec.add_eos    ? std::vector{spec.eos}
                                                     : std::vector<int32_t>{};
  if (!end.empty() && tokens.size() >= end.size() &&
      std::equal(end.rbegin(), end.rend(), tokens.rbegin()))
    tokens.resize(tokens.size() - end.size());
  return tokens;
}

TextGenerator::TextGenerator(LanguageModel& model, const text::Tokenizer* tokenizer,
                             const SamplingOptions& sampling, std::vector<std::string> stops,
                             bool continues)
    : model_(model),
      tokenizer_(tokenizer),
      sampling_(sampling),
      stop_texts_(std::move(stops)),
      stops_(stop_texts_),
      continues_(continues) {
  CheckSampling(sampling);
  if (tokenizer_) decoder_.emplace(*tokenizer_);
}

void TextGenerator::Feed(std::span<const int32_t> tokens) {
  model_.Check(tokens, static_cast<int64_t>(pending_));
  pending_ += tokens.size();
  Begin(tokens);
}

// Adds tokens, and begins a new answer after them.
void TextGenerator::Begin(std::span<const int32_t> tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  fed_ += std::ssize(tokens);
  ended_.reset();
  stops_ = text::StopTexts(stop_texts_);
  if (!tokenizer_) return;
  decoder_.emplace(*tokenizer_);
  // Decoders drop the space before the first token that they see.
  // Only text that was fed is continued, not the token that begins a text.
  if (continues_ && !tokens_.empty() && decoder_->Add(tokens_.back()).empty())
    decoder_.emplace(*tokenizer_);
}

TextGenerator::Step TextGenerator::End(std::string why) {
  Step step{.done = true, .why = std::move(why)};
  if (decoder_) step.text = stops_.Add(decoder_->End());
  if (!stops_.stopped()) step.text += stops_.End();
  ended_ = Step{.done = true, .why = step.why};
  return step;
}

TextGenerator::Step TextGenerator::Next() {
  if (ended_) return *ended_;
  if (stops_.stopped()) return End("stop text");
  if (pending_ == 0) throw Error("bad-input", "there is no token to continue");
  const std::span<const int32_t> pending = std::span(tokens_).last(pending_);
  const bool continues = std::ssize(tokens_) > fed_ && pending_ == 1;
  if (continues && model_.seen() >= model_.size().context) return End("context");
  const auto begin = std::chrono::steady_clock::now();
  const Tensor logits = model_.Append(pending);
  if (!continues) prompt_ms_ = MillisecondsSince(begin);
  pending_ = 0;
  const Tensor last = logits.Rows(logits.dims()[0] - 1, logits.dims()[0]);
  const Pin<float> row = last.data<float>();
  // Embedding rows beyond the vocabulary are not tokens.
  const int64_t known = tokenizer_ ? tokenizer_->vocabulary() : INT64_MAX;
  const auto vocabulary = static_cast<size_t>(std::min(known, model_.size().vocabulary));
  const int32_t next = Sample(sampling_, std::span(row.data(), vocabulary), tokens_);
  if (tokenizer_ && tokenizer_->EndsGeneration(next))
    return End(fmt::format("token {} ({})", next, tokenizer_->Piece(next, true)));
  tokens_.push_back(next);
  pending_ = 1;
  return {.token = next, .text = decoder_ ? stops_.Add(decoder_->Add(next)) : std::string()};
}

void TextGenerator::Forget() {
  model_.Forget();
  tokens_.clear();
  pending_ = 0;
  fed_ = 0;
  Begin({});
}

int64_t TextGenerator::Restart(std::span<const int32_t> tokens) {
  const auto seen = static_cast<size_t>(model_.seen());
  size_t kept = 0;
  // The last token is processed again, for its logits.
  while (kept < seen && kept + 1 < tokens.size() && tokens[kept] == tokens_[kept]) ++kept;
  if (!model_.Rewind(static_cast<int64_t>(kept))) {
    kept = 0;
    model_.Forget();
  }
  tokens_.assign(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(kept));
  pending_ = 0;
  fed_ = static_cast<int64_t>(kept);
  Feed(tokens.subspan(kept));
  return static_cast<int64_t>(kept);
}

void TextGenerator::Start(const runtime::ModelState& state, std::span<const int32_t> tokens) {
  Forget();
  model_.Check(tokens);
  model_.Start(state, std::ssize(tokens));
  Begin(tokens);
}

}  // namespace mlc::driver
