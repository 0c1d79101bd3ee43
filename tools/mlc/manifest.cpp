#include <nlohmann/json.hpp>

#include "tools/driver/manifest_results.h"
#include "tools/mlc/command.h"
#include "tools/mlc/terminal.h"

namespace fs = std::filesystem;

namespace mlc::driver {

Command ManifestCommand() {
  struct Arguments {
    fs::path package;
    std::vector<std::string> results;
  };
  auto given = std::make_shared<Arguments>();
  return {
      "manifest",
      "Merge device measurements into the manifest of a package",
      {"mlc manifest model.mlpackage --merge runs.jsonl",
       "mlc manifest model.mlpackage --merge phone.jsonl --merge mac.jsonl"},
      {{"PACKAGE", "", "package with its manifest beside it", Into(given->package), true},
       {"--merge", "RESULT",
        "measurements from `mlc run PACKAGE --history FILE`; only the newest for each "
        "machine, function and --units is kept",
        Into(given->results), true, true},
       JsonOption()},
      [given](Session& session) {
        const MergedResults merged = MergeResults(
            given->package, {given->results.begin(), given->results.end()}, session.diagnostics);
        if (session.json)
          PrintDocument({{"manifest", fs::absolute(merged.manifest).string()},
                         {"added", merged.added},
                         {"replaced", merged.replaced},
                         {"older", merged.older},
                         {"of_others", merged.skipped},
                         {"failed", merged.failed}});
        else
          fmt::print("{}: {} added{}{}{}{}\n", merged.manifest.string(),
                     Counted(merged.added, "result"),
                     merged.replaced ? fmt::format(", {} replaced", merged.replaced) : "",
                     merged.skipped ? fmt::format(", {} of other packages", merged.skipped) : "",
                     merged.older ? fmt::format(", {} older", merged.older) : "",
                     merged.failed ? fmt::format(", {} of failed runs", merged.failed) : "");
        return 0;
      },
      {},
      {"run", "compile"}};
}

}  // namespace mlc::driver
