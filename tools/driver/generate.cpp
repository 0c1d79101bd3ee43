#include "tools/driver/generate.h"

#include <algorithm>

#include "lib/support/milliseconds.h"
#include "lib/text/chat_template.h"
#include "tools/driver/language_model.h"
#include "tools/driver/text_generator.h"
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
  result.executor = model.model()->executor();
  result.load_ms = load_ms;
  result.prompt = options.prompt;
  if (options.chat) {
    const text::ChatTemplate& row = TemplateOf(tokenizer);
    result.chat_template = row.name;
    result.prompt = text::RenderChat(row, options.system, options.prompt);
  }
  result.prompt_tokens = PromptTokens(tokenizer, result.prompt, true);
  const auto prompt = std::ssize(result.prompt_tokens);
  if (prompt == 0) throw Error("usage", "--prompt has no tokens");
  if (prompt > model.size().context)
    throw Error("usage", "--prompt has {} tokens, but the model accepts at most {}", prompt,
                model.size().context)
        .Help(
            "shorten the prompt, or run or compile the source model with a larger --context N, up "
            "to the model's limit");

  TextGenerator generator(model, &tokenizer, options.sampling, options.stops);
  const auto show = [&](const std::string& text) {
    result.text += text;
    if (options.show && !text.empty()) options.show(text);
  };
  begin = Clock::now();
  model.ReportTo(options.progress);
  generator.Feed(result.prompt_tokens);
  while (true) {
    const TextGenerator::Step step = generator.Next();
    show(step.text);
    if (step.done) {
      result.why = step.why;
      if (step.why != "context") {
        result.finish = GenerateResult::Finish::kStop;
        break;
      }
      diagnostics.Note("the context of {} tokens is full: generation stops here",
                       model.size().context);
      break;
    }
    result.tokens.push_back(step.token);
    if (generator.at_stop()) continue;
    if (options.most && std::ssize(result.tokens) >= *options.most) {
      result.why = "--generate";
    } else if (model.seen() < model.size().context && options.interrupted &&
               options.interrupted()) {
      result.finish = GenerateResult::Finish::kInterrupted;
      result.why = "interrupted";
    } else {
      continue;
    }
    show(generator.End(result.why).text);
    break;
  }
  result.prefill_ms = generator.prompt_ms();
  result.decode_ms = MillisecondsSince(begin) - result.prefill_ms;
  result.decoded = model.seen() - prompt;
  return result;
}

}  // namespace mlc::driver
