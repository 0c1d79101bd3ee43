#include "tools/driver/build_test.h"

#include <algorithm>

#include "backends/coreml/manifest.h"
#include "lib/coreml/package_layout.h"
#include "lib/support/temporary_folder.h"
#include "tools/driver/build_checks.h"
#include "tools/driver/errors.h"
#include "tools/driver/inspect.h"
#include "tools/driver/parity.h"
#include "tools/driver/runtimes.h"
#include "tools/driver/verify.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

constexpr std::string_view kCopy =
    "build it, or copy the output folder of the machine that built it";

void RequirePackage(const VariantBuild& build, const fs::path& package, Diagnostics& diagnostics) {
  std::error_code error;
  if (!fs::exists(package, error))
    throw Error("file-io", "there is no package \"{}\"", package.string()).Help(std::string(kCopy));
  const fs::path manifest = coreml::ManifestPath(package);
  const std::optional<coreml::Stated> stated = coreml::StatedOf(package);
  if (!stated && fs::exists(manifest, error))
    throw Error("check-failed", "\"{}\" is not the package of its manifest", package.string())
        .Help(std::string(kCopy));
  if (!stated) {
    diagnostics.Note("the source of \"{}\" is unknown, because it has no manifest",
                     package.filename().string());
  } else if (stated->source_sha256 != build.recipe.sha256) {
    throw Error("check-failed", "\"{}\" was built from another source than the recipe's",
                package.string())
        .Expected(build.recipe.sha256)
        .Note("found: " + stated->source_sha256)
        .Help(std::string(kCopy));
  }
}

BuildRecord FactsOf(const fs::path& package, Diagnostics& diagnostics) {
  const InspectResult found = Inspect(package, {}, diagnostics);
  BuildRecord facts{.package = package,
                    .precision = ComputesInFp16(*found.program) ? "fp16" : "fp32",
                    .target = std::string(TargetName(found.needed)),
                    .content_hash = coreml::PackageHash(package),
                    .fp16_share = found.fp16_share,
                    .weight_bytes = static_cast<int64_t>(found.weight_bytes),
                    .package_bytes = FolderBytes(package)};
  for (const auto& [name, count] : found.operators) facts.operations += count;
  if (const auto stated = coreml::StatedOf(package)) facts.precision = stated->precision;
  return facts;
}

}  // namespace

BuildRecord TestVariant(const VariantBuild& build, const fs::path& out,
                        std::optional<runtime::Units> units) {
  const Recipe::Variant& variant = build.variant;
  Diagnostics diagnostics;
  BuildRecord record;
  const auto add = [&](const char* name, const std::vector<BuildCheck>& checks) {
    record.checks.insert(record.checks.end(), checks.begin(), checks.end());
    record.made.emplace_back(name);
  };
  try {
    const fs::path package = fs::absolute(out / (variant.name + ".mlpackage")).lexically_normal();
    RequirePackage(build, package, diagnostics);
    record = FactsOf(package, diagnostics);
    const CheckFiles files = ReadCheckFiles(build.recipe);
    add("checks", CheckPackage(build.recipe, variant, files, package, build.options.options, record,
                               units.value_or(DefaultUnits())));
    if (variant.parity_bundle) {
      const TemporaryFolder results;
      ModelOptions options;
      options.units = units;
      add("parity",
          ParityChecks(RunParity(out / (variant.name + ".parity"), results.path / "result.json",
                                 options, {}, diagnostics)
                           .outputs,
                       "parity bundle", "the inputs and references of the parity bundle"));
    }
    if (variant.latency_increase_pct) {
      const BuildRecord latency = CheckLatency(variant, files, package, record, build.latency);
      add("latency", latency.checks);
      record.latency_ms = latency.latency_ms;
      record.machine = latency.machine;
    }
    record.status = std::ranges::all_of(record.checks, &BuildCheck::ok)
                        ? BuildRecord::Status::kPassed
                        : BuildRecord::Status::kFailed;
  } catch (...) {
    record = {.errors = CurrentErrors()};
  }
  record.recipe = build.recipe.file.string();
  record.name = variant.name;
  record.options = JoinedOptions(variant.options);
  record.warnings = diagnostics.warnings();
  record.notes = diagnostics.notes();
  return record;
}

}  // namespace mlc::driver
