#include "tools/driver/extract.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "tools/driver/output_path.h"
#include "tools/mlc/command.h"
#include "tools/mlc/terminal.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

struct ExtractArguments {
  fs::path model;
  ExtractOptions options;
};

int RunExtract(const ExtractArguments& given, Session& session) {
  ExtractOptions options = given.options;
  options.output = OutputPath(options.output, given.model);
  const ExtractResult result = Extract(given.model, options, session.diagnostics);
  if (session.json)
    PrintDocument({{"output", fs::absolute(options.output).string()},
                   {"inputs", result.inputs},
                   {"outputs", result.outputs},
                   {"operations_before", result.operations_before},
                   {"operations", result.operations}});
  else
    fmt::print("{}\n  {} of {}\n  inputs: {}\n  outputs: {}\n", options.output.string(),
               result.operations, Counted(result.operations_before, "operation"),
               fmt::join(result.inputs, ", "), fmt::join(result.outputs, ", "));
  return 0;
}

}  // namespace

Command ExtractCommand() {
  auto given = std::make_shared<ExtractArguments>();
  ExtractOptions& options = given->options;
  return {"extract",
          "Extract a part of a model between named values",
          {"mlc extract model.onnx --inputs conv1_out --outputs relu2_out -o part.onnx",
           "mlc extract model.mlpackage --outputs relu2_out -o part.mlpackage"},
          {{"MODEL", "", "ONNX model, package or MIL text", Into(given->model), true},
           OutputOption(
               {"-o", "PART",
                "output: .onnx for an ONNX model, .mlpackage or .mil for a package or MIL text",
                Into(options.output), true}),
           {"--outputs", "A,B", "values that the part computes", NamesInto(options.outputs), true},
           {"--inputs", "A,B",
            "values that become the only inputs of the part (default: the inputs of the model)",
            NamesInto(options.inputs)},
           {"--function", "NAME", "function of a package (default: the default one)",
            Into(options.function)},
           {"--data-root", "DIR",
            "folder of external data that is not beside an ONNX model (default: the model's folder "
            "only)",
            Into(options.data_root)},
           {"--force", "", "replace whatever exists at -o", Switch(options.force)},
           JsonOption()},
          [given](Session& session) { return RunExtract(*given, session); },
          {},
          {"reduce", "inspect"}};
}

}  // namespace mlc::driver
