// tools/driver/import.h - from what a user names to a Program.
#pragma once

#include <filesystem>

#include "frontends/onnx/onnx.h"
#include "lib/ir/import_options.h"

namespace mlc {

// Any format, by content; Core ML's take no options. Throws Errors. `facts`, if any, are filled in: of an ONNX model
// all, of others further files.
Program Import(const std::filesystem::path& path, const ImportOptions& options,
               Diagnostics& diagnostics, OnnxFacts* facts = nullptr);

// Puts further files of a model, but for the one that the user named, into its facts, if any.
void AddParts(const std::filesystem::path& model, const std::vector<std::filesystem::path>& parts,
              OnnxFacts* facts);

// A program that is to be run. ONNX: as Import. Else `shapes` and `dims` choose among the sizes
// that the open dimensions of inputs have, in each function that takes them. Error "bad-input"
// where none does, "bad-name" for a name that nothing has, unless `may_lack` names (those of
// another program).
Program ImportToRun(const std::filesystem::path& path, const ImportOptions& options, bool may_lack,
                    Diagnostics& diagnostics);

}  // namespace mlc
