// tools/mlc/parity_report.h - prints the results of `run --bundle` and `verify --result`.
#pragma once

#include <filesystem>
#include <string>

#include "lib/verify/parity_bundle.h"
#include "tools/mlc/command.h"

namespace mlc::driver {

// Returns a JSON object.
std::string ParityJson(const verify::ParityResult& result);
// Prints the result, writes the reports, and returns the exit code. `written`: the result file, if this command wrote
// it.
int ShowParity(const verify::ParityResult& result, const std::string& bundle,
               const Session& session, const std::vector<std::filesystem::path>& reports,
               const std::filesystem::path& written = {});

}  // namespace mlc::driver
