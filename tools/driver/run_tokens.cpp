#include "tools/driver/run_tokens.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "lib/analysis/input_ranges.h"
#include "lib/ir/concat_slice.h"
#include "tools/driver/supplied_tensors.h"

namespace mlc::driver {

namespace {

constexpr char kIds[] = "inputIds", kMask[] = "causalMask", kLogits[] = "logits";
// Input names of an encoder: those of transformers, and those of google-research/bert, which TensorFlow
// suffixes.
enum class EncoderInput { kIds, kSeen, kTypes };
struct InputName {
  std::string_view name;
  EncoderInput input;
};
constexpr InputName kInputNames[] = {
    {"input_ids", EncoderInput::kIds},     {"attention_mask", EncoderInput::kSeen},
    {"input_mask", EncoderInput::kSeen},   {"token_type_ids", EncoderInput::kTypes},
    {"segment_ids", EncoderInput::kTypes},
};
std::optional<EncoderInput> EncoderInputOf(const Port& port) {
  std::string_view name = verify::UserName(port);
  if (name.ends_with(":0")) name.remove_suffix(2);
  for (const InputName& row : kInputNames)
    if (row.name == name) return row.input;
  return std::nullopt;
}
struct OutputName {
  std::string_view source, ours;
};
constexpr OutputName kOutputNames[] = {
    {"last_hidden_state", "hidden"}, {"pooler_output", "pooled"}, {"sentence_embedding", "pooled"}};

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

const Value* InputOf(const Function& function, EncoderInput which) {
  for (const auto& [port, value] : InputPorts(function))
    if (EncoderInputOf(port) == which) return &value;
  return nullptr;
}

const Value& TokenIds(const Function& function) {
  const Value* ids = InputOf(function, EncoderInput::kIds);
  MLC_CHECK(ids, "function {} has no input_ids", function.name);
  return *ids;
}

// Returns the number of rows of the table that an input of an encoder indexes.
int64_t RowsOf(const Function& function, const Value& input, int64_t count) {
  analysis::SymbolSizes sizes;
  for (const auto& [name, symbol] : function.symbols)
    sizes[name] = std::clamp(count, symbol.low, symbol.high);
  const analysis::InputRange range = analysis::InputRanges(function, sizes).at(input.name);
  constexpr double kMost = INT32_MAX;
  return static_cast<int64_t>(std::min(range.high, kMost)) + 1;
}

}  // namespace

int64_t SizeFor(const Function& function, const Dim& declared, int64_t count) {
  auto open = declared.symbol_and_offset();
  if (!open)
    return declared.is_constant() && declared.constant() >= count ? declared.constant() : 0;
  const Symbol& symbol = function.symbols.at(open->first);
  if (symbol.enumerated.empty()) {
    const int64_t size = std::max(count, symbol.low + open->second);
    return size <= symbol.high + open->second ? size : 0;
  }
  int64_t best = 0;
  for (int64_t size : symbol.enumerated)
    if (size + open->second >= count && (best == 0 || size + open->second < best))
      best = size + open->second;
  return best;
}

bool IsEncoder(const Function& function) {
  if (!function.states.empty()) return false;
  for (const auto& [port, value] : InputPorts(function))
    if (!EncoderInputOf(port) || value.type.rank() != 2) return false;
  return InputOf(function, EncoderInput::kIds) != nullptr;
}

EncoderSize EncoderSizes(const Function& function) {
  const Value& ids = TokenIds(function);
  const int64_t tokens = ids.type.shape[1].Bounds(function.symbols).high;
  const Value* types = InputOf(function, EncoderInput::kTypes);
  return {tokens, RowsOf(function, ids, 1), types ? RowsOf(function, *types, 1) : 0,
          InputOf(function, EncoderInput::kSeen) != nullptr};
}

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

void CheckTokens(const Function& function, const std::vector<int64_t>& tokens, bool step) {
  const bool encoder = IsEncoder(function);
  if (!encoder && !IsLanguageModel(function))
    throw Error("usage", "--tokens: function \"{}\" is neither a language model nor an encoder",
                function.name)
        .Expected(
            "inputs inputIds and causalMask and an output logits, or an input input_ids and "
            "optionally attention_mask and token_type_ids");
  if (tokens.empty()) throw Error("usage", "--tokens requires at least one token");
  if (encoder && step)
    throw Error("usage", "--step: an encoder processes all tokens at once").Help("omit --step");
  const auto count = static_cast<int64_t>(tokens.size());
  LanguageSize sizes{};
  if (encoder) {
    sizes.context = SizeFor(function, TokenIds(function).type.shape[1], count) > 0
                        ? count
                        : TokenIds(function).type.shape[1].Bounds(function.symbols).high;
    sizes.vocabulary = RowsOf(function, TokenIds(function), count);
  } else {
    sizes = LanguageSizes(function);
  }
  const auto [most, vocabulary] = sizes;
  if (count > most)
    throw Error("usage", "--tokens: {} tokens, but the model accepts at most {}", tokens.size(),
                most)
        .Help(encoder ? "compile with a larger --dim tokens=N, up to the model's limit"
                      : "compile with a larger --context N, up to the model's limit");
  for (int64_t token : tokens)
    if (token < 0 || token >= vocabulary)
      throw Error("bad-input", "--tokens: token {} is not in the vocabulary", token)
          .Expected("0 to {}", vocabulary - 1);
}

std::string NameForTokens(const Port& port) {
  for (const OutputName& row : kOutputNames)
    if (verify::UserName(port) == row.source) return std::string(row.ours);
  return verify::UserName(port);
}

int64_t PaddedLength(const Function& function, int64_t tokens) {
  return SizeFor(function, TokenIds(function).type.shape[1], tokens);
}

std::map<std::string, Tensor> EncoderInputs(const Function& function, const EncoderTokens& tokens) {
  const size_t count = tokens.ids.size();
  const auto size = static_cast<size_t>(PaddedLength(function, static_cast<int64_t>(count)));
  std::map<std::string, Tensor> inputs;
  for (const auto& [port, value] : InputPorts(function)) {
    std::vector<int32_t> held(size, 0);
    switch (*EncoderInputOf(port)) {
      case EncoderInput::kIds:
        held.assign(size, static_cast<int32_t>(tokens.padding));
        std::ranges::copy(tokens.ids, held.begin());
        break;
      case EncoderInput::kSeen:
        std::fill_n(held.begin(), count, 1);
        break;
      case EncoderInput::kTypes:
        std::ranges::copy(tokens.types, held.begin());
        break;
    }
    inputs[value.name] =
        Tensor::Of<int32_t>({1, static_cast<int64_t>(size)}, held).Cast(value.type.dtype);
  }
  return inputs;
}

Predict PredictOn(const engine::Engine& engine) {
  return [&engine, states = std::make_shared<engine::States>()](
             const std::map<std::string, Tensor>& inputs) { return engine.Run(inputs, *states); };
}

std::vector<Tensor> RunEncoder(const Predict& predict, const Function& function,
                               const EncoderTokens& tokens) {
  const auto count = static_cast<int64_t>(tokens.ids.size());
  const std::map<std::string, Tensor> found = predict(EncoderInputs(function, tokens));
  const Dim& size = TokenIds(function).type.shape[1];
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < function.outputs.size(); ++i) {
    const Value* value = function.body.outputs()[i];
    Tensor tensor = ToSourceType(found.at(value->name), function.outputs[i]);
    Dims dims = tensor.dims();
    const bool each = dims.size() > 1 && value->type.shape[1] == size;
    if (!dims.empty() && dims[0] == 1) {
      dims.erase(dims.begin());
      tensor = tensor.Reshaped(dims);
      if (each) tensor = tensor.Rows(0, count);
    }
    outputs.push_back(tensor.InMemory());
  }
  return outputs;
}

namespace {

// Adds the inputs that have a default, such as those of adapters.
std::map<std::string, Tensor> WithDefaults(const Function& function,
                                           std::map<std::string, Tensor> inputs) {
  for (const auto& [port, value] : InputPorts(function)) {
    if (!port.default_value || inputs.contains(value.name)) continue;
    Dims dims;
    for (const Dim& dim : value.type.shape) dims.push_back(dim.Bounds(function.symbols).low);
    inputs[value.name] = Tensor::Full(value.type.dtype, dims, *port.default_value);
  }
  return inputs;
}

// A call of a function with a fixed context: `tokens` and padding.
Tensor AppendFixed(const Predict& predict, const Function& function,
                   std::span<const int32_t> tokens, int64_t seen, int64_t size) {
  const Value& mask = *InputOf(function, kMask);
  const int64_t context = mask.type.shape[3].constant();
  constexpr float kHidden = -4e4f;  // lib/networks/decoder.h
  std::vector<int32_t> ids(tokens.begin(), tokens.end());
  ids.resize(static_cast<size_t>(size), 0);
  std::vector<float> visible(static_cast<size_t>(size * context), kHidden);
  for (int64_t i = 0; i < std::ssize(tokens); ++i)
    std::fill_n(visible.begin() + i * context, seen + i + 1, 0.0f);
  const std::map<std::string, Tensor> outputs = predict(WithDefaults(
      function,
      {{kIds, Tensor::Of<int32_t>({1, size}, ids)},
       {kMask, Tensor::Of<float>({1, 1, size, context}, visible).Cast(mask.type.dtype)}}));
  const Tensor& logits = outputs.at(kLogits);
  return logits.Cast(DType::kFp32)
      .Reshaped({size, logits.dims()[2]})
      .Rows(0, std::ssize(tokens))
      .InMemory();
}

}  // namespace

Tensor AppendTokens(const Predict& predict, const Function& function,
                    std::span<const int32_t> tokens, int64_t seen) {
  const Value &ids = *InputOf(function, kIds), &mask = *InputOf(function, kMask);
  const auto count = static_cast<int64_t>(tokens.size());
  if (!mask.type.shape[3].is_constant()) {
    const std::map<std::string, Tensor> outputs = predict(WithDefaults(
        function, {{kIds, Tensor::Of<int32_t>({1, count},
                                              std::vector<int32_t>(tokens.begin(), tokens.end()))},
                   {kMask, Tensor::Full(mask.type.dtype, {1, 1, count, seen + count}, 0)}}));
    const Tensor& logits = outputs.at(kLogits);
    return logits.Cast(DType::kFp32).Reshaped({count, logits.dims()[2]}).InMemory();
  }
  // As few calls as possible, each with the smallest size that holds its tokens.
  const int64_t most = ids.type.shape[1].Bounds(function.symbols).high;
  std::vector<Tensor> rows;
  for (int64_t first = 0; first < count; first += most) {
    const int64_t part = std::min(most, count - first);
    rows.push_back(AppendFixed(
        predict, function, tokens.subspan(static_cast<size_t>(first), static_cast<size_t>(part)),
        seen + first, SizeFor(function, ids.type.shape[1], part)));
  }
  return Join(rows, 0).InMemory();
}

Tensor RunTokens(const Predict& predict, const Function& function,
                 const std::vector<int64_t>& tokens, bool step) {
  const std::vector<int32_t> ids(tokens.begin(), tokens.end());
  if (!step) return AppendTokens(predict, function, ids, 0);
  std::vector<Tensor> rows;
  for (size_t i = 0; i < ids.size(); ++i)
    rows.push_back(
        AppendTokens(predict, function, std::span(ids).subspan(i, 1), static_cast<int64_t>(i)));
  return Join(rows, 0).InMemory();
}

std::vector<NextToken> LikelyNext(const Tensor& logits, int64_t most) {
  const int64_t count = logits.dims()[0];
  std::vector<double> last = logits.Rows(count - 1, count).Doubles();
  const double greatest = *std::ranges::max_element(last);
  double sum = 0;
  for (double logit : last) sum += std::exp(logit - greatest);
  std::vector<NextToken> next;
  for (size_t i = 0; i < last.size(); ++i)
    next.push_back({static_cast<int64_t>(i), std::exp(last[i] - greatest) / sum});
  most = std::min<int64_t>(most, std::ssize(next));
  std::partial_sort(
      next.begin(), next.begin() + most, next.end(), [](const NextToken& a, const NextToken& b) {
        return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
      });
  next.resize(static_cast<size_t>(most));
  return next;
}

}  // namespace mlc::driver
