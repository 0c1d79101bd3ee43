// lib/report/document.h - a report as data: sections with facts, tables, charts and graphs, which
// render.h writes as terminal text, JSON, JUnit XML, Markdown or one HTML page.
//
// Whoever makes a document decides its order: the worst comes first, and what matters most is in
// the first section. Texts are plain UTF-8 without markup.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace mlc::report {

// How a figure is to be read. Renderings show a mark as a symbol or word, never by colour alone.
enum class Mark : uint8_t { kNone, kGood, kNotice, kBad };

// The unit of numbers: kError is relative (1.2e-03), kShare is from 0 to 1 and shown in percent.
enum class Quantity : uint8_t { kNone, kCount, kBytes, kMilliseconds, kShare, kError, kDecibels };

// A text, or numbers in the unit of their column. Several numbers are a series from old to new, which
// is drawn as a small line; the last one is the value.
struct Cell {
  std::string text;
  std::vector<double> numbers;  // empty: a text
  Mark mark = Mark::kNone;

  Cell() = default;
  Cell(std::string t, Mark m = Mark::kNone) : text(std::move(t)), mark(m) {}             // NOLINT
  Cell(std::string_view t, Mark m = Mark::kNone) : text(t), mark(m) {}                   // NOLINT
  Cell(const char* t, Mark m = Mark::kNone) : text(t), mark(m) {}                        // NOLINT
  Cell(std::vector<double> n, Mark m = Mark::kNone) : numbers(std::move(n)), mark(m) {}  // NOLINT
  template <class T>
    requires std::is_arithmetic_v<T>
  Cell(T n, Mark m = Mark::kNone) : numbers(1, static_cast<double>(n)), mark(m) {}  // NOLINT
  bool empty() const { return text.empty() && numbers.empty(); }
  std::optional<double> number() const;  // the last one
};

struct Fact {
  std::string name;
  Cell cell;
  Quantity unit = Quantity::kNone;
};
using Facts = std::vector<Fact>;

struct Column {
  std::string name;
  Quantity unit = Quantity::kNone;
};
struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // as long as `columns`
  // The number of rows that text and Markdown show, and that a page shows at first; 0: all. JSON
  // and pages have all rows.
  size_t shown = 20;

  size_t ShownRows() const { return shown == 0 ? rows.size() : std::min(shown, rows.size()); }
};

struct Axis {
  std::string label;
  Quantity unit = Quantity::kNone;
  bool logarithmic = false;  // numbers that are not positive are drawn at the low end
};
struct Point {
  double x = 0, y = 0;
  std::string label = {};  // shown beside bars and labelled points, and on hovering
  Mark mark = Mark::kNone;
  std::optional<double> limit = {};  // of a bar: what y may be at most
};
struct Series {
  std::string name;
  std::vector<Point> points;
  bool line = true, dots = false, labels = false;
};
// kBars has one horizontal bar of length y for each point of one series. kColumns has vertical
// columns that touch: x is the lower bound of a column, and `width` their width. kPlot has lines and
// dots.
struct Chart {
  enum class Kind : uint8_t { kBars, kColumns, kPlot } kind = Kind::kPlot;
  std::string title;
  Axis x, y;
  std::vector<Series> series;
  double width = 1;
  // Horizontal lines, for budgets; with kColumns vertical ones, for percentiles.
  std::vector<std::pair<std::string, double>> lines = {};
};
// Bars of one series, to which points are added.
Chart BarChart(std::string title, std::string label, Quantity unit, bool logarithmic = false);
// The distribution of numbers, in columns of equal width between the smallest and the largest
// number. There are at most `most` columns, and fewer for few numbers.
Chart Histogram(std::string title, std::string label, Quantity unit,
                const std::vector<double>& values, int most = 40);

// A graph of operations. Indices refer to `nodes` and `groups`; -1 is none.
struct Graph {
  struct Node {
    std::string kind, name, type;  // operator, name of the first result, its type
    int32_t group = -1;            // innermost group
    std::vector<int32_t> inputs;   // nodes, in the order of operands, without repetition
    std::string precision, place;  // "fp16", "ane"; empty: unknown
    Mark mark = Mark::kNone;
    double share = 0;                                        // of the work of the graph
    std::vector<std::pair<std::string, std::string>> facts;  // more, in order
  };
  // Nodes that are folded to one at first: a repeated block, or a run of equal blocks.
  struct Group {
    std::string name;
    int32_t parent = -1;  // comes before this one
  };
  std::string title;
  std::vector<Node> nodes;  // in execution order
  std::vector<Group> groups;
};
// Adds groups to a graph that has none, for runs of at least two repetitions of the same sequence of
// operators with the same types: one group for the run and one in it for each repetition. Of all
// places where a repetition could begin, the one is taken at which the fewest values are live.
void FoldRepetitions(Graph& graph);

// "1 operation": the nodes that are neither inputs, outputs nor states.
std::string OperationsText(const Graph& graph);
// One graph of several without edges between them, each of which is a group. A single one stays as
// it is.
Graph Joined(std::string title, std::vector<Graph> graphs);

using Content = std::variant<std::string, Facts, Table, Chart, Graph>;  // std::string: a paragraph
struct Section {
  std::string title;
  std::vector<Content> blocks;
};

// One thing that was checked, for test reports.
struct Check {
  enum class Outcome : uint8_t { kPassed, kFailed, kSkipped, kError } outcome = Outcome::kPassed;
  std::string group, name;  // group: a model, package or variant
  std::string text = {};    // one line: the figure, or why it failed or was skipped
  double milliseconds = 0;  // 0: not measured
};

struct Document {
  std::string title;    // "Verification of model.mlpackage"
  std::string command;  // "verify"
  Cell verdict = {};    // empty: nothing is judged
  Facts facts = {};     // in the head
  std::vector<Section> sections = {};
  std::vector<Check> checks = {};  // what JUnit lists; empty: nothing was checked
};

}  // namespace mlc::report
