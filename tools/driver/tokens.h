// tools/driver/tokens.h - running a language model or an encoder: tokens in; logits, or what the
// encoder makes of them, out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/engine/engine.h"
#include "lib/ir/program.h"

namespace mlc {

// Whether it has the ports of lib/networks/decoder.h.
bool IsLanguageModel(const Function& function);
// Of one: how many tokens it takes, and how many there are.
struct LanguageSize {
  int64_t context, vocabulary;
};
LanguageSize LanguageSizes(const Function& function);

// Whether it has the ports of lib/networks/encoder.h, of whatever source: an input input_ids, and
// perhaps attention_mask and token_type_ids.
bool IsEncoder(const Function& function);

// Error "usage" where the function is neither, or has not room for so many tokens, or an encoder shall
// take them step by step; "bad-input" for a token that is none of the vocabulary.
void CheckTokens(const Function& function, const std::vector<int64_t>& tokens, bool step);

// What an output of a function that was checked is called where tokens went in: an encoder's hidden and
// pooled; others have their own names.
std::string NameForTokens(const Port& port);
// The inputs of an encoder, by its own names: all tokens are seen, of the first type, and behind them
// padding where the function does not take just as many.
std::map<std::string, Tensor> EncoderInputs(const Function& function,
                                            const std::vector<int64_t>& tokens);
// Computes the outputs of a function from its inputs, by MIL name; what it remembers goes on from call to call.
using Predict =
    std::function<std::map<std::string, Tensor>(const std::map<std::string, Tensor>& inputs)>;
// On an engine, which outlives it; states are zeros at first.
Predict PredictOn(const Engine& engine);

// In the order of the outputs, without the batch of one and without padding.
std::vector<Tensor> RunEncoder(const Predict& predict, const Function& function,
                               const std::vector<int64_t>& tokens);

// fp32 [tokens, vocabulary] of tokens that follow `seen` others, which `predict` remembers.
Tensor AppendTokens(const Predict& predict, const Function& function,
                    std::span<const int32_t> tokens, int64_t seen);
// fp32 [tokens, vocabulary]: all tokens at once or, `step`, one after the other, with what the states
// have of those before: `predict` has seen nothing yet.
Tensor RunTokens(const Predict& predict, const Function& function,
                 const std::vector<int64_t>& tokens, bool step);

struct NextToken {
  int64_t token;
  double probability;
};
// What follows the last token, the `most` likeliest, these first. `logits` [tokens, vocabulary].
std::vector<NextToken> LikelyNext(const Tensor& logits, int64_t most);

}  // namespace mlc
