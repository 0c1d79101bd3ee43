#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/report/document.h"
#include "lib/report/render.h"
#include "lib/support/counted.h"

namespace mlc::report {

namespace {

// A stretch [begin, begin + count * period) of equal parts.
struct Run {
  size_t begin = 0, period = 0, count = 0;
  size_t size() const { return period * count; }
};

constexpr size_t kLeastPeriod = 5;    // shorter parts are easier to read unfolded
constexpr size_t kMostPeriod = 4096;  // bounds the time for programs without repetitions

// Returns the longest run within [begin, end), of the shortest parts; `cut` is the number of values
// that are live before each node.
Run LongestRun(const std::vector<int>& tokens, const std::vector<int>& cut, size_t begin,
               size_t end) {
  Run best;
  size_t best_length = 0;
  for (size_t period = kLeastPeriod; period <= std::min(kMostPeriod, (end - begin) / 2); ++period) {
    size_t length = 0;  // of the stretch before `i` that repeats itself
    for (size_t i = begin; i + period <= end; ++i) {
      if (i + period < end && tokens[i] == tokens[i + period]) {
        ++length;
        continue;
      }
      const size_t count = (length + period) / period;
      if (count >= 2 && count * period > best.size()) {
        best = {i - length, period, count};
        best_length = length + period;
      }
      length = 0;
    }
  }
  if (best.count == 0) return best;
  // Moves the beginning to where the fewest values cross the bounds of parts, which may cost one part.
  const auto crossing = [&](const Run& run) {
    int most = 0;
    for (size_t part = 0; part <= run.count; ++part)
      most = std::max(most, cut[run.begin + part * run.period]);
    return most;
  };
  const size_t first = best.begin;
  for (size_t at = first + 1; at < first + best.period; ++at) {
    const Run moved{at, best.period, (best_length - (at - first)) / best.period};
    if (moved.count >= 2 && crossing(moved) < crossing(best)) best = moved;
  }
  return best;
}

// Runs of [begin, end), in order.
void FindRuns(const std::vector<int>& tokens, const std::vector<int>& cut, size_t begin, size_t end,
              std::vector<Run>& runs) {
  if (end - begin < 2 * kLeastPeriod) return;
  const Run run = LongestRun(tokens, cut, begin, end);
  if (run.count == 0) return;
  FindRuns(tokens, cut, begin, run.begin, runs);
  runs.push_back(run);
  FindRuns(tokens, cut, run.begin + run.size(), end, runs);
}

}  // namespace

void FoldRepetitions(Graph& graph) {
  const size_t count = graph.nodes.size();
  std::map<std::pair<std::string_view, std::string_view>, int> numbers;
  std::vector<int> tokens, cut(count + 1);
  std::vector<size_t> last_use(count);
  for (size_t i = 0; i < count; ++i) {
    const Graph::Node& node = graph.nodes[i];
    tokens.push_back(numbers.try_emplace({node.kind, node.type}, static_cast<int>(numbers.size()))
                         .first->second);
    for (const int32_t input : node.inputs) last_use[static_cast<size_t>(input)] = i;
  }
  for (size_t i = 0; i < count; ++i) {
    if (last_use[i] <= i) continue;
    ++cut[i + 1];
    --cut[last_use[i] + 1 <= count ? last_use[i] + 1 : count];
  }
  for (size_t i = 1; i <= count; ++i) cut[i] += cut[i - 1];
  std::vector<Run> runs;
  FindRuns(tokens, cut, 0, count, runs);
  for (const Run& run : runs) {
    const auto parent = static_cast<int32_t>(graph.groups.size());
    graph.groups.push_back({fmt::format("{} blocks of {} operations", run.count, run.period), -1});
    for (size_t part = 0; part < run.count; ++part) {
      for (size_t i = 0; i < run.period; ++i)
        graph.nodes[run.begin + part * run.period + i].group =
            static_cast<int32_t>(graph.groups.size());
      graph.groups.push_back({fmt::format("block {} of {}", part + 1, run.count), parent});
    }
  }
}

std::string OperationsText(const Graph& graph) {
  const auto count = std::ranges::count_if(graph.nodes, [](const Graph::Node& node) {
    return node.kind != "input" && node.kind != "output" && node.kind != "state" &&
           node.kind != "block input";
  });
  return Counted(count, "operation");
}

Graph Joined(std::string title, std::vector<Graph> graphs) {
  if (graphs.size() == 1) return std::move(graphs[0]);
  Graph joined{std::move(title), {}, {}};
  for (Graph& graph : graphs) {
    const auto node = static_cast<int32_t>(joined.nodes.size());
    const auto group = static_cast<int32_t>(joined.groups.size());
    joined.groups.push_back({std::move(graph.title), -1});
    // -1, no group or parent, becomes the group of the graph.
    for (Graph::Group& one : graph.groups) {
      one.parent += group + 1;
      joined.groups.push_back(std::move(one));
    }
    for (Graph::Node& one : graph.nodes) {
      one.group += group + 1;
      for (int32_t& input : one.inputs) input += node;
      joined.nodes.push_back(std::move(one));
    }
  }
  return joined;
}

namespace {

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

void AppendGroup(const Graph& graph, const std::vector<std::string>& members,
                 const std::vector<std::vector<int32_t>>& parts, int32_t group, std::string& text) {
  const auto at = static_cast<size_t>(group + 1);
  text += members[at];
  for (const int32_t part : parts[at]) {
    text += fmt::format("  subgraph cluster_{} {{\n  label={};\n", part,
                        Quoted(graph.groups[static_cast<size_t>(part)].name));
    AppendGroup(graph, members, parts, part, text);
    text += "  }\n";
  }
}

}  // namespace

std::string Dot(const Graph& graph) {
  // By group, counted from 1; 0 is what belongs to none.
  std::vector<std::string> members(graph.groups.size() + 1);
  std::vector<std::vector<int32_t>> parts(graph.groups.size() + 1);
  for (size_t i = 0; i < graph.groups.size(); ++i)
    parts[static_cast<size_t>(graph.groups[i].parent + 1)].push_back(static_cast<int32_t>(i));
  std::string edges;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Graph::Node& node = graph.nodes[i];
    std::string label = Quoted(node.kind);
    label.pop_back();
    // \n in a label is a line break of Graphviz.
    for (const std::string* line : {&node.name, &node.type})
      if (!line->empty()) label += "\\n" + Quoted(*line).substr(1, Quoted(*line).size() - 2);
    members[static_cast<size_t>(node.group + 1)] += fmt::format(
        "  n{} [label={}\"{}];\n", i, label,
        node.kind == "input" || node.kind == "output" ? ", style=\"rounded,bold\"" : "");
    for (const int32_t input : node.inputs) edges += fmt::format("  n{} -> n{};\n", input, i);
  }
  std::string text = fmt::format(
      "digraph {} {{\n  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=10];\n",
      Quoted(graph.title));
  AppendGroup(graph, members, parts, -1, text);
  return text + edges + "}\n";
}

}  // namespace mlc::report
