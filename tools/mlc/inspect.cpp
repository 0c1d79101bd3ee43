#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/coreml/bundle.h"
#include "lib/ir/text.h"
#include "lib/passes/pass.h"
#include "tools/mlc/compile_model.h"
#include "tools/mlc/interface.h"
#include "tools/mlc/model.h"

namespace mlc {
namespace {

using Json = nlohmann::ordered_json;

struct WeightSummary {
  int64_t count = 0, elements = 0;
  uint64_t bytes = 0;
  std::map<std::string, uint64_t> by_dtype;
};

WeightSummary Weights(const Program& program, Json* each) {
  WeightSummary summary;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (!op->is("const") || op->val.dtype() == DType::kString || op->val.size() < 10) return;
      ++summary.count;
      summary.elements += op->val.size();
      summary.bytes += op->val.byte_size();
      summary.by_dtype[std::string(Name(op->val.dtype()))] += op->val.byte_size();
      if (each)
        each->push_back({{"name", op->name},
                         {"dtype", Name(op->val.dtype())},
                         {"shape", op->val.dims()},
                         {"bytes", op->val.byte_size()}});
    });
  return summary;
}

// Author and so on, those that are there.
std::vector<std::pair<std::string, std::string>> Texts(const Interface& interface) {
  std::vector<std::pair<std::string, std::string>> texts = {
      {"author", interface.author},
      {"license", interface.license},
      {"description", interface.short_description},
      {"version", interface.version}};
  std::erase_if(texts, [](const auto& text) { return text.second.empty(); });
  return texts;
}

std::map<std::string, int64_t> Operators(Function& function) {
  std::map<std::string, int64_t> counts;
  ForEachOperation(function, [&](Operation* op) {
    if (!op->is("const")) ++counts[std::string(op->def->name)];
  });
  return counts;
}

void PrintOperators(const std::map<std::string, int64_t>& counts, size_t most) {
  int64_t total = 0;
  for (const auto& [name, count] : counts) total += count;
  fmt::print("{:<11}{}\n", "operators", total);
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (size_t i = 0; i < std::min(most, sorted.size()); ++i)
    fmt::print("  {:>5}  {}\n", sorted[i].second, sorted[i].first);
  if (sorted.size() > most)
    fmt::print("         ... {} more kinds, see --ops\n", sorted.size() - most);
}

int Inspect(const Invocation& invocation) {
  std::filesystem::path path = invocation.get("ANY");
  Format format = DetectFormat(path);
  Program program = ImportModel(path, ImportOptions(invocation), invocation.diagnostics);
  if (invocation.has("--mil")) {
    // A source model has no text of Core ML's yet.
    std::string text = format == Format::kOnnx
                           ? PrintText(program, {.inline_limit = 4, .max_elements = 32}) + "\n"
                           : BundleText(program, ModelFolder(path),
                                        BundleVersion(invocation, "--compiler-version"),
                                        BundleVersion(invocation, "--mil-version"));
    if (invocation.json())
      text = Json{{"format", Name(format)}, {"mil", text}}.dump(2, ' ', false,
                                                                Json::error_handler_t::replace) +
             "\n";
    fmt::print("{}", text);
    return 0;
  }
  const Function& main = *program.main();
  Opset needed = main.opset;  // of every function: a package is loaded as a whole
  for (const auto& function : program.functions) needed = std::max(needed, function->opset);
  Json weights_each = Json::array();
  WeightSummary weights = Weights(program, invocation.has("--weights") ? &weights_each : nullptr);
  std::map<std::string, int64_t> histogram = Histogram(program);
  if (invocation.json()) {
    Json json{{"format", Name(format)}, {"target", TargetName(needed)}};
    json.update(InterfaceJson(main));
    json["functions"] = Json::array();
    for (const auto& function : program.functions) {
      Json one{{"name", function->name}, {"target", TargetName(function->opset)}};
      one.update(InterfaceJson(*function));
      one["operators"] = Operators(*function);
      json["functions"].push_back(std::move(one));
    }
    if (program.functions.size() > 1) json["default_function"] = main.name;
    json["operators"] = histogram;
    json["weights"] = {{"count", weights.count},
                       {"elements", weights.elements},
                       {"bytes", weights.bytes},
                       {"by_dtype", weights.by_dtype}};
    if (invocation.has("--weights")) json["weights"]["tensors"] = weights_each;
    Json metadata = Json::object();
    for (const auto& [key, value] : program.interface.metadata) metadata[key] = value;
    json["metadata"] = metadata;
    for (const auto& [key, value] : Texts(program.interface)) json[key] = value;
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{}  {}, needs {}\n", path.string(), Name(format), TargetName(needed));
  size_t most_kinds = invocation.has("--ops") ? SIZE_MAX : 12;
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
    if (several) PrintOperators(Operators(*function), most_kinds);
  }
  if (several) fmt::print("package\n");
  for (auto& [key, value] : Texts(program.interface)) {
    constexpr size_t kShown = 80;  // bytes; --json has all
    size_t end = std::min(value.find_first_of("\r\n"), kShown);
    while (end < value.size() && (value[end] & 0xC0) == 0x80) --end;  // within a UTF-8 sequence
    fmt::print("{:<10} {}{}\n", key, value.substr(0, end), end < value.size() ? "..." : "");
  }
  fmt::print("{:<11}{} tensors, {} elements, {:.2f} MB\n", "weights", weights.count,
             weights.elements, static_cast<double>(weights.bytes) / 1e6);
  if (invocation.has("--weights"))
    for (const Json& tensor : weights_each)
      fmt::print("  {:<40} {:<6} {:<20} {}\n", tensor["name"].get<std::string>(),
                 tensor["dtype"].get<std::string>(), tensor["shape"].dump(),
                 tensor["bytes"].get<int64_t>());
  PrintOperators(histogram, most_kinds);
  return 0;
}

}  // namespace

Command InspectCommand() {
  std::vector<Flag> flags = {
      {"ANY", "", "a source model, package or MIL text", true},
      {"--ops", "", "every kind of operator"},
      {"--weights", "", "every constant of ten elements or more"},
      {"--mil", "",
       "the program as MIL text: of Core ML's formats the model.mil that its "
       "compiler writes, of a source model a short form for people"},
      {"--json", "", "one JSON document on stdout"}};
  flags.insert(flags.end(), BundleFlags().begin(), BundleFlags().end());
  flags.insert(flags.end(), ImportFlags().begin(), ImportFlags().end());
  return {"inspect", "Show inputs, outputs, operators and weights of any model",
          "mlc inspect model.onnx --ops", flags, Inspect};
}

}  // namespace mlc
