// The options of generation.
#include <charconv>
#include <cmath>

#include "lib/support/float_text.h"
#include "tools/driver/options.h"

namespace mlc {

namespace {

Field Number(std::string_view option, double& field) {
  return [option, &field](const std::string& text) {
    double number = 0;
    const auto [end, error] = FloatFromChars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number))
      throw Error("usage", fmt::format("{}: \"{}\" is no number", option, text));
    field = number;
  };
}

}  // namespace

std::vector<Option> GenerateTable(GenerateOptions& into) {
  SamplingOptions& sampling = into.sampling;
  return {
      {"--generate", "N",
       "of a prompt: so many tokens at most (default: until the model ends the text, or the "
       "context "
       "is full)",
       [&into](const std::string& text) { into.most = ParseInt("--generate", text); }},
      {"--chat", "",
       "the prompt is what a user says: it is written as the model's chat template does, where "
       "that "
       "is of a known family",
       Switch(into.chat)},
      {"--system", "TEXT", "with --chat: what the model is told first",
       [&into](const std::string& text) { into.system = text; }},
      {"--stop", "TEXT", "end where this text comes up, and do not print it",
       [&into](const std::string& text) {
         if (text.empty()) throw Error("usage", "--stop: there is no text");
         into.stops.push_back(text);
       },
       false, true},
      {"--temperature", "X",
       "draw the next token from the logits divided by X, by the numbers that --seed gives "
       "(default: "
       "the likeliest)",
       Number("--temperature", sampling.temperature)},
      {"--top-k", "N", "draw from the N likeliest", Whole("--top-k", sampling.top_k)},
      {"--top-p", "X", "draw from the likeliest that have the share X of 1 together",
       Number("--top-p", sampling.top_p)},
      {"--min-p", "X", "draw from those that have at least X times the likeliest's probability",
       Number("--min-p", sampling.min_p)},
      {"--repetition-penalty", "X",
       "logits above 0 of the last 64 tokens are divided by X, others multiplied",
       Number("--repetition-penalty", sampling.repetition_penalty)},
      {"--tokenizer", "PATH",
       "the tokenizer of this GGUF file, folder or tokenizer.json (default: the model's, or the "
       "file "
       "beside the package)",
       Into(into.tokenizer)},
  };
}

}  // namespace mlc
