#include "tools/driver/verify_language.h"

#include <algorithm>
#include <cmath>

#include "lib/analysis/cost.h"
#include "lib/support/philox.h"
#include "lib/verify/fp16_floor.h"
#include "tools/driver/run_tokens.h"

namespace mlc::driver {

namespace {

constexpr int64_t kMostTokens = 32, kLeastTokens = 4;
constexpr double kMostWork = 1e9;  // limit on the work for the prompt
constexpr const char *kAtOnce = "logits, prompt at once", *kSteps = "logits, step by step";
constexpr const char *kNextAtOnce = "next tokens, prompt at once",
                     *kNextSteps = "next tokens, step by step";

std::vector<int64_t> MakeUpTokens(const Function& function, uint64_t seed) {
  auto [most, vocabulary] = LanguageSizes(function);
  analysis::SymbolSizes sizes;
  auto work = [&](int64_t count) {
    for (const auto& [name, symbol] : function.symbols) sizes[name] = count;
    return analysis::CostOf(function, sizes).multiply_adds;
  };
  int64_t count = std::min(kMostTokens, most);
  while (count > kLeastTokens && work(count) > kMostWork) count /= 2;
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    PhiloxCounter words = Philox(seed, 0, static_cast<uint64_t>(i));
    tokens.push_back(static_cast<int64_t>(words[0] % static_cast<uint64_t>(vocabulary)));
  }
  return tokens;
}

// Compares the most likely token at each position. The package's tokens are reconstructed: they are
// those of `reference`, except at the positions listed in `figures.wrong`.
verify::Compared NextTokens(const Function& package, const char* name, const Tensor& reference,
                            const verify::LanguageFigures& figures) {
  std::vector<int32_t> expected, found;
  const int64_t vocabulary = reference.dims()[1];
  for (int64_t position = 0; position < figures.tokens; ++position) {
    Pin<float> row = reference.Rows(position, position + 1).data<float>();
    expected.push_back(
        static_cast<int32_t>(std::max_element(row.data(), row.data() + vocabulary) - row.data()));
  }
  found = expected;
  for (const verify::LanguageFigures::Other& wrong : figures.wrong)
    found[static_cast<size_t>(wrong.position)] = static_cast<int32_t>(wrong.token);
  return verify::CompareTensor(package.name, name, false, 0, Tensor::Vector(found),
                               Tensor::Vector(expected), {});
}

// Computes the limit from the errors of rounded constants and of fp16 arithmetic, and raises the
// budgets accordingly.
std::optional<LanguageResult::Own> OwnFloor(const verify::Comparison& constants,
                                            const verify::Comparison& arithmetic, bool raises,
                                            verify::Budgets& budgets) {
  const verify::Floor floor{.max_error = std::hypot(constants.max_error, arithmetic.max_error),
                            .rmse = std::hypot(constants.rmse, arithmetic.rmse)};
  if (!std::isfinite(floor.max_error) || !std::isfinite(floor.rmse)) return std::nullopt;
  const double limit = std::max(kLeastLimit, kOwnFloors * floor.rmse);
  for (auto& [name, budget] : budgets.outputs) {
    if (raises) budget.floor = floor;
    budget.rmse = std::min(budget.rmse, limit);
  }
  return LanguageResult::Own{floor.rmse, limit};
}

}  // namespace

LanguageResult VerifyLanguage(const LanguagePair& pair, std::vector<int64_t> tokens, uint64_t seed,
                              const verify::Budgets& budgets,
                              std::vector<verify::Compared>& outputs) {
  LanguageResult result;
  result.generated = tokens.empty();
  if (tokens.empty()) tokens = MakeUpTokens(*pair.package, seed);
  for (const Function* function : {pair.source, pair.package})
    CheckTokens(*function, tokens, false);
  result.tokens = tokens;
  const bool routers = verify::HasRouters(*pair.source) && verify::HasRouters(*pair.package);
  // The current observer of the engines; only used with routers.
  verify::Observer look;
  const auto watched = [&](engine::EngineOptions engine) {
    if (routers) engine.observe = [&](const Operation& op, std::span<Tensor> r) { look(op, r); };
    return engine;
  };
  const auto recorded = [&](const engine::Engine& engine, bool step,
                            verify::RouterChoices& chosen) {
    look = verify::RecordChoices(chosen);
    return RunTokens(PredictOn(engine), *pair.package, tokens, step);
  };
  const auto following = [&](const engine::Engine& engine, const Function& function,
                             const verify::RouterChoices& chosen,
                             verify::FollowedChoices& followed) {
    look = verify::FollowChoices(function, chosen, followed);
    return RunTokens(PredictOn(engine), function, tokens, false);
  };
  const engine::Engine source(*pair.source, watched(pair.source_options)),
      package(*pair.package, watched(pair.package_options));
  verify::RouterChoices chosen, chosen_by_step;
  const Tensor at_once = recorded(package, false, chosen),
               steps = recorded(package, true, chosen_by_step);
  const Tensor reference = following(source, *pair.source, chosen, result.followed);
  Tensor reference_of_steps = reference;
  if (routers) {
    verify::FollowedChoices followed;
    reference_of_steps = following(source, *pair.source,
                                   verify::AtOnce(chosen_by_step, std::ssize(tokens)), followed);
  }
  verify::Budgets own;
  for (const char* name : {kAtOnce, kSteps}) own.outputs[name] = budgets.of("logits");
  verify::StepResults expected{{{kAtOnce, reference}, {kSteps, reference_of_steps}}, {}};
  if (pair.rounded) {
    const Function& rounded = *verify::FunctionNamed(*pair.rounded, pair.source->name);
    verify::FollowedChoices ignored;
    const Tensor constants = following(engine::Engine(rounded, watched(pair.source_options)),
                                       rounded, result.followed.made, ignored);
    engine::EngineOptions exact = pair.package_options;
    exact.arithmetic = engine::EngineOptions::Arithmetic::kExact;
    const Tensor unrounded =
        following(engine::Engine(*pair.package, watched(exact)), *pair.package, chosen, ignored);
    result.own = OwnFloor(verify::Compare(constants, reference),
                          verify::Compare(at_once, unrounded), pair.floors, own);
  }
  std::vector<verify::Compared> compared =
      CompareSteps(pair.package->name, {{{{kAtOnce, at_once}, {kSteps, steps}}, {}}}, {expected},
                   verify::Match::kByPlace, own);
  outputs.insert(outputs.end(), compared.begin(), compared.end());
  result.at_once = verify::CompareLogits(at_once, reference);
  result.step_by_step = verify::CompareLogits(steps, reference_of_steps);
  outputs.push_back(NextTokens(*pair.package, kNextAtOnce, reference, result.at_once));
  outputs.push_back(NextTokens(*pair.package, kNextSteps, reference_of_steps, result.step_by_step));
  return result;
}

}  // namespace mlc::driver
