// tools/driver/verify.h - compares a package with its source, or with outputs computed elsewhere.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/analysis/generated_inputs.h"
#include "lib/media/picture.h"
#include "lib/support/progress.h"
#include "lib/verify/compare.h"
#include "lib/verify/compare_functions.h"
#include "lib/verify/layer_comparison.h"
#include "tools/driver/import.h"
#include "tools/driver/text_inputs.h"
#include "tools/driver/verify_language.h"

namespace mlc::driver {

struct VerifyOptions {
  ImportOptions import;                     // for the source; its sizes apply to the package, too
  std::optional<std::string> function;      // absent: all, which both models must have
  std::filesystem::path inputs;             // folder of tensors; empty: all are generated
  analysis::GeneratedInputOptions make_up;  // for inputs that are not given
  media::Fit fit = media::Fit::kNone;       // of pictures and sounds in `inputs`
  std::optional<int64_t> samples;           // steps for each function
  std::vector<int64_t> tokens;              // the prompt of a language model; empty: generated
  // A file of texts for an encoder, each a sample (ReadTextLines), and where their tokenizer is; empty:
  // with the source.
  std::filesystem::path text, tokenizer;
  std::filesystem::path reference;  // folder or .npz; empty: computed from the source
  // As accepted by ParseBudgets. Absent: by the package's precision, where the fp16 budget is
  // raised to kFloors times the floor (lib/verify/fp16_floor.h), which is computed from
  // mlc's import for any reference. atol and rtol disable floors.
  std::optional<std::string> budget;
  // These apply to all outputs.
  std::optional<int64_t> per_axis;
  std::optional<double> atol, rtol;
  bool layers = false;           // compare intermediate values, too
  std::filesystem::path bundle;  // folder for a parity bundle; empty: none is written
  Progress progress = {};        // of the samples that are run
};

struct VerifyResult {
  std::string reference;    // what computed the reference
  bool exact = false;       // whether the reference is the source in exact arithmetic
  verify::Budgets budgets;  // without floors
  bool floors = false;      // whether floors apply: by default for fp16 packages
  std::vector<verify::Compared> outputs;
  // The folder with the tokenizer of the package, if equal to that of the source; otherwise empty.
  std::string tokenizer;
  struct OfFunction {
    std::string name;  // in the package
    int samples = 0;
    std::map<std::string, analysis::InputRange> generated;  // over all samples, by MIL name
    std::vector<std::string> not_compared;                  // outputs missing in the reference
    verify::Layers layers;
    const Function* source = nullptr;
    std::optional<LanguageResult> language;  // if the source is the reference
    std::vector<EncodedText> texts;          // of VerifyOptions::text
    // Router choices of the package that the source follows, over all samples.
    verify::FollowedChoices followed;
  };
  std::vector<OfFunction> functions;
  std::shared_ptr<const Program> source;
};

// Returns whether the program has a result of type fp16; in this case the fp16 budget applies.
bool ComputesInFp16(const Program& program);

// Error "usage" if `package` is a source model, as when the arguments are swapped.
void RequireOrder(const std::filesystem::path& source, const std::filesystem::path& package);
// Error "usage" if both are the same model. Both must be readable.
void RequireTwo(const std::filesystem::path& source, const std::filesystem::path& package);

// Whether VerifyOptions::text applies to a model: its default function is an encoder.
bool TakesTexts(const std::filesystem::path& model);

// The result passes if Judge accepts the outputs. Error "usage" if the comparison would be
// meaningless: the same model twice, a folder without inputs, a source model as `package`.
VerifyResult Verify(const std::filesystem::path& source, const std::filesystem::path& package,
                    const VerifyOptions& options, Diagnostics& diagnostics);

}  // namespace mlc::driver
