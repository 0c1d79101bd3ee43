#include "tools/driver/extract.h"

#include <algorithm>
#include <set>

#include "lib/support/edit_distance.h"
#include "tools/driver/editable_model.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

size_t FunctionNamed(const EditableModel& model, const std::string& name) {
  if (name.empty()) return model.default_function();
  const std::vector<std::string> functions = model.functions();
  const auto found = std::find(functions.begin(), functions.end(), name);
  if (found == functions.end())
    throw Error("bad-name", "the model has no function \"{}\"{}", name, DidYouMean(functions, name))
        .Expected(Quoted(NearNames({functions.begin(), functions.end()}, name)));
  return static_cast<size_t>(found - functions.begin());
}

}  // namespace

ExtractResult Extract(const fs::path& model, const ExtractOptions& options,
                      Diagnostics& diagnostics) {
  if (options.outputs.empty()) throw Error("usage", "--outputs is required");
  EditableModel::Pointer whole = ReadEditable(model, options.data_root, diagnostics);
  CheckEditableOutput(model, options.output, options.force);
  const size_t function = FunctionNamed(*whole, options.function);
  const ModelGraph graph = whole->Graph(function);
  ModelPart part;
  for (const std::string& name : options.inputs)
    part.inputs.push_back(whole->ValueNamed(function, name));
  if (options.inputs.empty()) part.inputs = graph.inputs;
  for (const std::string& name : options.outputs)
    part.outputs.push_back(whole->ValueNamed(function, name));
  CheckPart(graph, part);

  ExtractResult result;
  result.operations_before = whole->operation_count();
  try {
    // The part has one function, with the index 0.
    const EditableModel::Pointer extracted =
        whole->Typed(part.inputs)->WithFunctions({function})->Part(0, part);
    extracted->Write(options.output, options.force, diagnostics);
    const ModelGraph written = extracted->Graph(0);
    result.inputs = written.inputs;
    result.outputs = written.outputs;
    result.operations = extracted->operation_count();
  } catch (const InternalError& error) {
    std::string_view what = error.what();
    if (constexpr std::string_view kPrefix = "the program is not valid: ";
        what.starts_with(kPrefix))
      what.remove_prefix(kPrefix.size());
    throw Error("bad-operand", "the part is not valid by itself: {}", what)
        .Help("begin the part at other values");
  }
  return result;
}

}  // namespace mlc::driver
