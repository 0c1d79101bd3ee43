#include <algorithm>
#include <array>
#include <chrono>

#include "lib/passes/pass.h"
#include "lib/passes/passes.h"

namespace mlc {

namespace {

// Every pass, by name. A new pass is declared in passes.h and gets a line here and its place in the
// pipeline below.
constexpr std::array kPasses = {
    &kCancelReshapes, &kCancelTransposes,     &kCommonSubexpressions,
    &kDeadCode,       &kDeduplicateConstants, &kFoldConstants,
    &kFp16Precision,  &kFuseActivations,      &kFuseConv,
    &kFuseLayerNorm,  &kFuseLinear,           &kOptimiseCasts,
    &kRemoveNoOps,
};

// The default pipeline, in order.
constexpr std::array kPipeline = {
    &kFoldConstants,
    &kDeadCode,
    &kDeduplicateConstants,
    &kCommonSubexpressions,
    &kRemoveNoOps,
    &kCancelReshapes,
    &kCancelTransposes,
    &kFuseLinear,
    &kFuseConv,
    &kFuseLayerNorm,
    &kFuseActivations,
    &kRemoveNoOps,
    &kDeadCode,
    &kFp16Precision,
    &kFoldConstants,
    &kOptimiseCasts,
    &kRemoveNoOps,
    &kDeduplicateConstants,
    &kCommonSubexpressions,
    &kDeadCode,
};

}  // namespace

std::span<const PassDef* const> AllPasses() { return kPasses; }

std::vector<const PassDef*> DefaultPipeline(PassContext::Precision) {
  return {kPipeline.begin(), kPipeline.end()};
}

std::vector<const PassDef*> ParsePasses(std::string_view list) {
  std::vector<const PassDef*> passes;
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    std::string_view name = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    auto it = std::find_if(kPasses.begin(), kPasses.end(),
                           [&](const PassDef* pass) { return pass->name == name; });
    if (it == kPasses.end()) {
      std::string known;
      for (const PassDef* pass : kPasses)
        known += (known.empty() ? "" : ", ") + std::string(pass->name);
      throw Error("bad-name", fmt::format("no pass \"{}\"", name)).Expected(known);
    }
    passes.push_back(*it);
  }
  return passes;
}

std::map<std::string, int64_t> Histogram(const Program& program) {
  std::map<std::string, int64_t> histogram;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (!op->is("const")) ++histogram[std::string(op->def->name)];
    });
  return histogram;
}

std::vector<PassRun> RunPasses(Program& program, const std::vector<const PassDef*>& passes,
                               PassContext& context, const PipelineOptions& options) {
  std::vector<PassRun> runs;
  for (const PassDef* pass : passes) {
    PassRun run{std::string(pass->name), false, 0, Histogram(program), {}};
    std::optional<Program> before;
    if (options.check_each) before = Clone(program);
    auto start = std::chrono::steady_clock::now();
    try {
      run.changed = pass->run(program, context);
    } catch (Error& error) {
      throw error.Note(fmt::format("in pass {}", pass->name));
    } catch (const InternalError& bug) {
      throw InternalError(fmt::format("pass {}: {}", pass->name, bug.what()));
    }
    run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (options.verify_each) {
      try {
        Verify(program);
      } catch (const InternalError& bug) {
        throw InternalError(fmt::format("after pass {}: {}", pass->name, bug.what()));
      }
    }
    if (before && run.changed) options.check_each(*before, program, pass->name);
    if (options.print && (options.print_after == "all" || options.print_after == pass->name))
      options.print(pass->name, program);
    run.operators_after = Histogram(program);
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace mlc
