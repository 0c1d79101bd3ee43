// lib/report/assets.h - the files of this folder that pages contain.
#pragma once

#include <string_view>

namespace mlc::report {

extern const std::string_view kPageTemplate;  // page.html
extern const std::string_view kPageStyle;     // page.css
extern const std::string_view kChartStyle;    // chart.css
extern const std::string_view kPageScript;    // page.js
extern const std::string_view kGraphLayout;   // graph_layout.js
extern const std::string_view kGraphView;     // graph_view.js

}  // namespace mlc::report
