// tools/driver/measure_perplexity.h - perplexity of a language model on a text, and agreement of a
// package with its source.
//
// The measures are defined in lib/verify/perplexity.h and match llama.cpp's. The text is tokenized
// as a whole, and special tokens written in it are treated as plain text. If the tokenizer adds a
// begin token, it replaces the first token of each chunk.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "lib/verify/perplexity.h"
#include "tools/driver/model.h"

namespace mlc::driver {

struct PerplexityOptions {
  std::filesystem::path text;  // UTF-8 file
  // A GGUF file, folder or tokenizer.json; empty: the model's tokenizer.
  std::filesystem::path tokenizer;
  // Tokens per chunk; absent: 512, or the model's maximum if that is less.
  std::optional<int64_t> context;
  // Called after each chunk, with the number of processed and of all tokens, and the perplexity so
  // far.
  std::function<void(int64_t done, int64_t of, double perplexity)> progress;
};

struct TextChunks {
  int64_t context = 0, chunks = 0;  // tokens per chunk, number of chunks
  int64_t tokens = 0;               // in the text; an incomplete last chunk is ignored
};

struct PerplexityResult {
  TextChunks text;
  verify::PerplexityFigures figures;
  Executor executor;
  double ms = 0;  // for all chunks
};
// Throws Error "usage" for a text without a
// complete chunk, or for chunks of fewer than four tokens or more than the model accepts;
// "bad-file" for invalid UTF-8; and the errors of LanguageModel and LoadTokenizer.
PerplexityResult MeasurePerplexity(const std::filesystem::path& model, const ModelOptions& load,
                                   const PerplexityOptions& options, Diagnostics& diagnostics);

struct AgreementResult {
  TextChunks text;
  verify::AgreementFigures figures;
  verify::AgreementLimit limit;
  std::optional<std::string> tokenizer;  // TokenizerDifference
  bool ok = false;  // within the limit, and the package has the source's tokenizer
  double ms = 0;
};
// Runs the source in exact arithmetic and the package with the rounding of Core ML's CPU backend,
// both on the reference engine. `import` applies to the source. `budget`: "fp32", "fp16", "int8";
// absent: by the package's precision. Besides the errors above, throws Error "usage" if `source` is
// not a source model or the vocabularies differ.
AgreementResult CompareOnText(const std::filesystem::path& source,
                              const std::filesystem::path& package, const ImportOptions& import,
                              const std::optional<std::string>& budget,
                              const PerplexityOptions& options, Diagnostics& diagnostics);

}  // namespace mlc::driver
