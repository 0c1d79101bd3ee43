// tools/driver/language_model.h - a language model loaded on a runtime: takes tokens, returns
// logits, and keeps its state between calls.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "lib/runtime/guarded_model.h"
#include "tools/driver/run.h"
#include "tools/driver/run_tokens.h"

namespace mlc::driver {

class LanguageModel {
 public:
  // Uses the loading options of `options`: import, function, units (absent: the reference engine
  // for a source model, DefaultUnits() for others), arithmetic, timeout of one prediction,
  // load_timeout, hints. `what` is the option that requires a language model, named in errors.
  // Throws the loading errors of Run, and Error "usage" for a function that is not a language
  // model, which says what it is. `diagnostics` must outlive this object.
  LanguageModel(const std::filesystem::path& model, const RunOptions& options,
                std::string_view what, Diagnostics& diagnostics);

  LanguageSize size() const { return size_; }
  int64_t seen() const { return seen_; }  // number of tokens processed
  runtime::Units units() const { return units_; }
  engine::EngineOptions::Arithmetic arithmetic() const {
    return arithmetic_;
  }                                                             // of the reference engine
  const std::string& runtime() const { return runtime_name_; }  // "mlc's engine"
  bool computes_in_fp16() const;                                // verify.h
  double load_ms() const { return load_ms_; }

  // Processes tokens after those already seen, as one batch, and returns logits: fp32 [tokens,
  // vocabulary]. Throws Error "bad-input" if the context is too short or a token is not in the
  // vocabulary, and the errors of predicting.
  Tensor Append(std::span<const int32_t> tokens);
  void Forget();

 private:
  std::shared_ptr<const Program> program_;
  const Function* function_ = nullptr;
  std::shared_ptr<runtime::Runtime> runtime_;
  runtime::Units units_ = runtime::Units::kReference;
  engine::EngineOptions::Arithmetic arithmetic_ = engine::EngineOptions::Arithmetic::kExact;
  std::string runtime_name_;
  double load_ms_ = 0;
  std::unique_ptr<runtime::GuardedModel> model_;
  std::unique_ptr<runtime::ModelState> state_;
  LanguageSize size_{};
  int64_t seen_ = 0;
};

}  // namespace mlc::driver
