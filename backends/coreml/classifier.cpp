#include "backends/coreml/classifier.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "lib/ir/builder.h"
#include "lib/ops/value_range.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "lib/support/utf8.h"

namespace mlc::coreml {

std::vector<std::string> ReadLabels(const std::filesystem::path& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  std::string_view bytes = AsText(file->bytes());
  constexpr size_t kMostBytes = 64 << 20;
  if (bytes.size() > kMostBytes)
    throw Error("resource-limit", "the label file has {} bytes", bytes.size())
        .At({path.string(), ""})
        .Expected("at most {} bytes", kMostBytes);
  RequireUtf8(bytes, "bad-file", fmt::format("\"{}\"", path.string()));
  std::istringstream text{std::string(WithoutBom(bytes))};
  auto fail = [&](std::string text, size_t line) {
    return Error("bad-file", std::move(text)).At({path.string(), fmt::format("line {}", line)});
  };
  constexpr size_t kMaxLabels = 1 << 20;
  std::vector<std::string> labels;
  std::set<std::string> seen;
  size_t empty = 0;
  for (std::string line; std::getline(text, line);) {
    auto blank = [](unsigned char c) { return std::isspace(c); };
    line.erase(line.begin(), std::ranges::find_if_not(line, blank));
    line.erase(std::find_if_not(line.rbegin(), line.rend(), blank).base(), line.end());
    if (line.empty()) {
      ++empty;
      continue;
    }
    if (empty > 0) throw fail("empty label", labels.size() + 1);
    if (labels.size() >= kMaxLabels) throw fail("too many labels", labels.size() + 1);
    if (!seen.insert(line).second)
      throw fail(fmt::format("duplicate label \"{}\"", line), labels.size() + 1);
    labels.push_back(std::move(line));
  }
  if (labels.empty()) throw fail("the file contains no labels", 1);
  return labels;
}

namespace {

// Looks through reshapes and casts.
const Value* Source(const Value* value) {
  while (value->def && (value->def->def->view || value->def->is("cast")) && value->def->has("x") &&
         value->def->value("x"))
    value = value->def->value("x");
  return value;
}

// e / reduce_sum(e): a decomposed softmax, or counts normalized by their sum.
bool IsShare(const Operation& op) {
  if (!op.is("real_div") || !op.value("x") || !op.value("y")) return false;
  const Value* sum = Source(op.value("y"));
  if (!sum->def) return false;
  const Sums& sums = sum->def->def->sums;
  return (sums.of == Sums::kElements || sums.of == Sums::kMagnitudes) && !sums.mean &&
         sum->def->value("x") && Source(sum->def->value("x")) == Source(op.value("x"));
}

constexpr Interval kShares = {0, 1};

const Operation* FindLogits(const Value* value, int depth) {
  constexpr int kDeepest = 32;
  const Operation* op = value->def;
  if (!op) return nullptr;
  if (depth > kDeepest || op->def->is_const() || !op->blocks.empty() || IsShare(*op))
    return nullptr;
  auto are_shares = [&](Interval found) { return Join(found, kShares) == kShares; };
  if (are_shares(FindInterval(*value))) return nullptr;
  bool has_own = IntervalWhen(*value, {}) != Interval();  // relu, tanh: bounded for all operands
  if (has_own || !are_shares(IntervalWhen(*value, kShares))) return op;
  for (const auto& operands : op->args())
    for (const Operand& operand : operands)
      if (operand.value && IsFloat(operand.value->type.dtype))
        if (const Operation* found = FindLogits(operand.value, depth + 1)) return found;
  return nullptr;
}

}  // namespace

const Operation* MakesLogits(const Value* value) { return FindLogits(value, 0); }

bool AreShares(const Value& value) { return Join(FindInterval(value), kShares) == kShares; }

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
    throw Error("bad-operand", "{} have {} elements, one for each label",
                fitting.empty() ? "no outputs" : "several outputs", labels.size())
        .Expected("exactly one float output with that many elements among " +
                  (shapes.empty() ? "the outputs" : shapes))
        .Help(
            "select outputs with option 'outputs'; fix dynamic dimensions with option 'dim', e.g. "
            "the batch to 1");
  size_t chosen = fitting[0];
  Builder builder(function.body, diagnostics);
  builder.SetName("classLabel");
  Value* probabilities = outputs[chosen];
  const Operation* logits = MakesLogits(probabilities);
  builder.SetLocation(probabilities->def->location);
  std::vector<Value*> results = builder.MakeAll(
      "classify",
      {{"probabilities", probabilities},
       {"classes", Operand(Tensor::Strings({static_cast<int64_t>(labels.size())}, labels))}});
  function.Rename(results[0], "classLabel");
  function.Rename(results[1], results[0]->name + "_probs");
  results[0]->def->name = results[0]->name;
  if (logits)
    diagnostics.Note(
        "output \"{}\" is the result of {}, not of a softmax or sigmoid, so {} holds logits, "
        "not probabilities",
        function.outputs[chosen].source_name, logits->def->name, results[1]->name);
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

}  // namespace mlc::coreml
