#include "tools/driver/extract.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "tools/driver/output_path.h"
#include "tools/mlc/command.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

struct ExtractArguments {
  fs::path model;
  ExtractOptions options;
};

int RunExtract(const ExtractArguments& given, Session& session) {
  const ExtractResult result = Extract(given.model, given.options, session.diagnostics);
  if (session.json)
    PrintDocument({{"output", fs::absolute(given.options.output).string()},
                   {"inputs", result.inputs},
                   {"outputs", result.outputs},
                   {"operations_before", result.operations_before},
                   {"operations", result.operations}});
  else
    fmt::print("{}\n  {} of {} operations\n  inputs: {}\n  outputs: {}\n",
               given.options.output.string(), result.operations, result.operations_before,
               fmt::join(result.inputs, ", "), fmt::join(result.outputs, ", "));
  return 0;
}

}  // namespace

Command ExtractCommand() {
  auto given = std::make_shared<ExtractArguments>();
  ExtractOptions& options = given->options;
  return {"extract",
          "Extract a part of a model between named values",
          "mlc extract model.onnx --inputs conv1_out --outputs relu2_out -o part.onnx",
          {{"MODEL", "", "ONNX model, package or MIL text", Into(given->model), true},
           {"-o", "PART",
            "output: .onnx for an ONNX model, .mlpackage or .mil for a package or MIL text",
            [&options](const std::string& text) { options.output = WithoutSlash(text); }, true},
           {"--outputs", "A,B", "values that the part computes", NamesInto(options.outputs), true},
           {"--inputs", "A,B",
            "values that become the only inputs of the part (default: the inputs of the model)",
            NamesInto(options.inputs)},
           {"--function", "NAME", "function of a package (default: the default one)",
            Into(options.function)},
           {"--data-root", "DIR", "folder of external data that is not beside an ONNX model",
            Into(options.data_root)},
           {"--force", "", "replace whatever exists at -o", Switch(options.force)},
           JsonOption()},
          [given](Session& session) { return RunExtract(*given, session); }};
}

}  // namespace mlc::driver
