#include "tools/mlc/parity.h"

#include <sys/utsname.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/coreml/package.h"
#include "lib/engine/engine.h"
#include "lib/ir/npy.h"
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
  Json list = Json::array();
  std::string text;
  bool tells = false;
  for (const ParityResult::Output& output : result.outputs) {
    const Comparison& c = output.comparison;
    tells = tells || c.discriminating;
    list.push_back({{"name", output.name},
                    {"max_error", std::isfinite(c.max_error) ? Json(c.max_error) : Json("inf")},
                    {"rmse", std::isfinite(c.rmse) ? Json(c.rmse) : Json("inf")},
                    {"discriminating", c.discriminating},
                    {"within", output.within}});
    text +=
        fmt::format("{:<4} {:<32} {}{}\n",
                    !c.discriminating ? "-"
                    : output.within   ? "ok"
                                      : "FAIL",
                    output.name, Describe(c),
                    c.discriminating ? "" : "  (not discriminating: the reference is constant)");
  }
  if (!written.empty())
    text += fmt::format("{}: `mlc verify --result` checks it where the bundle was made\n",
                        written.string());
  if (invocation.json())
    fmt::print("{}\n", Json{{"ok", result.ok()},
                            {"package_hash", result.package_hash},
                            {"units", result.units},
                            {"machine", result.machine},
                            {"mlc", result.version},
                            {"predict_ms", result.milliseconds},
                            {"compared_again", result.compared_again},
                            {"outputs", list}}
                           .dump(2, ' ', false, Json::error_handler_t::replace));
  else
    fmt::print("on {} by mlc {}, units {}, {:.2f} ms{}\n{}{}\n", result.machine, result.version,
               result.units, result.milliseconds,
               result.compared_again ? ", compared again here" : "", text,
               !result.ok() ? "FAILED"
               : tells      ? "PASSED"
                            : "PASSED, but no output tells anything: try other inputs");
  return result.ok() ? 0 : 3;
}

}  // namespace

int RunParity(const Invocation& invocation) {
  for (std::string_view flag : {"MODEL", "--input", "--output-dir"})
    if (invocation.has(flag))
      throw Error("usage", fmt::format("--bundle brings model and inputs; {} is too much", flag));
  fs::path folder = invocation.get("--bundle");
  Parity parity = ReadParity(folder);
  std::error_code ignored;
  fs::remove(folder / kParityResult, ignored);  // of an earlier run
  fs::path package = folder / parity.package;
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
  std::map<std::string, Tensor> given;
  for (const ParityFile& input : parity.inputs) given[input.name] = ReadNpy(folder / input.file);
  std::map<std::string, Tensor> inputs = MakeInputs(*program.main(), given, 0);
  const Function& main = *program.main();
  EngineOptions options;
  options.arithmetic = EngineOptions::Arithmetic::kFaithful;
  auto start = std::chrono::steady_clock::now();
  std::map<std::string, Tensor> results = Execute(program, inputs, options);
  ParityResult result;
  result.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  result.units = "reference";
  result.machine = Machine();
  result.version = kVersion;
  NamedTensors outputs;
  for (const ParityFile& output : parity.outputs) {
    int found = -1;
    for (size_t i = 0; i < main.outputs.size(); ++i)
      if (main.outputs[i].source_name == output.name || main.outputs[i].name == output.name)
        found = static_cast<int>(i);
    if (found < 0)
      throw Error("bad-file", fmt::format("the package has no output \"{}\"", output.name))
          .At({package.string(), ""});
    outputs.emplace_back(output.name, ToSourceType(results.at(main.body.outputs()[found]->name),
                                                   main.outputs[found]));
  }
  return Show(WriteResult(folder, parity, std::move(result), outputs), invocation,
              folder / kParityResult);
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
