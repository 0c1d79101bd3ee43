#include "tools/driver/generate.h"

#include "tools/driver/conversation.h"
#include "tools/driver/ctc_transcriber.h"
#include "tools/driver/picture_tokens.h"
#include "tools/driver/sequence_generator.h"

namespace mlc::driver {

namespace {

double Rate(int64_t count, double ms) { return ms > 0 ? 1e3 * static_cast<double>(count) / ms : 0; }

}  // namespace

std::string_view Name(GenerateResult::Finish finish) {
  constexpr std::string_view kNames[] = {"stop", "length", "interrupted"};
  return kNames[static_cast<size_t>(finish)];
}

double PrefillRate(const GenerateResult& result) {
  return Rate(std::ssize(result.prompt_tokens) - result.kept, result.prefill_ms);
}
double DecodeRate(const GenerateResult& result) { return Rate(result.decoded, result.decode_ms); }

GenerateResult Generate(const std::filesystem::path& model, const ModelOptions& load,
                        const GenerateOptions& options, Diagnostics& diagnostics) {
  auto loaded = std::make_unique<Model>(model, ForPicture(load, options.picture), diagnostics);
  if (IsEncoderDecoder(*loaded->program())) return GenerateSequence(*loaded, options, diagnostics);
  if (IsCtcTranscriber(*loaded->program()) && !options.audio.empty())
    return TranscribeByCtc(*loaded, options);
  if (options.beams) throw Error("usage", "--beams: the model is no encoder-decoder");
  if (!options.has_prompt && options.tokens.empty())
    throw Error("usage", "{}: the model is no encoder-decoder",
                options.audio.empty() ? "--picture" : "--audio")
        .Expected("a model that transcribes, such as Whisper");
  Conversation conversation(std::move(loaded), options, diagnostics);
  if (!options.has_prompt)
    return conversation.Continue(
        std::vector<int32_t>(options.tokens.begin(), options.tokens.end()));
  return options.chat ? conversation.Say(options.prompt) : conversation.Continue(options.prompt);
}

}  // namespace mlc::driver
