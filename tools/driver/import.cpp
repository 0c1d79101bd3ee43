#include "tools/driver/import.h"

#include "tools/driver/adapters.h"
#include "tools/driver/compression.h"
#include "tools/driver/frontends.h"
#include "tools/driver/options.h"

namespace mlc::driver {

namespace {

void RefuseOptions(ImportOptions options, const Frontend& frontend) {
  for (const Option& option : ImportTable(options)) {
    if (frontend.Takes(option.name) || !option.field.get()) continue;
    const std::string takers =
        FormatsText([&](const Frontend& row) { return row.Takes(option.name); });
    Error error("usage", "{} applies to {}, not to {}", option.name, takers, frontend.what);
    if (frontend.Takes("--context"))
      error.Help(
          "--context N sets the number of tokens of a language model, --dim tokens=N that of an "
          "encoder");
    throw error;
  }
}

}  // namespace

Program ImportUncompressed(const std::filesystem::path& path, const ImportOptions& options,
                           Diagnostics& diagnostics, SourceFacts* facts) {
  const Frontend& frontend = FrontendOf(path);
  RefuseOptions(options, frontend);
  Program program = ImportWithAdapters(frontend, path, options, diagnostics, facts);
  if (frontend.IsSource()) program.interface.states_sources = true;
  return program;
}

Program Import(const std::filesystem::path& path, const ImportOptions& options,
               Diagnostics& diagnostics, SourceFacts* facts) {
  Program program = ImportUncompressed(path, options, diagnostics, facts);
  CompressProgram(program, options, diagnostics);
  return program;
}

}  // namespace mlc::driver
