#include "tools/driver/tokens.h"

#include <algorithm>
#include <chrono>

#include "lib/ir/pieces.h"
#include "lib/ir/ports.h"
#include "tools/driver/tensors.h"

namespace mlc {

namespace {

constexpr char kIds[] = "inputIds", kMask[] = "causalMask", kLogits[] = "logits";

const Value* InputOf(const Function& function, std::string_view name) {
  for (const Value* value : InputValues(function))
    if (value->name == name) return value;
  return nullptr;
}

const Value* LogitsOf(const Function& function) {
  for (const Value* value : function.body.outputs())
    if (value->name == kLogits && value->type.rank() == 3) return value;
  return nullptr;
}

}  // namespace

bool IsLanguageModel(const Function& function) {
  const Value *ids = InputOf(function, kIds), *mask = InputOf(function, kMask);
  return ids && mask && LogitsOf(function) && ids->type.rank() == 2 && mask->type.rank() == 4;
}

LanguageSize LanguageSizes(const Function& function) {
  auto most = [&](const Value* value, int axis) {
    return value->type.shape[axis].Bounds(function.symbols).high;
  };
  return {most(InputOf(function, kMask), 3), most(LogitsOf(function), 2)};
}

void CheckTokens(const Function& function, const std::vector<int64_t>& tokens) {
  if (!IsLanguageModel(function))
    throw Error("usage",
                fmt::format("--tokens: function \"{}\" is no language model", function.name))
        .Expected("inputs inputIds and causalMask, an output logits");
  if (tokens.empty()) throw Error("usage", "--tokens: there is none");
  const auto [most, vocabulary] = LanguageSizes(function);
  if (static_cast<int64_t>(tokens.size()) > most)
    throw Error("usage",
                fmt::format("--tokens: {} tokens, the model takes {}", tokens.size(), most))
        .Help("a package for more is made with --context, as far as the model goes");
  for (int64_t token : tokens)
    if (token < 0 || token >= vocabulary)
      throw Error("bad-input", fmt::format("--tokens: there is no token {}", token))
          .Expected(fmt::format("0 to {}", vocabulary - 1));
}

const Port& LogitsPort(const Function& function) {
  return *PortsByName(function.outputs).Find(kLogits);
}

Tensor RunTokens(const Engine& engine, const Function& function, const std::vector<int64_t>& tokens,
                 bool step, std::vector<double>* run_ms) {
  const DType mask_dtype = InputOf(function, kMask)->type.dtype;
  const int64_t count = static_cast<int64_t>(tokens.size()), at_once = step ? 1 : count;
  States states;
  std::vector<Tensor> rows;
  for (int64_t begin = 0; begin < count; begin += at_once) {
    const int64_t end = begin + at_once;
    std::vector<int32_t> ids(tokens.begin() + begin, tokens.begin() + end);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    std::map<std::string, Tensor> outputs =
        engine.Run({{kIds, Tensor::Of<int32_t>({1, at_once}, ids)},
                    {kMask, Tensor::Full(mask_dtype, {1, 1, at_once, end}, 0)}},
                   states);
    if (run_ms)
      run_ms->push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    const Tensor& logits = outputs.at(kLogits);
    rows.push_back(logits.Cast(DType::kFp32).Reshaped({at_once, logits.dims()[2]}).InMemory());
  }
  return Join(rows, 0).InMemory();
}

}  // namespace mlc
