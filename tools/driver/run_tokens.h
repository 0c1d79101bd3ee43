// tools/driver/run_tokens.h - runs a language model or an encoder on tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/engine/engine.h"
#include "lib/ir/program.h"

namespace mlc::driver {

// Returns whether the function has the ports of lib/networks/decoder.h.
bool IsLanguageModel(const Function& function);
// The context length and vocabulary size of a language model.
struct LanguageSize {
  int64_t context, vocabulary;
};
LanguageSize LanguageSizes(const Function& function);

// Returns whether the function has the ports of lib/networks/encoder.h, in any format: an input
// input_ids, and optionally attention_mask and token_type_ids, of any of their names.
bool IsEncoder(const Function& function);
// Of an encoder: the most tokens that it takes, and whether it takes a mask. The number of rows of
// the tables that tokens and their types index; no types: 0.
struct EncoderSize {
  int64_t tokens, vocabulary, types;
  bool masked;
};
EncoderSize EncoderSizes(const Function& function);

// The tokens of an encoder.
struct EncoderTokens {
  std::vector<int64_t> ids;
  std::vector<int64_t> types = {};  // of each token; empty: all 0
  int64_t padding = 0;              // the token that fills a fixed length
};

// Error "usage" if the function is neither, too many tokens are given, or `step` is used with an
// encoder; "bad-input" for a token outside the vocabulary.
void CheckTokens(const Function& function, const std::vector<int64_t>& tokens, bool step);

// Returns the output's name in results for tokens: "hidden" and "pooled" for an encoder, otherwise
// its own name. The function must have passed CheckTokens.
std::string NameForTokens(const Port& port);
// Returns the length up to which tokens are padded: the shortest that the encoder takes.
// Returns the smallest size of a dimension that holds `count` tokens, or 0 if there is none.
int64_t SizeFor(const Function& function, const Dim& declared, int64_t count);
int64_t PaddedLength(const Function& function, int64_t tokens);
// Returns the inputs of an encoder by its own names: all tokens are attended to, padding is not.
std::map<std::string, Tensor> EncoderInputs(const Function& function, const EncoderTokens& tokens);
// Computes the outputs of a function from its inputs, by MIL name; states persist between calls.
using Predict =
    std::function<std::map<std::string, Tensor>(const std::map<std::string, Tensor>& inputs)>;
// Runs on an engine, which must outlive the result; states are initially zero.
Predict PredictOn(const engine::Engine& engine);

// Returns the outputs in order, without the batch dimension and without padding.
std::vector<Tensor> RunEncoder(const Predict& predict, const Function& function,
                               const EncoderTokens& tokens);

// Returns fp32 [tokens, vocabulary] for tokens that follow `seen` earlier ones in the states of
// `predict`.
Tensor AppendTokens(const Predict& predict, const Function& function,
                    std::span<const int32_t> tokens, int64_t seen);
// Returns fp32 [tokens, vocabulary]: all tokens as one batch or, if `step`, one at a time through
// the states. The states of `predict` must be initial.
Tensor RunTokens(const Predict& predict, const Function& function,
                 const std::vector<int64_t>& tokens, bool step);

struct NextToken {
  int64_t token;
  double probability;
};
// Returns the `most` likeliest next tokens after the last one, by descending probability. `logits`:
// [tokens, vocabulary].
std::vector<NextToken> LikelyNext(const Tensor& logits, int64_t most);

}  // namespace mlc::driver
