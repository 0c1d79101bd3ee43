#include "tools/driver/generation_settings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "frontends/safetensors/config.h"
#include "frontends/safetensors/encoder_decoders.h"

namespace mlc::driver {

namespace {

using safetensors::Config;

constexpr float kNever = -std::numeric_limits<float>::infinity();

int32_t TokenIn(const Config& json, const std::string& key, int64_t token) {
  if (token < 0 || token > INT32_MAX)
    throw Error("bad-file", "\"{}\" is {}", key, token)
        .At({json.file(), fmt::format("key \"{}\"", key)})
        .Expected("a token, which is not negative");
  return static_cast<int32_t>(token);
}

std::optional<int32_t> TokenOf(const Config& json, const std::string& key) {
  if (!json.has(key)) return std::nullopt;
  return TokenIn(json, key, json.Int(key));
}

// Reads one token or a list.
std::vector<int32_t> TokenList(const Config& json, const std::string& key) {
  std::vector<int32_t> tokens;
  if (!json.has(key)) return tokens;
  if (json.kind(key) != Config::Kind::kList) return {*TokenOf(json, key)};
  for (int64_t token : json.Ints(key)) tokens.push_back(TokenIn(json, key, token));
  return tokens;
}

std::map<std::string, int32_t> NamedTokens(const Config& json, const std::string& key) {
  std::map<std::string, int32_t> tokens;
  if (!json.has(key)) return tokens;
  const Config all = json.Object(key);
  for (const std::string& name : all.keys()) tokens[name] = *TokenOf(all, name);
  return tokens;
}

// A forced token is chosen whatever the other rules say.
void ForbidAllBut(std::span<const int32_t> left, std::span<float> logits) {
  std::ranges::fill(logits, kNever);
  for (int32_t token : left)
    if (static_cast<size_t>(token) < logits.size()) logits[static_cast<size_t>(token)] = 0;
}

GenerationSettings::EarlyStopping EarlyStoppingOf(const Config& json) {
  using Early = GenerationSettings::EarlyStopping;
  const std::string key = "early_stopping";
  if (json.kind(key) != Config::Kind::kText)
    return json.Bool(key, false) ? Early::kYes : Early::kNo;
  if (json.Text(key) != "never")
    throw Error("bad-file", "\"{}\" is \"{}\"", key, json.Text(key))
        .At({json.file(), fmt::format("key \"{}\"", key)})
        .Expected("true, false or \"never\"");
  return Early::kNever;
}

void ForbidTokens(std::span<const int32_t> tokens, std::span<float> logits) {
  for (int32_t token : tokens)
    if (static_cast<size_t>(token) < logits.size()) logits[static_cast<size_t>(token)] = kNever;
}

void PenaliseRepeated(double penalty, std::span<const int32_t> tokens, std::span<float> logits) {
  for (int32_t token : std::set<int32_t>(tokens.begin(), tokens.end()))
    if (static_cast<size_t>(token) < logits.size()) {
      float& logit = logits[static_cast<size_t>(token)];
      logit = static_cast<float>(logit > 0 ? logit / penalty : logit * penalty);
    }
}

// Forbids tokens that would repeat n tokens of `said` at the end of `tokens`.
void ForbidRepetition(int64_t n, std::span<const int32_t> said, std::span<const int32_t> tokens,
                      std::span<float> logits) {
  const auto size = static_cast<size_t>(n);
  if (n < 1 || tokens.size() + 1 < size) return;
  const std::span<const int32_t> last = tokens.last(size - 1);
  for (size_t at = 0; at + size <= said.size(); ++at)
    if (std::ranges::equal(said.subspan(at, size - 1), last))
      ForbidTokens(said.subspan(at + size - 1, 1), logits);
}

void ForbidWords(const GenerationSettings& settings, std::span<const int32_t> tokens,
                 std::span<float> logits) {
  for (const std::vector<int32_t>& word : settings.bad_words) {
    if (word.empty() || word == settings.ends) continue;
    const size_t before = word.size() - 1;
    if (before > tokens.size()) continue;
    if (std::equal(word.begin(), word.end() - 1, tokens.end() - static_cast<ptrdiff_t>(before)))
      ForbidTokens(std::span(word).last(1), logits);
  }
}

double LogSum(std::span<const float> logits) {
  const float most = *std::ranges::max_element(logits);
  if (std::isinf(most)) return most;
  double sum = 0;
  for (float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum);
}

// Whisper's rules of times (WhisperTimeStampLogitsProcessor): they come in pairs, do not go back, and
// the first one is limited; a time is chosen if all together are likelier than any text.
void ForbidTimes(const GenerationSettings& settings, const DecodedSoFar& so_far,
                 std::span<float> logits) {
  const auto first = static_cast<size_t>(*settings.no_timestamps) + 1;
  if (first > logits.size()) return;
  const std::span<float> texts = logits.first(first), times = logits.subspan(first);
  logits[first - 1] = kNever;
  const std::span<const int32_t> said = so_far.tokens.subspan(so_far.begin);
  auto is_time = [&](int32_t token) { return static_cast<size_t>(token) >= first; };
  const bool last = !said.empty() && is_time(said.back());
  const bool before = said.size() < 2 || is_time(said[said.size() - 2]);
  if (last && before) std::ranges::fill(times, kNever);
  if (last && !before) {
    const size_t end = settings.ends.empty() ? 0 : static_cast<size_t>(settings.ends[0]);
    std::ranges::fill(logits.first(std::min(end, logits.size())), kNever);
  }
  for (size_t i = said.size(); i-- > 0;) {
    if (!is_time(said[i])) continue;
    // A time that ends a segment may be repeated to begin the next one.
    const size_t least = static_cast<size_t>(said[i]) - first + (last && !before ? 0 : 1);
    std::ranges::fill(times.first(std::min(least, times.size())), kNever);
    break;
  }
  if (said.empty()) {
    std::ranges::fill(texts, kNever);
    if (settings.max_initial_timestamp) {
      const auto kept = static_cast<size_t>(std::max<int64_t>(*settings.max_initial_timestamp, 0));
      if (kept + 1 < times.size()) std::ranges::fill(times.subspan(kept + 1), kNever);
    }
  }
  if (!times.empty() && LogSum(times) > *std::ranges::max_element(texts))
    std::ranges::fill(texts, kNever);
}

}  // namespace

GenerationSettings SettingsOf(const Program& program) {
  GenerationSettings settings;
  for (const auto& [name, text] : program.interface.metadata) {
    if (name != safetensors::kGenerationSettings) continue;
    const Config json = Config::Parse(text, "generation_config.json");
    settings.max_length = json.Int("max_length", settings.max_length);
    settings.min_length = json.Int("min_length", 0);
    if (json.has("max_new_tokens")) settings.max_new_tokens = json.Int("max_new_tokens");
    if (json.has("min_new_tokens")) settings.min_new_tokens = json.Int("min_new_tokens");
    settings.beams = json.Int("num_beams", 1);
    if (settings.beams < 1 || settings.beams > kMostBeams)
      throw Error("bad-file", "\"num_beams\" is {}", settings.beams)
          .At({json.file(), "key \"num_beams\""})
          .Expected("1 to {}", kMostBeams);
    settings.samples = json.Bool("do_sample", false);
    settings.diverse_groups = json.Int("num_beam_groups", 1) > 1;
    settings.length_penalty = json.Number("length_penalty", 1);
    settings.early_stopping = EarlyStoppingOf(json);
    settings.no_repeat_ngram = json.Int("no_repeat_ngram_size", 0);
    settings.no_repeat_ngram_of_input = json.Int("encoder_no_repeat_ngram_size", 0);
    settings.repetition_penalty = json.Number("repetition_penalty", 1);
    settings.start = TokenOf(json, "decoder_start_token_id");
    if (!settings.start) settings.start = TokenOf(json, "bos_token_id");
    if (!settings.start) settings.start = TokenOf(json, "pad_token_id");
    settings.forced_begin = TokenOf(json, "forced_bos_token_id");
    settings.ends = TokenList(json, "eos_token_id");
    settings.forced_end = TokenList(json, "forced_eos_token_id");
    settings.suppressed = TokenList(json, "suppress_tokens");
    settings.suppressed_at_begin = TokenList(json, "begin_suppress_tokens");
    for (const std::vector<int64_t>& word : json.IntLists("bad_words_ids")) {
      settings.bad_words.emplace_back();
      for (int64_t token : word)
        settings.bad_words.back().push_back(TokenIn(json, "bad_words_ids", token));
    }
    for (const std::vector<int64_t>& pair : json.IntLists("forced_decoder_ids"))
      if (pair.size() == 2)
        settings.forced.emplace_back(pair[0], TokenIn(json, "forced_decoder_ids", pair[1]));
    settings.languages = NamedTokens(json, "lang_to_id");
    settings.tasks = NamedTokens(json, "task_to_id");
    settings.multilingual = json.Bool("is_multilingual", !settings.languages.empty());
    settings.no_timestamps = TokenOf(json, "no_timestamps_token_id");
    settings.picture_token = TokenOf(json, "image_token_id");
    constexpr int64_t kMostPictureTokens = 1 << 16;
    settings.picture_tokens =
        std::clamp<int64_t>(json.Int("num_image_tokens", 0), 0, kMostPictureTokens);
    if (json.has("task_prompts")) {
      const Config tasks = json.Object("task_prompts");
      for (const std::string& task : tasks.keys()) settings.task_prompts[task] = tasks.Text(task);
    }
    if (json.has("max_initial_timestamp_index"))
      settings.max_initial_timestamp = json.Int("max_initial_timestamp_index");
  }
  return settings;
}

void Forbid(const GenerationSettings& settings, const DecodedSoFar& so_far,
            std::span<float> logits) {
  const auto count = static_cast<int64_t>(so_far.tokens.size());
  if (settings.repetition_penalty != 1)
    PenaliseRepeated(settings.repetition_penalty, so_far.tokens, logits);
  ForbidRepetition(settings.no_repeat_ngram, so_far.tokens, so_far.tokens, logits);
  ForbidRepetition(settings.no_repeat_ngram_of_input, so_far.input, so_far.tokens, logits);
  ForbidWords(settings, so_far.tokens, logits);
  const int64_t least = settings.min_new_tokens
                            ? static_cast<int64_t>(so_far.begin) + *settings.min_new_tokens
                            : settings.min_length;
  if (count < least) ForbidTokens(settings.ends, logits);
  ForbidTokens(settings.suppressed, logits);
  // A forced first token comes before those that are suppressed at the beginning.
  const size_t begin = so_far.begin + (settings.forced_begin && so_far.begin == 1 ? 1 : 0);
  if (so_far.tokens.size() == begin) ForbidTokens(settings.suppressed_at_begin, logits);
  if (so_far.timestamps && settings.no_timestamps) ForbidTimes(settings, so_far, logits);
  if (settings.forced_begin && count == 1)
    ForbidAllBut(std::span(&*settings.forced_begin, 1), logits);
  if (!settings.forced_end.empty() && count == so_far.max_length - 1)
    ForbidAllBut(settings.forced_end, logits);
}

}  // namespace mlc::driver
