#include "tools/driver/language_model.h"

#include "tools/driver/supplied_tensors.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

void RequireLanguageModel(const Function& function, std::string_view what) {
  if (IsLanguageModel(function)) return;
  Error error("usage", "{}: function \"{}\" is not a language model", what, function.name);
  if (IsEncoder(function))
    throw error.Note("it is an encoder: it computes embeddings and cannot generate text")
        .Help("`mlc run MODEL --text TEXT` prints its outputs for a text, --tokens for tokens");
  throw error.Expected("inputs inputIds and causalMask and an output logits");
}

}  // namespace

LanguageModel::LanguageModel(const fs::path& path, const ModelOptions& options,
                             std::string_view what, Diagnostics& diagnostics)
    : LanguageModel(std::make_unique<Model>(path, options, diagnostics), what) {}

LanguageModel::LanguageModel(std::unique_ptr<Model> model, std::string_view what)
    : model_(std::move(model)), program_(model_->program()), function_(&model_->function()) {
  RequireLanguageModel(*function_, what);
  size_ = LanguageSizes(*function_);
  instance_ =
      model_->Load({.breaker = std::make_shared<runtime::CircuitBreaker>(runtime::BreakerOptions{
                        .override = runtime::BreakerOptions::Override::kClosed})});
  Forget();
}

LanguageModel::LanguageModel(std::shared_ptr<const Program> program, const Function& function,
                             std::shared_ptr<runtime::GuardedModel> instance, std::string_view what)
    : program_(std::move(program)), function_(&function), instance_(std::move(instance)) {
  RequireLanguageModel(function, what);
  size_ = LanguageSizes(function);
  Forget();
}

void LanguageModel::Show(Model& model, PictureTokens picture) {
  const Function &embed = FindFunction(*program_, "embed_tokens"),
                 &embeds = FindFunction(*program_, "embeds");
  embed_ = model.Load(embed);
  instance_ = model.Load(embeds);
  picture_ = picture;
  feeder_.emplace(std::move(picture), embed, embeds);
  Forget();
}

void LanguageModel::Show(const fs::path& picture, media::Fit fit) {
  MLC_CHECK(model_, "the model was loaded elsewhere");
  Show(*model_, ReadPictureTokens(*model_, picture, fit));
}

void LanguageModel::Forget() {
  if (feeder_) feeder_->Forget();
  state_ = instance_->NewState();
  seen_ = 0;
}

bool LanguageModel::Rewind(int64_t seen) {
  MLC_CHECK(seen <= seen_, "{} tokens of {}", seen, seen_);
  if (seen < seen_ && feeder_) return false;
  if (seen < seen_)
    for (const Port& state : function_->states)
      if (state.name != "keyCache" && state.name != "valueCache") return false;
  seen_ = seen;
  return true;
}

void LanguageModel::Check(std::span<const int32_t> tokens, int64_t pending) const {
  const int64_t count = pending + std::ssize(tokens);
  if (seen_ + count > size_.context)
    throw Error("bad-input", "{} tokens and {} more exceed the model's context of {}", seen_, count,
                size_.context)
        .Help("run or compile the source model with a larger --context N");
  for (const int32_t token : tokens)
    if (token < 0 || token >= size_.vocabulary)
      throw Error("bad-input", "token {} is not in the vocabulary of the model", token)
          .Expected("0 to {}", size_.vocabulary - 1)
          .Help("check that the tokenizer belongs to this model");
}

std::unique_ptr<runtime::ModelState> LanguageModel::CopyOfState() const {
  std::unique_ptr<runtime::ModelState> copy = instance_->NewState();
  copy->Write(state_->Read());
  return copy;
}

void LanguageModel::Start(const runtime::ModelState& state, int64_t seen) {
  std::unique_ptr<runtime::ModelState> copy = instance_->NewState();
  copy->Write(state.Read());
  state_ = std::move(copy);
  seen_ = seen;
}

Tensor LanguageModel::Append(std::span<const int32_t> tokens) {
  Check(tokens);
  uint64_t done = 0;
  const Predict predict = [&](const std::map<std::string, Tensor>& inputs) {
    std::map<std::string, Tensor> outputs = instance_->Run(inputs, state_.get()).outputs;
    if (progress_ && tokens.size() > 1) {
      const auto ids = inputs.find("inputIds");
      done += ids == inputs.end() ? tokens.size() : static_cast<uint64_t>(ids->second.size());
      progress_(StepOf("reading the prompt", std::min<uint64_t>(done, tokens.size()), tokens.size(),
                       "tokens"));
    }
    return outputs;
  };
  const Predict embed = [&](const std::map<std::string, Tensor>& inputs) {
    return embed_->Run(inputs).outputs;
  };
  Tensor logits = feeder_ ? feeder_->Append(embed, predict, tokens, seen_)
                          : AppendTokens(predict, *function_, tokens, seen_);
  seen_ += std::ssize(tokens);
  return logits;
}

}  // namespace mlc::driver
