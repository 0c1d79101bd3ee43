#include "tools/driver/compression.h"

#include <algorithm>

#include "backends/coreml/lower.h"
#include "lib/analysis/placement_rules.h"
#include "lib/passes/pass.h"
#include "tools/driver/version.h"

namespace mlc::driver {

std::vector<compress::Rule> CompressionRules(const ImportOptions& options) {
  if (options.compress.empty() && options.requant.empty()) return {};
  if (!options.compress.empty() && !options.requant.empty())
    throw Error("usage", "--requant cannot be combined with --compress")
        .Help("--compress {} is the same as --requant {}", options.requant, options.requant);
  return compress::ParseRules(options.compress.empty() ? options.requant : options.compress);
}

void CompressProgram(Program& program, const ImportOptions& options, Diagnostics& diagnostics) {
  compress::Compression compression{.rules = CompressionRules(options)};
  if (compression.rules.empty()) return;
  std::vector<const passes::PassDef*> passes = passes::DefaultPipeline();
  const auto precision = options.compress_in_fp32 ? passes::PassContext::Precision::kFp32
                                                  : passes::PassContext::Precision::kFp16;
  Diagnostics ignored;
  const Opset target =
      options.target
          ? *options.target
          : RaisedFor(compression.rules, coreml::LowestTarget(program, passes, precision, ignored),
                      ignored);
  passes.erase(std::ranges::find(passes, &passes::kCompress) + 1, passes.end());
  passes::PassContext context{.diagnostics = diagnostics,
                              .precision = precision,
                              .target = target,
                              .compression = &compression};
  passes::RunPasses(program, passes, context);
}

void NoteUnits(const Program& program, compress::Compression& compression) {
  using analysis::Unit;
  for (const Unit unit : {Unit::kNeuralEngine, Unit::kGpu, Unit::kCpu}) {
    std::map<const analysis::PlacementRule*, int64_t> operations;
    for (const auto& function : program.functions)
      for (const analysis::PlacementFinding& finding :
           analysis::PlacementOf(*function, unit, analysis::DefaultChip(),
                                 analysis::SizesToExamine(*function).front())
               .findings)
        if (finding.rule->weights) ++operations[finding.rule];
    // In the order of the table.
    for (const analysis::PlacementRule& rule : analysis::PlacementRules())
      if (const auto found = operations.find(&rule); found != operations.end())
        compression.units.push_back({std::string(rule.id), std::string(Name(unit)),
                                     std::string(Name(rule.severity)), std::string(rule.meaning),
                                     std::string(rule.fix), found->second});
  }
}

Opset RaisedFor(const std::vector<compress::Rule>& rules, Opset target, Diagnostics& diagnostics) {
  for (const compress::Rule& rule : rules) {
    const Opset since = compress::Since(rule.scheme);
    if (since <= target || since < compress::Since(rules)) continue;
    const std::string why =
        fmt::format("option 'compress' {} requires it", compress::Text(rule.scheme));
    diagnostics.Note("target raised to {}: {}", TargetName(since), why);
    diagnostics.Decide("target", std::string(TargetName(since)), why);
    return since;
  }
  return target;
}

void RequireCalibration(const std::filesystem::path& resume, bool compresses,
                        const std::string& calibrate) {
  if (resume.empty() || (compresses && !calibrate.empty())) return;
  throw Error("usage", "--resume requires --compress and --calibrate")
      .Help("other compression takes seconds, and keeps nothing");
}

std::shared_ptr<compress::StoredResults> StoredIn(const std::filesystem::path& resume) {
  return resume.empty() ? nullptr : std::make_shared<compress::StoredResults>(resume, kVersion);
}

}  // namespace mlc::driver
