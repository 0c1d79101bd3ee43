#include "tools/driver/precompile.h"

#include <nlohmann/json.hpp>

#include "tools/driver/output_path.h"
#include "tools/mlc/command.h"
#include "tools/mlc/progress_line.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

struct PrecompileArguments {
  fs::path package, output;
  PrecompileOptions options;
};

int PrecompileRun(const PrecompileArguments& given, Session& session) {
  const fs::path& package = given.package;
  const fs::path usual = package.filename().replace_extension(".mlmodelc");
  const fs::path output = given.output.empty() ? usual : OutputPath(given.output, usual);
  bool cached = false;
  {
    ProgressLine line(session);
    PrecompileOptions options = given.options;
    options.progress = line.Showing();
    cached = Precompile(package, output, options, session.diagnostics);
  }
  if (session.json) {
    nlohmann::ordered_json json{{"bundle", fs::absolute(output).string()}};
    if (!given.options.cache.empty()) json["cached"] = cached;
    PrintDocument(json);
  } else {
    fmt::print("{}  ({}{})\n", output.string(), kExperimental, cached ? "; from the cache" : "");
  }
  return 0;
}

}  // namespace

Command PrecompileCommand() {
  auto given = std::make_shared<PrecompileArguments>();
  std::vector<Option> table = {
      {"PACKAGE", "", ".mlpackage to compile", Into(given->package), true},
      OutputOption(
          {"-o", "OUT.mlmodelc", "output (default: the package's name)", Into(given->output)}),
      {"--check", "", "compare with the output of Core ML's own compiler (requires a Mac)",
       [](const std::string&) {
         throw Error("no-coreml",
                     "--check compares with Core ML's own compiler, which this system does not "
                     "have")
             .Help("run it on a Mac");
       }}};
  Append(PrecompileTable(given->options), table);
  table.push_back(JsonOption());
  return {"precompile",
          "Compile a package to a .mlmodelc bundle without Core ML (experimental)",
          {"mlc precompile model.mlpackage",
           "mlc precompile model.mlpackage -o compiled/ --cache cache"},
          std::move(table),
          [given](Session& session) { return PrecompileRun(*given, session); },
          {},
          {"compile", "cache"}};
}

}  // namespace mlc::driver
