#include <algorithm>
#include <array>
#include <chrono>

#include "lib/passes/pass.h"
#include "lib/support/edit_distance.h"
#include "lib/support/work_scope.h"

namespace mlc::passes {

extern const PassDef kAneForms, kCancelReshapes, kCancelTransposes, kCentreNorms, kChannelsFirst,
    kCommonSubexpressions, kComposeConv1d, kDeadCode, kDeduplicateConstants, kFiniteConstants,
    kFoldConstants, kFoldControlFlow, kFoldScales, kFuseActivations, kFuseConv, kFuseLinear,
    kFuseNorms, kFusePads, kGpuForms, kLowerRank, kOptimiseCasts, kQuantisedProducts, kRemoveNoOps,
    kSafeLogarithms, kSafeMasks, kSafeNorms, kScaleBeforeProduct, kScaleSmallWeights,
    kSimplifyArithmetic, kSimplifyMoves, kSinkTransposes, kStaticShapes;

namespace {

// Markers in a pipeline: the passes between them are repeated until a round changes nothing.
constexpr PassDef kRepeat = {"repeat", "", nullptr}, kUntilStable = {"until-stable", "", nullptr};

// The default pipeline, in order. It contains every pass, and each is declared above.
constexpr std::array kPipeline = {
    &kRepeat,
    &kNewerForms,
    &kFoldConstants,
    &kFoldControlFlow,
    &kStaticShapes,
    &kDeadCode,
    &kDeduplicateConstants,
    &kCommonSubexpressions,
    &kRemoveNoOps,
    &kOptimiseCasts,
    &kLowerRank,
    &kSimplifyMoves,
    &kSimplifyArithmetic,
    &kFuseNorms,
    &kFuseActivations,
    &kSinkTransposes,
    &kCancelTransposes,
    &kCancelReshapes,
    &kFuseLinear,
    &kGpuForms,
    &kFoldScales,
    &kFusePads,
    &kQuantisedProducts,
    &kFuseConv,
    &kComposeConv1d,
    &kScaleBeforeProduct,
    &kSafeMasks,
    &kSafeLogarithms,
    &kSafeNorms,
    &kCentreNorms,
    &kUntilStable,
    &kAneForms,
    &kScaleSmallWeights,
    &kCompress,
    &kFp16Precision,
    &kFiniteConstants,
    &kOptimiseCasts,
    &kChannelsFirst,
    &kRepeat,
    &kFoldConstants,
    &kOptimiseCasts,
    &kRemoveNoOps,
    // These merge the scales after convolutions and the slices of slices that channels-first makes.
    &kFuseConv,
    &kComposeConv1d,  // of a convolution alone between other layouts
    &kSimplifyMoves,
    // Casts to and from fp16 states separated moves that can now cancel.
    &kSinkTransposes,
    &kCancelTransposes,
    &kCancelReshapes,
    &kEncodedConstants,
    &kDeduplicateConstants,
    &kCommonSubexpressions,
    &kDeadCode,
    &kUntilStable,
};

}  // namespace

std::span<const PassDef* const> AllPasses() {
  static const std::vector<const PassDef*> passes = [] {
    std::vector<const PassDef*> all;
    for (const PassDef* pass : kPipeline)
      if (pass->run && std::ranges::find(all, pass) == all.end()) all.push_back(pass);
    std::ranges::sort(all, [](const PassDef* a, const PassDef* b) { return a->name < b->name; });
    return all;
  }();
  return passes;
}

std::vector<const PassDef*> DefaultPipeline() { return {kPipeline.begin(), kPipeline.end()}; }

std::vector<const PassDef*> ParsePasses(std::string_view list) {
  std::vector<const PassDef*> passes;
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    std::string_view name = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    std::span<const PassDef* const> all = AllPasses();
    auto it = std::ranges::find_if(all, [&](const PassDef* pass) { return pass->name == name; });
    if (it == all.end()) {
      std::vector<std::string_view> known;
      for (const PassDef* pass : all) known.push_back(pass->name);
      throw Error("bad-name", "unknown pass \"{}\"{}", name, DidYouMean(known, name))
          .Expected("{}", fmt::join(known, ", "));
    }
    passes.push_back(*it);
  }
  return passes;
}

std::map<std::string, int64_t> Histogram(const Program& program) {
  std::map<const OpDef*, int64_t> counts;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (!op->def->is_const()) ++counts[op->def];
    });
  std::map<std::string, int64_t> histogram;
  for (const auto& [def, count] : counts) histogram[std::string(def->name)] = count;
  return histogram;
}

namespace {

// `operators` is the program's histogram before the pass. `stable` means that the last run of the
// pass changed nothing and the program has not changed since.
PassRun RunPass(const PassDef& pass, Program& program, PassContext& context,
                const PipelineOptions& options, std::map<std::string, int64_t> operators,
                bool stable) {
  PassRun run{std::string(pass.name), false, 0, std::move(operators), {}};
  std::optional<Program> before;
  if (options.check_each) before = Clone(program);
  auto start = std::chrono::steady_clock::now();
  try {
    run.changed = !stable && pass.run(program, context);
  } catch (Error& error) {
    throw error.Note("in pass {}", pass.name);
  }
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.verify_each) Verify(program);
  if (before && run.changed) options.check_each(*before, program, pass.name);
  if (options.print && (options.print_after == "all" || options.print_after == pass.name))
    options.print(pass.name, program);
  run.operators_after = run.changed ? Histogram(program) : run.operators_before;
  return run;
}

}  // namespace

std::vector<PassRun> RunPasses(Program& program, const std::vector<const PassDef*>& passes,
                               PassContext& context, const PipelineOptions& options) {
  // Every rewrite should make a program smaller by some measure; the limit catches those that do
  // not.
  constexpr int kMostRounds = 20;
  std::vector<PassRun> runs;
  size_t first = 0;  // start of the current group
  int round = 1, completed = 0;
  bool again = false;  // whether a pass of the group changed the program in this round
  std::map<std::string, int64_t> operators = Histogram(program);
  int changes = 0;  // number of passes that changed the program
  std::map<const PassDef*, int>
      stable_at;  // the value of `changes` when a pass last changed nothing
  for (size_t i = 0; i < passes.size(); ++i) {
    if (passes[i] == &kRepeat) {
      first = i;
      round = 1;
      again = false;
    } else if (passes[i] == &kUntilStable) {
      if (again && round == kMostRounds)
        context.diagnostics.Warn(
            Error("not-stable",
                  "the passes from {} to {} still change the program "
                  "after {} rounds",
                  passes[first + 1]->name, passes[i - 1]->name, round)
                .Help("the program is correct, but possibly not optimal; please report this"));
      if (!again || round == kMostRounds) {
        round = 1;
        continue;
      }
      i = first;
      ++round;
      again = false;
    } else {
      if (completed == options.at_most) break;
      ThrowIfCancelled();
      if (options.progress)
        options.progress(StepOf("optimising", i, passes.size(), "passes", passes[i]->name));
      PassRun run;
      try {
        auto stable = stable_at.find(passes[i]);
        run = RunPass(*passes[i], program, context, options, operators,
                      stable != stable_at.end() && stable->second == changes);
      } catch (const InternalError& bug) {
        throw PassFailure(fmt::format("pass {}: {}", passes[i]->name, bug.what()), passes[i]->name,
                          completed);
      }
      ++completed;
      operators = run.operators_after;
      if (run.changed) {
        again = true;
        ++changes;
      } else {
        stable_at[passes[i]] = changes;
      }
      // Later rounds list only passes that changed something; the time of the others is added to
      // the first round.
      if (run.changed || round == 1)
        runs.push_back(std::move(run));
      else
        std::find_if(runs.rbegin(), runs.rend(), [&](const PassRun& earlier) {
          return earlier.name == run.name;
        })->seconds += run.seconds;
    }
  }
  return runs;
}

}  // namespace mlc::passes
