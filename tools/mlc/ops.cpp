#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/ops/row.h"
#include "tools/driver/operators.h"
#include "tools/mlc/command.h"
#include "tools/mlc/table.h"

namespace mlc {
namespace {

using Json = nlohmann::ordered_json;

struct OpsArguments {
  std::filesystem::path model;
  ImportOptions import;
  bool onnx = false, markdown = false;
};

Table MilTable() {
  Table table{{"operator", "since", "versions", "evaluated", "what it computes"}, {}};
  for (const OpDef& def : Ops().all())
    table.rows.push_back({std::string(def.name), std::string(TargetName(def.forms.front().since)),
                          std::to_string(def.forms.size()), def.eval ? "yes" : "no",
                          std::string(def.doc)});
  return table;
}

constexpr std::string_view kLegend = R"(# ONNX operators

Operators that `mlc` compiles, and from which opset version on. Written by `mlc ops --frontend onnx --markdown`.

| class | meaning |
|---|---|
| direct | one MIL operation |
| decomposed | several MIL operations |
| folded | evaluated while compiling |
| conditional | supported under the given condition; otherwise an error says why not |
| impossible | Core ML cannot express it; constant operands work where the condition says so |

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
int ShowModel(const OpsArguments& given, Session& session) {
  ModelOperators model = CheckOperators(given.model, given.import, session.diagnostics);
  Json json{{"operators", Json::object()}, {"unsupported", Json::array()}};
  Table table{{"operator", "nodes", "class", "condition"}, {}};
  for (const ModelOperators::Row& row : model.rows) {
    json["operators"][row.name] = row.nodes;
    if (!row.known) json["unsupported"].push_back(row.name);
    table.rows.push_back({row.name, std::to_string(row.nodes),
                          std::string(row.known ? row.known->kind : "unsupported"),
                          std::string(row.known ? row.known->condition : "")});
  }
  int code = 0;
  for (const Error& error : model.errors) code = std::max(code, ExitCode(error.id()));
  if (!session.json) {
    Print(table, given.markdown);
    std::fflush(stdout);
    for (const Error& error : model.errors) fmt::print(stderr, "{}\n", error.Render());
    return code;
  }
  for (const Error& error : model.errors) json["errors"].push_back(ErrorJson(error));
  PrintDocument(json);
  return code;
}

int ListOps(const OpsArguments& given, Session& session) {
  if (!given.model.empty()) return ShowModel(given, session);
  Table table = given.onnx ? OnnxTable() : MilTable();
  if (!session.json) {
    if (given.markdown && given.onnx) fmt::print("{}", kLegend);
    Print(table, given.markdown);
    return 0;
  }
  Json json = Json::array();
  for (const auto& row : table.rows) {
    Json entry;
    for (size_t i = 0; i < row.size(); ++i) entry[table.header[i]] = row[i];
    json.push_back(entry);
  }
  PrintDocument(json);
  return 0;
}

}  // namespace

Command OpsCommand() {
  auto given = std::make_shared<OpsArguments>();
  std::vector<Option> table = {
      {"MODEL", "", "ONNX model: list its operators and report those not supported",
       Into(given->model)},
      {"--frontend", "onnx", "list the operators that this frontend supports",
       [&onnx = given->onnx](const std::string& frontend) {
         onnx = frontend == "onnx";
         if (!onnx && !frontend.empty())
           throw Error("usage", fmt::format("--frontend: \"{}\" is unknown", frontend))
               .Expected("onnx");
       }},
      {"--markdown", "", "print a Markdown table", Switch(given->markdown)},
      JsonOption()};
  Append(ImportTable(given->import), table);
  return {"ops", "List the supported operators, or those of a model",
          "mlc ops --frontend onnx --markdown", std::move(table),
          [given](Session& session) { return ListOps(*given, session); }};
}

}  // namespace mlc
