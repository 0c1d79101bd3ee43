#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/report/assets.h"
#include "lib/report/markup.h"
#include "lib/report/render.h"

namespace mlc::report {

namespace {

constexpr double kWidth = 720;
constexpr std::string_view kMarks[] = {"", " good", " notice", " bad"};

std::string_view ClassOf(Mark mark) { return kMarks[static_cast<int>(mark)]; }

// A number at an axis.
std::string TickText(double number, Quantity unit) {
  if (number == 0) return "0";
  if (unit == Quantity::kBytes)
    for (const auto& [name, size] : {std::pair{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}})
      if (std::abs(number) >= size) return fmt::format("{:g} {}", number / size, name);
  if (unit == Quantity::kShare) return fmt::format("{:g} %", 100 * number);
  return fmt::format("{:g}", number);
}

std::string LabelOf(const Axis& axis) {
  return axis.unit == Quantity::kMilliseconds ? axis.label + ", ms" : axis.label;
}

// Maps numbers to positions from `begin` to `end`, and chooses round numbers in between.
class Scale {
 public:
  Scale(const Axis& axis, double begin, double end) : axis_(axis), begin_(begin), end_(end) {}

  void Include(double number) {
    if (!std::isfinite(number) || (axis_.logarithmic && number <= 0)) return;
    low_ = std::min(low_, number);
    high_ = std::max(high_, number);
  }
  // Call it once, when all numbers are included.
  void Round() {
    if (low_ > high_) low_ = axis_.logarithmic ? 0.1 : 0, high_ = 1;
    if (axis_.logarithmic) {
      const int low = static_cast<int>(std::floor(std::log10(low_) + 1e-9));
      int high = static_cast<int>(std::ceil(std::log10(high_) - 1e-9));
      high = std::max(high, low + 1);
      low_ = std::pow(10, low), high_ = std::pow(10, high);
      for (int exponent = low; exponent <= high; exponent += (high - low) / 8 + 1)
        ticks_.push_back(std::pow(10, exponent));
      return;
    }
    if (high_ == low_) high_ = low_ + std::max(std::abs(low_), 1e-9);
    // 1, 2 or 5 times a power of ten, so that there are four to eight of them.
    double step = std::pow(10, std::floor(std::log10((high_ - low_) / 4)));
    for (const double factor : {5.0, 2.0})
      if ((high_ - low_) / (step * factor) >= 4) {
        step *= factor;
        break;
      }
    low_ = std::floor(low_ / step + 1e-9) * step;
    high_ = std::ceil(high_ / step - 1e-9) * step;
    for (int i = 0; low_ + i * step <= high_ + step / 2; ++i) {
      const double tick = low_ + i * step;
      ticks_.push_back(std::abs(tick) < step / 1e6 ? 0 : tick);
    }
  }
  double operator()(double number) const {
    double share;
    if (axis_.logarithmic)
      share = number > 0 ? std::log(number / low_) / std::log(high_ / low_) : 0;
    else
      share = (number - low_) / (high_ - low_);
    if (!std::isfinite(share)) share = number > 0 ? 1 : 0;
    return begin_ + std::clamp(share, 0.0, 1.0) * (end_ - begin_);
  }
  const std::vector<double>& ticks() const { return ticks_; }
  std::string text(double tick) const { return TickText(tick, axis_.unit); }

 private:
  const Axis& axis_;
  double begin_, end_, low_ = INFINITY, high_ = -INFINITY;
  std::vector<double> ticks_;
};

std::string Line(std::string_view kind, double x1, double y1, double x2, double y2) {
  return fmt::format(R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)", kind,
                     x1, y1, x2, y2);
}

std::string TextAt(double x, double y, std::string_view anchor, std::string_view kind,
                   std::string_view text) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>)", x, y,
                     anchor, kind, MarkupText(text));
}

struct Picture {
  double height;
  std::string content;
};

Picture Bars(const Chart& chart) {
  constexpr double kRow = 24, kLabels = 250, kNumbers = 90, kTop = 6;
  std::string content;
  const std::vector<Point>& points = chart.series.at(0).points;
  Scale length(chart.y, kLabels, kWidth - kNumbers);
  if (!chart.y.logarithmic) length.Include(0);
  for (const Point& point : points) {
    // Bars have a length on a logarithmic axis, too.
    length.Include(chart.y.logarithmic ? point.y / 2 : point.y);
    length.Include(point.y);
    if (point.limit) length.Include(*point.limit);
  }
  length.Round();
  for (size_t i = 0; i < points.size(); ++i) {
    const Point& point = points[i];
    const double top = kTop + static_cast<double>(i) * kRow, middle = top + kRow / 2;
    constexpr size_t kMost = 36;  // characters beside a bar
    const std::string figure = Text(point.y, chart.y.unit);
    content += fmt::format("<g><title>{}: {}{}</title>", MarkupText(point.label), figure,
                           point.limit ? ", at most " + Text(*point.limit, chart.y.unit) : "");
    content += TextAt(kLabels - 8, middle + 4, "end", "", Shortened(point.label, kMost));
    content += fmt::format(
        R"(<rect class="bar{}" x="{:g}" y="{:.1f}" width="{:.1f}" height="{:g}" rx="2"/>)",
        ClassOf(point.mark), kLabels, top + 4, std::max(1.0, length(point.y) - kLabels), kRow - 8);
    if (point.limit)
      content += Line("limit", length(*point.limit), top + 1, length(*point.limit), top + kRow - 1);
    content += TextAt(std::max(length(point.y), point.limit ? length(*point.limit) : 0) + 6,
                      middle + 4, "start", "soft", figure) +
               "</g>";
  }
  return {kTop + static_cast<double>(points.size()) * kRow + 6, content};
}

// The labels of points from top to bottom, each below those that it would overlap.
std::string Labels(const Series& series, const Scale& x, const Scale& y) {
  struct Label {
    double x, y;
    const std::string* text;
  };
  constexpr double kLabelWidth = 130, kLabelHeight = 15;
  std::vector<Label> labels;
  for (const Point& point : series.points)
    if (!point.label.empty()) labels.push_back({x(point.x) + 9, y(point.y) + 4, &point.label});
  std::ranges::stable_sort(labels, {}, &Label::y);
  std::string content;
  for (size_t i = 0; i < labels.size(); ++i) {
    for (size_t k = 0; k < i; ++k)
      if (std::fabs(labels[k].x - labels[i].x) < kLabelWidth)
        labels[i].y = std::max(labels[i].y, labels[k].y + kLabelHeight);
    content += TextAt(labels[i].x, labels[i].y, "start", "soft", *labels[i].text);
  }
  return content;
}

// Characters of this size are about 6.4 wide.
double LegendWidth(const Series& series) {
  return 6.4 * static_cast<double>(series.name.size()) + 26;
}

Picture Plot(const Chart& chart) {
  constexpr double kHeight = 300, kLeft = 70, kRight = 24, kTop = 34, kBottom = 46;
  const bool columns = chart.kind == Chart::Kind::kColumns;
  Scale x(chart.x, kLeft, kWidth - kRight), y(chart.y, kHeight - kBottom, kTop);
  if (columns) y.Include(0);
  for (const Series& series : chart.series)
    for (const Point& point : series.points) {
      x.Include(point.x);
      y.Include(point.y);
      if (columns) x.Include(point.x + chart.width);
    }
  for (const auto& [name, value] : chart.lines) (columns ? x : y).Include(value);
  x.Round();
  y.Round();
  std::string content;
  for (const double tick : x.ticks()) {
    if (!columns) content += Line("grid", x(tick), kTop, x(tick), kHeight - kBottom);
    content += TextAt(x(tick), kHeight - kBottom + 18, "middle", "soft", x.text(tick));
  }
  for (const double tick : y.ticks())
    content += Line("grid", kLeft, y(tick), kWidth - kRight, y(tick)) +
               TextAt(kLeft - 8, y(tick) + 4, "end", "soft", y.text(tick));
  content +=
      TextAt((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", "soft", LabelOf(chart.x)) +
      TextAt(8, 16, "start", "soft", LabelOf(chart.y));
  double legend = kWidth - kRight;
  for (const Series& series : chart.series) legend -= LegendWidth(series);
  for (size_t s = 0; s < chart.series.size(); ++s) {
    const Series& series = chart.series[s];
    const std::string color = fmt::format("s{}", s % 4);
    std::string line;
    for (const Point& point : series.points) {
      if (columns) {
        content += fmt::format(
            R"(<rect class="column {}{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{} to {}: {}</title></rect>)",
            color, ClassOf(point.mark), x(point.x), y(point.y),
            std::max(0.5, x(point.x + chart.width) - x(point.x) - 0.5),
            kHeight - kBottom - y(point.y), Text(point.x, chart.x.unit),
            Text(point.x + chart.width, chart.x.unit), Text(point.y, chart.y.unit));
      } else if (series.line && std::isfinite(point.y)) {
        line += fmt::format("{}{:.1f},{:.1f}", line.empty() ? "" : " ", x(point.x), y(point.y));
      }
    }
    if (!line.empty())
      content += fmt::format(R"(<polyline class="line {}" points="{}"/>)", color, line);
    if (!columns && series.dots)
      for (const Point& point : series.points)
        content += fmt::format(
            R"(<circle class="dot {}{}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}{}, {}</title></circle>)",
            color, ClassOf(point.mark), x(point.x), y(point.y), point.mark == Mark::kNone ? 3 : 5,
            point.label.empty() ? "" : MarkupText(point.label) + ": ", Text(point.x, chart.x.unit),
            Text(point.y, chart.y.unit));
    if (series.labels) content += Labels(series, x, y);
    if (chart.series.size() > 1) {
      content +=
          fmt::format(R"(<circle class="dot {}" cx="{:.1f}" cy="12" r="4"/>)", color, legend);
      content += TextAt(legend + 9, 16, "start", "", series.name);
      legend += LegendWidth(series);
    }
  }
  double last = -100;
  int row = 0;
  for (const auto& [name, value] : chart.lines) {
    if (columns) {
      // Labels of lines that are close stand below each other.
      row = x(value) - last < 48 ? row + 1 : 0;
      last = x(value);
      const bool right = x(value) > kWidth - kRight - 40;
      content += Line("limit", x(value), kTop, x(value), kHeight - kBottom) +
                 TextAt(x(value) + (right ? -4 : 4), kTop + 10 + 14 * row, right ? "end" : "start",
                        "limit", name);
    } else {
      content += Line("limit", kLeft, y(value), kWidth - kRight, y(value)) +
                 TextAt(kWidth - kRight, y(value) - 5, "end", "limit", name);
    }
  }
  return {kHeight, content};
}

std::string SvgText(const Chart& chart, std::string_view attributes, std::string_view before) {
  const Picture picture = chart.kind == Chart::Kind::kBars ? Bars(chart) : Plot(chart);
  return fmt::format(
      R"(<svg class="chart" {}viewBox="0 0 {:g} {:g}" role="img" aria-label="{}">{}{}</svg>)",
      attributes, kWidth, picture.height, MarkupText(chart.title), before, picture.content);
}

}  // namespace

std::string InlineSvg(const Chart& chart) { return SvgText(chart, "", ""); }

std::string Svg(const Chart& chart) {
  return SvgText(
             chart, R"(xmlns="http://www.w3.org/2000/svg" )",
             fmt::format(R"(<style>{}</style><rect class="ground" width="100%" height="100%"/>)",
                         kChartStyle)) +
         "\n";
}

std::string InlineSvg(const std::vector<double>& series) {
  constexpr double kLineWidth = 80, kLineHeight = 18, kMargin = 2.5;
  double low = INFINITY, high = -INFINITY;
  for (const double number : series)
    if (std::isfinite(number)) low = std::min(low, number), high = std::max(high, number);
  if (!(low < high)) return "";  // a flat line says nothing, and makes tables wide
  std::string points;
  double x = 0, y = 0;
  for (size_t i = 0; i < series.size(); ++i) {
    if (!std::isfinite(series[i])) continue;
    x = kMargin + static_cast<double>(i) * (kLineWidth - 2 * kMargin) /
                      static_cast<double>(series.size() - 1);
    const double share = (series[i] - low) / (high - low);
    y = kLineHeight - kMargin - share * (kLineHeight - 2 * kMargin);
    points += fmt::format("{}{:.0f},{:.0f}", points.empty() ? "" : " ", x, y);
  }
  return fmt::format(
      R"(<svg class="spark" viewBox="0 0 {:g} {:g}" aria-hidden="true"><polyline points="{}"/><circle cx="{:.0f}" cy="{:.0f}" r="2"/></svg>)",
      kLineWidth, kLineHeight, points, x, y);
}

}  // namespace mlc::report
