// tools/driver/verify_language.h - a language model's package against its source: what both make of a
// prompt, at once and step by step.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/verify/functions.h"
#include "lib/verify/language.h"

namespace mlc {

struct LanguageResult {
  std::vector<int64_t> tokens;
  bool made_up = false;
  LanguageFigures at_once, step_by_step;
};

struct LanguagePair {
  const Function *source, *package;
  const Program* rounded;  // of RoundConstants, for floors; null: there are none
  EngineOptions source_options, package_options;
};
// Whether both functions are language models.
bool AreLanguageModels(const Function& source, const Function& package);
// `tokens` may be empty: up to 32 are made up, fewer where the model is large. Adds to `outputs` the
// logits, judged by the budget of "logits", and the most likely tokens, which must be equal where the
// reference's is not close to another one. Errors as CheckTokens'.
LanguageResult VerifyLanguage(const LanguagePair& pair, std::vector<int64_t> tokens, uint64_t seed,
                              const Budgets& budgets, std::vector<Compared>& outputs);

}  // namespace mlc
