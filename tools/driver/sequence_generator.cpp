#include "tools/driver/sequence_generator.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "frontends/safetensors/encoder_decoders.h"
#include "lib/support/milliseconds.h"
#include "lib/text/tokenizer.h"
#include "tools/driver/beam_search.h"
#include "tools/driver/frontends.h"
#include "tools/driver/input_files.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/tokenizer.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using Clock = std::chrono::steady_clock;
using TensorsByName = std::map<std::string, Tensor>;

constexpr int64_t kSampleRate = 16000;

const Function* SequencePart(const Program& program, std::string_view name) {
  for (const auto& function : program.functions)
    if (function->name == name) return function.get();
  return nullptr;
}

const Value* PartInput(const Function& function, std::string_view name) {
  for (const auto& value : function.body.inputs)
    if (value->name == name) return value.get();
  return nullptr;
}

GenerationSettings WithOptions(GenerationSettings settings, const GenerateOptions& options) {
  if (options.beams) settings.beams = *options.beams;
  return settings;
}

// Returns the logarithms of the probabilities that logits stand for.
std::vector<float> LogProbabilities(std::vector<float> logits) {
  const float most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  const double whole = most + std::log(sum);
  for (float& logit : logits) logit = static_cast<float>(logit - whole);
  return logits;
}

class SequenceGenerator {
 public:
  SequenceGenerator(Model& model, const GenerateOptions& options, Diagnostics& diagnostics)
      : model_(model),
        options_(options),
        diagnostics_(diagnostics),
        encode_(*SequencePart(*model.program(), "encode")),
        decode_(*SequencePart(*model.program(), "decode")),
        features_(SequencePart(*model.program(), "features")),
        settings_(WithOptions(SettingsOf(*model.program()), options)) {
    CheckOptions();
    if (settings_.samples)
      diagnostics.Note("do_sample is true, but the likeliest tokens are generated");
    if (settings_.diverse_groups && settings_.beams > 1)
      diagnostics.Note("num_beam_groups is ignored: all beams are one group");
    if (!options.tokenizer.empty() || options.has_prompt) {
      tokenizer_.emplace(
          LoadTokenizer(options.tokenizer.empty() ? model.path() : options.tokenizer));
    } else {
      try {
        tokenizer_.emplace(LoadTokenizer(model.path()));
      } catch (const Error&) {  // the texts are the tokens
      }
    }
    encoder_ = model.Load(encode_);
    decoder_ = model.Load(decode_);
    if (features_) front_end_ = model.Load(*features_);
  }

  GenerateResult Run() {
    GenerateResult result;
    result.executor = model_.executor();
    result.prompt = options_.prompt;
    if (!options_.audio.empty()) {
      Transcribe(result);
      return result;
    }
    TensorsByName inputs;
    if (!options_.picture.empty()) inputs = Picture();
    if (reads_text()) {
      result.prompt_tokens = input_ = InputTokens();
      inputs["input_ids"] =
          Tensor::Of<int32_t>({1, std::ssize(result.prompt_tokens)}, result.prompt_tokens);
    }
    Encode(std::move(inputs), result);
    Decode({Start()}, false, result);
    return result;
  }

 private:
  bool reads_text() const { return PartInput(encode_, "input_ids") != nullptr; }
  bool reads_sounds() const { return features_ || PartInput(encode_, "input_values"); }
  bool reads_pictures() const {
    return !reads_sounds() && (!reads_text() || settings_.picture_token.has_value());
  }
  // Returns the input that is the picture.
  TensorsByName Picture() const {
    for (const auto& [port, value] : InputPorts(encode_))
      if (value.type.rank() == 4)
        return MakeInputs(encode_, {{verify::UserName(port),
                                     ReadInput(options_.picture, port, value, options_.fit)}});
    throw Error("bad-file", "the encoder has no input for a picture");
  }
  [[noreturn]] void Unsuitable(const char* option) const {
    throw Error("usage", "{}: the encoder of this model reads {}", option,
                reads_sounds()      ? "sounds: pass --audio FILE"
                : !reads_pictures() ? "text: pass --prompt TEXT or --tokens IDS"
                : reads_text()
                    ? "a picture and a text: pass --picture FILE and --prompt TEXT or --tokens IDS"
                    : "pictures: pass --picture FILE");
  }
  void CheckOptions() const {
    const bool text = options_.has_prompt || !options_.tokens.empty();
    if (options_.chat) throw Error("usage", "--chat: an encoder-decoder has no chat template");
    if (!options_.picture.empty() && !reads_pictures()) Unsuitable("--picture");
    if (!options_.audio.empty() && !reads_sounds()) Unsuitable("--audio");
    if (text && !reads_text()) Unsuitable(options_.has_prompt ? "--prompt" : "--tokens");
    if ((options_.audio.empty() && reads_sounds()) ||
        (options_.picture.empty() && reads_pictures()) || (!text && reads_text()))
      Unsuitable(text                     ? options_.has_prompt ? "--prompt" : "--tokens"
                 : options_.audio.empty() ? "--picture"
                                          : "--audio");
    if (options_.most && *options_.most < 1)
      throw Error("usage", "--generate: expected at least one token");
    if (options_.beams && (*options_.beams < 1 || *options_.beams > kMostBeams))
      throw Error("usage", "--beams {}: expected 1 to {}", *options_.beams, kMostBeams);
    if (options_.sampling.temperature > 0)
      throw Error("usage", "--temperature: an encoder-decoder generates the likeliest tokens");
    for (const auto& [option, given] : {std::pair{"--language", !options_.language.empty()},
                                        {"--task", !options_.task.empty()},
                                        {"--timestamps", options_.timestamps}})
      if (given && !settings_.is_speech())
        throw Error("usage", "{}: the model has no tokens for languages, tasks and times", option);
  }

  // Returns the prompt, with what the model reads in the place of a task.
  std::string Prompt() const {
    for (const auto& [task, text] : settings_.task_prompts) {
      const size_t at = options_.prompt.find(task);
      if (at == options_.prompt.npos) continue;
      std::string rest = options_.prompt.substr(0, at) + options_.prompt.substr(at + task.size());
      rest.erase(0, rest.find_first_not_of(" \n\t"));
      rest.erase(rest.find_last_not_of(" \n\t") + 1);
      constexpr std::string_view kInput = "{input}";
      std::string prompt = text;
      const size_t place = prompt.find(kInput);
      if (place == prompt.npos && !rest.empty())
        throw Error("usage", "--prompt: the task {} stands alone", task);
      if (place != prompt.npos && rest.empty())
        throw Error("usage", "--prompt: the task {} is followed by a text", task);
      return place == prompt.npos ? prompt : prompt.replace(place, kInput.size(), rest);
    }
    return options_.prompt;
  }
  std::vector<int32_t> InputTokens() const {
    std::vector<int32_t> tokens;
    if (options_.has_prompt) tokens = tokenizer_->Encode(Prompt(), true, true);
    for (int64_t token : options_.tokens) tokens.push_back(static_cast<int32_t>(token));
    if (tokens.empty()) throw Error("usage", "--prompt has no tokens");
    if (settings_.picture_token && std::ranges::count(tokens, *settings_.picture_token) == 0)
      tokens.insert(tokens.begin(), static_cast<size_t>(settings_.picture_tokens),
                    *settings_.picture_token);
    const Dim& size = PartInput(encode_, "input_ids")->type.shape[1];
    const int64_t most = size.Bounds(encode_.symbols).high;
    if (std::ssize(tokens) > most)
      throw Error("bad-input", "{} tokens, but the encoder takes at most {}", tokens.size(), most)
          .Help("compile with a larger --dim tokens=N, up to the model's limit");
    return tokens;
  }

  // Runs the encoder. Its attention mask has the length of its tokens; a fixed length is padded.
  void Encode(TensorsByName inputs, GenerateResult& result) {
    const Clock::time_point begin = Clock::now();
    if (auto ids = inputs.find("input_ids"); ids != inputs.end()) {
      const int64_t count = ids->second.size(),
                    size = std::max(
                        count,
                        PartInput(encode_, "input_ids")->type.shape[1].Bounds(encode_.symbols).low);
      std::vector<int32_t> padded(static_cast<size_t>(size), 0), seen(static_cast<size_t>(size), 0);
      const Pin<int32_t> given = ids->second.data<int32_t>();
      std::copy_n(given.data(), count, padded.begin());
      std::fill_n(seen.begin(), count, 1);
      ids->second = Tensor::Of<int32_t>({1, size}, padded);
      seen_ = Tensor::Of<int32_t>({1, size}, seen);
      inputs["attention_mask"] = *seen_;
    }
    TensorsByName outputs = encoder_->Run(inputs).outputs;
    keys_ = outputs.at("cross_keys");
    values_ = outputs.at("cross_values");
    result.prefill_ms += MillisecondsSince(begin);
  }

  int32_t Start() const {
    if (!settings_.start)
      throw Error("bad-file", "the model has no decoder_start_token_id")
          .Help("generation_config.json or config.json must have it");
    return *settings_.start;
  }

  // The state in which the decoder keeps keys and values of the tokens that it has seen.
  struct Cache {
    std::unique_ptr<runtime::ModelState> state;
    int64_t tokens = 0;
  };
  Cache Empty() const { return {decoder_->NewState()}; }
  Cache Copied(const Cache& cache) const {
    Cache copy{decoder_->NewState(), cache.tokens};
    copy.state->Write(cache.state->Read());
    return copy;
  }

  // Processes those of `tokens` that the cache has not seen, and returns the logits of the last one.
  std::vector<float> Append(std::span<const int32_t> tokens, Cache& cache) {
    const int64_t end = std::ssize(tokens), count = end - cache.tokens;
    const Value& ids = *PartInput(decode_, "input_ids");
    const int64_t vocabulary = decode_.body.outputs()[0]->type.shape[2].constant();
    tokens = tokens.last(static_cast<size_t>(count));
    for (int32_t token : tokens)
      if (token < 0 || token >= vocabulary)
        throw Error("bad-input", "token {} is not in the vocabulary of the model", token)
            .Expected("0 to {}", vocabulary - 1);
    TensorsByName inputs = {
        {ids.name, Tensor::Of<int32_t>({1, count}, std::vector(tokens.begin(), tokens.end()))},
        {"causal_mask", Tensor::Full(DType::kFp16, {1, 1, count, end}, 0)},
        {"cross_keys", keys_},
        {"cross_values", values_}};
    if (seen_) inputs["attention_mask"] = *seen_;
    const Tensor logits =
        decoder_->Run(inputs, cache.state.get()).outputs.at("logits").Cast(DType::kFp32);
    cache.tokens = end;
    const Pin<float> all = logits.data<float>();
    const float* last = all.data() + (count - 1) * vocabulary;
    return {last, last + vocabulary};
  }

  void Show(GenerateResult& result, const std::string& text) const {
    result.text += text;
    if (options_.show && !text.empty()) options_.show(text);
  }
  void ShowToken(GenerateResult& result, int32_t token) {
    Show(result,
         text_ ? text_->Add(token) : fmt::format("{}{}", result.text.empty() ? "" : " ", token));
  }
  void ShowSpoken(GenerateResult& result, int32_t token) {
    result.tokens.push_back(token);
    ShowToken(result, token);
  }
  bool Interrupted(GenerateResult& result) const {
    if (!options_.interrupted || !options_.interrupted()) return false;
    result.finish = GenerateResult::Finish::kInterrupted;
    result.why = "interrupted";
    return true;
  }
  void Stopped(GenerateResult& result, int32_t token) {
    if (!text_) ShowToken(result, token);
    result.finish = GenerateResult::Finish::kStop;
    result.why = fmt::format("token {}", token);
  }

  // Generates after `begin`.
  void Decode(const std::vector<int32_t>& begin, bool timestamps, GenerateResult& result) {
    const auto context =
        PartInput(decode_, "causal_mask")->type.shape[3].Bounds(decode_.symbols).high;
    const auto first = static_cast<int64_t>(begin.size());
    most_ = settings_.max_length;
    // The default is the number of new tokens (transformers' generation/utils.py,
    // _prepare_generated_length, since version 4.45).
    if (most_ == GenerationSettings().max_length) most_ += first;
    if (settings_.max_new_tokens) most_ = first + *settings_.max_new_tokens;
    if (options_.most) most_ = first + *options_.most;
    most_ = std::min(most_, context);
    text_.reset();
    if (tokenizer_) text_.emplace(*tokenizer_);
    if (!text_)
      for (int32_t token : begin) ShowToken(result, token);
    result.why = "max_length";
    result.finish = GenerateResult::Finish::kLength;
    const Clock::time_point start = Clock::now();
    const std::vector<int32_t> tokens = settings_.beams > 1
                                            ? SearchBeams(begin, timestamps, result)
                                            : ChooseLikeliest(begin, timestamps, result);
    if (text_) Show(result, text_->End());
    result.decode_ms += MillisecondsSince(start);
    result.sequence.insert(result.sequence.end(), tokens.begin(), tokens.end());
  }

  std::vector<int32_t> ChooseLikeliest(const std::vector<int32_t>& begin, bool timestamps,
                                       GenerateResult& result) {
    std::vector<int32_t> tokens = begin;
    Cache cache = Empty();
    while (std::ssize(tokens) < most_) {
      std::vector<float> logits = Append(tokens, cache);
      Forbid(settings_, {tokens, begin.size(), most_, input_, timestamps}, logits);
      const auto best = std::ranges::max_element(logits);
      if (std::isnan(*best) || std::isinf(*best))
        throw Error("runtime-failed", "all logits are NaN or -infinity: no token can be chosen");
      const auto token = static_cast<int32_t>(best - logits.begin());
      tokens.push_back(token);
      ++result.decoded;
      if (std::ranges::find(settings_.ends, token) != settings_.ends.end()) {
        Stopped(result, token);
        break;
      }
      ShowSpoken(result, token);
      if (Interrupted(result)) break;
    }
    return tokens;
  }

  // Shows tokens as soon as all beams agree on them.
  std::vector<int32_t> SearchBeams(const std::vector<int32_t>& begin, bool timestamps,
                                   GenerateResult& result) {
    BeamSearch search(settings_, begin, most_);
    std::vector<Cache> caches;
    caches.push_back(Empty());
    size_t shown = begin.size();
    auto show = [&](const std::vector<int32_t>& tokens, size_t count) {
      for (; shown < count; ++shown) ShowSpoken(result, tokens[shown]);
    };
    while (!search.done()) {
      std::vector<std::vector<float>> scores;
      for (size_t beam = 0; beam < search.beams().size(); ++beam) {
        const std::vector<int32_t>& tokens = search.beams()[beam].tokens;
        scores.push_back(LogProbabilities(Append(tokens, caches[beam])));
        Forbid(settings_, {tokens, begin.size(), most_, input_, timestamps}, scores.back());
      }
      search.Step(scores);
      ++result.decoded;
      caches = Continued(search.beams(), std::move(caches));
      if (!search.beams().empty()) show(search.beams()[0].tokens, search.Settled());
      if (Interrupted(result)) break;
    }
    BeamSearch::Hypothesis best = search.Best();
    show(best.tokens, best.tokens.size());
    if (best.end) {
      best.tokens.push_back(*best.end);
      if (result.finish != GenerateResult::Finish::kInterrupted) Stopped(result, *best.end);
    }
    return best.tokens;
  }
  // Returns the caches of beams that continue others.
  std::vector<Cache> Continued(const std::vector<BeamSearch::Beam>& beams,
                               std::vector<Cache> before) const {
    std::vector<size_t> uses(before.size());
    for (const BeamSearch::Beam& beam : beams) ++uses[beam.parent];
    std::vector<Cache> after;
    for (const BeamSearch::Beam& beam : beams)
      after.push_back(--uses[beam.parent] == 0 ? std::move(before[beam.parent])
                                               : Copied(before[beam.parent]));
    return after;
  }

  // Transcribes a sound: Whisper one window after another.
  void Transcribe(GenerateResult& result) {
    std::vector<float> samples = ReadMonoSound(options_.audio, kSampleRate);
    if (!features_) {
      const Dim& size = PartInput(encode_, "input_values")->type.shape[1];
      const auto [low, high] =
          std::pair{size.Bounds(encode_.symbols).low, size.Bounds(encode_.symbols).high};
      if (std::ssize(samples) > high)
        throw Error("bad-input", "the sound has {} samples, but the encoder takes at most {}",
                    samples.size(), high)
            .At({options_.audio.string(), ""})
            .Help("compile with a larger --dim samples=LOW..HIGH");
      samples.resize(std::max(samples.size(), static_cast<size_t>(low)), 0);
      const int64_t count = std::ssize(samples);
      Encode({{"input_values", Tensor::Of<float>({1, count}, samples)}}, result);
      return Decode({Start()}, false, result);
    }
    const int64_t window = PartInput(*features_, "input_values")->type.shape[1].constant();
    for (int64_t at = 0; at == 0 || at < std::ssize(samples); at += window) {
      std::vector<float> part(static_cast<size_t>(window), 0);
      std::copy(samples.begin() + at,
                samples.begin() + std::min<int64_t>(at + window, std::ssize(samples)),
                part.begin());
      TensorsByName mel =
          front_end_->Run({{"input_values", Tensor::Of<float>({1, window}, part)}}).outputs;
      Encode({{"input_features", mel.at("input_features")}}, result);
      Decode(SpeechPrompt(), options_.timestamps, result);
      if (result.finish == GenerateResult::Finish::kInterrupted) break;
    }
  }

  static Error UnknownToken(const char* option, const std::string& text,
                            const std::map<std::string, int32_t>& known) {
    std::vector<std::string> names;
    for (const auto& [name, token] : known) names.push_back(name);
    return Error("usage", "{}: the model does not know \"{}\"", option, text)
        .Expected("{}", fmt::join(names, ", "));
  }

  // The tokens that Whisper's answers begin with: start, language, task, and that no times are wanted.
  std::vector<int32_t> SpeechPrompt() {
    std::vector<int32_t> prompt = {Start()};
    if (settings_.languages.empty()) {
      // Older folders list these tokens by position.
      for (const auto& [position, token] : settings_.forced)
        if (position == std::ssize(prompt) &&
            !(options_.timestamps && token == settings_.no_timestamps))
          prompt.push_back(token);
      if (prompt.size() > 1 || !settings_.no_timestamps || options_.timestamps) return prompt;
      prompt.push_back(*settings_.no_timestamps);
      return prompt;
    }
    if (settings_.multilingual) {
      if (!options_.language.empty()) {
        auto found = settings_.languages.find("<|" + options_.language + "|>");
        if (found == settings_.languages.end()) found = settings_.languages.find(options_.language);
        if (found == settings_.languages.end())
          throw UnknownToken("--language", options_.language, settings_.languages);
        prompt.push_back(found->second);
      } else {
        prompt.push_back(DetectedLanguage());
      }
      const std::string task = options_.task.empty() ? "transcribe" : options_.task;
      const auto found = settings_.tasks.find(task);
      if (found == settings_.tasks.end()) throw UnknownToken("--task", task, settings_.tasks);
      prompt.push_back(found->second);
    }
    if (!options_.timestamps && settings_.no_timestamps) prompt.push_back(*settings_.no_timestamps);
    return prompt;
  }

  // The likeliest language after the first token.
  int32_t DetectedLanguage() {
    const int32_t start = Start();
    Cache cache = Empty();
    const std::vector<float> logits = Append(std::span(&start, 1), cache);
    const auto* best = &*settings_.languages.begin();
    for (const auto& one : settings_.languages)
      if (static_cast<size_t>(one.second) < logits.size() &&
          logits[static_cast<size_t>(one.second)] > logits.at(static_cast<size_t>(best->second)))
        best = &one;
    diagnostics_.Note("the language is {}", best->first);
    return best->second;
  }

  Model& model_;
  const GenerateOptions& options_;
  Diagnostics& diagnostics_;
  const Function &encode_, &decode_;
  const Function* features_;  // null if there is no such function
  const GenerationSettings settings_;
  std::optional<text::Tokenizer> tokenizer_;
  std::unique_ptr<runtime::GuardedModel> encoder_, decoder_, front_end_;
  std::optional<text::StreamDecoder> text_;  // of this answer; absent without a tokenizer
  std::vector<int32_t> input_;               // the encoder's tokens
  std::optional<Tensor> seen_;               // of these
  Tensor keys_, values_;
  int64_t most_ = 0;  // tokens of this answer
};

}  // namespace

bool IsEncoderDecoder(const Program& program) {
  const Function *encode = SequencePart(program, "encode"),
                 *decode = SequencePart(program, "decode");
  return encode && decode && PartInput(*decode, "cross_keys") && PartInput(*decode, "causal_mask");
}

bool IsEncoderDecoder(const fs::path& model, const ImportOptions& options) {
  const Frontend& frontend = FrontendOf(model);
  if (frontend.format != Format::kPackage && frontend.format != Format::kBundle &&
      frontend.name != "safetensors")
    return false;
  Diagnostics ignored;
  return IsEncoderDecoder(ImportUncompressed(model, options, ignored));
}

GenerateResult GenerateSequence(Model& model, const GenerateOptions& options,
                                Diagnostics& diagnostics) {
  const Clock::time_point begin = Clock::now();
  SequenceGenerator generator(model, options, diagnostics);
  const double load_ms = model.read_ms() + MillisecondsSince(begin);
  GenerateResult result = generator.Run();
  result.load_ms = load_ms;
  return result;
}

}  // namespace mlc::driver
