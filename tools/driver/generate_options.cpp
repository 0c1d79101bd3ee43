// The options of text generation.
#include "lib/support/float_text.h"
#include "tools/driver/options.h"

namespace mlc::driver {

namespace {

Field Number(std::string_view option, double& field) {
  return [option, &field](const std::string& text) {
    const std::optional<double> number = ParseNumber(text);
    if (!number) throw Error("usage", "{}: \"{}\" is not a number", option, text);
    field = *number;
  };
}

}  // namespace

std::vector<Option> GenerateTable(GenerateOptions& into) {
  SamplingOptions& sampling = into.sampling;
  return Grouped(
      OptionGroup::kLanguage,
      {Common(
           {"--generate", "N",
            "maximum number of tokens to generate, also after --tokens (default: until the model "
            "ends the text or the context is full)",
            [&into](const std::string& text) { into.most = ParseInt("--generate", text); }}),
       {"--beams", "N",
        "number of beams of an encoder-decoder's search (default: num_beams of the model; 1: the "
        "likeliest token at each step)",
        [&into](const std::string& text) { into.beams = ParseInt("--beams", text); }},
       Common({"--chat", "",
               "treat the prompt as a user message and apply the model's chat template; without a "
               "prompt, hold a conversation",
               Switch(into.chat)}),
       {"--system", "TEXT", "system message for --chat (default: none)",
        [&into](const std::string& text) { into.system = text; }},
       {"--chat-template", "FILE",
        "Jinja template to use instead of the model's (default: the model's)",
        Into(into.chat_template)},
       {"--chat-variables", "JSON",
        "variables of the chat template, such as {\"enable_thinking\": false} or {\"tools\": "
        "[...]} "
        "(default: none)",
        [&into](const std::string& text) { into.chat_variables = text; }},
       {"--stop", "TEXT", "stop generating at this text, which is not printed",
        [&into](const std::string& text) {
          if (text.empty()) throw Error("usage", "--stop requires a non-empty string");
          into.stops.push_back(text);
        },
        false, true},
       Common({"--temperature", "X",
               "sampling temperature, with --seed as the seed (default: greedy)",
               Number("--temperature", sampling.temperature)}),
       {"--top-k", "N", "sample from the N most likely tokens (default: all tokens)",
        Whole("--top-k", sampling.top_k)},
       {"--top-p", "X",
        "nucleus sampling: sample from the smallest set of most likely tokens with a total "
        "probability of at least X (default: 1, all tokens)",
        Number("--top-p", sampling.top_p)},
       {"--min-p", "X",
        "sample from tokens at least X times as likely as the most likely one (default: 0, all "
        "tokens)",
        Number("--min-p", sampling.min_p)},
       {"--repetition-penalty", "X",
        "for each of the last 64 tokens, divide its logit by X if it is positive, and "
        "multiply it by X otherwise (default: 1, none)",
        Number("--repetition-penalty", sampling.repetition_penalty)},
       {"--tokenizer", "PATH",
        "GGUF file, Hugging Face folder or tokenizer.json to take the tokenizer from "
        "(default: the model, or the tokenizer beside the package)",
        Into(into.tokenizer)}});
}

}  // namespace mlc::driver
