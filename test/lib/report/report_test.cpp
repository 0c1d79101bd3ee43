// Every form of one document, and the parts that forms share. The expected texts stand in golden/;
// MLC_UPDATE=1 rewrites them.
#include <cstdlib>
#include <fstream>
#include <limits>
#include <regex>
#include <sstream>

#include "lib/report/assets.h"
#include "lib/report/markup.h"
#include "lib/report/render.h"
#include "lib/support/error.h"
#include "lib/support/temporary_folder.h"
#include "test/catch.h"
#include "test/expected_error.h"
#include "test/paths.h"

namespace mlc::report {
namespace {

namespace fs = std::filesystem;

std::string Contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void CheckGolden(const std::string& name, const std::string& text) {
  const fs::path file = test::SourcePath("test/lib/report/golden/" + name);
  if (std::getenv("MLC_UPDATE")) std::ofstream(file, std::ios::binary) << text;
  CHECK(Contents(file) == text);
}

// Texts that each form must escape, figures of every unit and mark, and all blocks.
Document Everything() {
  Document document{"a <b> & \"c\" | d_e", "verify", Cell("FAILED", Mark::kBad)};
  document.facts = {{"reference", "mlc import"}, {"size", 12345678, Quantity::kBytes}};
  Table table{"Outputs",
              {{"output"},
               {"max error", Quantity::kError},
               {"size", Quantity::kBytes},
               {"time", Quantity::kMilliseconds},
               {"share", Quantity::kShare},
               {"count", Quantity::kCount},
               {"verdict"}},
              {{"x*y_z", 0.0123, Cell(std::vector<double>{1e6, 2e6, 1.5e6}), 1.5, 0.25, 3,
                Cell("outside the budget", Mark::kBad)},
               {"`code` $x$\nsecond line", 0, 999, 0.001, 1, 0, Cell("within", Mark::kGood)},
               {"not finite", std::numeric_limits<double>::infinity(), Cell(), Cell(), Cell(),
                Cell(), Cell("inconclusive", Mark::kNotice)}}};
  table.shown = 2;
  Chart bars{Chart::Kind::kBars,
             "Errors",
             {},
             {"max error", Quantity::kError, true},
             {{"max error",
               {{.y = 1e-3, .label = "a", .limit = 1e-2},
                {.y = 3e-2, .label = "b <", .mark = Mark::kBad, .limit = 1e-2}}}}};
  Chart plot{Chart::Kind::kPlot,
             "Layers",
             {"layer", Quantity::kCount},
             {"max error", Quantity::kError, true},
             {{"error", {{0, 1e-4, "first"}, {1, 1e-3}, {2, 0}}, true, true}}};
  plot.lines = {{"budget", 1e-3}};
  Chart histogram = Histogram("Times", "time", Quantity::kMilliseconds, {1, 1, 1.5, 2, 3});
  histogram.lines = {{"p50", 1.5}};
  Graph graph{"main",
              {{"input", "x", "fp32 [1]"},
               {"relu",
                "</script>",
                "fp32 [1]",
                -1,
                {0},
                "fp32",
                "ane",
                Mark::kBad,
                0.5,
                {{"source", "node \"r\""}}},
               {"output", "y", "fp32 [1]", -1, {1}}},
              {}};
  document.sections = {
      {"Outputs", {"A paragraph_with *marks*.", table, bars}},
      {"More", {Facts{{"p95", 2.5, Quantity::kMilliseconds}}, plot, histogram, graph}}};
  document.checks = {{Check::Outcome::kFailed, "m", "x*y_z", "max error 1 > \"0\"\nline"},
                     {Check::Outcome::kPassed, "m", "y", "fine", 1500},
                     {Check::Outcome::kSkipped, "m", "z", "constant"},
                     {Check::Outcome::kError, "n", "load", "broke \x01 \xFF"}};
  return document;
}

TEST_CASE("report: the forms of a document", "[report]") {
  const Document document = Everything();
  CheckGolden("report.txt", TerminalText(document));
  CheckGolden("report.md", Markdown(document));
  CheckGolden("report.json", Json(document));
  CheckGolden("report.xml", JUnit(document));
  // The style and the script stand in files of their own.
  const std::string page = Page(document);
  const size_t begin = page.find("</head>"), end = page.find("<footer>");
  CheckGolden("report.html", page.substr(begin, end - begin));
  CheckGolden("chart.svg", std::regex_replace(Svg(std::get<Chart>(document.sections[1].blocks[1])),
                                              std::regex("<style>[^<]*</style>"), ""));
  CheckGolden("graph.dot", Dot(std::get<Graph>(document.sections[1].blocks[3])));
}

TEST_CASE("report: pages are one file and load nothing", "[report]") {
  const std::string page = Page(Everything());
  CHECK_THAT(page, ContainsSubstring("default-src 'none'"));
  CHECK_THAT(page, ContainsSubstring(std::string(kPageStyle)));
  CHECK_THAT(page, ContainsSubstring(std::string(kGraphView)));
  for (const char* reference : {"src=", "href=\"http", "url(", "@import", "<link"})
    CHECK(page.find(reference) == page.npos);
  // Names cannot end the data of a graph.
  CHECK_THAT(page, ContainsSubstring("\\u003c/script>"));
  CHECK(page.find("\"</script>") == page.npos);
  // What no graph needs is left out.
  Document plain = Everything();
  plain.sections.pop_back();
  CHECK(Page(plain).find("GraphView") == std::string::npos);
}

TEST_CASE("report: numbers with their units", "[report]") {
  CHECK(Text(0.00123, Quantity::kError) == "1.2e-03");
  CHECK(Text(0, Quantity::kError) == "0");
  CHECK(Text(999, Quantity::kBytes) == "999 B");
  CHECK(Text(1500000, Quantity::kBytes) == "1.50 MB");
  CHECK(Text(0.125, Quantity::kShare) == "12.5 %");
  CHECK(Text(1.25, Quantity::kMilliseconds) == "1.250 ms");
  CHECK(Text(12345, Quantity::kMilliseconds) == "12.3 s");
  CHECK(Text(-std::numeric_limits<double>::infinity(), Quantity::kBytes) == "-inf");
  CHECK(Text(std::numeric_limits<double>::quiet_NaN(), Quantity::kCount) == "NaN");
}

TEST_CASE("report: small lines", "[report]") {
  CHECK(Sparkline({0, 7}) == "▁█");
  CHECK(Sparkline({5, 5, 5}) == "▄▄▄");
  CHECK(Sparkline({0, std::numeric_limits<double>::infinity(), 7}) == "▁ █");
  CHECK(Sparkline({0, 0, 7, 7}, 2) == "▁█");
  CHECK(Sparkline({}).empty());
  CHECK(InlineSvg(std::vector<double>{1}).empty());
  CHECK(InlineSvg(std::vector<double>{2, 2}).empty());
  CHECK_FALSE(InlineSvg(std::vector<double>{1, 2}).empty());
}

TEST_CASE("report: histograms hold every finite number once", "[report]") {
  const auto counted = [](const Chart& chart) {
    double count = 0;
    for (const Point& point : chart.series[0].points) count += point.y;
    return count;
  };
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(i * 0.1);
  const Chart chart = Histogram("", "", Quantity::kNone, values, 40);
  CHECK(chart.series[0].points.size() == 40);
  CHECK(counted(chart) == 1000);
  CHECK(counted(Histogram("", "", Quantity::kNone, {3, 3, 3})) == 3);
  CHECK(counted(Histogram("", "", Quantity::kNone, {std::nan(""), 1})) == 1);
  CHECK(Histogram("", "", Quantity::kNone, {}).series[0].points.empty());
}

// A graph of a chain of operators, one for each letter.
Graph Chain(const std::string& letters) {
  Graph graph{"main", {}, {}};
  for (size_t i = 0; i < letters.size(); ++i) {
    graph.nodes.push_back({std::string(1, letters[i]), std::to_string(i), ""});
    if (i > 0) graph.nodes.back().inputs = {static_cast<int32_t>(i - 1)};
  }
  return graph;
}

// The group of each node: a digit, or "-" for none.
std::string GroupsOf(const Graph& graph) {
  std::string text;
  for (const Graph::Node& node : graph.nodes)
    text += node.group < 0 ? "-" : std::to_string(node.group);
  return text;
}

TEST_CASE("report: repeated blocks are groups", "[report]") {
  Graph graph = Chain("xabcdeabcdeabcdey");
  FoldRepetitions(graph);
  CHECK(GroupsOf(graph) == "-111112222233333-");
  REQUIRE(graph.groups.size() == 4);
  CHECK(graph.groups[0].name == "3 blocks of 5 operations");
  CHECK(graph.groups[3].name == "block 3 of 3");
  CHECK(graph.groups[3].parent == 0);

  // Two runs, one after the other.
  graph = Chain("abcdeabcdezfghijkfghijk");
  FoldRepetitions(graph);
  CHECK(GroupsOf(graph) == "1111122222-444444555555");

  // Parts begin where the fewest values cross their bounds: each "b" reads the "d" before "e", too.
  graph = Chain("abcdeabcdeabcdeabcde");
  for (const size_t i : {6, 11, 16}) graph.nodes[i].inputs.push_back(static_cast<int32_t>(i - 3));
  FoldRepetitions(graph);
  CHECK(GroupsOf(graph) == "--111112222233333---");
}

TEST_CASE("report: what is short, different or of another type is no group", "[report]") {
  for (const char* letters : {"", "a", "abababab", "abcdabcd", "abcdefghij"}) {
    Graph graph = Chain(letters);
    FoldRepetitions(graph);
    CHECK(graph.groups.empty());
  }
  Graph graph = Chain("abcdeabcde");
  graph.nodes[7].type = "fp16 [2]";
  FoldRepetitions(graph);
  CHECK(graph.groups.empty());
}

TEST_CASE("report: text in markup", "[report]") {
  CHECK(MarkupText("<a href=\"x\">&</a>\n") == "&lt;a href=&quot;x&quot;&gt;&amp;&lt;/a&gt;&#10;");
  CHECK(MarkupText("a\xFFz\x02 \xC3\xA9") == "a?z? \xC3\xA9");
  CHECK(Shortened("abcdefgh", 8) == "abcdefgh");
  CHECK(Shortened("abcdefgh", 5) == "ab\xE2\x80\xA6gh");
  CHECK(Shortened("ééééé", 3) == "é\xE2\x80\xA6é");
}

TEST_CASE("report: the ending of a file chooses the form", "[report]") {
  const TemporaryFolder folder;
  const fs::path path = folder.path;
  for (const char* ending : {".html", ".md", ".xml", ".json", ".txt"}) {
    const fs::path file = path / (std::string("r") + ending);
    CheckForm(file, true);
    Write(Everything(), file);
    CHECK(fs::file_size(file) > 100);
  }
  CHECK(Contents(path / "r.md") == Markdown(Everything()));
  CHECK_THAT(test::Refusal([&] { CheckForm(path / "r.pdf", true); }),
             ContainsSubstring("a file that ends in .html, .md (Markdown), .xml (JUnit)"));
  CHECK(test::RefusalId([&] { CheckForm(path / "r", true); }) == "usage");
  CHECK(test::RefusalId([&] { CheckForm(path / "r.xml", false); }) == "usage");
  CHECK_NOTHROW(CheckForm(path / "r.html", false));
  // Nothing that lists no check is a test report.
  Document document = Everything();
  document.checks.clear();
  CHECK(test::RefusalId([&] { JUnit(document); }) == "usage");
}

}  // namespace
}  // namespace mlc::report
