// tools/driver/language_model.h - a language model loaded on a runtime: takes tokens, returns
// logits, and keeps its state between calls.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lib/support/progress.h"
#include "tools/driver/model.h"
#include "tools/driver/picture_tokens.h"
#include "tools/driver/run_tokens.h"

namespace mlc::driver {

class LanguageModel {
 public:
  // `what` is the option that requires a language model, named in errors. Throws the errors of
  // Model and of loading, and Error "usage" for a function that is not a language model, which says
  // what it is. `diagnostics` must outlive this object.
  LanguageModel(const std::filesystem::path& model, const ModelOptions& options,
                std::string_view what, Diagnostics& diagnostics);
  // The same for a model that was read.
  LanguageModel(std::unique_ptr<Model> model, std::string_view what);
  // The same for a function that is loaded. `program` owns it.
  LanguageModel(std::shared_ptr<const Program> program, const Function& function,
                std::shared_ptr<runtime::GuardedModel> instance, std::string_view what);

  // Puts the rows of a picture in the place of tokens from now on, and forgets all tokens. `model` is that
  // of the program; the state is that of its function `embeds`.
  void Show(Model& model, PictureTokens picture);
  // The same for a model that this object loaded (ReadPictureTokens).
  void Show(const std::filesystem::path& picture, media::Fit fit);
  const PictureTokens* picture() const { return picture_ ? &*picture_ : nullptr; }

  // Null for a model that was loaded by the caller.
  const Model* model() const { return model_.get(); }
  LanguageSize size() const { return size_; }
  int64_t seen() const { return seen_; }  // number of tokens processed

  // Processes tokens after those already seen, as one batch, and returns logits: fp32 [tokens,
  // vocabulary]. Throws Error "bad-input" if the context is too short or a token is not in the
  // vocabulary, and the errors of predicting.
  Tensor Append(std::span<const int32_t> tokens);
  // Throws Error "bad-input" unless `tokens` can follow those seen and `pending` others.
  void Check(std::span<const int32_t> tokens, int64_t pending = 0) const;
  void Forget();
  // Reports how far batches of several tokens are; an empty function ends that.
  void ReportTo(Progress progress) { progress_ = std::move(progress); }
  // Goes back to the state after the first `seen` tokens. Returns whether that is possible: caches of
  // keys and values are read up to the tokens seen only, other states are changed by every token.
  bool Rewind(int64_t seen);
  // The state after the tokens seen, as a copy.
  std::unique_ptr<runtime::ModelState> CopyOfState() const;
  // Continues from a state of this function, which is copied, after `seen` tokens.
  void Start(const runtime::ModelState& state, int64_t seen);

 private:
  std::unique_ptr<Model> model_;
  std::shared_ptr<const Program> program_;
  const Function* function_;
  std::shared_ptr<runtime::GuardedModel> instance_;
  std::optional<PictureTokens> picture_;
  std::unique_ptr<runtime::GuardedModel> embed_;  // of a picture, like this
  std::optional<PictureFeeder> feeder_;
  std::unique_ptr<runtime::ModelState> state_;
  LanguageSize size_{};
  int64_t seen_ = 0;
  Progress progress_;
};

}  // namespace mlc::driver
