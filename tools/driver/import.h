// tools/driver/import.h - imports a model file or folder as a Program.
#pragma once

#include <filesystem>

#include "lib/ir/import_options.h"
#include "lib/ir/source_facts.h"

namespace mlc::driver {

// Imports a model of any format, detected by content. Throws Errors; Error "usage" for an option
// that the format does not support. Fills in `facts` unless null. With rules of compression, the
// program is the one that a compilation compresses, with compressed weights (compression.h).
Program Import(const std::filesystem::path& path, const ImportOptions& options,
               Diagnostics& diagnostics, SourceFacts* facts = nullptr);

// The same without compression, which a compilation does after other passes.
Program ImportUncompressed(const std::filesystem::path& path, const ImportOptions& options,
                           Diagnostics& diagnostics, SourceFacts* facts = nullptr);

// Imports a program in order to run it. For ONNX this is Import. For other formats, `shapes` and
// `dims` choose among the sizes of the inputs' open dimensions, in each function that has them.
// Error "bad-input" if no size fits; "bad-name" for an unknown name, unless `may_lack` permits
// names (of another program).
Program ImportToRun(const std::filesystem::path& path, const ImportOptions& options, bool may_lack,
                    Diagnostics& diagnostics);

}  // namespace mlc::driver
