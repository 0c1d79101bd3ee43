#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "backends/coreml/manifest.h"
#include "lib/analysis/fp16_share.h"
#include "lib/analysis/placement_rules.h"
#include "lib/coreml/package_layout.h"
#include "lib/report/render.h"
#include "tools/driver/errors.h"
#include "tools/driver/explain.h"
#include "tools/driver/model_interface.h"
#include "tools/driver/reports.h"
#include "tools/driver/supplied_tensors.h"

namespace mlc::driver {

using report::Graph;
using report::Mark;

namespace {

constexpr int64_t kMostShown = 8;  // elements of a constant

std::string ElementText(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::kString)
    return fmt::format("\"{}\"", tensor.strings()[static_cast<size_t>(i)]);
  if (tensor.dtype() == DType::kBool) return tensor.Double(i) != 0 ? "true" : "false";
  return fmt::format("{:.6g}", tensor.Double(i));
}

std::string ConstantText(const Tensor& tensor) {
  if (tensor.size() == 1) return ElementText(tensor, 0);
  std::vector<std::string> elements;
  for (int64_t i = 0; i < std::min(tensor.size(), kMostShown); ++i)
    elements.push_back(ElementText(tensor, i));
  return fmt::format("[{}{}]", fmt::join(elements, ", "),
                     tensor.size() > kMostShown ? ", ..." : "");
}

std::string SizeText(const analysis::Weight& weight) {
  return fmt::format("{} [{}], {} bytes, {:.2f} bits per element{}{}", Name(weight.dtype),
                     fmt::join(weight.dims, ", "), weight.bytes,
                     BitsOf(weight.bytes, weight.elements()), weight.encoding.empty() ? "" : ", ",
                     weight.encoding);
}

// The tensors of the source that a constant is or was computed from, as far as the model states them.
std::string SourcesText(const Value& value) {
  std::vector<std::string> names;
  const auto add = [&](const Tensor& tensor) {
    if (!tensor || !tensor.provenance()) return;
    for (const std::string& name : tensor.provenance()->sources)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  if (!value.def) return "";
  add(value.def->val);
  for (const Operands& operands : value.def->args())
    for (const Operand& operand : operands) add(operand.constant());
  return names.empty() ? "" : fmt::format(", from {} of the source", fmt::join(names, ", "));
}

bool IsExecuted(const Operation& op) { return !op.def->is_const() && !op.def->is_constexpr(); }

class GraphMaker {
 public:
  GraphMaker(const Function& function,
             const std::function<void(const Operation&, Graph::Node&)>& annotate)
      : annotate_(annotate) {
    for (analysis::Weight& weight : analysis::WeightsOf(*function.program))
      weights_.emplace(weight.name, std::move(weight));
    graph_.title = function.name;
    // Ports stand beside the values of a function's body: inputs, then states.
    const std::vector<const Value*> inputs = InputValues(function);
    for (const auto& input : function.body.inputs) {
      const bool state = std::ranges::find(inputs, input.get()) == inputs.end();
      Add(*input, {state ? "state" : "input", input->name, input->type.ToString()});
    }
    AddPortNames(function.inputs, "input");
    AddBlock(function.body, -1);
    for (size_t i = 0; i < function.body.outputs().size(); ++i) {
      const Value& value = *function.body.outputs()[i];
      Graph::Node node{"output", function.outputs[i].name, value.type.ToString()};
      AddInput(&value, node);
      graph_.nodes.push_back(std::move(node));
    }
    AddPortNames(function.outputs, "output");
  }

  Graph Take() {
    // What is nested in operations is folded as it is; repetitions are looked for elsewhere.
    if (graph_.groups.empty()) report::FoldRepetitions(graph_);
    return std::move(graph_);
  }

 private:
  void Add(const Value& value, Graph::Node node) {
    node_of_[&value] = static_cast<int32_t>(graph_.nodes.size());
    graph_.nodes.push_back(std::move(node));
  }

  void AddPortNames(const std::vector<Port>& ports, std::string_view kind) {
    for (const Port& port : ports)
      for (Graph::Node& node : graph_.nodes)
        if (node.kind == kind && node.name == port.name && !port.source_name.empty() &&
            port.source_name != port.name)
          node.facts.emplace_back("name in the source", port.source_name);
  }

  void AddInput(const Value* value, Graph::Node& node) {
    const auto at = node_of_.find(value);
    if (at != node_of_.end() && std::ranges::find(node.inputs, at->second) == node.inputs.end())
      node.inputs.push_back(at->second);
  }

  void AddOperand(std::string_view param, const Operand& operand, Graph::Node& node) {
    const Tensor& constant = operand.constant();
    const Value* value = operand.value;
    if (value && !constant && !(value->def && value->def->def->is_constexpr()))
      return AddInput(value, node);
    if (const auto weight = weights_.find(value ? value->name : ""); weight != weights_.end())
      node.facts.emplace_back(param, fmt::format("{}: {}{}", value->name, SizeText(weight->second),
                                                 SourcesText(*value)));
    else if (constant)
      node.facts.emplace_back(param, ConstantText(constant));
    else
      node.facts.emplace_back(param, operand.type().ToString());
  }

  // What a nested block is given, from the operands of its operation.
  void AddBlockInputs(const Operation& op, const Block& block, int32_t group) {
    const auto given = std::ranges::find_if(op.args(), [&](const Operands& operands) {
      return operands.size() == block.inputs.size();
    });
    for (size_t i = 0; i < block.inputs.size(); ++i) {
      const Value& input = *block.inputs[i];
      Graph::Node node{"block input", input.name, input.type.ToString(), group};
      if (given != op.args().end()) AddOperand("value", (*given)[i], node);
      Add(input, std::move(node));
    }
  }

  void AddBlock(const Block& block, int32_t group) {
    for (const Operation* op : block.operations()) {
      if (!IsExecuted(*op)) continue;
      for (size_t i = 0; i < op->blocks.size(); ++i) {
        const auto nested = static_cast<int32_t>(graph_.groups.size());
        graph_.groups.push_back(
            {fmt::format("block {} of {} {}", i + 1, op->def->name, analysis::NameOf(*op)), group});
        const size_t before = graph_.nodes.size();
        AddBlockInputs(*op, *op->blocks[i], nested);
        AddBlock(*op->blocks[i], nested);
        if (graph_.nodes.size() == before) graph_.groups.pop_back();
      }
      Graph::Node node{std::string(op->def->name), analysis::NameOf(*op)};
      node.group = group;
      std::vector<std::string> types;
      for (const auto& result : op->results) types.push_back(result->type.ToString());
      node.type = fmt::format("{}", fmt::join(types, ", "));
      for (size_t p = 0; p < op->args().size(); ++p)
        for (const Operand& operand : op->args()[p])
          AddOperand(op->def->canonical().params[p].name, operand, node);
      for (const auto& nested : op->blocks)
        for (const Value* output : nested->outputs()) AddInput(output, node);
      if (const std::string place = PlaceInSource(*op); !place.empty())
        node.facts.emplace_back("source", place);
      if (annotate_) annotate_(*op, node);
      for (const auto& result : op->results)
        node_of_[result.get()] = static_cast<int32_t>(graph_.nodes.size());
      graph_.nodes.push_back(std::move(node));
    }
  }

  const std::function<void(const Operation&, Graph::Node&)>& annotate_;
  std::map<std::string, analysis::Weight> weights_;
  std::unordered_map<const Value*, int32_t> node_of_;
  Graph graph_;
};

std::string_view PrecisionOf(const Operation& op) {
  switch (analysis::FloatWorkOf(op)) {
    case analysis::FloatWork::kFp16:
      return "fp16";
    case analysis::FloatWork::kFp32:
      return "fp32";
    case analysis::FloatWork::kNone:
      break;
  }
  if (op.results.empty() || !op.result()->type.is_tensor()) return "";
  return Name(op.result()->type.dtype);
}

// Decisions by the name of their operation.
using Decisions = std::multimap<std::string, const Decision*>;
Decisions BySubject(const std::vector<Decision>& decisions) {
  Decisions found;
  for (const Decision& decision : decisions) found.emplace(decision.subject, &decision);
  return found;
}

// `compiled`: also with the placement by the rules of `mlc explain`.
Graph AnnotatedGraph(const Function& function, bool compiled, const Decisions& by_subject) {
  const std::map<const Operation*, double> work = analysis::WorkOfOperations(function);
  double all_work = 0;
  for (const auto& [op, own] : work) all_work += own;
  std::optional<analysis::Placement> placement;
  std::unordered_map<const Operation*, const analysis::PlacedOperation*> placed;
  if (compiled) {
    placement =
        analysis::PlacementOf(function, analysis::Unit::kNeuralEngine, analysis::DefaultChip(),
                              analysis::SizesToExamine(function).front());
    for (const analysis::PlacedOperation& operation : placement->operations)
      placed[operation.op] = &operation;
  }
  const auto annotate = [&](const Operation& op, Graph::Node& node) {
    node.precision = PrecisionOf(op);
    if (const auto own = work.find(&op); own != work.end() && all_work > 0)
      node.share = own->second / all_work;
    const auto [begin, end] = by_subject.equal_range(op.name);
    for (auto at = begin; at != end; ++at)
      node.facts.emplace_back("decision: " + at->second->kind, at->second->reason);
    const auto at = placed.find(&op);
    if (at == placed.end()) return;
    node.place = at->second->eligible ? "ane" : "cpu or gpu";
    for (size_t i = 0; i < at->second->findings; ++i) {
      const analysis::PlacementFinding& finding = placement->findings[at->second->first + i];
      const bool refused = finding.rule->severity == analysis::Severity::kCannotRun;
      node.mark = std::max(node.mark, refused ? Mark::kBad : Mark::kNotice);
      node.facts.emplace_back(
          fmt::format("{} ({})", finding.rule->id, Name(finding.rule->severity)),
          fmt::format("{}: {}", finding.text, finding.rule->meaning));
    }
  };
  return GraphMaker(function, annotate).Take();
}

}  // namespace

report::Graph GraphOfFunction(
    const Function& function,
    const std::function<void(const Operation&, report::Graph::Node&)>& annotate) {
  return GraphMaker(function, annotate).Take();
}

DrawnModel GraphOfModel(const std::filesystem::path& model, const InspectResult& result,
                        const InspectOptions& options) {
  constexpr uint64_t kMostBytes = 1'000'000'000;  // of weights that are compiled for a picture
  DrawnModel drawn;
  std::shared_ptr<const Program> program = result.program;
  std::vector<Decision> decisions;
  bool compiled = !result.frontend->IsSource();
  if (compiled) {
    if (result.frontend->format == Format::kPackage)
      if (const std::optional<coreml::Stated> stated = coreml::StatedOf(model))
        decisions = stated->decisions;
  } else if (result.weight_bytes > kMostBytes) {
    drawn.what = fmt::format("It is shown as imported, because its weights exceed {}.",
                             report::Text(kMostBytes, report::Quantity::kBytes));
  } else {
    try {
      Diagnostics diagnostics;  // of another command
      CompileOptions compile;
      compile.import = options.import;
      program = std::make_shared<Program>(CompileProgram(model, compile, diagnostics));
      decisions = diagnostics.decisions();
      compiled = true;
      drawn.what = "It is shown as mlc compile writes it by default.";
    } catch (const std::exception&) {
      drawn.what = fmt::format("It is shown as imported, because it cannot be compiled: {}",
                               CurrentErrors().front().text());
    }
  }
  if (compiled)
    drawn.what += fmt::format(
        "{}The placement is predicted for the Neural Engine of {} by the rules "
        "of mlc explain; Core ML decides on the device.",
        drawn.what.empty() ? "" : " ", analysis::DefaultChip().name);
  const auto by_subject = BySubject(decisions);
  for (const auto& function : program->functions)
    drawn.graphs.push_back(AnnotatedGraph(*function, compiled, by_subject));
  return drawn;
}

}  // namespace mlc::driver
