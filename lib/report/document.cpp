#include "lib/report/document.h"

#include <algorithm>
#include <cmath>

namespace mlc::report {

std::optional<double> Cell::number() const {
  return numbers.empty() ? std::nullopt : std::optional(numbers.back());
}

Chart BarChart(std::string title, std::string label, Quantity unit, bool logarithmic) {
  return {Chart::Kind::kBars, std::move(title), {}, {label, unit, logarithmic}, {{label, {}}}};
}

Chart Histogram(std::string title, std::string label, Quantity unit,
                const std::vector<double>& values, int most) {
  Chart chart{Chart::Kind::kColumns,
              std::move(title),
              {std::move(label), unit},
              {"count", Quantity::kCount},
              {{"count", {}, false}}};
  std::vector<double> sorted;
  std::ranges::copy_if(values, std::back_inserter(sorted),
                       [](double v) { return std::isfinite(v); });
  if (sorted.empty()) return chart;
  std::ranges::sort(sorted);
  const double low = sorted.front(), high = sorted.back();
  // Twice the square root keeps columns from being mostly empty.
  const int columns = std::clamp(static_cast<int>(2 * std::sqrt(sorted.size())), 1, most);
  chart.width = high > low ? (high - low) / columns : std::max(std::abs(low) * 1e-3, 1e-9);
  std::vector<Point>& points = chart.series[0].points;
  for (int i = 0; i < (high > low ? columns : 1); ++i) points.push_back({low + i * chart.width, 0});
  for (const double value : sorted)
    ++points[std::min(points.size() - 1, static_cast<size_t>((value - low) / chart.width))].y;
  return chart;
}

}  // namespace mlc::report
