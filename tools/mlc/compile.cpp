#include <nlohmann/json.hpp>

#include "lib/support/atomic_install.h"
#include "lib/support/json_text.h"
#include "tools/driver/frontends.h"
#include "tools/driver/output_path.h"
#include "tools/mlc/command.h"
#include "tools/mlc/interface_report.h"
#include "tools/mlc/pass_output.h"
#include "tools/mlc/precision_report.h"

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace mlc::driver {
namespace {

fs::path DefaultOutput(const fs::path& model) {
  const fs::path whole = fs::absolute(model).lexically_normal();
  fs::path name = whole.has_filename() ? whole.filename() : whole.parent_path().filename();
  // For folders other than packages, the part after a dot belongs to the name: Llama-3.2-1B.
  std::error_code ignored;
  const fs::path ending = name.extension();
  if (ending != ".mlpackage" && ending != ".mlmodelc" && fs::is_directory(model, ignored))
    return name += ".mlpackage";
  return name.replace_extension(".mlpackage");
}

// Figures that depend on the machine and on the run, in seconds and bytes.
Json Stats(const CompileResult& result) {
  Json phases = Json::object(), passes = Json::array();
  for (const auto& [name, seconds] : result.phases) phases[name] = seconds;
  for (const passes::PassRun& run : result.passes)
    passes.push_back({{"name", run.name}, {"changed", run.changed}, {"seconds", run.seconds}});
  return {{"phases", phases}, {"passes", passes}, {"peak_memory_bytes", result.peak_memory_bytes}};
}

struct CompileArguments {
  fs::path model, output;
  CompileOptions options;
};

int RunCompile(const CompileArguments& given, Session& session) {
  const CompileOptions& options = given.options;
  if (!options.manifest)
    Refuse({"--sha256"}, "--no-manifest writes no manifest to record it in", session);
  fs::path output = given.output.empty() ? DefaultOutput(given.model) : given.output;
  // Leaked on purpose: the process is about to exit, and freeing the program would only take time.
  static const CompileResult& result =
      *new CompileResult(Compile(given.model, output, options, session.diagnostics));
  if (!options.stats.empty()) WriteFile(options.stats, JsonText(Stats(result), 2) + "\n");
  if (session.json) {
    Json json{{"package", fs::absolute(result.package).string()},
              {"target", TargetName(result.target)},
              {"precision", result.precision},
              {"operations", result.operations},
              {"operators", result.operators},
              {"weight_bytes", result.weight_bytes},
              {"content_hash", result.content_hash}};
    json.update(InterfaceJson(*result.program->main()));
    if (!result.manifest.empty()) json["manifest"] = fs::absolute(result.manifest).string();
    if (!result.tokenizer.empty()) json["tokenizer"] = fs::absolute(result.tokenizer).string();
    Json warnings = Json::array(), decisions = warnings;
    for (const Error& warning : session.diagnostics.warnings())
      warnings.push_back(warning.Render("warning"));
    for (const std::string& note : session.diagnostics.notes()) warnings.push_back(note);
    for (const Decision& decision : session.diagnostics.decisions()) {
      Json& entry = decisions.emplace_back(Json::object());
      entry = {{"kind", decision.kind}, {"subject", decision.subject}, {"reason", decision.reason}};
      if (!decision.id.empty()) entry["id"] = decision.id;
    }
    json["notes"] = warnings;
    json["decisions"] = decisions;
    json.update(MeasurementJson(result));
    json.update(Stats(result));
    PrintDocument(json);
    return 0;
  }
  double seconds = 0;
  for (const auto& [name, time] : result.phases) seconds += time;
  int64_t wide = 0;
  for (const Decision& decision : session.diagnostics.decisions()) wide += decision.kind == "fp32";
  const Function& function = *result.program->main();
  std::string open = OpenSizesText(function);
  fmt::print("{}  {}, {}, {} operations, {:.2f} MB of weights{}, {:.2f} s\n",
             result.package.string(), TargetName(result.target), PrecisionText(result),
             result.operations, static_cast<double>(result.weight_bytes) / 1e6,
             open.empty() ? "" : ", " + open, seconds);
  constexpr size_t kPorts = 12;
  fmt::print("{}", InterfaceText(function, kPorts));
  if (output.extension() == ".mlmodelc") fmt::print("  {}\n", kExperimental);
  fmt::print("{}", MeasurementText(result));
  if (wide > 0)
    fmt::print(
        "  {} in fp32{}\n",
        wide == 1 ? "1 operation stays" : fmt::format("{} operations stay", wide),
        result.manifest.empty() ? "" : "; reasons in " + result.manifest.filename().string());
  return 0;
}

}  // namespace

Command CompileCommand() {
  auto given = std::make_shared<CompileArguments>();
  ShowPasses(given->options.passes);
  static const std::string sources =
      FormatsText([](const Frontend& frontend) { return frontend.IsSource(); });
  std::vector<Option> table = {
      {"MODEL", "", sources, Into(given->model), true},
      {"-o", "OUT.mlpackage|OUT.mlmodelc",
       "output (default: the model's name with .mlpackage); .mlmodelc is experimental",
       [given = given.get()](const std::string& text) { given->output = WithoutSlash(text); }}};
  Append(CompileTable(given->options), table);
  table.push_back(JsonOption());
  return {"compile", "Compile a model into a Core ML package",
          "mlc compile model.onnx -o model.mlpackage --dim batch=1", std::move(table),
          [given](Session& session) { return RunCompile(*given, session); }};
}

}  // namespace mlc::driver
