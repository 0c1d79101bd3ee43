#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/engine/engine.h"
#include "lib/ir/npy.h"
#include "lib/support/install.h"
#include "lib/support/percent.h"
#include "lib/support/sources.h"
#include "tools/mlc/interface.h"
#include "tools/mlc/made_up.h"
#include "tools/mlc/model.h"
#include "tools/mlc/parity.h"
#include "tools/mlc/sizes.h"

namespace fs = std::filesystem;

namespace mlc {
namespace {

using Clock = std::chrono::steady_clock;
double Milliseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

// Nearest-rank percentiles of what was measured.
nlohmann::ordered_json Percentiles(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  auto at = [&](double q) {
    size_t rank = static_cast<size_t>(std::ceil(q * static_cast<double>(samples.size())));
    return samples[std::clamp<size_t>(rank, 1, samples.size()) - 1];
  };
  return {{"p50", at(0.50)}, {"p95", at(0.95)}, {"p99", at(0.99)}};
}

void CheckUnits(const Invocation& invocation) {
  std::string units = invocation.get("--units", "reference");
  if (units == "reference") return;
  if (units == "all" || units == "cpu" || units == "gpu" || units == "ane")
    throw Error("no-coreml",
                fmt::format("--units {} needs Core ML, which this version does not call", units))
        .Help("use --units reference, mlc's own engine");
  throw Error("usage", fmt::format("--units: \"{}\" is unknown", units))
      .Expected("all, cpu, gpu, ane or reference");
}

EngineOptions::Arithmetic Arithmetic(const Invocation& invocation, Format format) {
  std::string text = invocation.get("--arithmetic", format == Format::kOnnx ? "exact" : "faithful");
  if (text == "faithful") return EngineOptions::Arithmetic::kFaithful;
  if (text == "exact") return EngineOptions::Arithmetic::kExact;
  throw Error("usage", fmt::format("--arithmetic: \"{}\" is unknown", text))
      .Expected("faithful or exact");
}

fs::path OutputPath(const fs::path& folder, const Port& port) {
  return folder / (FileStem(UserName(port)) + ".npy");
}

std::string DTypeText(const Tensor& tensor) { return std::string(Name(tensor.dtype())); }

}  // namespace

void RequireBundle(const Invocation& invocation, const fs::path& path, Format format) {
  if (!invocation.has("--no-compile") || format == Format::kBundle) return;
  throw Error("usage", fmt::format("--no-compile: \"{}\" is a .{}", path.string(), Name(format)))
      .Expected("a compiled bundle (.mlmodelc)")
      .Help(format == Format::kOnnx ? "mlc compile MODEL -o MODEL.mlmodelc makes one"
                                    : "mlc precompile makes one of a package");
}

namespace {

int Run(const Invocation& invocation) {
  CheckUnits(invocation);
  if (invocation.has("--bundle")) return RunParity(invocation);
  if (invocation.has("--result"))
    throw Error("usage", "--result is of a parity bundle: it needs --bundle DIR");
  if (!invocation.has("MODEL"))
    throw Error("usage", "MODEL is required").Help("--help shows an example");
  fs::path path = invocation.get("MODEL");
  Format format = DetectFormat(path);
  RequireBundle(invocation, path, format);
  EngineOptions options;
  options.arithmetic = Arithmetic(invocation, format);
  if (invocation.has("--timeout")) {
    int64_t timeout = invocation.Int("--timeout", 0);
    if (timeout < 1) throw Error("usage", "--timeout: expected milliseconds, at least 1");
    options.timeout = std::chrono::milliseconds(timeout);
  }
  int64_t iterations = invocation.Int("--iterations", 1), warmup = invocation.Int("--warmup", 0);
  if (iterations < 1 || warmup < 0)
    throw Error("usage", "--iterations must be at least 1 and --warmup at least 0");

  Clock::time_point start = Clock::now();
  Program program = ImportToRun(path, ImportOptions(invocation), false, invocation.diagnostics);
  const Function& function = invocation.has("--function")
                                 ? FindFunction(program, invocation.get("--function"))
                                 : *program.main();
  std::map<std::string, Tensor> given;
  for (const std::string& text : invocation.all("--input")) {
    size_t equals = text.find('=');
    // Names may hold '=', file names too: the longest name that is an input wins.
    for (size_t at = equals; at != std::string::npos; at = text.find('=', at + 1)) {
      std::string name = text.substr(0, at);
      for (const Port& port : function.inputs)
        if (port.source_name == name || port.name == name) equals = at;
      for (const AbsentInput& absent : function.absent_inputs)
        if (absent.source_name == name) equals = at;
    }
    if (equals == std::string::npos)
      throw Error("usage", fmt::format("--input: \"{}\" has no NAME=FILE form", text));
    if (!given.emplace(text.substr(0, equals), ReadTensor(text.substr(equals + 1))).second)
      throw Error("usage", fmt::format("--input: \"{}\" is given twice", text.substr(0, equals)));
  }
  fs::path folder = invocation.get("--output-dir");
  if (!folder.empty()) {
    // Says what is in the way before anything is computed.
    std::error_code error;
    for (const Port& port : function.outputs)
      if (fs::path path = OutputPath(folder, port); fs::exists(folder, error))
        Staging(path, Staging::kFile);
      else
        Sources::CheckTarget(path);
  }
  Clock::time_point loaded = Clock::now();
  MadeUpOptions make_up = ReadMadeUp(invocation, program);
  std::map<std::string, InputRange> made;
  for (auto& [name, tensor] : MakeInputs(function, given, make_up, &made))
    if (made.contains(name)) given[name] = tensor;
  Engine engine(function, options);
  std::vector<double> marshal_in, predict, marshal_out;
  std::vector<std::pair<const Port*, Tensor>> outputs;
  for (int64_t i = 0; i < warmup + iterations; ++i) {
    Clock::time_point begin = Clock::now();
    std::map<std::string, Tensor> inputs = MakeInputs(function, given);
    Clock::time_point ready = Clock::now();
    std::map<std::string, Tensor> results = engine.Run(inputs);
    Clock::time_point done = Clock::now();
    outputs.clear();
    for (size_t k = 0; k < function.outputs.size(); ++k)
      outputs.emplace_back(
          &function.outputs[k],
          ToSourceType(results.at(function.body.outputs()[k]->name), function.outputs[k]));
    if (i < warmup) continue;
    marshal_in.push_back(Milliseconds(begin, ready));
    predict.push_back(Milliseconds(ready, done));
    marshal_out.push_back(Milliseconds(done, Clock::now()));
  }

  if (!folder.empty()) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
      throw Error("file-io",
                  fmt::format("cannot make folder \"{}\": {}", folder.string(), error.message()));
  }
  std::string mode = options.arithmetic == EngineOptions::Arithmetic::kExact ? "exact" : "faithful";
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [port, tensor] : outputs) {
    const std::string& name = UserName(*port);
    nlohmann::ordered_json entry{{"name", name}, {"mil_name", port->name}};
    if (!folder.empty()) {
      fs::path file = OutputPath(folder, *port);
      WriteNpy(file, tensor);
      entry["file"] = fs::absolute(file).string();
    }
    entry["dtype"] = DTypeText(tensor);
    entry["shape"] = tensor.dims();
    entry["mode"] = mode;
    if (tensor.dtype() == DType::kString) entry["values"] = tensor.strings();
    list.push_back(std::move(entry));
  }
  if (invocation.json()) {
    nlohmann::ordered_json json{{"units", "reference"},
                                {"arithmetic", mode},
                                {"function", function.name},
                                {"outputs", list},
                                {"load_ms", Milliseconds(start, loaded)},
                                {"iterations", iterations},
                                {"timings_ms",
                                 {{"marshal_in", Percentiles(marshal_in)},
                                  {"predict", Percentiles(predict)},
                                  {"marshal_out", Percentiles(marshal_out)}}}};
    if (!made.empty())
      json["made_up"] = nlohmann::ordered_json::parse(MadeUpJson(function, made, make_up, 1));
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{}", MadeUpText(function, made, make_up, 1));
  for (size_t i = 0; i < list.size(); ++i) {
    const auto& entry = list[i];
    fmt::print("{}  {} {}{}\n", ShownName(*outputs[i].first), entry["dtype"].get<std::string>(),
               entry["shape"].dump(),
               entry.contains("file") ? "  " + entry["file"].get<std::string>() : "");
  }
  for (const auto& [port, tensor] : outputs) {
    if (tensor.dtype() == DType::kString && tensor.size() == 1)
      fmt::print("  {}: {}\n", port->name, tensor.strings()[0]);
    if (!folder.empty() || tensor.size() == 0 || tensor.dtype() == DType::kString) continue;
    std::string values;
    for (int64_t i = 0; i < std::min<int64_t>(tensor.size(), 8); ++i)
      values += fmt::format(" {:.6g}", tensor.Double(i));
    fmt::print("  {}:{}{}\n", port->name, values, tensor.size() > 8 ? " ..." : "");
  }
  auto p = Percentiles(predict);
  fmt::print("mlc's engine ({}): predict p50 {:.2f} ms, p95 {:.2f} ms over {} runs\n", mode,
             p["p50"].get<double>(), p["p95"].get<double>(), iterations);
  return 0;
}

}  // namespace

Command RunCommand() {
  std::vector<Flag> flags = {
      {"MODEL", "", "a source model, package, bundle or MIL text"},
      {"--input", "NAME=FILE",
       "an input from .npy or .pb, an image from .ppm or .pgm too; inputs that are not given are "
       "made up",
       false, true},
      {"--function", "NAME", "run this function (default: the program's default function)"},
      {"--output-dir", "DIR", "write every output as DIR/NAME.npy"},
      {"--units", "all|cpu|gpu|ane|reference",
       "what computes: reference is mlc's engine (default); this version refuses the others"},
      {"--arithmetic", "faithful|exact",
       "round to fp16 as Core ML does (default for packages), or compute in fp32 (default for "
       "source models)"},
      {"--iterations", "N", "measure N runs (default 1)"},
      {"--warmup", "N", "runs before the measured ones (default 0)"},
      {"--timeout", "MS", "give up a run after so many milliseconds (exit code 4)"},
      {"--bundle", "DIR",
       "instead: check a parity bundle of `mlc verify --bundle` and write its result.json"},
      {"--result", "FILE",
       "where the bundle's result goes, with its outputs beside it; nothing is "
       "written into the bundle"},
      {"--no-compile", "", "refuse anything but a compiled bundle (.mlmodelc)"},
  };
  flags.insert(flags.begin() + 3, MadeUpFlags().begin(), MadeUpFlags().end());
  flags.insert(flags.end(), ImportFlags().begin(), ImportFlags().end());
  flags.push_back({"--json", "", "one JSON document on stdout"});
  return {"run", "Execute a model or package and print or save its outputs",
          "mlc run model.mlpackage --input image=digit.npy --output-dir out", flags, Run};
}

}  // namespace mlc
