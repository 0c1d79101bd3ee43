// tools/driver/verify_language.h - compares the package of a language model with its source on a
// prompt, as one batch and step by step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/verify/compare_functions.h"
#include "lib/verify/expert_selection.h"
#include "lib/verify/language_agreement.h"

namespace mlc::driver {

struct LanguageResult {
  std::vector<int64_t> tokens;
  bool generated = false;
  verify::LanguageFigures at_once, step_by_step;
  // RMSE of the logits: the floor of this package in fp16, and the limit derived from it.
  struct Own {
    double floor, limit;
  };
  std::optional<Own> own;
  verify::FollowedChoices
      followed;  // router choices of the package that the source follows, in the batch
};

// The RMSE of a package's logits may be kOwnFloors times the package's floor, and always
// kLeastLimit. The floor combines two independent errors, as the root of the sum of squares: that
// of rounded constants in the source (fp16_floor.h) and that of fp16 arithmetic in the
// package.
inline constexpr double kOwnFloors = 3, kLeastLimit = 3e-4;

struct LanguagePair {
  const Function *source, *package;
  const Program* rounded;  // result of RoundConstants, for the package's floor; null: no floor
  bool floors;             // whether floors raise the limits
  engine::EngineOptions source_options, package_options;
};
// If `tokens` is empty, up to 32 are generated, fewer for large models. Appends to `outputs` the
// logits, judged by the budget of "logits" and by the floor, and the most likely tokens, which must
// be equal unless the reference's choice is a near tie. Errors as in CheckTokens.
LanguageResult VerifyLanguage(const LanguagePair& pair, std::vector<int64_t> tokens, uint64_t seed,
                              const verify::Budgets& budgets,
                              std::vector<verify::Compared>& outputs);

}  // namespace mlc::driver
