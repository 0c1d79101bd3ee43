// tools/driver/verify.h - a package against its source, or against outputs computed elsewhere.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/analysis/generated_inputs.h"
#include "lib/verify/compare.h"
#include "lib/verify/functions.h"
#include "lib/verify/layers.h"
#include "tools/driver/import.h"
#include "tools/driver/verify_language.h"

namespace mlc {

struct VerifyOptions {
  ImportOptions import;                 // of the source; its sizes are the package's too
  std::optional<std::string> function;  // absent: all, which both must have
  std::filesystem::path inputs;         // folder of tensors; empty: all are made up
  GeneratedInputOptions make_up;        // of inputs that are not given
  std::optional<int64_t> samples;       // steps of each function
  std::vector<int64_t> tokens;          // the prompt of a language model; empty: made up
  std::filesystem::path reference;      // folder or .npz; empty: what the source computes
  // As ParseBudgets; absent: by the package's precision, and fp16's is raised to kFloors times the
  // floor (lib/verify/quantization_floor.h), of mlc's own import whatever the reference. Neither does atol nor rtol
  // have a floor.
  std::optional<std::string> budget;
  // What they say holds for all outputs.
  std::optional<int64_t> per_axis;
  std::optional<double> atol, rtol;
  bool layers = false;           // compare inner values too
  std::filesystem::path bundle;  // write a parity bundle into this folder; empty: none
};

struct VerifyResult {
  std::string reference;  // what computed it
  bool exact = false;     // the reference is what the source computes in exact arithmetic
  Budgets budgets;        // without floors
  bool floors = false;    // whether outputs have them: packages of precision fp16, by default
  std::vector<Compared> outputs;
  std::string tokenizer;  // the file beside the package that is as the source's; empty: none is
  struct OfFunction {
    std::string name;  // in the package
    int samples = 0;
    std::map<std::string, InputRange> generated;  // over all samples, by MIL name
    std::vector<std::string> not_compared;        // outputs that the reference does not have
    Layers layers;
    const Function* source = nullptr;
    std::optional<LanguageResult> language;  // where the source is the reference
    FollowedChoices followed;                // of its routers by the source, over all samples
  };
  std::vector<OfFunction> functions;
  std::shared_ptr<const Program> source;
};

// Returns whether the program has a result of type fp16, in which case the budget of fp16 applies.
bool ComputesInFp16(const Program& program);

// Error "usage" where the second is a source model, as it is where they are in the wrong order,
void RequireOrder(const std::filesystem::path& source, const std::filesystem::path& package);
// and where both, which can be read, are the same.
void RequireTwo(const std::filesystem::path& source, const std::filesystem::path& package);

// Passed is what Judge says of the outputs. Error "usage" where nothing could be learnt: the same
// model twice, a folder without inputs, PACKAGE a source model.
VerifyResult Verify(const std::filesystem::path& source, const std::filesystem::path& package,
                    const VerifyOptions& options, Diagnostics& diagnostics);

}  // namespace mlc
