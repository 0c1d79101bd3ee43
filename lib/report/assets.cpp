#include "lib/report/assets.h"

// CMake makes each of these a raw string.
namespace mlc::report {

const std::string_view kPageTemplate =
#include "lib/report/page.html.inc"
    ;
const std::string_view kPageStyle =
#include "lib/report/page.css.inc"
    ;
const std::string_view kChartStyle =
#include "lib/report/chart.css.inc"
    ;
const std::string_view kPageScript =
#include "lib/report/page.js.inc"
    ;
const std::string_view kGraphLayout =
#include "lib/report/graph_layout.js.inc"
    ;
const std::string_view kGraphView =
#include "lib/report/graph_view.js.inc"
    ;

}  // namespace mlc::report
