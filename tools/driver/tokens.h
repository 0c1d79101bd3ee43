// tools/driver/tokens.h - running a language model: tokens in, logits out.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/engine/engine.h"

namespace mlc {

// Whether it has the ports of lib/networks/decoder.h.
bool IsLanguageModel(const Function& function);
// Of one: how many tokens it takes, and how many there are.
struct LanguageSize {
  int64_t context, vocabulary;
};
LanguageSize LanguageSizes(const Function& function);

// Error "usage" where the function does not have the ports of lib/networks/decoder.h, or not room for
// so many tokens; "bad-input" for a token that is none of the vocabulary.
void CheckTokens(const Function& function, const std::vector<int64_t>& tokens);

// The output that has them, of a function that was checked.
const Port& LogitsPort(const Function& function);

// fp32 [tokens, vocabulary]: all tokens at once or, `step`, one after the other, with what the states
// have of those before. `run_ms` (may be null) gets how long the engine took, for each run of it.
Tensor RunTokens(const Engine& engine, const Function& function, const std::vector<int64_t>& tokens,
                 bool step, std::vector<double>* run_ms = nullptr);

}  // namespace mlc
