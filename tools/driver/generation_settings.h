// tools/driver/generation_settings.h - the settings of generation_config.json, and the rules by which
// they forbid tokens (transformers' generation/logits_process.py).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::driver {

// The largest number of beams.
inline constexpr int64_t kMostBeams = 256;

struct GenerationSettings {
  int64_t max_length = 20;  // of all tokens of the decoder
  int64_t min_length = 0;
  std::optional<int64_t> max_new_tokens, min_new_tokens;
  int64_t beams = 1;            // 1: the likeliest token is chosen at each step
  bool samples = false;         // tokens are meant to be drawn, not the likeliest
  bool diverse_groups = false;  // beams are meant to be kept apart in groups
  double length_penalty = 1;
  // Beam search ends when there are as many results as beams (kYes), or when no beam can become better
  // than these: at its present length (kNo) or at any (kNever).
  enum class EarlyStopping : uint8_t { kNo, kYes, kNever } early_stopping = EarlyStopping::kNo;
  int64_t no_repeat_ngram = 0, no_repeat_ngram_of_input = 0;
  double repetition_penalty = 1;
  std::vector<std::vector<int32_t>> bad_words;
  std::optional<int32_t> start, forced_begin;
  std::vector<int32_t> ends, forced_end, suppressed, suppressed_at_begin;
  // Of Whisper.
  bool multilingual = false;
  std::map<std::string, int32_t> languages, tasks;  // "<|en|>", "transcribe"
  std::optional<int32_t> no_timestamps;
  std::optional<int64_t> max_initial_timestamp;
  std::vector<std::pair<int64_t, int32_t>> forced;  // position and token; of older folders

  // Florence-2 has a token that stands for a part of a picture, a number of these before each prompt, and
  // prompts for tasks ("<CAPTION>"), in which "{input}" stands for the text beside the name of the task.
  std::optional<int32_t> picture_token;
  int64_t picture_tokens = 0;
  std::map<std::string, std::string> task_prompts;

  bool is_speech() const { return no_timestamps.has_value() || !languages.empty(); }
};

// Reads the settings that an encoder-decoder was imported with (frontends/safetensors'
// encoder_decoders.h). Error "bad-file" for values of the wrong type.
GenerationSettings SettingsOf(const Program& program);

// What a decoder has so far.
struct DecodedSoFar {
  std::span<const int32_t> tokens;  // those that it began with included
  size_t begin;                     // the number of these
  int64_t max_length;               // of all tokens
  std::span<const int32_t> input;   // of the encoder
  bool timestamps = false;          // Whisper is to generate times
};
// Sets the logits of forbidden tokens to -infinity, and those of forced ones to 0.
void Forbid(const GenerationSettings& settings, const DecodedSoFar& so_far,
            std::span<float> logits);

}  // namespace mlc::driver
