#include "tools/mlc/folder_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "tools/driver/errors.h"
#include "tools/driver/inspect.h"
#include "tools/driver/inspect_folder.h"
#include "tools/mlc/interface_report.h"

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;
using Total = FolderFacts::Total;

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

void PrintJson(const FolderFacts& facts, bool weights) {
  Json json{{"format", "safetensors"},
            {"architecture", facts.architecture},
            {"model_type", facts.model_type},
            {"config", Json::object()}};
  for (const auto& [key, value] : facts.config) json["config"][key] = ParseJson(value);
  json["problems"] = Json::array();
  for (const Error& problem : facts.problems) json["problems"].push_back(ErrorJson(problem));
  json["files"] = Json::array();
  for (const FolderFacts::File& file : facts.files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  Json by_type = Json::object();
  for (const auto& [type, total] : facts.by_type) by_type[type] = total.bytes;
  json["weights"] = {{"count", facts.total.tensors},
                     {"elements", static_cast<uint64_t>(facts.total.elements)},
                     {"bytes", facts.total.bytes},
                     {"bits_per_weight", facts.total.bits()},
                     {"by_dtype", by_type}};
  if (weights) {
    Json& tensors = json["weights"]["tensors"] = Json::array();
    for (const FolderFacts::Weight& weight : facts.weights) {
      tensors.push_back({{"name", weight.name},
                         {"dtype", weight.type},
                         {"shape", weight.dims},
                         {"bytes", weight.bytes}});
      if (!weight.problem.empty()) tensors.back()["problem"] = weight.problem;
    }
  }
  PrintDocument(json);
}

std::string Line(const Total& total) {
  return fmt::format("{} tensors, {:.0f} elements, {:.2f} MB, {:.2f} bits per weight",
                     total.tensors, total.elements, static_cast<double>(total.bytes) / 1e6,
                     total.bits());
}

void PrintText(const FolderFacts& facts, const std::filesystem::path& path, bool weights) {
  fmt::print("{}  safetensors", path.string());
  if (!facts.architecture.empty() || !facts.model_type.empty())
    fmt::print(", {} ({})", facts.architecture, facts.model_type);
  fmt::print("\n");
  if (facts.program) fmt::print("{}", InterfaceText(*facts.program->main()));
  for (const Error& problem : facts.problems) {
    fmt::print("{:<11}{}\n", "problem", WithFlags(problem.text()));
    for (const std::string& note : problem.notes()) fmt::print("  {}\n", WithFlags(note));
  }
  for (std::string_view shown : kShown)
    for (const auto& [key, value] : facts.config)
      if (key == shown) fmt::print("  {:<24} {}\n", key, value.substr(0, 80));
  fmt::print("{:<11}{}\n", "weights", Line(facts.total));
  std::vector<std::pair<std::string, Total>> types(facts.by_type.begin(), facts.by_type.end());
  std::stable_sort(types.begin(), types.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  for (const auto& [type, total] : types) fmt::print("  {:<24} {}\n", type, Line(total));
  for (const FolderFacts::Weight& weight : facts.weights) {
    if (weights)
      fmt::print("  {:<40} {:<24} {:<16} {}\n", weight.name, weight.type,
                 fmt::format("[{}]", fmt::join(weight.dims, ",")), weight.bytes);
    if (!weight.problem.empty()) fmt::print("  not read: {}: {}\n", weight.name, weight.problem);
  }
}

}  // namespace

void PrintFolder(const std::filesystem::path& path, bool weights, Session& session) {
  const FolderFacts facts = InspectFolder(path, session.diagnostics);
  session.json ? PrintJson(facts, weights) : PrintText(facts, path, weights);
}

}  // namespace mlc::driver
