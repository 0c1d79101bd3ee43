// lib/passes/pass.h - the definition of a pass, the list of all passes, and how they are run.
//
// A pass is a file that defines one PassDef and is listed in pipeline.cpp. It returns true if and
// only if it changed the program. The default pipeline is idempotent: a second run changes nothing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/analysis/placement.h"
#include "lib/compress/compression.h"
#include "lib/ir/builder.h"
#include "lib/ir/program.h"
#include "lib/passes/fp32_reason.h"
#include "lib/support/progress.h"

namespace mlc::passes {

struct PassContext {
  Diagnostics& diagnostics;
  enum class Precision { kFp16, kFp32, kMixed } precision = Precision::kFp16;
  // The deployment target, known before the first pass: no pass may create what it does not
  // support.
  Opset target = Opset::kIos16;
  // The compute unit that the program is written for; nothing: any.
  std::optional<analysis::Unit> optimize_for = {};
  // For fp16-precision: operations, by name or operator, that are forced to fp32 or fp16. A name
  // takes precedence over an operator.
  std::vector<std::string> fp32_ops = {}, fp16_ops = {};
  // The operations, by name, that measuring keeps in fp32, and why.
  std::map<std::string, Fp32Decision> measured = {};
  // The largest magnitude of each value in the measured runs, by name.
  std::map<std::string, double> reached = {};
  // Called by fp16-precision before narrowing to fill in `measured`; may be empty.
  std::function<void(const Program&, PassContext&)> measure = {};
  // True if `measured` is final: --precision mixed then keeps no further operations in fp32 as a
  // precaution.
  bool judged = false;
  // For compress: the rules, and the report that the pass fills in.
  // Null: nothing is compressed.
  compress::Compression* compression = nullptr;
};

struct PassDef {
  std::string_view name;     // kebab-case, as on the command line
  std::string_view summary;  // one line, shown by --help
  bool (*run)(Program&, PassContext&);
};

// All passes, sorted by name.
std::span<const PassDef* const> AllPasses();
// The default pipeline in order; a pass may occur several times. Markers between passes (with a
// null `run`) delimit groups that RunPasses repeats until nothing changes.
std::vector<const PassDef*> DefaultPipeline();
// Passes that other code looks up in a pipeline or adds to it.
extern const PassDef kCompress, kEncodedConstants, kFp16Precision, kNewerForms;
// Parses a comma-separated list of pass names, which may be empty. Throws Error "bad-name", which
// lists the known names.
std::vector<const PassDef*> ParsePasses(std::string_view list);

struct PassRun {
  std::string name;
  bool changed = false;
  double seconds = 0;
  std::map<std::string, int64_t> operators_before,
      operators_after;  // histogram of non-const operations
};

struct PipelineOptions {
  bool verify_each = false;
  // Called after every pass that changed the program, with the program before it; may throw to
  // stop.
  std::function<void(const Program& before, const Program& after, std::string_view pass)>
      check_each;
  int at_most = -1;   // maximum number of passes to run, counting repetitions; below 0: no limit
  Progress progress;  // called before every pass
  std::string print_after;                                           // pass name or "all"
  std::function<void(std::string_view pass, const Program&)> print;  // called for print_after
};

// A pass that broke an invariant. The text names the pass.
struct PassFailure : InternalError {
  PassFailure(const std::string& text, std::string_view broken_by, int passes_before)
      : InternalError(text), pass(broken_by), completed(passes_before) {}
  std::string pass;
  int completed;  // PipelineOptions::at_most that gives the program before the pass
};

// Runs the passes in order. An Error from a pass gets a note with the name of the pass; an
// InternalError becomes a PassFailure. A group that still changes the program after 20 rounds
// causes a warning ("not-stable").
std::vector<PassRun> RunPasses(Program& program, const std::vector<const PassDef*>& passes,
                               PassContext& context, const PipelineOptions& options = {});
std::map<std::string, int64_t> Histogram(
    const Program& program);  // non-const operations, including nested ones

}  // namespace mlc::passes
