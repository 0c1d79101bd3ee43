// tools/driver/run.h - executing a function of any model: inputs in, outputs as the source declares them.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/analysis/made_up_inputs.h"
#include "lib/engine/engine.h"
#include "tools/driver/import.h"
#include "tools/driver/tokens.h"

namespace mlc {

struct RunOptions {
  ImportOptions import;
  std::optional<std::string> function;   // absent: the program's default function
  std::map<std::string, Tensor> inputs;  // by the source's name or MIL's
  // "NAME=FILE", for further ones: names may hold '=', and the longest that is an input counts.
  std::vector<std::string> input_files;
  MadeUpOptions make_up;  // of inputs that are not given
  // In place of inputs. Of a language model the only output is logits [tokens, vocabulary]; of an
  // encoder there are hidden [tokens, width], pooled [width] or those of its head, without the batch.
  std::vector<int64_t> tokens;
  bool step = false;  // one token after the other, through the states
  // Absent: exact for a source model, faithful for what Core ML runs.
  std::optional<EngineOptions::Arithmetic> arithmetic;
  int64_t iterations = 1, warmup = 0;
  std::optional<std::chrono::milliseconds> timeout;  // of one run
  std::filesystem::path output_folder;  // every output as NAME.npy; empty: nothing is written
  bool bundles_only = false;            // refuse anything but a .mlmodelc
};

// Nearest-rank percentiles.
struct Percentiles {
  double p50 = 0, p95 = 0, p99 = 0;
};
Percentiles PercentilesOf(std::vector<double> samples);  // at least one

struct RunResult {
  std::shared_ptr<const Program> program;
  const Function* function = nullptr;
  EngineOptions::Arithmetic arithmetic = EngineOptions::Arithmetic::kFaithful;
  struct Output {
    const Port* port;
    Tensor tensor;               // in the type that the source declares
    std::string name;            // which it is shown and written under
    std::filesystem::path file;  // where it was written; else empty
  };
  std::vector<Output> outputs;
  std::map<std::string, InputRange> made_up;  // by MIL name
  std::vector<NextToken> next;                // of a language model that was given tokens
  double load_ms = 0;
  std::vector<double> marshal_in_ms, predict_ms, marshal_out_ms;  // of each iteration
  std::vector<double> token_ms = {};  // with RunOptions::step, of each token of all iterations
};

// Error "usage" for options that contradict each other or the model, "bad-name", "bad-input",
// "timeout", and those of Import and of the engine.
RunResult Run(const std::filesystem::path& model, const RunOptions& options,
              Diagnostics& diagnostics);

// "exact", "faithful".
std::string_view Name(EngineOptions::Arithmetic arithmetic);
// Error "usage" for anything but a compiled bundle.
void RequireBundle(const std::filesystem::path& path);

}  // namespace mlc
