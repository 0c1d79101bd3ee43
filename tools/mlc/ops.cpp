#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "frontends/onnx/onnx.h"
#include "lib/ops/row.h"
#include "tools/mlc/model.h"

namespace mlc {
namespace {

using Json = nlohmann::ordered_json;

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

void Print(const Table& table, bool markdown) {
  if (markdown) {
    fmt::print("| {} |\n|{}\n", fmt::join(table.header, " | "), [&] {
      std::string rule;
      for (size_t i = 0; i < table.header.size(); ++i) rule += "---|";
      return rule;
    }());
    for (const auto& row : table.rows) {
      fmt::print("|");
      for (std::string cell : row) {
        for (size_t i = 0; (i = cell.find('|', i)) != cell.npos; i += 2) cell.insert(i, 1, '\\');
        fmt::print(" {} |", cell);
      }
      fmt::print("\n");
    }
    return;
  }
  std::vector<size_t> widths(table.header.size());
  for (size_t i = 0; i < widths.size(); ++i) {
    widths[i] = table.header[i].size();
    for (const auto& row : table.rows) widths[i] = std::max(widths[i], row[i].size());
  }
  auto line = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i)
      fmt::print("{}",
                 i + 1 == cells.size() ? cells[i] : fmt::format("{:<{}}  ", cells[i], widths[i]));
    fmt::print("\n");
  };
  line(table.header);
  for (const auto& row : table.rows) line(row);
}

Table MilTable() {
  Table table{{"operator", "since", "versions", "evaluated", "what it computes"}, {}};
  for (const OpDef& def : Ops().all())
    table.rows.push_back({std::string(def.name), std::string(TargetName(def.forms.front().since)),
                          std::to_string(def.forms.size()), def.eval ? "yes" : "no",
                          std::string(def.doc)});
  return table;
}

Table OnnxTable() {
  Table table{{"operator", "domain", "opset versions"}, {}};
  std::map<std::pair<std::string, std::string>, std::string> rows;
  for (const OnnxOperator& row : OnnxOperators()) {
    std::string& text = rows[{std::string(row.domain), std::string(row.name)}];
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", row.since,
                        row.until ? fmt::format("-{}", row.until) : "+");
  }
  for (const auto& [key, versions] : rows)
    table.rows.push_back({key.second, key.first.empty() ? "ai.onnx" : key.first, versions});
  return table;
}

// Which operators of a model have no row, without compiling it.
int CheckModel(const Invocation& invocation) {
  OnnxFacts facts = ReadOnnxFacts(invocation.get("MODEL"));
  std::set<std::string> known;
  for (const OnnxOperator& row : OnnxOperators()) {
    auto opset = facts.opsets.find(std::string(row.domain));
    int64_t version = opset == facts.opsets.end() ? 1 : opset->second;
    if (version >= row.since && (row.until == 0 || version <= row.until))
      known.insert(row.domain.empty() ? std::string(row.name)
                                      : fmt::format("{}::{}", row.domain, row.name));
  }
  Json json{{"operators", Json::object()}, {"unsupported", Json::array()}};
  Table table{{"operator", "nodes", "supported"}, {}};
  for (const auto& [name, count] : facts.operators) {
    bool supported = known.contains(name);
    json["operators"][name] = count;
    if (!supported) json["unsupported"].push_back(name);
    table.rows.push_back({name, std::to_string(count), supported ? "yes" : "no"});
  }
  bool all = json["unsupported"].empty();
  if (invocation.json())
    fmt::print("{}\n", json.dump(2));
  else
    Print(table, invocation.has("--markdown"));
  return all ? 0 : 1;
}

int ListOps(const Invocation& invocation) {
  if (invocation.has("MODEL")) return CheckModel(invocation);
  std::string frontend = invocation.get("--frontend");
  if (!frontend.empty() && frontend != "onnx")
    throw Error("usage", fmt::format("--frontend: \"{}\" is not there", frontend)).Expected("onnx");
  Table table = frontend.empty() ? MilTable() : OnnxTable();
  if (!invocation.json()) {
    Print(table, invocation.has("--markdown"));
    return 0;
  }
  Json json = Json::array();
  for (const auto& row : table.rows) {
    Json entry;
    for (size_t i = 0; i < row.size(); ++i) entry[table.header[i]] = row[i];
    json.push_back(entry);
  }
  fmt::print("{}\n", json.dump(2));
  return 0;
}

}  // namespace

Command OpsCommand() {
  return {"ops",
          "List operators: MIL's, a frontend's, or those of a model and whether they are supported",
          "mlc ops --frontend onnx --markdown",
          {{"MODEL", "", "an ONNX model whose operators are checked"},
           {"--frontend", "onnx", "list what this frontend lowers"},
           {"--markdown", "", "as a Markdown table"},
           {"--json", "", "one JSON document on stdout"}},
          ListOps};
}

}  // namespace mlc
