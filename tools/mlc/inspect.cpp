#include "tools/driver/inspect.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/report/render.h"
#include "lib/support/json_text.h"
#include "tools/driver/app_code.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/json_results.h"
#include "tools/driver/reports.h"
#include "tools/mlc/command.h"
#include "tools/mlc/files_report.h"
#include "tools/mlc/interface_report.h"
#include "tools/mlc/terminal.h"

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
  std::vector<std::string> models;
  InspectOptions options;
  bool ops = false, weights = false, dot = false, swift = false, objective_c = false;
  std::vector<std::filesystem::path> reports;
};

void Print(const InspectResult& result, const std::filesystem::path& model,
           const InspectArguments& given) {
  const Program& program = *result.program;
  const Function& main = *program.main();
  fmt::print("{}  {}, needs {}\n", model.string(), result.frontend->name,
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
  fmt::print("{:<11}{}, {}, {}, {:.2f} bits per weight\n", "weights",
             Counted(std::ssize(result.weights), "tensor"),
             Counted(result.weight_elements, "element"), BytesText(result.weight_bytes),
             BitsOf(result.weight_bytes, result.weight_elements));
  constexpr size_t kOthers = 53;  // characters of a row without its name
  if (given.weights)
    for (const analysis::Weight& weight : result.weights)
      fmt::print("  {} {:<6} {:<20} {:>10}  {:5.2f} bits{}{}\n",
                 NameColumn(weight.name, kOthers, stdout), Name(weight.dtype),
                 fmt::format("[{}]", fmt::join(weight.dims, ",")), weight.bytes,
                 BitsOf(weight.bytes, weight.elements()), weight.encoding.empty() ? "" : ", ",
                 weight.encoding);
  PrintOperators(result.operators, most_kinds);
}

// Formats whose files contain more information than the imported program.
struct FilesRow {
  std::string_view frontend;
  void (*print)(const std::filesystem::path& model, bool weights, Session& session, Json& document);
};
constexpr FilesRow kPrintFiles[] = {{"gguf", PrintGguf}, {"safetensors", PrintFolder}};

// Prints the code that loads and calls a package.
void PrintAppCode(const InspectResult& result, const std::filesystem::path& model,
                  const InspectArguments& given, const Session& session, Json& document) {
  if (result.frontend->IsSource())
    throw Error("usage", "{} requires a package, not {}", given.swift ? "--swift" : "--objc",
                result.frontend->what)
        .Help("compile it first: an app calls the package by the package's names");
  const std::string code = given.swift ? SwiftCode(result, model) : ObjectiveCCode(result, model);
  if (session.json)
    document = {{"format", result.frontend->name}, {given.swift ? "swift" : "objc", code}};
  else
    fmt::print("{}", code);
}

int InspectOne(const InspectArguments& given, const std::filesystem::path& model, Session& session,
               Json& document) {
  // Describe the files instead of the program.
  const bool code = given.swift || given.objective_c;
  const bool files =
      !given.options.text && !given.ops && !given.dot && !code && given.reports.empty();
  const Frontend& frontend = FrontendOf(model);
  if (!given.options.text || frontend.IsSource())
    Refuse({"--compiler-version", "--mil-version"},
           given.options.text ? "--mil of a source model states no versions"
                              : "only --mil prints versions",
           session);
  for (const auto& [name, print] : kPrintFiles)
    if (files && frontend.name == name) {
      print(model, given.weights, session, document);
      return 0;
    }
  if (given.dot) Refuse({"--mil", "--ops", "--weights", "--json"}, "--dot prints a graph", session);
  if (code)
    Refuse({"--mil", "--ops", "--weights", "--dot", given.swift ? "--objc" : "--swift"},
           given.swift ? "--swift prints code" : "--objc prints code", session);
  InspectResult result = Inspect(model, given.options, session.diagnostics);
  if (!given.reports.empty())
    WriteReports(InspectReport(model, result, given.options), given.reports);
  if (code)
    PrintAppCode(result, model, given, session, document);
  else if (given.dot)
    fmt::print("{}",
               report::Dot(report::Joined(model.filename().string(),
                                          GraphOfModel(model, result, given.options).graphs)));
  else if (given.options.text && session.json)
    document = {{"format", result.frontend->name}, {"mil", result.text}};
  else if (given.options.text)
    fmt::print("{}", result.text);
  else if (session.json)
    document = InspectJson(result, given.weights);
  else
    Print(result, model, given);
  return 0;
}

int RunInspect(const InspectArguments& given, Session& session) {
  if (given.models.size() > 1) Refuse({"--report"}, "a report is of one model", session);
  return RunEach(given.models, session,
                 [&](const std::filesystem::path& model, Session& own, Json& document) {
                   return InspectOne(given, model, own, document);
                 });
}

}  // namespace

Command InspectCommand() {
  auto given = std::make_shared<InspectArguments>();
  std::vector<Option> table = {
      {"MODEL...", "", "source models, weights, packages, compiled bundles or MIL texts",
       Into(given->models), true},
      Common({"--ops", "", "list every operator", Switch(given->ops)}),
      Common({"--weights", "",
              "list every constant of ten elements or more with its size in bytes, or every "
              "tensor of a GGUF or safetensors file",
              Switch(given->weights)}),
      Common({"--mil", "",
              "print the program as MIL text: for Core ML formats as in model.mil, for source "
              "models in a short readable form",
              Switch(given->options.text)}),
      Common({"--dot", "", "print the graph of the default function for Graphviz",
              Switch(given->dot)}),
      Common({"--swift", "", "print the Swift code with which an app loads and calls a package",
              Switch(given->swift)}),
      {"--objc", "", "print such code in Objective-C", Switch(given->objective_c)},
      ReportOption(given->reports, false),
      JsonOption()};
  Append(BundleTable(given->options.versions), table);
  Append(ImportTable(given->options.import), table);
  return {"inspect",
          "Show the inputs, outputs, operators and weights of a model",
          {"mlc inspect model.onnx --ops", "mlc inspect model.mlpackage --swift > Model.swift"},
          std::move(table),
          [given](Session& session) { return RunInspect(*given, session); },
          {},
          {"diff", "doctor", "explain"}};
}

}  // namespace mlc::driver
