#include "tools/driver/parity.h"

#include <sys/utsname.h>

#include <chrono>

#include "lib/coreml/package_layout.h"
#include "lib/ir/npy.h"
#include "lib/support/atomic_install.h"
#include "lib/support/input_registry.h"
#include "lib/support/milliseconds.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/version.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

std::string Machine() {
  utsname name;
  return uname(&name) == 0 ? fmt::format("{} {} {}", name.sysname, name.release, name.machine) : "";
}

// Loads a function of the package.
using Load = std::function<std::unique_ptr<runtime::LoadedModel>(const Function&)>;

// Runs all steps of one function on the inputs of the bundle.
std::vector<verify::StepResults> RunBundled(const fs::path& folder, const verify::Parity& parity,
                                            const Function& function, const Load& load) {
  std::vector<std::map<std::string, Tensor>> given;
  for (const auto* files : {&parity.inputs, &parity.outputs})
    for (const verify::ParityFile& file : *files) {
      if (file.function != function.name) continue;
      given.resize(std::max<size_t>(given.size(), static_cast<size_t>(file.step) + 1));
      if (files == &parity.inputs) given[file.step][file.name] = ReadNpy(folder / file.file);
    }
  const std::unique_ptr<runtime::LoadedModel> model = load(function);
  const std::unique_ptr<runtime::ModelState> state = model->NewState();
  std::vector<verify::StepResults> steps;
  for (const auto& inputs : given) {
    const std::map<std::string, Tensor> found =
        model->Predict(MakeInputs(function, inputs), state.get(), nullptr);
    verify::StepResults& step = steps.emplace_back();
    for (const Port& port : function.outputs)
      step.outputs.emplace_back(verify::UserName(port), found.at(port.name));
    if (!state) continue;
    const std::map<std::string, Tensor> states = state->Read();
    for (const Port& port : function.states)
      step.states.emplace_back(verify::UserName(port), states.at(port.name));
  }
  return steps;
}

// Returns the package's results for the outputs and states of `parity`, in their order.
std::vector<Tensor> RunAll(const fs::path& folder, const verify::Parity& parity,
                           const Program& program, const Load& load) {
  std::map<std::string, std::vector<verify::StepResults>> results;
  std::vector<Tensor> outputs;
  for (const verify::ParityFile& file : parity.outputs) {
    const Function& function = FindFunction(program, file.function);
    if (!results.contains(file.function))
      results[file.function] = RunBundled(folder, parity, function, load);
    const verify::StepResults& step = results[file.function][file.step];
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

verify::ParityResult RunParity(const fs::path& folder, const fs::path& written,
                               const ModelOptions& options,
                               runtime::BreakerOptions::Override breaker,
                               Diagnostics& diagnostics) {
  verify::Parity parity = verify::ReadParity(folder);
  fs::path package = folder / parity.package;
  InputRegistry::AddFolder(package);
  InputRegistry::CheckTarget(written);
  std::error_code ignored;
  if (fs::exists(written, ignored)) {
    Staging(written, Staging::kFile);
    fs::remove(written, ignored);  // from an earlier run
  }
  auto fail = [&](std::string_view id, std::string text) {
    return Error(id, std::move(text))
        .At({package.string(), ""})
        .Help("copy the whole folder again");
  };
  if (!fs::exists(package))
    throw fail("file-io", fmt::format("the parity bundle lacks \"{}\"", parity.package));
  if (coreml::PackageHash(package) != parity.package_hash)
    throw fail("check-failed", "the package was modified after the bundle was written");
  Model model(package, options, diagnostics);
  const Load load = [&](const Function& function) {
    return model.Load(function, {.breaker = std::make_shared<runtime::CircuitBreaker>(
                                     runtime::BreakerOptions{.override = breaker})});
  };
  auto start = std::chrono::steady_clock::now();
  std::vector<Tensor> outputs = RunAll(folder, parity, *model.program(), load);
  verify::ParityResult result;
  result.milliseconds = MillisecondsSince(start);
  result.units = Name(model.units());
  result.machine = Machine();
  result.version = kVersion;
  return WriteResult(folder, written, parity, std::move(result), outputs);
}

verify::ParityResult CheckResult(const fs::path& file, const fs::path& bundle,
                                 const fs::path& package) {
  verify::ParityResult result = verify::ReadResult(file, bundle);
  if (!package.empty() && coreml::PackageHash(package) != result.package_hash)
    throw Error("check-failed", "the result does not belong to package \"{}\"", package.string())
        .At({file.string(), ""})
        .Help("create a bundle of this package and run it, or pass the package of the result");
  return result;
}

}  // namespace mlc::driver
