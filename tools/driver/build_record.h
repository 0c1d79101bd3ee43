// tools/driver/build_record.h - the result of building one variant of a recipe, in memory and as
// JSON. It is what `mlc build` prints, what reports render, and what a build keeps for the next
// one.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/support/error.h"

namespace mlc::driver {

// One requirement of a recipe, and what was found.
struct BuildCheck {
  enum class Kind { kLimit, kReference, kAccuracy } kind = Kind::kLimit;
  std::string what;  // name of the limit or the output
  bool ok = false;
  double found = 0, limit = 0;  // kLimit: the figure and its bound; kAccuracy: shares in 0..1
  bool least = false;           // kLimit: `limit` is a lower bound instead of an upper one
  // Otherwise there is no verdict: `note` says why, and the check runs again in the next build.
  bool judged = true;
  double max_error = 0, rmse = 0;  // kReference; may be infinite
  // For display: the comparison and the budget of kReference, the times of limits of latency.
  std::string figures, budget = {};
  std::string note = {};  // for display
};

// "operations 12, at most 10".
std::string Describe(const BuildCheck& check);

struct BuildRecord {
  enum class Status {
    kPassed,    // built now, or taken from a cache; all checks passed
    kFailed,    // built, but a check failed: not installed
    kNotBuilt,  // `errors` say why
    kUpToDate,  // nothing that it depends on has changed since it passed
  };
  std::string recipe;   // path of the recipe as given
  std::string name;     // RECIPE-VARIANT, the stem of all outputs
  std::string options;  // of the compilation, as typed in the recipe
  Status status = Status::kNotBuilt;
  std::vector<std::string>
      why;  // why it is not up to date: "first build", "source changed: m.onnx"
  std::vector<std::string> made;    // actions that ran: "package", "bundle", "checks", "parity"
  std::vector<std::string> cached;  // actions whose results came from the cache
  double seconds = 0;               // of this build of the variant
  int64_t peak_memory_bytes = 0;    // of the process that built it; 0: nothing ran

  // Absolute paths of the outputs; empty if there are none.
  std::filesystem::path package, manifest, tokenizer, bundle, parity_bundle;
  std::string precision, target, content_hash;
  double fp16_share = 0;  // share of the floating-point work
  int64_t operations = 0, weight_bytes = 0, package_bytes = 0;
  std::optional<double> latency_ms;  // median of a prediction
  std::string machine;               // that it was measured on: "all, Apple M2"
  std::vector<BuildCheck> checks;
  std::vector<Error> errors, warnings;
  std::vector<std::string> notes;

  bool ok() const { return status == Status::kPassed || status == Status::kUpToDate; }
  int exit_code() const;  // 0, or the worst of the errors and checks
};

// "passed", "failed", "not built", "up to date".
std::string_view Name(BuildRecord::Status status);

nlohmann::ordered_json BuildRecordJson(const BuildRecord& record);
// Reads what BuildRecordJson wrote. Throws exceptions of the JSON library.
BuildRecord BuildRecordFromJson(const nlohmann::ordered_json& json);

}  // namespace mlc::driver
