#include "tools/driver/run.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "lib/ir/npy.h"
#include "lib/support/install.h"
#include "lib/support/percent.h"
#include "lib/support/sources.h"
#include "tools/driver/format.h"
#include "tools/driver/tensors.h"
#include "tools/driver/tokens.h"

namespace fs = std::filesystem;

namespace mlc {

std::string_view Name(EngineOptions::Arithmetic arithmetic) {
  return arithmetic == EngineOptions::Arithmetic::kExact ? "exact" : "faithful";
}

void RequireBundle(const fs::path& path) {
  Format format = DetectFormat(path);
  if (format == Format::kBundle) return;
  throw Error("usage", fmt::format("--no-compile: \"{}\" is a .{}", path.string(), Name(format)))
      .Expected("a compiled bundle (.mlmodelc)")
      .Help(IsSource(format) ? "mlc compile MODEL -o MODEL.mlmodelc makes one"
                             : "mlc precompile makes one of a package");
}

namespace {

using Clock = std::chrono::steady_clock;
double Milliseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

fs::path OutputPath(const fs::path& folder, const std::string& name) {
  return folder / (FileStem(name) + ".npy");
}

// All names that inputs of the function have, or had in the source.
std::set<std::string> InputNames(const Function& function) {
  std::set<std::string> names;
  for (const Port& port : function.inputs) names.insert({port.source_name, port.name});
  for (const AbsentInput& absent : function.absent_inputs) names.insert(absent.source_name);
  return names;
}

// Names may hold '=', as paths may: the longest name that there is.
void AddFile(const std::string& text, const std::set<std::string>& names,
             std::map<std::string, Tensor>& inputs) {
  size_t equals = text.find('=');
  for (size_t at = equals; at != std::string::npos; at = text.find('=', at + 1))
    if (names.contains(text.substr(0, at))) equals = at;
  if (equals == std::string::npos)
    throw Error("usage", fmt::format("--input: \"{}\" has no NAME=FILE form", text));
  if (!inputs.emplace(text.substr(0, equals), ReadTensor(text.substr(equals + 1))).second)
    throw Error("usage", fmt::format("--input: \"{}\" is given twice", text.substr(0, equals)));
}

std::string NameOf(const Port& port, bool tokens) {
  return tokens ? NameForTokens(port) : UserName(port);
}

// Says what is in the way before anything is computed.
void CheckOutputs(const fs::path& folder, const Function& function, bool tokens) {
  std::error_code error;
  for (const Port& port : function.outputs)
    if (fs::path path = OutputPath(folder, NameOf(port, tokens)); fs::exists(folder, error))
      Staging(path, Staging::kFile);
    else
      Sources::CheckTarget(path);
}

void WriteOutputs(const fs::path& folder, std::vector<RunResult::Output>& outputs) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error("file-io",
                fmt::format("cannot make folder \"{}\": {}", folder.string(), error.message()));
  for (RunResult::Output& output : outputs) {
    output.file = OutputPath(folder, output.name);
    WriteNpy(output.file, output.tensor);
  }
}

}  // namespace

Percentiles PercentilesOf(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  auto at = [&](double q) {
    size_t rank = static_cast<size_t>(std::ceil(q * static_cast<double>(samples.size())));
    return samples[std::clamp<size_t>(rank, 1, samples.size()) - 1];
  };
  return {at(0.50), at(0.95), at(0.99)};
}

RunResult Run(const fs::path& model, const RunOptions& options, Diagnostics& diagnostics) {
  bool source = IsSource(DetectFormat(model));
  if (options.bundles_only) RequireBundle(model);
  EngineOptions engine_options;
  engine_options.arithmetic = options.arithmetic.value_or(
      source ? EngineOptions::Arithmetic::kExact : EngineOptions::Arithmetic::kFaithful);
  if (options.timeout) {
    if (options.timeout->count() < 1)
      throw Error("usage", "--timeout: expected milliseconds, at least 1");
    engine_options.timeout = *options.timeout;
  }
  if (options.iterations < 1 || options.warmup < 0)
    throw Error("usage", "--iterations must be at least 1 and --warmup at least 0");

  Clock::time_point start = Clock::now();
  auto program = std::make_shared<Program>(ImportToRun(model, options.import, false, diagnostics));
  const Function& function =
      options.function ? FindFunction(*program, *options.function) : *program->main();
  std::map<std::string, Tensor> given = options.inputs;
  const std::set<std::string> names = InputNames(function);
  for (const std::string& text : options.input_files) AddFile(text, names, given);
  const bool by_tokens = !options.tokens.empty();
  if (!options.output_folder.empty()) CheckOutputs(options.output_folder, function, by_tokens);
  Clock::time_point loaded = Clock::now();
  RunResult result{program, &function, engine_options.arithmetic, {}, {}, {}, {}, {}, {}};
  result.load_ms = Milliseconds(start, loaded);
  if (options.step && !by_tokens) throw Error("usage", "--step goes with --tokens");
  if (by_tokens && !given.empty()) throw Error("usage", "--tokens takes the place of --input");
  CheckRanges(options.make_up, *program);
  if (by_tokens) {
    CheckTokens(function, options.tokens, options.step);
  } else {
    for (auto& [name, tensor] : MakeInputs(function, given, options.make_up, &result.made_up))
      if (result.made_up.contains(name)) given[name] = tensor;
  }
  Engine engine(function, engine_options);
  for (int64_t i = 0; i < options.warmup + options.iterations; ++i) {
    Clock::time_point begin = Clock::now(), ready = begin, done;
    result.outputs.clear();
    if (by_tokens) {
      const bool encoder = IsEncoder(function), counts = options.step && i >= options.warmup;
      std::vector<Tensor> outputs =
          encoder ? RunEncoder(engine, function, options.tokens)
                  : std::vector{RunTokens(engine, function, options.tokens, options.step,
                                          counts ? &result.token_ms : nullptr)};
      done = Clock::now();
      for (size_t k = 0; k < outputs.size(); ++k) {
        const Port& port = function.outputs[k];
        result.outputs.push_back({&port, std::move(outputs[k]), NameForTokens(port), {}});
      }
    } else {
      std::map<std::string, Tensor> inputs = MakeInputs(function, given);
      ready = Clock::now();
      std::map<std::string, Tensor> values = engine.Run(inputs);
      done = Clock::now();
      for (size_t k = 0; k < function.outputs.size(); ++k) {
        const Port& port = function.outputs[k];
        result.outputs.push_back({&port,
                                  ToSourceType(values.at(function.body.outputs()[k]->name), port),
                                  UserName(port),
                                  {}});
      }
    }
    if (i < options.warmup) continue;
    result.marshal_in_ms.push_back(Milliseconds(begin, ready));
    result.predict_ms.push_back(Milliseconds(ready, done));
    result.marshal_out_ms.push_back(Milliseconds(done, Clock::now()));
  }
  constexpr int64_t kMostNext = 5;
  if (by_tokens && IsLanguageModel(function))
    result.next = LikelyNext(result.outputs[0].tensor, kMostNext);
  if (!options.output_folder.empty()) WriteOutputs(options.output_folder, result.outputs);
  return result;
}

}  // namespace mlc
