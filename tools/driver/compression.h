// tools/driver/compression.h - the rules of compression, where its results are kept, and the compressed weights of
// programs that are not compiled.
#pragma once

#include "lib/compress/compression.h"
#include "lib/ir/import_options.h"
#include "lib/ir/program.h"
#include "lib/support/error.h"

namespace mlc::driver {

// The rules of the options 'compress' and 'requant'; none if neither is given. Error "usage" if
// both are.
std::vector<compress::Rule> CompressionRules(const ImportOptions& options);

// Runs the passes that precede compression in a compilation, and compression: the program has the
// weights of a package that is compiled with the same options, but nothing is narrowed.
void CompressProgram(Program& program, const ImportOptions& options, Diagnostics& diagnostics);

// Adds what compute units of the default chip do with the forms of the weights of the program.
void NoteUnits(const Program& program, compress::Compression& compression);

// Returns the target for rules, at least `target`; a note and a decision state why it is raised.
Opset RaisedFor(const std::vector<compress::Rule>& rules, Opset target, Diagnostics& diagnostics);

// Throws Error "usage" if a folder of results is given, but nothing is compressed for inputs.
void RequireCalibration(const std::filesystem::path& resume, bool compresses,
                        const std::string& calibrate);
// The results in a folder, which is created; null if none is given.
std::shared_ptr<compress::StoredResults> StoredIn(const std::filesystem::path& resume);

}  // namespace mlc::driver
