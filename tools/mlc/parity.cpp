#include "tools/mlc/parity.h"

#include <sys/utsname.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "lib/coreml/package.h"
#include "lib/engine/engine.h"
#include "lib/ir/npy.h"
#include "lib/support/install.h"
#include "lib/support/sources.h"
#include "lib/verify/parity.h"
#include "tools/mlc/model.h"
#include "tools/mlc/version.h"

namespace fs = std::filesystem;

namespace mlc {

namespace {

using Json = nlohmann::ordered_json;

std::string Machine() {
  utsname name;
  return uname(&name) == 0 ? fmt::format("{} {} {}", name.sysname, name.release, name.machine) : "";
}

// `written`: the result file, where it was written just now.
int Show(const ParityResult& result, const Invocation& invocation, const fs::path& written = {}) {
  bool ok = Judge(result.outputs) == Verdict::kPassed;
  if (invocation.json())
    fmt::print("{}\n", Json{{"ok", ok},
                            {"verdict", VerdictText(result.outputs)},
                            {"figure", kErrorFigure},
                            {"package_hash", result.package_hash},
                            {"units", result.units},
                            {"machine", result.machine},
                            {"mlc", result.version},
                            {"predict_ms", result.milliseconds},
                            {"compared_again", result.compared_again},
                            {"outputs", Json::parse(ReportJson(result.outputs))}}
                           .dump(2, ' ', false, Json::error_handler_t::replace));
  else
    fmt::print("on {} by mlc {}, units {}, {:.2f} ms{}\nerror: {}\n{}{}{}\n", result.machine,
               result.version, result.units, result.milliseconds,
               result.compared_again ? ", compared again here" : "", kErrorFigure,
               ReportText(result.outputs),
               written.empty()
                   ? ""
                   : fmt::format("{}: `mlc verify --result` checks it where the bundle was made\n",
                                 written.string()),
               VerdictText(result.outputs));
  return ok ? 0 : ExitCode("check-failed");
}

// The steps of one function with the inputs of the bundle.
std::vector<StepResults> RunBundled(const fs::path& folder, const Parity& parity,
                                    const Function& function, const EngineOptions& options) {
  std::vector<std::map<std::string, Tensor>> given;
  for (const auto* files : {&parity.inputs, &parity.outputs})
    for (const ParityFile& file : *files) {
      if (file.function != function.name) continue;
      given.resize(std::max<size_t>(given.size(), static_cast<size_t>(file.step) + 1));
      if (files == &parity.inputs) given[file.step][file.name] = ReadNpy(folder / file.file);
    }
  std::vector<StepInputs> steps;
  for (const auto& inputs : given) steps.push_back(MakeInputs(function, inputs));
  return RunSteps(function, steps, options);
}

// What the package computes of the outputs and states of `parity`, in their order.
std::vector<Tensor> RunAll(const fs::path& folder, const Parity& parity, const Program& program,
                           const EngineOptions& options) {
  std::map<std::string, std::vector<StepResults>> results;
  std::vector<Tensor> outputs;
  for (const ParityFile& file : parity.outputs) {
    const Function& function = FindFunction(program, file.function);
    if (!results.contains(file.function))
      results[file.function] = RunBundled(folder, parity, function, options);
    const StepResults& step = results[file.function][file.step];
    const std::vector<Port>& ports = file.state ? function.states : function.outputs;
    Tensor found;
    for (size_t i = 0; i < ports.size(); ++i)
      if (ports[i].source_name == file.name || ports[i].name == file.name)
        found = ToSourceType((file.state ? step.states : step.outputs)[i].second, ports[i]);
    outputs.push_back(std::move(found));
  }
  return outputs;
}

}  // namespace

int RunParity(const Invocation& invocation) {
  for (std::string_view flag : {"MODEL", "--input", "--output-dir"})
    if (invocation.has(flag))
      throw Error("usage", fmt::format("--bundle brings model and inputs; {} is too much", flag));
  fs::path folder = invocation.get("--bundle");
  Parity parity = ReadParity(folder);
  fs::path written = invocation.get("--result", (folder / kParityResult).string());
  fs::path package = folder / parity.package;
  Sources::AddFolder(package);
  Sources::CheckTarget(written);
  std::error_code ignored;
  if (fs::exists(written, ignored)) {
    Staging(written, Staging::kFile);
    fs::remove(written, ignored);  // of an earlier run
  }
  auto fail = [&](std::string_view id, std::string text) {
    return Error(id, std::move(text))
        .At({package.string(), ""})
        .Help("copy the whole folder again");
  };
  if (!fs::exists(package))
    throw fail("file-io", fmt::format("the parity bundle lacks \"{}\"", parity.package));
  if (PackageHash(package) != parity.package_hash)
    throw fail("check-failed", "the package was changed since the bundle was made");
  RequireBundle(invocation, package, DetectFormat(package));
  Program program = ImportModel(package, {}, invocation.diagnostics);
  EngineOptions options;
  options.arithmetic = EngineOptions::Arithmetic::kFaithful;
  auto start = std::chrono::steady_clock::now();
  std::vector<Tensor> outputs = RunAll(folder, parity, program, options);
  ParityResult result;
  result.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  result.units = "reference";
  result.machine = Machine();
  result.version = kVersion;
  return Show(WriteResult(folder, written, parity, std::move(result), outputs), invocation,
              written);
}

int CheckResult(const Invocation& invocation) {
  ParityResult result = ReadResult(invocation.get("--result"), invocation.get("--bundle"));
  // One argument is taken as SOURCE.
  for (std::string_view name : {"PACKAGE", "SOURCE"}) {
    if (!invocation.has(name)) continue;
    if (PackageHash(invocation.get(name)) != result.package_hash)
      throw Error("check-failed",
                  fmt::format("the result is of another package than \"{}\"", invocation.get(name)))
          .At({invocation.get("--result"), ""})
          .Help("make a bundle of this package and run it, or name the package of the result");
    break;
  }
  return Show(result, invocation);
}

}  // namespace mlc
