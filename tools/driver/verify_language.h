// tools/driver/verify_language.h - a language model's package against its source: what both make of a
// prompt, at once and step by step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/verify/functions.h"
#include "lib/verify/language.h"
#include "lib/verify/routers.h"

namespace mlc {

struct LanguageResult {
  std::vector<int64_t> tokens;
  bool generated = false;
  LanguageFigures at_once, step_by_step;
  // Of the RMSE of logits: what fp16 costs this package, and what is allowed for that.
  struct Own {
    double floor, limit;
  };
  std::optional<Own> own;
  FollowedChoices followed;  // by the source, at once
};

// A package of a language model may be so many times its own floor away from its source, and always this
// much (RMSE of logits). Its floor is what rounded constants cost the source (quantization_floor.h) and what fp16
// arithmetic costs the package, which have nothing to do with each other: the root of the sum of squares.
inline constexpr double kOwnFloors = 3, kLeastLimit = 3e-4;

struct LanguagePair {
  const Function *source, *package;
  const Program* rounded;  // of RoundConstants, for the package's own floor; null: it has none
  bool floors;             // whether floors raise what is allowed
  EngineOptions source_options, package_options;
};
// Whether both functions are language models.
bool AreLanguageModels(const Function& source, const Function& package);
// `tokens` may be empty: up to 32 are made up, fewer where the model is large. Adds to `outputs` the
// logits, judged by the budget of "logits" and by their own floor, and the most likely tokens, which must be equal where the
// reference's is not close to another one. Errors as CheckTokens'.
LanguageResult VerifyLanguage(const LanguagePair& pair, std::vector<int64_t> tokens, uint64_t seed,
                              const Budgets& budgets, std::vector<Compared>& outputs);

}  // namespace mlc
