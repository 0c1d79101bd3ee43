#include "tools/driver/parity.h"

#include <sys/utsname.h>

#include <chrono>

#include "lib/coreml/package.h"
#include "lib/engine/engine.h"
#include "lib/ir/npy.h"
#include "lib/support/install.h"
#include "lib/support/sources.h"
#include "tools/driver/import.h"
#include "tools/driver/run.h"
#include "tools/driver/tensors.h"
#include "tools/driver/version.h"

namespace fs = std::filesystem;

namespace mlc {

namespace {

std::string Machine() {
  utsname name;
  return uname(&name) == 0 ? fmt::format("{} {} {}", name.sysname, name.release, name.machine) : "";
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

ParityResult RunParity(const fs::path& folder, const fs::path& written, bool bundles_only,
                       Diagnostics& diagnostics) {
  Parity parity = ReadParity(folder);
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
  if (bundles_only) RequireBundle(package);
  Program program = Import(package, {}, diagnostics);
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
  return WriteResult(folder, written, parity, std::move(result), outputs);
}

ParityResult CheckResult(const fs::path& file, const fs::path& bundle, const fs::path& package) {
  ParityResult result = ReadResult(file, bundle);
  if (!package.empty() && PackageHash(package) != result.package_hash)
    throw Error("check-failed",
                fmt::format("the result is of another package than \"{}\"", package.string()))
        .At({file.string(), ""})
        .Help("make a bundle of this package and run it, or name the package of the result");
  return result;
}

}  // namespace mlc
