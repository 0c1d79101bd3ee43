#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/ops/row.h"
#include "lib/report/render.h"
#include "tools/driver/errors.h"
#include "tools/driver/json_results.h"
#include "tools/driver/operators.h"
#include "tools/mlc/command.h"
#include "tools/mlc/terminal.h"

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;

struct OpsArguments {
  std::filesystem::path model;
  ImportOptions import;
  const Frontend* frontend = nullptr;
  bool markdown = false;
};

// All rows are shown.
report::Table AllRows(const std::vector<std::string>& header) {
  report::Table table{"", {}, {}, 0};
  for (const std::string& name : header) table.columns.push_back({name});
  return table;
}

void Print(const report::Table& table, bool markdown) {
  fmt::print("{}",
             markdown ? report::Markdown(table) : CutLines(report::TerminalText(table), stdout));
}

report::Table MilTable() {
  report::Table table = AllRows({"operator", "since", "versions", "evaluated", "what it computes"});
  for (const OpDef& def : Ops().all())
    table.rows.push_back({std::string(def.name), std::string(TargetName(def.forms.front().since)),
                          std::to_string(def.forms.size()), def.eval ? "yes" : "no",
                          std::string(def.doc)});
  return table;
}

// Shows the row of each operator of a model, and the frontend's errors when it imports the model.
int ShowModel(const OpsArguments& given, Session& session) {
  ModelOperators model = CheckOperators(given.model, given.import, session.diagnostics);
  report::Table table = AllRows({"operator", "nodes", "class", "condition"});
  for (const ModelOperators::Row& row : model.rows)
    table.rows.push_back({row.name, std::to_string(row.nodes),
                          std::string(row.known ? row.known->kind : "unsupported"),
                          std::string(row.known ? row.known->condition : "")});
  int code = 0;
  for (const Error& error : model.errors) code = std::max(code, ExitCode(error.id()));
  if (!session.json) {
    Print(table, given.markdown);
    std::fflush(stdout);
    for (const Error& error : model.errors) fmt::print(stderr, "{}\n", WithFlags(error.Render()));
    return code;
  }
  PrintDocument(OperatorsJson(model));
  return code;
}

int ListOps(const OpsArguments& given, Session& session) {
  if (!given.model.empty()) return ShowModel(given, session);
  report::Table table;
  std::string_view title;
  if (given.frontend) {
    Listing listing = given.frontend->listing();
    title = listing.title;
    table = AllRows(listing.header);
    for (const std::vector<std::string>& row : listing.rows)
      table.rows.emplace_back(row.begin(), row.end());
  } else {
    table = MilTable();
  }
  if (!session.json) {
    if (given.markdown) fmt::print("{}", title);
    Print(table, given.markdown);
    return 0;
  }
  Json json = Json::array();
  for (const auto& row : table.rows) {
    Json entry;
    for (size_t i = 0; i < row.size(); ++i) entry[table.columns[i].name] = row[i].text;
    json.push_back(entry);
  }
  PrintDocument(json);
  return 0;
}

// "gguf|onnx"
std::string ListingNames() {
  std::string names;
  for (const Frontend& row : Frontends())
    if (row.listing) names += fmt::format("{}{}", names.empty() ? "" : "|", row.name);
  return names;
}

}  // namespace

Command OpsCommand() {
  auto given = std::make_shared<OpsArguments>();
  static const std::string names = ListingNames();
  std::vector<Option> table = {
      {"MODEL", "", "ONNX model: list its operators and report those not supported",
       Into(given->model)},
      {"--frontend", names, "list what this frontend supports (default: the operators of MIL)",
       [given](const std::string& name) {
         std::vector<std::string_view> known;
         for (const Frontend& row : Frontends())
           if (row.listing) {
             known.push_back(row.name);
             if (row.name == name) given->frontend = &row;
           }
         if (!given->frontend) throw UnknownWord("--frontend", name, known);
       }},
      {"--markdown", "", "print a Markdown table", Switch(given->markdown)},
      JsonOption()};
  Append(ImportTable(given->import), table);
  return {"ops",
          "List the supported operators, or those of a model",
          {"mlc ops model.onnx", "mlc ops --frontend onnx --markdown"},
          std::move(table),
          [given](Session& session) { return ListOps(*given, session); },
          {},
          {"compile", "inspect"}};
}

}  // namespace mlc::driver
