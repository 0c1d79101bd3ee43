// tools/driver/build_history.h - the figures of earlier builds of the same variants, in a folder with
// one file for each build.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/driver/build.h"

namespace mlc::driver {

struct VariantFigures {
  std::string status;  // Name(BuildRecord::Status)
  // "size" (bytes of the package), "operations", "error" (the largest of all outputs), "accuracy"
  // (the lowest), "coverage" and "fp16" (shares of the work), and "p50 UNITS, CHIP" (milliseconds)
  // for each measurement that was merged into the manifest or made by the build. Unknown ones are
  // absent.
  std::map<std::string, double> figures;
};
// Reads the manifest beside the package, if there is one.
VariantFigures FiguresOf(const BuildRecord& record);

struct PastBuild {
  std::string time;                                // UTC
  std::map<std::string, VariantFigures> variants;  // by name
};
// The last builds, at most kMostBuilds, oldest first; none if there is no folder. Files that are not
// of a build are warnings.
inline constexpr size_t kMostBuilds = 100;
std::vector<PastBuild> ReadHistory(const std::filesystem::path& folder, Diagnostics& diagnostics);
// Adds a build, as FOLDER/TIME.json; creates the folder. Variants that were not built are left out,
// so that the figures before stay the last ones. Error "file-io".
void AddToHistory(const std::filesystem::path& folder,
                  const std::map<std::string, VariantFigures>& variants);

}  // namespace mlc::driver
