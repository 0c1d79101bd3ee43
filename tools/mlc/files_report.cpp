#include "tools/mlc/files_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/errors.h"
#include "tools/driver/inspect.h"
#include "tools/driver/inspect_files.h"
#include "tools/driver/json_results.h"
#include "tools/mlc/interface_report.h"
#include "tools/mlc/terminal.h"

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;
using Total = FileFacts::Total;

Json FilesJson(const FileFacts& facts) {
  Json files = Json::array();
  for (const FileFacts::File& file : facts.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  return files;
}

Json ProblemsJson(const FileFacts& facts) {
  Json problems = Json::array();
  for (const Error& problem : facts.problems) problems.push_back(ErrorJson(problem));
  return problems;
}

// `type`: the key of the storage type; `by_type`: the totals of each type. `list`: list the
// tensors.
Json WeightsJson(const FileFacts& facts, bool list, const std::string& type, Json by_type) {
  Json json{{"count", facts.total.tensors},
            {"elements", static_cast<uint64_t>(facts.total.elements)},
            {"bytes", facts.total.bytes},
            {"bits_per_weight", facts.total.bits()},
            {"by_" + type, std::move(by_type)}};
  if (!list) return json;
  Json& tensors = json["tensors"] = Json::array();
  for (const FileFacts::Weight& weight : facts.weights) {
    tensors.push_back({{"name", weight.name},
                       {type, weight.type},
                       {"shape", weight.dims},
                       {"bytes", weight.bytes}});
    if (!weight.problem.empty()) tensors.back()["problem"] = weight.problem;
  }
  return json;
}

// Prints the inputs and outputs of the network, or why there is none.
void PrintNetwork(const FileFacts& facts) {
  if (facts.program) fmt::print("{}", InterfaceText(*facts.program->main()));
  for (const Error& problem : facts.problems) {
    fmt::print("{:<11}{}\n", "problem", WithFlags(problem.text()));
    for (const std::string& note : problem.notes()) fmt::print("  {}\n", WithFlags(note));
  }
}

std::string Line(const Total& total) {
  return fmt::format("{}, {}, {}, {:.2f} bits per weight",
                     Counted(static_cast<int64_t>(total.tensors), "tensor"),
                     Counted(static_cast<int64_t>(total.elements), "element"),
                     BytesText(total.bytes), total.bits());
}

// Prints the totals, and the tensors if `list` is set, with columns of these widths.
void PrintWeights(const FileFacts& facts, bool list, int type_width, int dims_width) {
  fmt::print("{:<11}{}\n", "weights", Line(facts.total));
  std::vector<std::pair<std::string, Total>> types(facts.by_type.begin(), facts.by_type.end());
  std::ranges::stable_sort(types, std::greater(),
                           [](const auto& type) { return type.second.bytes; });
  for (const auto& [type, total] : types)
    fmt::print("  {:<{}} {}\n", type, type_width, Line(total));
  for (const FileFacts::Weight& weight : facts.weights) {
    if (list)
      fmt::print("  {:<40} {:<{}} {:<{}} {}\n", weight.name, weight.type, type_width,
                 fmt::format("[{}]", fmt::join(weight.dims, ",")), dims_width, weight.bytes);
    if (!weight.problem.empty()) fmt::print("  not read: {}: {}\n", weight.name, weight.problem);
  }
}

Json ToJson(const GgufFacts::Value& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

// Formats a value on one line, with control characters replaced.
std::string ToText(const GgufFacts::Value& value, bool single = false) {
  if (const auto* number = std::get_if<double>(&value))
    return single ? fmt::format("{}", static_cast<float>(*number)) : fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) {
    std::string line = *text;
    std::ranges::replace_if(
        line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
    return line;
  }
  return JsonText(ToJson(value));
}

Json JsonOf(const GgufFacts& facts, bool weights) {
  Json json{{"format", "gguf"}, {"version", facts.version}, {"architecture", facts.architecture}};
  json["files"] = FilesJson(facts);
  if (facts.program) {
    json["target"] = TargetName(facts.program->main()->opset);
    json.update(ProgramJson(*facts.program));
    json["operators"] = OperatorsOf(*facts.program->main());
  }
  json["problems"] = ProblemsJson(facts);
  json["metadata"] = Json::object();
  for (const GgufFacts::Entry& entry : facts.metadata) {
    Json& item = json["metadata"][entry.key] = {{"type", entry.type}};
    if (!entry.array) {
      item["value"] = ToJson(entry.values.at(0));
      continue;
    }
    item["count"] = entry.count;
    item["first"] = Json::array();
    for (const GgufFacts::Value& value : entry.values) item["first"].push_back(ToJson(value));
  }
  Json by_type = Json::object();
  for (const auto& [type, total] : facts.by_type)
    by_type[type] = {{"tensors", total.tensors},
                     {"elements", static_cast<uint64_t>(total.elements)},
                     {"bytes", total.bytes},
                     {"bits_per_weight", total.bits()}};
  json["weights"] = WeightsJson(facts, weights, "type", std::move(by_type));
  return json;
}

void PrintText(const GgufFacts& facts, const std::filesystem::path& path, bool weights) {
  fmt::print("{}  gguf version {}{}{}\n", path.string(), facts.version,
             facts.architecture.empty() ? "" : ", " + ToText(facts.architecture),
             facts.files.size() > 1 ? fmt::format(", {} files", facts.files.size()) : "");
  PrintNetwork(facts);
  fmt::print("{:<11}{} keys\n", "metadata", facts.metadata.size());
  for (const GgufFacts::Entry& entry : facts.metadata) {
    std::vector<std::string> values;
    for (const GgufFacts::Value& value : entry.values)
      values.push_back(ToText(value, entry.type == "float32"));
    if (entry.array && entry.type == "string")
      for (std::string& text : values) text = fmt::format("\"{}\"", text);
    if (entry.array && entry.count > values.size()) values.push_back("...");
    std::string type = entry.array ? fmt::format("{}[{}]", entry.type, entry.count) : entry.type;
    fmt::print("  {:<40} {:<15} {}\n", entry.key, type, fmt::join(values, ", "));
  }
  PrintWeights(facts, weights, 8, 20);
}

// Members that determine the kind and size of a network; --json prints all members.
constexpr std::string_view kShown[] = {
    "hidden_size",
    "d_model",
    "dim",
    "n_embd",
    "intermediate_size",
    "hidden_dim",
    "n_inner",
    "num_hidden_layers",
    "num_layers",
    "n_layers",
    "n_layer",
    "num_attention_heads",
    "n_heads",
    "n_head",
    "head_dim",
    "num_key_value_heads",
    "vocab_size",
    "max_position_embeddings",
    "n_positions",
    "sliding_window",
    "rope_theta",
    "rope_scaling",
    "num_local_experts",
    "num_experts",
    "num_experts_per_tok",
    "tie_word_embeddings",
    "quantization",
    "quantization_config",
};

Json JsonOf(const FolderFacts& facts, bool weights) {
  Json json{{"format", "safetensors"},
            {"architecture", facts.architecture},
            {"model_type", facts.model_type},
            {"config", Json::object()}};
  for (const auto& [key, value] : facts.config) json["config"][key] = ParseJson(value);
  json["problems"] = ProblemsJson(facts);
  json["files"] = FilesJson(facts);
  Json by_type = Json::object();
  for (const auto& [type, total] : facts.by_type) by_type[type] = total.bytes;
  json["weights"] = WeightsJson(facts, weights, "dtype", std::move(by_type));
  return json;
}

void PrintText(const FolderFacts& facts, const std::filesystem::path& path, bool weights) {
  fmt::print("{}  safetensors", path.string());
  if (!facts.architecture.empty() || !facts.model_type.empty())
    fmt::print(", {} ({})", facts.architecture, facts.model_type);
  fmt::print("\n");
  PrintNetwork(facts);
  for (std::string_view shown : kShown)
    for (const auto& [key, value] : facts.config)
      if (key == shown) fmt::print("  {:<24} {}\n", key, value.substr(0, 80));
  PrintWeights(facts, weights, 24, 16);
}

// `facts`: GgufFacts or FolderFacts.
void Print(const auto& facts, const std::filesystem::path& path, bool weights, bool json,
           Json& document) {
  if (json)
    document = JsonOf(facts, weights);
  else
    PrintText(facts, path, weights);
}

}  // namespace

void PrintGguf(const std::filesystem::path& path, bool weights, Session& session, Json& document) {
  Print(InspectGguf(path, session.diagnostics), path, weights, session.json, document);
}

void PrintFolder(const std::filesystem::path& path, bool weights, Session& session,
                 Json& document) {
  Print(InspectFolder(path, session.diagnostics), path, weights, session.json, document);
}

}  // namespace mlc::driver
