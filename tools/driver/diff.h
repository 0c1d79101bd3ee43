// tools/driver/diff.h - finds the differences between two models.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "lib/ir/program.h"
#include "lib/support/error.h"
#include "lib/support/progress.h"
#include "lib/verify/program_diff.h"

namespace mlc::driver {

struct DiffResult {
  std::shared_ptr<const Program> a, b;  // referenced by `found`
  verify::ProgramDiff found;
};

// "equal", "close", "changed".
std::string_view StateText(verify::WeightPair::State state);
// Returns a name for any operation: those in MIL text may be unnamed, and those without a result
// are named after the state that they write.
std::string NameInDiff(const Operation& op);
// Returns the name of the operation's function, or "" if the program has only one.
std::string FunctionInDiff(const Operation& op);

// Compares models of any format. Throws the errors of Import.
DiffResult Diff(const std::filesystem::path& a, const std::filesystem::path& b,
                Diagnostics& diagnostics, const Progress& progress = {});

}  // namespace mlc::driver
