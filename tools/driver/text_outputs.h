// tools/driver/text_outputs.h - what the outputs of an encoder say of texts: classes of classifiers, and
// the similarity of sentences.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tools/driver/model.h"
#include "tools/driver/run.h"
#include "tools/driver/text_inputs.h"

namespace mlc::driver {

// A class, and its probability.
struct LabelProbability {
  std::string label;
  double probability;
};
// The classes that config.json with the model names (id2label), by descending probability. Empty
// unless an output "logits" has one value for each of several classes. The classes exclude
// each other, unless "problem_type" is "multi_label_classification".
std::vector<LabelProbability> LabelsOf(const std::filesystem::path& model,
                                       const std::vector<RunOutput>& outputs);

// The similarity of two texts.
struct SimilarityResult {
  double cosine = 0;  // 0 if an embedding is 0
  std::array<EncodedText, 2> texts;
  std::array<Tensor, 2> embeddings;  // fp32 [width]
  std::string pooling;               // "the model's sentence_embedding", "mean over the tokens"
  Executor executor;
};
// Computes the embeddings of two texts: the output sentence_embedding or, without it, the output
// with a row for each token, pooled and normalised as modules.json of sentence-transformers says,
// which stands with the model, or averaged. Error "usage" for a model without such outputs,
// "unsupported-architecture" for other ways of pooling, and the errors of TextEncoder and Run.
SimilarityResult Similarity(const std::filesystem::path& model, const RunOptions& options,
                            const std::array<std::string, 2>& texts,
                            const std::filesystem::path& tokenizer, Diagnostics& diagnostics);

}  // namespace mlc::driver
