// lib/passes/pass.h - what a pass is, the list of them, and how they are run.
//
// A pass is a file that defines one PassDef and stands in the list of pipeline.cpp. It reports
// "changed" truthfully: true exactly when the program is another one afterwards. Running the
// default pipeline twice changes nothing the second time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/builder.h"
#include "lib/ir/program.h"
#include "lib/passes/fp32_reason.h"

namespace mlc {

struct PassContext {
  Diagnostics& diagnostics;
  enum class Precision { kFp16, kFp32, kMixed } precision = Precision::kFp16;
  // Chosen before the first pass: passes make nothing that it lacks.
  Opset target = Opset::kIos16;
  // Of fp16-precision. Operations, by their names or operators, that compute in fp32 or in fp16
  // whatever the rules say; a name beats an operator.
  std::vector<std::string> fp32_ops = {}, fp16_ops = {};
  // Operations, by name, that stay fp32 since measuring says so, and why.
  std::map<std::string, WhyFp32> measured = {};
  // How great the numbers of values were when the program was run, by name.
  std::map<std::string, double> reached = {};
  // Called by fp16-precision before it narrows, to fill in `measured`; may be empty.
  std::function<void(const Program&, PassContext&)> measure = {};
  // Measuring has had its say: --precision mixed keeps nothing else in fp32 for caution's sake.
  bool judged = false;
};

struct PassDef {
  std::string_view name;     // kebab-case, as users type it
  std::string_view summary;  // one line, the help text
  bool (*run)(Program&, PassContext&);
};

// Every pass, sorted by name.
std::span<const PassDef* const> AllPasses();
// The default pipeline in order; a pass may stand in it several times. Marks between passes (with
// no `run`) delimit groups that RunPasses repeats until nothing changes.
std::vector<const PassDef*> DefaultPipeline();
// Those that other code looks for in a pipeline, or adds to it.
extern const PassDef kEncodedConstants, kFp16Precision, kNewerForms;
// Comma-separated pass names; "" is none. Error "bad-name" lists the known ones.
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
  // Called after every pass that changed something, with the program before it; throws to stop.
  std::function<void(const Program& before, const Program& after, std::string_view pass)>
      check_each;
  int at_most = -1;         // passes that are run, repeated ones counted again; below 0: all
  std::string print_after;  // pass name or "all"
  std::function<void(std::string_view pass, const Program&)> print;  // called for print_after
};

// A promise of ours that a pass broke. The text names it.
struct PassFailure : InternalError {
  PassFailure(const std::string& text, std::string_view broken_by, int passes_before)
      : InternalError(text), pass(broken_by), completed(passes_before) {}
  std::string pass;
  int completed;  // PipelineOptions::at_most for the program before it
};

// Runs the passes in order. An Error of a pass gets a note with the pass's name, an InternalError
// becomes a PassFailure. A group that still changes the program after 20 rounds is a warning
// ("not-stable").
std::vector<PassRun> RunPasses(Program& program, const std::vector<const PassDef*>& passes,
                               PassContext& context, const PipelineOptions& options = {});
std::map<std::string, int64_t> Histogram(
    const Program& program);  // of non-const operations, nested ones included

}  // namespace mlc
