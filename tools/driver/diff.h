// tools/driver/diff.h - what two models differ by.
#pragma once

#include <filesystem>
#include <memory>

#include "lib/ir/program.h"
#include "lib/support/error.h"
#include "lib/verify/diff.h"

namespace mlc {

struct DiffResult {
  std::shared_ptr<const Program> a, b;  // which `found` points into
  ProgramDiff found;
};

// Of any formats. Throws what Import throws.
DiffResult Diff(const std::filesystem::path& a, const std::filesystem::path& b,
                Diagnostics& diagnostics);

}  // namespace mlc
