#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

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

constexpr std::string_view kLegend = R"(# ONNX operators

What `mlc` compiles, and from which opset version on. Written by `mlc ops --frontend onnx --markdown`.

| class | meaning |
|---|---|
| direct | one MIL operation |
| decomposed | several MIL operations |
| folded | nothing is left of it at run time |
| conditional | works under the condition given; otherwise an error says why not |
| impossible | Core ML lacks what it takes; it works on constants where the condition says so |

)";

std::string_view DomainName(std::string_view domain) { return domain.empty() ? "ai.onnx" : domain; }

// One row per operator; its versions apart where class or condition differ.
Table OnnxTable() {
  Table table{{"operator", "domain", "versions", "class", "condition"}, {}};
  const OnnxOperator* last = nullptr;
  int begin = 0;
  std::string done;  // its versions before the range that begins at `begin`
  std::vector<OnnxOperator> operators = OnnxOperators();
  for (const OnnxOperator& row : operators) {
    bool same = last && last->name == row.name && last->domain == row.domain &&
                last->kind == row.kind && last->condition == row.condition;
    bool follows = same && last->until + 1 == row.since;
    if (!follows) begin = row.since;
    std::string versions =
        row.until ? fmt::format("{}-{}", begin, row.until) : fmt::format("{}+", begin);
    if (!same) {
      table.rows.push_back({std::string(row.name), std::string(DomainName(row.domain)), "",
                            std::string(row.kind), std::string(row.condition)});
      done.clear();
    }
    if (!follows && same) done = table.rows.back()[2] + ", ";
    table.rows.back()[2] = done + versions;
    last = &row;
  }
  return table;
}

// The row of each operator of a model, and what the frontend refuses when it reads it.
int CheckModel(const Invocation& invocation) {
  std::filesystem::path path = invocation.get("MODEL");
  OnnxFacts facts = ReadOnnxFacts(path);
  std::map<std::string, OnnxOperator> known;
  for (const OnnxOperator& row : OnnxOperators()) {
    auto opset = facts.opsets.find(std::string(row.domain));
    int64_t version = opset == facts.opsets.end() ? 1 : opset->second;
    if (version >= row.since && (row.until == 0 || version <= row.until))
      known.emplace(
          row.domain.empty() ? std::string(row.name) : fmt::format("{}::{}", row.domain, row.name),
          row);
  }
  Json json{{"operators", Json::object()}, {"unsupported", Json::array()}};
  Table table{{"operator", "nodes", "class", "condition"}, {}};
  for (const auto& [name, count] : facts.operators) {
    auto row = known.find(name);
    json["operators"][name] = count;
    if (row == known.end()) json["unsupported"].push_back(name);
    table.rows.push_back({name, std::to_string(count),
                          std::string(row == known.end() ? "unsupported" : row->second.kind),
                          std::string(row == known.end() ? "" : row->second.condition)});
  }
  std::vector<Error> errors;
  try {
    ImportOnnx(path, ImportOptions(invocation), invocation.diagnostics);
  } catch (const Errors& several) {
    errors = several.errors();
  } catch (const Error& error) {
    errors = {error};
  }
  int code = 0;
  for (const Error& error : errors) code = std::max(code, ExitCode(error.id()));
  if (!invocation.json()) {
    Print(table, invocation.has("--markdown"));
    std::fflush(stdout);
    for (const Error& error : errors) fmt::print(stderr, "{}\n", error.Render());
    return code;
  }
  for (const Error& error : errors)
    json["errors"].push_back({{"id", error.id()},
                              {"text", error.text()},
                              {"location", error.location().ToString()},
                              {"notes", error.notes()}});
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  return code;
}

int ListOps(const Invocation& invocation) {
  if (invocation.has("MODEL")) return CheckModel(invocation);
  std::string frontend = invocation.get("--frontend");
  if (!frontend.empty() && frontend != "onnx")
    throw Error("usage", fmt::format("--frontend: \"{}\" is not there", frontend)).Expected("onnx");
  Table table = frontend.empty() ? MilTable() : OnnxTable();
  if (!invocation.json()) {
    if (invocation.has("--markdown") && !frontend.empty()) fmt::print("{}", kLegend);
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
  std::vector<Flag> flags = {
      {"MODEL", "", "an ONNX model: its operators, and what of it is not supported"},
      {"--frontend", "onnx", "list what this frontend lowers"},
      {"--markdown", "", "as a Markdown table"},
      {"--json", "", "one JSON document on stdout"}};
  flags.insert(flags.end(), ImportFlags().begin(), ImportFlags().end());
  return {
      "ops",
      "List operators: MIL's, a frontend's, or those of a model and what of it is not supported",
      "mlc ops --frontend onnx --markdown", flags, ListOps};
}

}  // namespace mlc
