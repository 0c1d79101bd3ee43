// lib/report/graph_data.h - a graph as JSON, in JSON reports and for the script of pages.
#pragma once

#include <string>

#include "lib/report/document.h"

namespace mlc::report {

// {title, nodes: [{op, name, type, in, group, precision, place, mark, share, facts}], groups: [{name,
// parent}]}; what is empty is left out, except for op, name and type.
std::string GraphData(const Graph& graph);

}  // namespace mlc::report
