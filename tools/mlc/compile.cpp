#include <nlohmann/json.hpp>

#include "lib/support/install.h"
#include "tools/mlc/compile_model.h"
#include "tools/mlc/interface.h"

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace mlc {
namespace {

fs::path DefaultOutput(const fs::path& model) {
  fs::path name = model.filename().empty() ? model.parent_path().filename() : model.filename();
  return name.replace_extension(".mlpackage");
}

// What depends on the machine and the day, in seconds and bytes.
Json Stats(const CompileResult& result) {
  Json phases = Json::object(), passes = Json::array();
  for (const auto& [name, seconds] : result.phases) phases[name] = seconds;
  for (const PassRun& run : result.passes)
    passes.push_back({{"name", run.name}, {"changed", run.changed}, {"seconds", run.seconds}});
  return {{"phases", phases}, {"passes", passes}, {"peak_memory_bytes", result.peak_memory_bytes}};
}

void WriteStats(const fs::path& path, const CompileResult& result) {
  WriteFile(path, Stats(result).dump(2) + "\n");
}

int Compile(const Invocation& invocation) {
  fs::path model = invocation.get("MODEL");
  fs::path output = invocation.has("-o") ? fs::path(invocation.get("-o")) : DefaultOutput(model);
  if (output.extension() != ".mlpackage" && output.extension() != ".mlmodelc")
    throw Error("usage",
                fmt::format("-o: \"{}\" does not end in .mlpackage or .mlmodelc", output.string()));
  bool bundle = output.extension() == ".mlmodelc";
  for (std::string_view flag : {"--compiler-version", "--mil-version"}) {
    BundleVersion(invocation, flag);
    if (invocation.has(flag) && !bundle)
      throw Error("usage", fmt::format("{} is for a compiled bundle: -o NAME.mlmodelc", flag));
  }
  CompileResult result = CompileModel(model, output, invocation);
  if (invocation.has("--stats")) WriteStats(invocation.get("--stats"), result);
  if (invocation.json()) {
    Json json{{"package", fs::absolute(result.package).string()},
              {"target", TargetName(result.target)},
              {"precision", result.precision},
              {"operations", result.operations},
              {"operators", result.operators},
              {"weight_bytes", result.weight_bytes},
              {"content_hash", result.content_hash}};
    json.update(InterfaceJson(*result.program->main()));
    if (!result.manifest.empty()) json["manifest"] = fs::absolute(result.manifest).string();
    Json warnings = Json::array(), decisions = warnings;
    for (const Error& warning : invocation.diagnostics.warnings())
      warnings.push_back(warning.Render("warning"));
    for (const std::string& note : invocation.diagnostics.notes()) warnings.push_back(note);
    for (const Decision& decision : invocation.diagnostics.decisions())
      decisions.push_back(
          {{"kind", decision.kind}, {"subject", decision.subject}, {"reason", decision.reason}});
    json["notes"] = warnings;
    json["decisions"] = decisions;
    json.update(Stats(result));
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  double seconds = 0;
  for (const auto& [name, time] : result.phases) seconds += time;
  int64_t wide = 0;
  for (const Decision& decision : invocation.diagnostics.decisions())
    wide += decision.kind == "fp32";
  const Function& function = *result.program->main();
  std::string open = OpenSizesText(function);
  fmt::print("{}  {}, {}, {} operations, {:.2f} MB of weights{}, {:.2f} s\n",
             result.package.string(), TargetName(result.target), result.precision,
             result.operations, static_cast<double>(result.weight_bytes) / 1e6,
             open.empty() ? "" : ", " + open, seconds);
  constexpr size_t kPorts = 12;
  fmt::print("{}", InterfaceText(function, kPorts));
  if (bundle) fmt::print("  {}\n", kExperimental);
  if (wide > 0)
    fmt::print("  {} operations stay fp32{}\n", wide,
               result.manifest.empty() ? "" : ", the manifest says why");
  return 0;
}

}  // namespace

Command CompileCommand() {
  std::vector<Flag> flags = {{"MODEL", "", "an ONNX model", true},
                             {"-o", "OUT.mlpackage|OUT.mlmodelc",
                              "where to write (default: the model's name); a .mlmodelc is "
                              "experimental"}};
  flags.insert(flags.end(), CompileFlags().begin(), CompileFlags().end());
  flags.push_back({"--json", "", "one JSON document on stdout"});
  return {"compile", "Compile a model into a Core ML package",
          "mlc compile model.onnx -o model.mlpackage --dim batch=1", flags, Compile};
}

}  // namespace mlc
