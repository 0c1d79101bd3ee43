// tools/driver/diff.h - finds the differences between two models.
#pragma once

#include <filesystem>
#include <memory>

#include "lib/ir/program.h"
#include "lib/support/error.h"
#include "lib/verify/program_diff.h"

namespace mlc::driver {

struct DiffResult {
  std::shared_ptr<const Program> a, b;  // referenced by `found`
  verify::ProgramDiff found;
};

// Compares models of any format. Throws the errors of Import.
DiffResult Diff(const std::filesystem::path& a, const std::filesystem::path& b,
                Diagnostics& diagnostics);

}  // namespace mlc::driver
