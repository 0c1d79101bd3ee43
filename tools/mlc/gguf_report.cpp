#include "tools/mlc/gguf_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "tools/driver/errors.h"
#include "tools/driver/inspect.h"
#include "tools/driver/inspect_gguf.h"
#include "tools/mlc/interface_report.h"

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;
using Total = GgufFacts::Total;

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

Json ToJson(const Total& total) {
  return {{"tensors", total.tensors},
          {"elements", static_cast<uint64_t>(total.elements)},
          {"bytes", total.bytes},
          {"bits_per_weight", total.bits()}};
}

void PrintJson(const GgufFacts& facts, bool weights) {
  Json json{{"format", "gguf"}, {"version", facts.version}, {"architecture", facts.architecture}};
  json["files"] = Json::array();
  for (const GgufFacts::File& file : facts.files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  if (facts.program) {
    json["target"] = TargetName(facts.program->main()->opset);
    json.update(ProgramJson(*facts.program));
    json["operators"] = OperatorsOf(*facts.program->main());
  }
  json["problems"] = Json::array();
  for (const Error& problem : facts.problems) json["problems"].push_back(ErrorJson(problem));
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
  for (const auto& [type, total] : facts.by_type) by_type[type] = ToJson(total);
  json["weights"] = {{"count", facts.total.tensors},
                     {"elements", static_cast<uint64_t>(facts.total.elements)},
                     {"bytes", facts.total.bytes},
                     {"bits_per_weight", facts.total.bits()},
                     {"by_type", by_type}};
  if (weights) {
    Json& tensors = json["weights"]["tensors"] = Json::array();
    for (const GgufFacts::Weight& weight : facts.weights)
      tensors.push_back({{"name", weight.name},
                         {"type", weight.type},
                         {"shape", weight.dims},
                         {"bytes", weight.bytes}});
  }
  PrintDocument(json);
}

std::string Line(const Total& total) {
  return fmt::format("{} tensors, {:.0f} elements, {:.2f} MB, {:.2f} bits per weight",
                     total.tensors, total.elements, static_cast<double>(total.bytes) / 1e6,
                     total.bits());
}

void PrintText(const GgufFacts& facts, const std::filesystem::path& path, bool weights) {
  fmt::print("{}  gguf version {}{}{}\n", path.string(), facts.version,
             facts.architecture.empty() ? "" : ", " + ToText(facts.architecture),
             facts.files.size() > 1 ? fmt::format(", {} files", facts.files.size()) : "");
  if (facts.program) fmt::print("{}", InterfaceText(*facts.program->main()));
  for (const Error& problem : facts.problems) {
    fmt::print("{:<11}{}\n", "problem", WithFlags(problem.text()));
    for (const std::string& note : problem.notes()) fmt::print("  {}\n", WithFlags(note));
  }
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
  fmt::print("{:<11}{}\n", "weights", Line(facts.total));
  std::vector<std::pair<std::string, Total>> types(facts.by_type.begin(), facts.by_type.end());
  std::ranges::stable_sort(types, std::greater(),
                           [](const auto& type) { return type.second.bytes; });
  for (const auto& [type, total] : types) fmt::print("  {:<8} {}\n", type, Line(total));
  if (!weights) return;
  for (const GgufFacts::Weight& weight : facts.weights)
    fmt::print("  {:<40} {:<8} {:<20} {}\n", weight.name, weight.type,
               fmt::format("[{}]", fmt::join(weight.dims, ",")), weight.bytes);
}

}  // namespace

void PrintGguf(const std::filesystem::path& path, bool weights, Session& session) {
  const GgufFacts facts = InspectGguf(path, session.diagnostics);
  session.json ? PrintJson(facts, weights) : PrintText(facts, path, weights);
}

}  // namespace mlc::driver
