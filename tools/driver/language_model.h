// tools/driver/language_model.h - a language model, loaded on what computes: tokens in, logits out, and
// what it has seen stays.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "lib/runtime/guarded_model.h"
#include "tools/driver/run.h"
#include "tools/driver/tokens.h"

namespace mlc {

class LanguageModel {
 public:
  // Of `options` those of loading count: import, function, units (absent: mlc's engine for a source
  // model, DefaultUnits() for others), arithmetic, timeout of one prediction, load_timeout, hints.
  // `what` is the option that asks, for errors: those of Run's loading, and "usage" for a function that
  // is no language model, which say what it is. `diagnostics` outlives it.
  LanguageModel(const std::filesystem::path& model, const RunOptions& options,
                std::string_view what, Diagnostics& diagnostics);

  LanguageSize size() const { return size_; }
  int64_t seen() const { return seen_; }  // tokens
  Units units() const { return units_; }
  EngineOptions::Arithmetic arithmetic() const { return arithmetic_; }  // of mlc's engine
  const std::string& runtime() const { return runtime_name_; }          // "mlc's engine"
  bool computes_in_fp16() const;                                        // verify.h
  double load_ms() const { return load_ms_; }

  // Takes tokens behind those that it has seen, all at once: fp32 [tokens, vocabulary]. Error
  // "bad-input" where the context has no room for them, or the model has no such token, and those of
  // predicting.
  Tensor Append(std::span<const int32_t> tokens);
  void Forget();

 private:
  std::shared_ptr<const Program> program_;
  const Function* function_ = nullptr;
  std::shared_ptr<Runtime> runtime_;
  Units units_ = Units::kReference;
  EngineOptions::Arithmetic arithmetic_ = EngineOptions::Arithmetic::kExact;
  std::string runtime_name_;
  double load_ms_ = 0;
  std::unique_ptr<GuardedModel> model_;
  std::unique_ptr<ModelState> state_;
  LanguageSize size_{};
  int64_t seen_ = 0;
};

}  // namespace mlc
