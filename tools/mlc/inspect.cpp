#include "tools/driver/inspect.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/report/render.h"
#include "lib/support/json_text.h"
#include "tools/driver/json_results.h"
#include "tools/driver/reports.h"
#include "tools/mlc/command.h"
#include "tools/mlc/files_report.h"
#include "tools/mlc/interface_report.h"

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;

void PrintOperators(const std::map<std::string, int64_t>& counts, size_t most) {
  int64_t total = 0;
  for (const auto& [name, count] : counts) total += count;
  fmt::print("{:<11}{}\n", "operators", total);
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& kind) { return kind.second; });
  for (size_t i = 0; i < std::min(most, sorted.size()); ++i)
    fmt::print("  {:>5}  {}\n", sorted[i].second, sorted[i].first);
  if (sorted.size() > most)
    fmt::print("         ... {} more kinds, see --ops\n", sorted.size() - most);
}

struct InspectArguments {
  std::filesystem::path model;
  InspectOptions options;
  bool ops = false, weights = false, dot = false;
  std::vector<std::filesystem::path> reports;
};

void Print(const InspectResult& result, const InspectArguments& given) {
  const Program& program = *result.program;
  const Function& main = *program.main();
  fmt::print("{}  {}, needs {}\n", given.model.string(), result.frontend->name,
             TargetName(result.needed));
  size_t most_kinds = given.ops ? SIZE_MAX : 12;
  bool several = program.functions.size() > 1;
  if (several) {
    std::vector<std::string> names;
    for (const auto& function : program.functions) names.push_back(function->name);
    fmt::print("{:<11}{}\n", "functions", fmt::join(names, ", "));
  }
  for (const auto& function : program.functions) {
    if (several)
      fmt::print("{:<11}{}{}\n", "function", function->name,
                 function->name == main.name ? " (default)" : "");
    fmt::print("{}", InterfaceText(*function));
    if (several) PrintOperators(OperatorsOf(*function), most_kinds);
  }
  if (several) fmt::print("package\n");
  for (auto& [key, value] : Texts(program.interface)) {
    constexpr size_t kShown = 80;  // bytes; --json prints all of them
    size_t end = std::min(value.find_first_of("\r\n"), kShown);
    while (end < value.size() && (value[end] & 0xC0) == 0x80) --end;  // not within a UTF-8 sequence
    fmt::print("{:<10} {}{}\n", key, value.substr(0, end), end < value.size() ? "..." : "");
  }
  fmt::print("{:<11}{} tensors, {} elements, {:.2f} MB, {:.2f} bits per weight\n", "weights",
             result.weights.size(), result.weight_elements,
             static_cast<double>(result.weight_bytes) / 1e6,
             BitsOf(result.weight_bytes, result.weight_elements));
  if (given.weights)
    for (const analysis::Weight& weight : result.weights)
      fmt::print("  {:<40} {:<6} {:<20} {:>10}  {:5.2f} bits{}{}\n", weight.name,
                 Name(weight.dtype), fmt::format("[{}]", fmt::join(weight.dims, ",")), weight.bytes,
                 BitsOf(weight.bytes, weight.elements()), weight.encoding.empty() ? "" : ", ",
                 weight.encoding);
  PrintOperators(result.operators, most_kinds);
}

// Formats whose files contain more information than the imported program.
struct FilesRow {
  std::string_view frontend;
  void (*print)(const std::filesystem::path& model, bool weights, Session& session);
};
constexpr FilesRow kPrintFiles[] = {{"gguf", PrintGguf}, {"safetensors", PrintFolder}};

int RunInspect(const InspectArguments& given, Session& session) {
  // Describe the files instead of the program.
  const bool files = !given.options.text && !given.ops && !given.dot && given.reports.empty();
  const Frontend& frontend = FrontendOf(given.model);
  if (!given.options.text || frontend.IsSource())
    Refuse({"--compiler-version", "--mil-version"},
           given.options.text ? "--mil of a source model states no versions"
                              : "only --mil prints versions",
           session);
  for (const auto& [name, print] : kPrintFiles)
    if (files && frontend.name == name) {
      print(given.model, given.weights, session);
      return 0;
    }
  if (given.dot) Refuse({"--mil", "--ops", "--weights", "--json"}, "--dot prints a graph", session);
  InspectResult result = Inspect(given.model, given.options, session.diagnostics);
  if (!given.reports.empty())
    WriteReports(InspectReport(given.model, result, given.options), given.reports);
  if (given.dot)
    fmt::print(
        "{}", report::Dot(report::Joined(given.model.filename().string(),
                                         GraphOfModel(given.model, result, given.options).graphs)));
  else if (given.options.text && session.json)
    fmt::print("{}\n", JsonText(Json{{"format", result.frontend->name}, {"mil", result.text}}, 2,
                                BadUtf8::kReplace));
  else if (given.options.text)
    fmt::print("{}", result.text);
  else
    session.json ? PrintDocument(InspectJson(result, given.weights)) : Print(result, given);
  return 0;
}

}  // namespace

Command InspectCommand() {
  auto given = std::make_shared<InspectArguments>();
  std::vector<Option> table = {
      {"MODEL", "", "source model, weights, package, compiled bundle or MIL text",
       Into(given->model), true},
      {"--ops", "", "list every operator", Switch(given->ops)},
      {"--weights", "",
       "list every constant of ten elements or more with its size in bytes, or every "
       "tensor of a GGUF or safetensors file",
       Switch(given->weights)},
      {"--mil", "",
       "print the program as MIL text: for Core ML formats as in model.mil, for source "
       "models in a short readable form",
       Switch(given->options.text)},
      {"--dot", "", "print the graph of the default function for Graphviz", Switch(given->dot)},
      ReportOption(given->reports, false),
      JsonOption()};
  Append(BundleTable(given->options.versions), table);
  Append(ImportTable(given->options.import), table);
  return {"inspect", "Show the inputs, outputs, operators and weights of a model",
          "mlc inspect model.onnx --ops", std::move(table),
          [given](Session& session) { return RunInspect(*given, session); }};
}

}  // namespace mlc::driver
