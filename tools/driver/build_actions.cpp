#include "tools/driver/build_actions.h"

#include <algorithm>

#include "lib/ir/type.h"
#include "lib/support/build_id.h"
#include "lib/verify/compare_functions.h"
#include "tools/driver/build_checks.h"
#include "tools/driver/errors.h"
#include "tools/driver/precompile.h"
#include "tools/driver/verify.h"
#include "tools/driver/version.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

std::string PackageName(const VariantBuild& build) { return build.variant.name + ".mlpackage"; }

void AddSource(const VariantBuild& build, BuildFolder& folder, cache::CacheKey& key) {
  key.Add("options", JoinedOptions(build.variant.options));
  for (const SourceFile& file : build.inputs.source)
    key.AddFile("source " + file.name, file.path, folder.digests().Of(file.path));
  for (const auto& [role, path] : build.options.files)
    key.AddFile(role, path, folder.digests().Of(path));
}

void AddPackage(const BuildStep& before, cache::CacheKey& key) {
  for (const cache::ActionRecord::File& file : before.files)
    key.Add("package " + file.path, file.sha256);
}

BuildRecord MakePackage(const VariantBuild& build, const BuildStep&, const fs::path& into,
                        Diagnostics& diagnostics) {
  const fs::path package = into / PackageName(build);
  const CompileResult compiled = Compile(build.recipe.folder / build.recipe.source, package,
                                         build.options.options, diagnostics, &build.inputs.source);
  return {.precision = compiled.precision,
          .target = std::string(TargetName(compiled.target)),
          .content_hash = compiled.content_hash,
          .fp16_share = compiled.fp16_share,
          .operations = compiled.operations,
          .weight_bytes = static_cast<int64_t>(compiled.weight_bytes),
          .package_bytes = FolderBytes(package)};
}

void ChecksDependOn(const VariantBuild& build, const BuildStep& before, BuildFolder& folder,
                    cache::CacheKey& key) {
  AddPackage(before, key);
  const Recipe& recipe = build.recipe;
  key.Add("budget", build.variant.budget);
  for (const auto& [what, most] : build.variant.limits)
    key.Add("limit " + what, fmt::format("{}", most));
  if (recipe.accuracy)
    key.Add("accuracy", fmt::format("{} {} {}", recipe.accuracy->output, recipe.accuracy->expected,
                                    recipe.accuracy->tolerance));
  for (const auto& [role, path] : build.inputs.checks)
    key.AddFile(role, path, folder.digests().Of(path));
  // The floor of the fp16 budget is that of the source.
  if (build.variant.budget.empty()) AddSource(build, folder, key);
}

BuildRecord MakeChecks(const VariantBuild& build, const BuildStep& before, const fs::path&,
                       Diagnostics&) {
  return {.checks = CheckPackage(build.recipe, build.variant, ReadCheckFiles(build.recipe),
                                 before.package, build.options.options, before.record,
                                 runtime::Units::kReference)};
}

void BundleDependsOn(const VariantBuild& build, const BuildStep& before, BuildFolder&,
                     cache::CacheKey& key) {
  AddPackage(before, key);
  key.Add("compiler version", build.options.options.versions.compiler);
  key.Add("mil version", build.options.options.versions.mil);
}

BuildRecord MakeCompiledBundle(const VariantBuild& build, const BuildStep& before,
                               const fs::path& into, Diagnostics& diagnostics) {
  MakeBundle(before.package, into / (build.variant.name + ".mlmodelc"), PackageName(build), false,
             {build.options.options.versions}, diagnostics);
  return {};
}

void ParityDependsOn(const VariantBuild& build, const BuildStep& before, BuildFolder& folder,
                     cache::CacheKey& key) {
  AddPackage(before, key);
  AddSource(build, folder, key);
}

BuildRecord MakeParityBundle(const VariantBuild& build, const BuildStep& before,
                             const fs::path& into, Diagnostics& diagnostics) {
  VerifyOptions options{.import = build.options.options.import};
  options.bundle = into / (build.variant.name + ".parity");
  const VerifyResult result =
      Verify(build.recipe.folder / build.recipe.source, before.package, options, diagnostics);
  return {.checks = ParityChecks(result.outputs, result.budgets.name,
                                 "generated inputs, against the source")};
}

void LatencyDependsOn(const VariantBuild& build, const BuildStep& before, BuildFolder& folder,
                      cache::CacheKey& key) {
  AddPackage(before, key);
  LatencyMeter& meter = build.latency;
  key.Add("machine", Describe(meter.machine()));
  key.Add("system", meter.system());
  key.Add("limit latency_increase_pct",
          fmt::format("{}", build.variant.latency_increase_pct.value_or(0)));
  for (const auto& [role, path] : build.inputs.checks)
    if (role.starts_with("input ")) key.AddFile(role, path, folder.digests().Of(path));
  std::string baseline = "none";
  if (meter.records())
    baseline = "to be recorded";
  else if (const auto stored = meter.Read(build.variant.name))
    baseline = fmt::format("{} ms", stored->latency.median_ms);
  key.Add("baseline", baseline);
}

BuildRecord MeasureLatency(const VariantBuild& build, const BuildStep& before, const fs::path&,
                           Diagnostics&) {
  return CheckLatency(build.variant, ReadCheckFiles(build.recipe), before.package, before.record,
                      build.latency);
}

}  // namespace

const std::vector<BuildAction>& BuildActions() {
  static const std::vector<BuildAction> actions{
      // name, wanted, depend, make, of this machine
      {"package", [](const VariantBuild&) { return true; },
       [](const VariantBuild& build, const BuildStep&, BuildFolder& folder, cache::CacheKey& key) {
         AddSource(build, folder, key);
       },
       MakePackage},
      {"checks", [](const VariantBuild&) { return true; }, ChecksDependOn, MakeChecks},
      {"bundle", [](const VariantBuild& build) { return build.variant.bundle; }, BundleDependsOn,
       MakeCompiledBundle},
      {"parity", [](const VariantBuild& build) { return build.variant.parity_bundle; },
       ParityDependsOn, MakeParityBundle},
      {"latency",
       [](const VariantBuild& build) { return build.variant.latency_increase_pct.has_value(); },
       LatencyDependsOn, MeasureLatency, true},
  };
  return actions;
}

cache::CacheKey KeyOf(const BuildAction& action, const VariantBuild& build, const BuildStep& before,
                      BuildFolder& folder) {
  cache::CacheKey key;
  key.Add("model", PackageName(build));
  key.Add("maker", fmt::format("mlc build: {}", action.name));
  key.Add("mlc", kVersion);
  key.Add("build", BuildName());
  action.depend(build, before, folder, key);
  return key;
}

std::vector<BuildCheck> ParityChecks(const std::vector<verify::Compared>& outputs,
                                     const std::string& budget, const std::string& note) {
  const bool ok = Judge(outputs) == verify::Verdict::kPassed;
  std::vector<BuildCheck> checks;
  for (const auto& [worst, steps] : verify::WorstSteps(outputs))
    checks.push_back({.kind = BuildCheck::Kind::kReference,
                      .what = worst->name,
                      .ok = ok,
                      .max_error = worst->comparison.max_error,
                      .rmse = worst->comparison.rmse,
                      .figures = Describe(worst->comparison),
                      .budget = budget,
                      .note = ok ? note : WithFlags(verify::VerdictText(outputs))});
  return checks;
}

int64_t FolderBytes(const fs::path& folder) {
  int64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
  return bytes;
}

std::string JoinedOptions(const std::vector<std::string>& options) {
  std::string text;
  for (const std::string& option : options) {
    const bool plain = !option.empty() && option.find_first_not_of(
                                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                                              "UVWXYZ0123456789-_=.,:/+@%") == option.npos;
    text += text.empty() ? "" : " ";
    if (plain) {
      text += option;
      continue;
    }
    text += '\'';
    for (char c : option) text += c == '\'' ? "'\\''" : std::string(1, c);
    text += '\'';
  }
  return text;
}

}  // namespace mlc::driver
