// tools/driver/run.h - runs a function of any model once.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/analysis/generated_inputs.h"
#include "lib/media/picture.h"
#include "tools/driver/model.h"
#include "tools/driver/output_files.h"
#include "tools/driver/picture_tokens.h"
#include "tools/driver/run_tokens.h"
#include "tools/driver/text_inputs.h"

namespace mlc::driver {

struct RunOptions : ModelOptions {
  std::map<std::string, Tensor> inputs;  // by the source's name or the MIL name
  // Further inputs as "NAME=FILE". Names may contain '='; the longest prefix that is an
  // input's name is used.
  std::vector<std::string> input_files;
  // For the only image input, or, of a language model that reads pictures, for its tokens; empty: none.
  std::filesystem::path picture;
  media::Fit fit = media::Fit::kNone;       // of pictures and sounds
  analysis::GeneratedInputOptions make_up;  // for inputs that are not given
  // Tokens to run instead of inputs. The only output of a language model is then logits [tokens,
  // vocabulary]; the outputs of an encoder are hidden [tokens, width], pooled [width] or those of
  // its head, without the batch dimension.
  std::vector<int64_t> tokens;
  bool step = false;  // one token at a time; the model keeps its context in its states
  // A text or a pair of texts to run an encoder on. The outputs are those for its tokens.
  TextInput text;
  bool by_tokens() const { return !tokens.empty() || text.given(); }
  std::filesystem::path output_folder;  // writes each output as NAME.npy; empty: no files
  // Single outputs as "NAME=FILE" (.npy) or, of pictures, "NAME=FILE[,SCALE]" (output_files.h).
  std::vector<std::string> output_files;
};

struct RunOutput {
  const Port* port;
  Tensor tensor;     // in the type declared by the source
  std::string name;  // the source's name, used in reports
  // The file it was written to, named after the output in the model that ran; empty if it was not
  // written.
  std::filesystem::path file = {};
};

struct RunResult {
  std::shared_ptr<const Program> program;
  const Function* function = nullptr;
  runtime::Units units = runtime::Units::kReference;
  // The arithmetic of the reference engine.
  engine::EngineOptions::Arithmetic arithmetic = engine::EngineOptions::Arithmetic::kFaithful;
  std::vector<RunOutput> outputs;
  std::map<std::string, analysis::InputRange> generated;  // by MIL name
  std::vector<NextToken> next;      // for a language model that was given tokens
  std::optional<EncodedText> text;  // that the model ran on
};

// Throws Error "usage" for options that contradict each other or the model, "bad-name",
// "bad-input", and the errors of Model and of the runtime.
RunResult Run(const std::filesystem::path& model, const RunOptions& options,
              Diagnostics& diagnostics);

// Throws Error "usage" for options that contradict each other, before the model is read.
void CheckRunOptions(const RunOptions& options);

// The inputs and outputs of a model's runs, for callers that repeat predictions.
class RunTensors {
 public:
  // Reads and checks the given inputs, generates the others, and checks that the outputs can be
  // written. Throws the errors of Run. Both arguments must outlive this object.
  RunTensors(Model& model, const RunOptions& options);

  // Sets all fields of `result` except outputs and next.
  void Describe(RunResult& result) const;

  struct Once {
    std::vector<RunOutput> outputs;
    runtime::PredictTimings timings;  // includes conversions from and to the user's tensors
    std::vector<double> token_ms;     // with RunOptions::step, for each token
    bool fallback = false;            // whether the fallback computed some of the outputs
    runtime::CircuitBreaker::Ticket ticket = {};
  };
  // Runs one prediction, or as many as the tokens require.
  Once Predict(runtime::GuardedModel& model) const;

  // Returns the inputs by MIL name, in the types of the model; not for tokens.
  std::map<std::string, Tensor> Inputs() const;
  // Converts the outputs of a prediction on Inputs(), and adds the time that this takes.
  Once Converted(const runtime::Prediction& prediction) const;

  // Sets `next`, and writes the outputs if requested.
  void Finish(RunResult& result) const;

 private:
  Once PredictTokens(runtime::GuardedModel& model) const;
  Model& model_;
  const RunOptions& options_;
  std::vector<OutputToFile> output_files_;
  EncoderTokens tokens_;                  // of an encoder
  std::optional<PictureTokens> picture_;  // beside tokens
  std::optional<EncodedText> text_;
  std::map<std::string, Tensor> given_;  // by name, including generated inputs
  std::map<std::string, analysis::InputRange> generated_;
};

}  // namespace mlc::driver
