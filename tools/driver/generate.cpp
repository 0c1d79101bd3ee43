#include "tools/driver/generate.h"

#include <algorithm>

#include "lib/support/milliseconds.h"
#include "lib/text/chat_template.h"
#include "lib/text/stop_strings.h"
#include "tools/driver/language_model.h"
#include "tools/driver/tokenizer.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using Clock = std::chrono::steady_clock;

double Rate(int64_t count, double ms) { return ms > 0 ? 1e3 * static_cast<double>(count) / ms : 0; }

const text::ChatTemplate& TemplateOf(const text::Tokenizer& tokenizer) {
  const std::string& jinja = tokenizer.spec().chat_template;
  if (const text::ChatTemplate* row = text::FindChatTemplate(jinja)) return *row;
  std::string known;
  for (const text::ChatTemplate& row : text::ChatTemplates())
    if (!known.ends_with(row.name))
      known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  throw Error("usage", jinja.empty() ? "--chat: the model has no chat template"
                                     : "--chat: the model's chat template is not supported")
      .Expected(known)
      .Help(
          "omit --chat and write the prompt in the format that the model was trained on; special "
          "tokens in it are recognised");
}

std::vector<int32_t> TokensOf(const text::Tokenizer& tokenizer, std::string_view prompt) {
  std::vector<int32_t> tokens = tokenizer.Encode(prompt, true, true);
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

}  // namespace

std::string_view Name(GenerateResult::Finish finish) {
  constexpr std::string_view kNames[] = {"stop", "length", "interrupted"};
  return kNames[static_cast<size_t>(finish)];
}

double PrefillRate(const GenerateResult& result) {
  return Rate(std::ssize(result.prompt_tokens), result.prefill_ms);
}
double DecodeRate(const GenerateResult& result) { return Rate(result.decoded, result.decode_ms); }

GenerateResult Generate(const fs::path& path, const ModelOptions& load,
                        const GenerateOptions& options, Diagnostics& diagnostics) {
  CheckSampling(options.sampling);
  if (options.most && *options.most < 1)
    throw Error("usage", "--generate: expected at least one token");
  if (options.system && !options.chat) throw Error("usage", "--system requires --chat");
  Clock::time_point begin = Clock::now();
  LanguageModel model(path, load, "--prompt", diagnostics);
  const double load_ms = Milliseconds(begin, Clock::now());
  const text::Tokenizer tokenizer =
      LoadTokenizer(options.tokenizer.empty() ? path : options.tokenizer);
  GenerateResult result;
  result.executor = model.model().executor();
  result.load_ms = load_ms;
  result.prompt = options.prompt;
  if (options.chat) {
    const text::ChatTemplate& row = TemplateOf(tokenizer);
    result.chat_template = row.name;
    result.prompt = text::RenderChat(row, options.system, options.prompt);
  }
  result.prompt_tokens = TokensOf(tokenizer, result.prompt);
  const auto prompt = std::ssize(result.prompt_tokens);
  if (prompt == 0) throw Error("usage", "--prompt has no tokens");
  if (prompt > model.size().context)
    throw Error("usage", "--prompt has {} tokens, but the model accepts at most {}", prompt,
                model.size().context)
        .Help(
            "shorten the prompt, or run or compile the source model with a larger --context N, up "
            "to the model's limit");

  text::StreamDecoder decoder(tokenizer);
  text::StopTexts stops(options.stops);
  const auto show = [&](const std::string& text) {
    result.text += text;
    if (options.show && !text.empty()) options.show(text);
  };
  begin = Clock::now();
  Tensor logits = model.Append(result.prompt_tokens);
  result.prefill_ms = Milliseconds(begin, Clock::now());
  begin = Clock::now();
  std::vector<int32_t> all = result.prompt_tokens;
  // Embedding rows beyond the vocabulary are not tokens.
  const auto vocabulary =
      static_cast<size_t>(std::min<int64_t>(tokenizer.vocabulary(), model.size().vocabulary));
  while (true) {
    const Tensor last = logits.Rows(logits.dims()[0] - 1, logits.dims()[0]);
    const Pin<float> row = last.data<float>();
    const int32_t next = Sample(options.sampling, std::span(row.data(), vocabulary), all);
    if (tokenizer.EndsGeneration(next)) {
      result.finish = GenerateResult::Finish::kStop;
      result.why = fmt::format("token {} ({})", next, tokenizer.Piece(next, true));
      break;
    }
    all.push_back(next);
    result.tokens.push_back(next);
    show(stops.Add(decoder.Add(next)));
    if (stops.stopped()) {
      result.finish = GenerateResult::Finish::kStop;
      result.why = "stop text";
      break;
    }
    if (options.most && std::ssize(result.tokens) >= *options.most) {
      result.why = "--generate";
      break;
    }
    if (model.seen() >= model.size().context) {
      result.why = "context";
      diagnostics.Note("the context of {} tokens is full: generation stops here",
                       model.size().context);
      break;
    }
    if (options.interrupted && options.interrupted()) {
      result.finish = GenerateResult::Finish::kInterrupted;
      result.why = "interrupted";
      break;
    }
    logits = model.Append(std::span(all).last(1));
    ++result.decoded;
  }
  show(stops.Add(decoder.End()));
  if (!stops.stopped()) show(stops.End());
  result.decode_ms = Milliseconds(begin, Clock::now());
  return result;
}

}  // namespace mlc::driver
