#include "tools/driver/ctc_transcriber.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "frontends/safetensors/config.h"
#include "frontends/safetensors/speech_encoders.h"
#include "lib/support/milliseconds.h"
#include "tools/driver/input_files.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/tokenizer.h"

namespace mlc::driver {

namespace {

using safetensors::Config;

struct CtcSettings {
  int64_t blank = 0, rate = 16000;
  bool normalize = true;
  std::map<int64_t, std::string> texts;  // of tokens
};

CtcSettings ReadCtcSettings(const std::string& text) {
  const Config json = Config::Parse(text, "the metadata \"ctc\"");
  CtcSettings settings{.blank = json.Int("blank"),
                       .rate = json.Int("sampling_rate"),
                       .normalize = json.Bool("do_normalize")};
  if (!json.has("vocabulary")) return settings;
  const Config tokens = json.Object("vocabulary");
  const std::string delimiter = json.Text("word_delimiter", "|");
  for (const std::string& token : tokens.keys())
    settings.texts[tokens.Int(token)] = token == delimiter ? " " : token;
  return settings;
}

const std::string* CtcMetadata(const Program& program) {
  for (const auto& [name, text] : program.interface.metadata)
    if (name == safetensors::kCtcSettings) return &text;
  return nullptr;
}

// As transformers' Wav2Vec2FeatureExtractor.
void Normalize(std::vector<float>& samples) {
  constexpr double kLeastVariance = 1e-7;
  const auto count = static_cast<double>(samples.size());
  double mean = 0, variance = 0;
  for (const float sample : samples) mean += sample / count;
  for (const float sample : samples) variance += (sample - mean) * (sample - mean) / count;
  for (float& sample : samples)
    sample = static_cast<float>((sample - mean) / std::sqrt(variance + kLeastVariance));
}

void CheckCtcOptions(const GenerateOptions& options) {
  if (options.audio.empty())
    throw Error("usage", "the model reads sounds").Help("pass --audio FILE");
  for (const auto& [option, given] : {std::pair{"--language", !options.language.empty()},
                                      {"--task", !options.task.empty()},
                                      {"--timestamps", options.timestamps},
                                      {"--beams", options.beams.has_value()},
                                      {"--generate", options.most.has_value()},
                                      {"--temperature", options.sampling.temperature > 0},
                                      {"--chat", options.chat}})
    if (given) throw Error("usage", "{}: the model transcribes all at once (CTC)", option);
}

// Returns the text of tokens by the vocabulary or by the tokenizer of the model, or else their numbers.
std::string TextOf(std::span<const int32_t> tokens, const CtcSettings& settings, const Model& model,
                   const GenerateOptions& options) {
  std::string text;
  if (!settings.texts.empty()) {
    for (const int32_t token : tokens)
      if (const auto found = settings.texts.find(token); found != settings.texts.end())
        text += found->second;
    return text;
  }
  if (!options.tokenizer.empty()) return LoadTokenizer(options.tokenizer).Decode(tokens, false);
  try {
    return LoadTokenizer(model.path()).Decode(tokens, false);
  } catch (const Error& error) {
    if (error.id() != "unsupported-tokenizer" && error.id() != "unknown-format") throw;
  }
  return fmt::format("{}", fmt::join(tokens, " "));
}

}  // namespace

bool IsCtcTranscriber(const Program& program) { return CtcMetadata(program) != nullptr; }

GenerateResult TranscribeByCtc(Model& model, const GenerateOptions& options) {
  CheckCtcOptions(options);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const CtcSettings settings = ReadCtcSettings(*CtcMetadata(*model.program()));
  const Function& function = *model.program()->main();
  const Function* features = nullptr;
  for (const auto& one : model.program()->functions)
    if (one->name == "features") features = one.get();
  const Function& reader = features ? *features : function;
  std::vector<float> samples = ReadMonoSound(options.audio, settings.rate);
  const auto [port, value] = InputPorts(reader).at(0);
  const auto size = value.type.shape.back().Bounds(reader.symbols);
  if (samples.empty())
    throw Error("bad-input", "the sound has no samples").At({options.audio.string(), ""});
  if (std::ssize(samples) > size.high)
    throw Error("bad-input", "the sound has {} samples, but the model takes at most {}",
                samples.size(), size.high)
        .At({options.audio.string(), ""})
        .Help("compile with a larger --dim {}=LOW..HIGH", features ? "frames" : "samples");
  if (settings.normalize) Normalize(samples);
  samples.resize(std::max(samples.size(), static_cast<size_t>(size.low)), 0);
  GenerateResult result;
  result.executor = model.executor();
  const auto loaded = model.Load(function);
  result.load_ms = model.read_ms() + MillisecondsSince(begin);
  const Clock::time_point start = Clock::now();
  Tensor input = Tensor::Of<float>({1, std::ssize(samples)}, samples);
  if (features)
    input = model.Load(*features)
                ->Run(MakeInputs(*features, {{verify::UserName(port), input}}))
                .outputs.begin()
                ->second;
  const Port& reads = InputPorts(function).at(0).port;
  const Tensor logits = loaded->Run(MakeInputs(function, {{verify::UserName(reads), input}}))
                            .outputs.begin()
                            ->second.Cast(DType::kFp32);
  const Pin<float> all = logits.data<float>();
  const int64_t labels = logits.dims().back(), frames = logits.size() / labels;
  int64_t before = settings.blank;
  for (int64_t frame = 0; frame < frames; ++frame) {
    const std::span<const float> row =
        all.span().subspan(static_cast<size_t>(frame * labels), static_cast<size_t>(labels));
    const int64_t token = std::ranges::max_element(row) - row.begin();
    if (token != before && token != settings.blank)
      result.tokens.push_back(static_cast<int32_t>(token));
    before = token;
  }
  result.text = TextOf(result.tokens, settings, model, options);
  while (result.text.ends_with(' ')) result.text.pop_back();
  result.text.erase(0, std::min(result.text.find_first_not_of(' '), result.text.size()));
  result.sequence = result.tokens;
  result.prefill_ms = MillisecondsSince(start);
  result.finish = GenerateResult::Finish::kStop;
  result.why = "the end of the sound";
  if (options.show) options.show(result.text);
  return result;
}

}  // namespace mlc::driver
