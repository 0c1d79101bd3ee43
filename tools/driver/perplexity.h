// tools/driver/perplexity.h - how well a language model expects a text: by itself, or its package beside it.
//
// What is measured is lib/verify/perplexity.h's, which is llama.cpp's. The text is tokenized as a whole,
// special tokens that are written in it as plain text; where the tokenizer puts a token before a text, each
// chunk begins with it, in place of its own first token.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "lib/verify/perplexity.h"
#include "tools/driver/run.h"

namespace mlc {

struct PerplexityOptions {
  std::filesystem::path text;       // a file, UTF-8
  std::filesystem::path tokenizer;  // a GGUF file, folder or tokenizer.json; empty: the model's own
  // Tokens of a chunk; absent: 512, or what the model takes if that is less.
  std::optional<int64_t> context;
  // Called after each chunk, with tokens done, of how many, and the perplexity so far.
  std::function<void(int64_t done, int64_t of, double perplexity)> progress;
};

struct TextChunks {
  int64_t context = 0, chunks = 0;  // tokens of a chunk, and how many there are
  int64_t tokens = 0;               // of the text; what makes no whole chunk is not looked at
};

struct PerplexityResult {
  TextChunks text;
  PerplexityFigures figures;
  Units units = Units::kReference;
  EngineOptions::Arithmetic arithmetic = EngineOptions::Arithmetic::kExact;  // of mlc's engine
  std::string runtime;
  double ms = 0;  // of all chunks
};
// `run` as LanguageModel takes it. Error "usage" for a text that has no whole chunk, a chunk of fewer than
// four tokens or of more than the model takes; "bad-file" where it is no UTF-8; those of LanguageModel and
// LoadTokenizer.
PerplexityResult MeasurePerplexity(const std::filesystem::path& model, const RunOptions& run,
                                   const PerplexityOptions& options, Diagnostics& diagnostics);

struct AgreementResult {
  TextChunks text;
  AgreementFigures figures;
  AgreementLimit limit;
  std::optional<std::string> tokenizer;  // TokenizerDifference
  bool ok = false;                       // within the limit, and the tokenizer is the source's
  double ms = 0;
};
// The source in exact arithmetic, the package as Core ML's CPU rounds, both by mlc's engine. `import`: of
// the source. `budget`: "fp32", "fp16", "int8"; absent: of the precision that the package computes in.
// Besides the errors above, "usage" where one is no source or both have not the same vocabulary.
AgreementResult CompareOnText(const std::filesystem::path& source,
                              const std::filesystem::path& package, const ImportOptions& import,
                              const std::optional<std::string>& budget,
                              const PerplexityOptions& options, Diagnostics& diagnostics);

}  // namespace mlc
