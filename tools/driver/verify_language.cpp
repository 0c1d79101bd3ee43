#include "tools/driver/verify_language.h"

#include <algorithm>

#include "lib/analysis/cost.h"
#include "lib/support/philox.h"
#include "lib/verify/floor.h"
#include "tools/driver/tokens.h"

namespace mlc {

namespace {

constexpr int64_t kMostTokens = 32, kLeastTokens = 4;
constexpr double kMostWork = 1e9;  // of a prompt
constexpr const char *kAtOnce = "logits, prompt at once", *kSteps = "logits, step by step";
constexpr const char *kNextAtOnce = "next tokens, prompt at once",
                     *kNextSteps = "next tokens, step by step";

std::vector<int64_t> MakeUpTokens(const Function& function, uint64_t seed) {
  auto [most, vocabulary] = LanguageSizes(function);
  SymbolSizes sizes;
  auto work = [&](int64_t count) {
    for (const auto& [name, symbol] : function.symbols) sizes[name] = count;
    return CostOf(function, sizes).multiply_adds;
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

// The most likely tokens as `figures` say: the reference's, another where that one is wrong.
Compared NextTokens(const Function& package, const char* name, const Tensor& reference,
                    const LanguageFigures& figures) {
  std::vector<int32_t> expected, found;
  const int64_t vocabulary = reference.dims()[1];
  for (int64_t position = 0; position < figures.tokens; ++position) {
    Pin<float> row = reference.Rows(position, position + 1).data<float>();
    expected.push_back(
        static_cast<int32_t>(std::max_element(row.data(), row.data() + vocabulary) - row.data()));
  }
  found = expected;
  for (const LanguageFigures::Other& wrong : figures.wrong)
    found[static_cast<size_t>(wrong.position)] = static_cast<int32_t>(wrong.token);
  return CompareTensor(package.name, name, false, 0, Tensor::Vector(found),
                       Tensor::Vector(expected), {});
}

}  // namespace

bool AreLanguageModels(const Function& source, const Function& package) {
  return IsLanguageModel(source) && IsLanguageModel(package);
}

LanguageResult VerifyLanguage(const LanguagePair& pair, std::vector<int64_t> tokens, uint64_t seed,
                              const Budgets& budgets, std::vector<Compared>& outputs) {
  LanguageResult result;
  result.made_up = tokens.empty();
  if (tokens.empty()) tokens = MakeUpTokens(*pair.package, seed);
  for (const Function* function : {pair.source, pair.package})
    CheckTokens(*function, tokens, false);
  result.tokens = tokens;
  Engine source(*pair.source, pair.source_options), package(*pair.package, pair.package_options);
  Tensor reference = RunTokens(PredictOn(source), *pair.source, tokens, false);
  Tensor at_once = RunTokens(PredictOn(package), *pair.package, tokens, false),
         steps = RunTokens(PredictOn(package), *pair.package, tokens, true);
  Budgets own;
  for (const char* name : {kAtOnce, kSteps}) own.outputs[name] = budgets.of("logits");
  StepResults expected{{{kAtOnce, reference}, {kSteps, reference}}, {}};
  if (pair.rounded) {
    const Function& rounded = *FunctionNamed(*pair.rounded, pair.source->name);
    const Engine engine(rounded, pair.source_options);
    Tensor floor = RunTokens(PredictOn(engine), rounded, tokens, false);
    own = Fp16Budgets(own, {expected}, {{{{kAtOnce, floor}, {kSteps, floor}}, {}}});
  }
  std::vector<Compared> compared =
      CompareSteps(pair.package->name, {{{{kAtOnce, at_once}, {kSteps, steps}}, {}}}, {expected},
                   Match::kByPlace, own);
  outputs.insert(outputs.end(), compared.begin(), compared.end());
  result.at_once = CompareLogits(at_once, reference);
  result.step_by_step = CompareLogits(steps, reference);
  outputs.push_back(NextTokens(*pair.package, kNextAtOnce, reference, result.at_once));
  outputs.push_back(NextTokens(*pair.package, kNextSteps, reference, result.step_by_step));
  return result;
}

}  // namespace mlc
