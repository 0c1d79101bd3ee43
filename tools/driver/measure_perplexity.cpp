#include "tools/driver/measure_perplexity.h"

#include <algorithm>

#include "lib/support/mapped_file.h"
#include "lib/support/milliseconds.h"
#include "lib/support/regular_file.h"
#include "tools/driver/frontends.h"
#include "tools/driver/language_model.h"
#include "tools/driver/tokenizer.h"
#include "tools/driver/verify.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using Clock = std::chrono::steady_clock;

// llama.cpp's default, and the smallest chunk that scores a token.
constexpr int64_t kContext = 512, kLeastContext = 4;

class Chunks {
 public:
  // Splits the text for models that accept `most` tokens. `model` supplies the tokenizer unless the
  // options name one.
  Chunks(const fs::path& model, int64_t most, const PerplexityOptions& options)
      : options_(options) {
    const text::Tokenizer tokenizer =
        LoadTokenizer(options.tokenizer.empty() ? model : options.tokenizer);
    text_.context = options.context.value_or(std::min(kContext, most));
    if (text_.context < kLeastContext || text_.context > most)
      throw Error("usage", "--context {} is out of range", text_.context)
          .Expected("{} to {}, the model's context", kLeastContext, most);
    const auto file = MappedFile::Open(options.text);
    tokens_ = tokenizer.Encode(AsText(file->bytes()), true, false);
    begin_ = tokenizer.BeginOfText();
    text_.tokens = std::ssize(tokens_);
    text_.chunks = text_.tokens / text_.context;
    if (text_.chunks == 0)
      throw Error("usage", "\"{}\" has {} tokens, less than one chunk", options.text.string(),
                  text_.tokens)
          .Expected("{} tokens or more", text_.context)
          .Help("use a longer text, or shorter chunks with --context N");
  }

  const TextChunks& text() const { return text_; }

  // Calls score(tokens, next tokens) for each chunk and reports the progress.
  template <class Score, class SoFar>
  double Run(Score score, SoFar so_far) {
    const Clock::time_point begin = Clock::now();
    for (int64_t i = 0; i < text_.chunks; ++i) {
      std::vector<int32_t> chunk(tokens_.begin() + i * text_.context,
                                 tokens_.begin() + (i + 1) * text_.context);
      if (begin_ >= 0) chunk[0] = begin_;
      score(std::span<const int32_t>(chunk), std::span<const int32_t>(chunk).subspan(1));
      if (options_.progress)
        options_.progress((i + 1) * text_.context, text_.chunks * text_.context, so_far());
    }
    return Milliseconds(begin, Clock::now());
  }

 private:
  const PerplexityOptions& options_;
  TextChunks text_;
  std::vector<int32_t> tokens_;
  int32_t begin_ = -1;  // first token of each chunk; -1: unchanged
};

Tensor LogitsOf(LanguageModel& model, std::span<const int32_t> tokens) {
  model.Forget();
  return model.Append(tokens);
}

// The context of a compiled model is fixed.
ModelOptions ForModel(const fs::path& model, ModelOptions load) {
  if (!FrontendOf(model).IsSource()) load.import.context.reset();
  return load;
}

}  // namespace

PerplexityResult MeasurePerplexity(const fs::path& path, const ModelOptions& load,
                                   const PerplexityOptions& options, Diagnostics& diagnostics) {
  LanguageModel model(path, ForModel(path, load), "--perplexity", diagnostics);
  Chunks chunks(path, model.size().context, options);
  verify::MeanOf surprises;
  PerplexityResult result;
  result.ms = chunks.Run(
      [&](std::span<const int32_t> tokens, std::span<const int32_t> next) {
        verify::ScoreChunk(LogitsOf(model, tokens), next, surprises);
      },
      [&] { return verify::PerplexityOf(surprises).perplexity; });
  result.text = chunks.text();
  result.figures = verify::PerplexityOf(surprises);
  result.executor = model.model()->executor();
  return result;
}

AgreementResult CompareOnText(const fs::path& source, const fs::path& package,
                              const ImportOptions& import, const std::optional<std::string>& budget,
                              const PerplexityOptions& options, Diagnostics& diagnostics) {
  RequireOrder(source, package);
  RequireTwo(source, package);
  if (budget) verify::AgreementLimitOf(*budget);
  LanguageModel reference(source,
                          ForModel(source, {.import = import, .units = runtime::Units::kReference}),
                          "--text", diagnostics);
  LanguageModel value(package, ForModel(package, {.units = runtime::Units::kReference}), "--text",
                      diagnostics);
  if (reference.size().vocabulary != value.size().vocabulary)
    throw Error("usage", "--text: the vocabulary of SOURCE has {} tokens, that of PACKAGE {}",
                reference.size().vocabulary, value.size().vocabulary)
        .Expected("a package that was compiled from SOURCE");
  Chunks chunks(source, std::min(reference.size().context, value.size().context), options);
  verify::Agreement agreement;
  AgreementResult result;
  result.ms = chunks.Run(
      [&](std::span<const int32_t> tokens, std::span<const int32_t> next) {
        const Tensor expected = LogitsOf(reference, tokens);
        agreement.AddChunk(expected, LogitsOf(value, tokens), next);
      },
      [&] { return agreement.figures().value.perplexity; });
  result.text = chunks.text();
  result.figures = agreement.figures();
  result.limit = verify::AgreementLimitOf(
      budget.value_or(ComputesInFp16(*value.model()->program()) ? "fp16" : "fp32"));
  result.tokenizer = TokenizerDifference(source, package, diagnostics);
  result.ok = Within(result.figures, result.limit) && result.tokenizer.value_or("").empty();
  return result;
}

}  // namespace mlc::driver
