// tools/driver/generate.h - text in, text out: a language model goes on with a prompt.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/driver/run.h"
#include "tools/driver/sampling.h"

namespace mlc {

struct GenerateOptions {
  // Its special tokens that are written in it count as those.
  std::string prompt;
  bool chat = false;  // the prompt is what a user says, written as the model's chat template does
  std::optional<std::string> system;  // with chat: what the model is told first
  std::optional<int64_t> most;        // tokens; absent: as many as the context has room for
  std::vector<std::string> stops;     // texts that end the answer, and are no part of it
  SamplingOptions sampling;
  std::filesystem::path tokenizer;  // a GGUF file, folder or tokenizer.json; empty: the model's own
  // Called with text as it comes: whole characters, of which no stop text begins.
  std::function<void(std::string_view)> show;
  std::function<bool()> interrupted;  // whether to end after this token; empty: never
};

struct GenerateResult {
  std::string prompt;         // as the model got it
  std::string chat_template;  // the name of its family, with chat
  std::vector<int32_t> prompt_tokens;
  std::string text;
  std::vector<int32_t> tokens;  // without the one that ended the answer, if one did
  enum class Finish { kStop, kLength, kInterrupted } finish = Finish::kLength;
  std::string why;  // "token 2 (</s>)", "stop text", "--generate", "context", "interrupted"
  Units units = Units::kReference;
  EngineOptions::Arithmetic arithmetic = EngineOptions::Arithmetic::kExact;  // of mlc's engine
  std::string runtime;
  double load_ms = 0;     // reading and loading
  double prefill_ms = 0;  // of the prompt, at once, up to its logits
  double decode_ms = 0;  // of all that came after: choosing, showing and predicting, token by token
  int64_t decoded = 0;   // tokens that were predicted from, one by one
};
std::string_view Name(GenerateResult::Finish finish);  // "stop", "length", "interrupted"
double PrefillRate(const GenerateResult& result);      // tokens per second
double DecodeRate(const GenerateResult& result);

// `run`: how the model is loaded, as LanguageModel takes it. Error "usage" where the options go not
// together, the prompt has no tokens, leaves no room in the context, or the chat template is unknown;
// those of LanguageModel and LoadTokenizer.
GenerateResult Generate(const std::filesystem::path& model, const RunOptions& run,
                        const GenerateOptions& options, Diagnostics& diagnostics);

}  // namespace mlc
