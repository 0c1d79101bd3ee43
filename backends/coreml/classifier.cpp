#include "backends/coreml/classifier.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>

#include "lib/ir/builder.h"

namespace mlc {

std::vector<std::string> ReadLabels(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw Error("file-io", fmt::format("cannot open \"{}\"", path.string()));
  auto fail = [&](std::string text, size_t line) {
    return Error("bad-file", std::move(text)).At({path.string(), fmt::format("line {}", line)});
  };
  constexpr size_t kMaxLabels = 1 << 20;
  std::vector<std::string> labels;
  std::set<std::string> seen;
  size_t empty = 0;
  for (std::string line; std::getline(file, line);) {
    auto blank = [](unsigned char c) { return std::isspace(c); };
    line.erase(line.begin(), std::find_if_not(line.begin(), line.end(), blank));
    line.erase(std::find_if_not(line.rbegin(), line.rend(), blank).base(), line.end());
    if (line.empty()) {
      ++empty;
      continue;
    }
    if (empty > 0) throw fail("a label is empty", labels.size() + 1);
    if (labels.size() >= kMaxLabels) throw fail("too many labels", labels.size() + 1);
    if (!seen.insert(line).second)
      throw fail(fmt::format("the label \"{}\" is there twice", line), labels.size() + 1);
    labels.push_back(std::move(line));
  }
  if (labels.empty()) throw fail("there are no labels", 1);
  return labels;
}

void MakeClassifier(Program& program, const std::vector<std::string>& labels,
                    Diagnostics& diagnostics) {
  Function& function = *program.main();
  std::vector<Value*> outputs = function.body.outputs();
  Dim count(static_cast<int64_t>(labels.size()));
  std::vector<size_t> fitting;
  std::string shapes;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Type& type = outputs[i]->type;
    if (!type.is_tensor() || !IsFloat(type.dtype)) continue;
    shapes += fmt::format("{}\"{}\" {}", shapes.empty() ? "" : ", ",
                          function.outputs[i].source_name, ToString(type.shape));
    if (Product(type.shape) == count) fitting.push_back(i);
  }
  if (fitting.size() != 1)
    throw Error("bad-operand", fmt::format("{} outputs have {} elements, one for each label",
                                           fitting.empty() ? "no" : "several", labels.size()))
        .Expected("one such output of floats among " + (shapes.empty() ? "the outputs" : shapes))
        .Help("choose outputs with --outputs; fix open dimensions with --dim, e.g. the batch to 1");
  size_t chosen = fitting[0];
  Builder builder(function.body, diagnostics);
  builder.SetName("classLabel");
  Value* probabilities = outputs[chosen];
  builder.SetLocation(probabilities->def->location);
  std::vector<Value*> results = builder.MakeAll(
      "classify",
      {{"probabilities", probabilities},
       {"classes", Operand(Tensor::Strings({static_cast<int64_t>(labels.size())}, labels))}});
  function.Rename(results[0], "classLabel");
  function.Rename(results[1], results[0]->name + "_probs");
  results[0]->def->name = results[0]->name;
  Port label{.name = results[0]->name, .source_name = results[0]->name};
  Port values = function.outputs[chosen];
  values.name = results[1]->name;
  outputs.erase(outputs.begin() + static_cast<ptrdiff_t>(chosen));
  outputs.insert(outputs.begin(), results.begin(), results.end());
  function.outputs.erase(function.outputs.begin() + static_cast<ptrdiff_t>(chosen));
  function.outputs.insert(function.outputs.begin(), {std::move(label), std::move(values)});
  function.body.SetOutputs(std::move(outputs));
}

const Operation* FindClassifier(const Function& function) {
  for (const Value* output : function.body.outputs())
    if (output->def && output->def->is("classify")) return output->def;
  return nullptr;
}

}  // namespace mlc
