// The report of a build of 500 variants with a history of 100 builds.
#include <algorithm>

#include "lib/report/render.h"
#include "test/catch.h"
#include "tools/driver/reports.h"

namespace mlc::driver {
namespace {

constexpr int kVariants = 500, kBuilds = 100;

BuildReport Fleet() {
  BuildReport build;
  for (int r = 0; r < kVariants / 5; ++r) {
    BuildReport::Recipe& recipe = build.recipes.emplace_back(
        BuildReport::Recipe{fmt::format("recipes/model_{}.json", r), {}, {}});
    for (int v = 0; v < 5; ++v) {
      BuildRecord record{.recipe = recipe.path, .name = fmt::format("model_{}-variant_{}", r, v)};
      record.options = "--precision fp16 --compress int4:block=32 --target iOS18";
      record.status = r % 50 == 7 ? BuildRecord::Status::kFailed : BuildRecord::Status::kPassed;
      record.package_bytes = 1'000'000 * (r + 1) + v;
      record.operations = 100 + r;
      record.fp16_share = 0.99;
      record.seconds = 0.1 * r;
      record.checks.push_back({.kind = BuildCheck::Kind::kReference,
                               .what = "logits",
                               .ok = record.ok(),
                               .max_error = 1e-3 * (v + 1),
                               .figures = "max error 1e-3",
                               .budget = "fp16"});
      recipe.variants.push_back(std::move(record));
    }
  }
  return build;
}

TEST_CASE("report of a build: 500 variants stay below 5 MB in every form", "[report]") {
  const BuildReport build = Fleet();
  std::map<std::string, VariantFigures> now;
  for (const BuildReport::Recipe& recipe : build.recipes)
    for (const BuildRecord& record : recipe.variants) now[record.name] = FiguresOf(record);
  std::vector<PastBuild> history;
  for (int i = 0; i < kBuilds; ++i) {
    PastBuild& past =
        history.emplace_back(PastBuild{fmt::format("2026-01-01T00:00:{:02}Z", i % 60), now});
    for (auto& [name, variant] : past.variants) variant.figures["error"] *= 1 + 0.01 * (i % 10);
  }
  const report::Document document = FleetReport(build, now, history);
  CHECK(document.checks.size() == 2 * kVariants);
  for (auto* render :
       {report::Page, report::Markdown, report::JUnit, report::Json, report::TerminalText}) {
    const std::string text = render(document);
    CHECK(text.size() < 5'000'000);
    CHECK(text == render(document));
  }
  // All variants are in the page, and only the failed ones come before the others.
  const std::string page = report::Page(document);
  CHECK_THAT(page, ContainsSubstring("model_99-variant_4"));
  CHECK(page.find("model_7-variant_0") < page.find("model_0-variant_0"));
}

TEST_CASE("report of a build: changes from the last build that has a variant", "[report]") {
  BuildReport build;
  BuildRecord record{.recipe = "r.json", .name = "a"};
  record.status = BuildRecord::Status::kPassed;
  record.package_bytes = 2000;
  build.recipes.push_back({"r.json", {}, {record}});
  const std::map<std::string, VariantFigures> now = {
      {"a", {"passed", {{"size", 2000}, {"p50 ane, M2", 2.2}}}},
      {"b", {"failed", {{"error", 0.1}}}},
      {"c", {"passed", {{"accuracy", 0.9}}}},
      {"new", {"passed", {}}}};
  const std::vector<PastBuild> history = {
      {"1",
       {{"a", {"passed", {{"size", 1000}, {"p50 ane, M2", 2.0}}}},
        {"c", {"passed", {{"accuracy", 0.8}}}}}},
      {"2", {{"b", {"passed", {{"error", 0.1}}}}, {"gone", {"passed", {}}}}}};
  // All variants of the figures need records for the other sections.
  for (const char* name : {"b", "c", "new"}) {
    BuildRecord other = record;
    other.name = name;
    build.recipes[0].variants.push_back(other);
  }
  const report::Document document = FleetReport(build, now, history);
  const auto section =
      std::ranges::find(document.sections, "Changes since the last build", &report::Section::title);
  REQUIRE(section != document.sections.end());
  const auto& table = std::get<report::Table>(section->blocks.at(1));
  std::vector<std::string> rows;
  for (const auto& row : table.rows)
    rows.push_back(row[0].text + " " + row[1].text + " " + row[4].text);
  CHECK(rows == std::vector<std::string>{"b status worse ", "a size worse +100.0 %",
                                         "a p50 ane, M2 worse +10.0 %",
                                         "c accuracy better +10.0 points"});
  CHECK(std::get<std::string>(section->blocks.at(2)) == "New: new.");
  CHECK(std::get<std::string>(section->blocks.at(3)) == "Removed: gone.");
}

}  // namespace
}  // namespace mlc::driver
