// tools/driver/generate.h - generates text with a language model.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/media/picture.h"
#include "lib/support/progress.h"
#include "tools/driver/model.h"
#include "tools/driver/sampling.h"

namespace mlc::driver {

struct GenerateOptions {
  // Special tokens written in the prompt are recognised.
  std::string prompt;
  // In place of the prompt: tokens, which a language model continues without a tokenizer, so that no
  // token ends the answer, and an encoder-decoder encodes; for these also a sound or a picture. A
  // picture may also stand beside the prompt or tokens of a model that reads both.
  bool has_prompt = true;
  std::vector<int64_t> tokens;
  std::filesystem::path audio;  // WAV
  std::filesystem::path picture;
  media::Fit fit = media::Fit::kNone;  // of the picture
  // For Whisper: a language such as en (empty: detected), transcribe or translate, and whether to
  // generate times.
  std::string language, task;
  bool timestamps = false;
  std::optional<int64_t> beams;  // of an encoder-decoder; absent: num_beams of the model
  // Formats the prompt as a user message with the model's chat template, or with that in a file, and
  // further variables of it (JSON).
  bool chat = false;
  std::optional<std::string> system;  // system message
  std::filesystem::path chat_template;
  std::string chat_variables;
  std::optional<int64_t> most;     // maximum number of tokens; absent: up to the end of the context
  std::vector<std::string> stops;  // texts that end the answer, excluded from it
  SamplingOptions sampling;
  // A GGUF file, folder or tokenizer.json; empty: the model's tokenizer.
  std::filesystem::path tokenizer;
  // Called with each piece of text: whole characters, excluding those that may begin a stop text.
  std::function<void(std::string_view)> show;
  Progress progress;                  // of reading the prompt
  std::function<bool()> interrupted;  // whether to stop after the current token; empty: never
};

struct GenerateResult {
  std::string prompt;  // as passed to the model
  std::vector<int32_t> prompt_tokens;
  int64_t kept = 0;  // number of them that were already in the state
  std::string text;
  std::vector<int32_t> tokens;  // without the token that ended the answer
  // Of an encoder-decoder: all tokens of the decoder, with those that begin and end the answer.
  std::vector<int32_t> sequence;
  enum class Finish { kStop, kLength, kInterrupted } finish = Finish::kLength;
  std::string why;  // "token 2 (</s>)", "stop text", "--generate", "context", "interrupted"
  Executor executor;
  double load_ms = 0;     // reading and loading
  double prefill_ms = 0;  // the rest of the prompt, processed as one batch, up to its logits
  // Everything after the prompt: sampling, callbacks and predicting, token by token.
  double decode_ms = 0;
  int64_t decoded = 0;  // number of tokens processed one by one
};
std::string_view Name(GenerateResult::Finish finish);  // "stop", "length", "interrupted"
double PrefillRate(const GenerateResult& result);      // tokens per second
double DecodeRate(const GenerateResult& result);

// Answers one prompt, or generates with an encoder-decoder. Throws the errors of Conversation
// (tools/driver/conversation.h) and of GenerateSequence (tools/driver/sequence_generator.h).
GenerateResult Generate(const std::filesystem::path& model, const ModelOptions& load,
                        const GenerateOptions& options, Diagnostics& diagnostics);

}  // namespace mlc::driver
