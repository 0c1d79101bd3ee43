#include "tools/driver/build_record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "tools/driver/json_results.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;
using Status = BuildRecord::Status;

constexpr std::array<std::pair<Status, std::string_view>, 4> kStatuses{
    {{Status::kPassed, "passed"},
     {Status::kFailed, "failed"},
     {Status::kNotBuilt, "not built"},
     {Status::kUpToDate, "up to date"}}};
constexpr std::array<std::pair<BuildCheck::Kind, std::string_view>, 3> kKinds{
    {{BuildCheck::Kind::kLimit, "limit"},
     {BuildCheck::Kind::kReference, "reference"},
     {BuildCheck::Kind::kAccuracy, "accuracy"}}};

template <class Table, class Value>
std::string_view NameIn(const Table& table, Value value) {
  return std::ranges::find(table, value, &Table::value_type::first)->second;
}
template <class Table>
auto ValueIn(const Table& table, const std::string& name) {
  auto it = std::ranges::find(table, name, &Table::value_type::second);
  return it == table.end() ? table[0].first : it->first;
}

Json CheckJson(const BuildCheck& check) {
  Json json{{"kind", NameIn(kKinds, check.kind)}};
  switch (check.kind) {
    case BuildCheck::Kind::kLimit:
      json["what"] = check.what;
      if (!std::isnan(check.found)) json["found"] = NumberJson(check.found, true);
      json["limit"] = NumberJson(check.limit, true);
      if (check.least) json["least"] = true;
      if (!check.figures.empty()) json["figures"] = check.figures;
      break;
    case BuildCheck::Kind::kReference:
      json.update({{"output", check.what},
                   {"budget", check.budget},
                   {"max_error", NumberJson(check.max_error)},
                   {"rmse", NumberJson(check.rmse)},
                   {"figures", check.figures}});
      break;
    case BuildCheck::Kind::kAccuracy:
      json.update({{"output", check.what}, {"accuracy", check.found}, {"expected", check.limit}});
      break;
  }
  if (!check.note.empty()) json["note"] = check.note;
  if (!check.judged) json["judged"] = false;
  json["ok"] = check.ok;
  return json;
}

BuildCheck CheckFrom(const Json& json) {
  BuildCheck check{.kind = ValueIn(kKinds, json.at("kind"))};
  check.what = json.contains("what") ? json["what"] : json.at("output");
  check.ok = json.at("ok");
  check.note = json.value("note", "");
  check.judged = json.value("judged", true);
  switch (check.kind) {
    case BuildCheck::Kind::kLimit:
      check.found = json.contains("found") ? NumberFromJson(json["found"]) : NAN;
      check.figures = json.value("figures", "");
      check.limit = NumberFromJson(json.at("limit"));
      check.least = json.value("least", false);
      break;
    case BuildCheck::Kind::kReference:
      check.budget = json.at("budget");
      check.max_error = NumberFromJson(json.at("max_error"));
      check.rmse = NumberFromJson(json.at("rmse"));
      check.figures = json.at("figures");
      break;
    case BuildCheck::Kind::kAccuracy:
      check.found = json.at("accuracy");
      check.limit = json.at("expected");
      break;
  }
  return check;
}

Error ErrorFrom(const Json& json) {
  Error error(json.at("id").get<std::string>(), json.at("text").get<std::string>());
  error.At({json.at("location").get<std::string>(), ""});
  for (const Json& note : json.at("notes")) error.Note(note.get<std::string>());
  return error;
}

// Calls fn(name, field) for the fields with the same form in memory and in JSON; empty ones are
// omitted there.
template <class Record, class Fn>
void ForEachField(Record& record, Fn&& fn) {
  fn("options", record.options);
  fn("why", record.why);
  fn("made", record.made);
  fn("cached", record.cached);
  fn("seconds", record.seconds);
  fn("peak_memory_bytes", record.peak_memory_bytes);
  fn("package", record.package);
  fn("manifest", record.manifest);
  fn("tokenizer", record.tokenizer);
  fn("bundle", record.bundle);
  fn("parity_bundle", record.parity_bundle);
  fn("precision", record.precision);
  fn("target", record.target);
  fn("content_hash", record.content_hash);
  fn("fp16_share", record.fp16_share);
  fn("operations", record.operations);
  fn("weight_bytes", record.weight_bytes);
  fn("package_bytes", record.package_bytes);
  fn("latency_ms", record.latency_ms);
  fn("machine", record.machine);
  fn("notes", record.notes);
}

}  // namespace

int BuildRecord::exit_code() const {
  int code = status == Status::kFailed ? ExitCode("check-failed") : 0;
  for (const Error& error : errors) code = std::max(code, ExitCode(error.id()));
  return code;
}

std::string Describe(const BuildCheck& check) {
  switch (check.kind) {
    case BuildCheck::Kind::kLimit:
      if (!check.judged) return fmt::format("{} not judged: {}", check.what, check.figures);
      return fmt::format("{} {:.10g}, at {} {:.10g}{}{}", check.what, check.found,
                         check.least ? "least" : "most", check.limit,
                         check.figures.empty() ? "" : "; ", check.figures);
    case BuildCheck::Kind::kAccuracy:
      return fmt::format("accuracy {:.2f} %, expected {:.2f} %", check.found * 100,
                         check.limit * 100);
    case BuildCheck::Kind::kReference:
      return fmt::format("{} against the reference: {} (budget {})", check.what, check.figures,
                         check.budget);
  }
  return "";
}

std::string_view Name(Status status) { return NameIn(kStatuses, status); }

Json BuildRecordJson(const BuildRecord& record) {
  Json json{{"name", record.name}, {"recipe", record.recipe}, {"status", Name(record.status)}};
  ForEachField(record, [&]<class T>(const char* name, const T& field) {
    if constexpr (std::is_same_v<T, fs::path>) {
      if (!field.empty()) json[name] = field.string();
    } else if constexpr (std::is_same_v<T, std::optional<double>>) {
      if (field) json[name] = *field;
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (field != 0 || !record.package.empty()) json[name] = field;
    } else {
      if (!field.empty()) json[name] = field;
    }
  });
  if (record.errors.empty()) json["checks"] = Json::array();
  for (const BuildCheck& check : record.checks) json["checks"].push_back(CheckJson(check));
  for (const Error& error : record.errors) json["errors"].push_back(ErrorJson(error));
  for (const Error& error : record.warnings) json["warnings"].push_back(ErrorJson(error));
  return json;
}

BuildRecord BuildRecordFromJson(const Json& json) {
  BuildRecord record{.recipe = json.at("recipe"), .name = json.at("name")};
  record.status = ValueIn(kStatuses, json.at("status"));
  ForEachField(record, [&]<class T>(const char* name, T& field) {
    if (!json.contains(name)) return;
    if constexpr (std::is_same_v<T, fs::path>)
      field = json[name].get<std::string>();
    else if constexpr (std::is_same_v<T, std::optional<double>>)
      field = json[name].get<double>();
    else
      field = json[name].get<T>();
  });
  const Json none = Json::array();
  auto list = [&](const char* name) -> const Json& {
    return json.contains(name) ? json[name] : none;
  };
  for (const Json& check : list("checks")) record.checks.push_back(CheckFrom(check));
  for (const Json& error : list("errors")) record.errors.push_back(ErrorFrom(error));
  for (const Json& warning : list("warnings")) record.warnings.push_back(ErrorFrom(warning));
  return record;
}

}  // namespace mlc::driver
