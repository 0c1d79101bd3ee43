// tools/driver/import.h - from what a user names to a Program.
#pragma once

#include <filesystem>

#include "lib/ir/import_options.h"
#include "lib/ir/source_facts.h"

namespace mlc {

// Any format, by content. Throws Errors; Error "usage" for an option that the format does not take. `facts`, if any,
// are filled in.
Program Import(const std::filesystem::path& path, const ImportOptions& options,
               Diagnostics& diagnostics, SourceFacts* facts = nullptr);

// A program that is to be run. ONNX: as Import. Else `shapes` and `dims` choose among the sizes
// that the open dimensions of inputs have, in each function that takes them. Error "bad-input"
// where none does, "bad-name" for a name that nothing has, unless `may_lack` names (those of
// another program).
Program ImportToRun(const std::filesystem::path& path, const ImportOptions& options, bool may_lack,
                    Diagnostics& diagnostics);

}  // namespace mlc
