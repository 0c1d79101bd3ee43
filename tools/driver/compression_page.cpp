#include "tools/driver/compression_page.h"

#include <algorithm>
#include <cmath>

#include "lib/support/atomic_install.h"
#include "lib/support/error.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using compress::Compression;
using compress::CurvePoint;
using compress::WeightReport;

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return escaped;
}

// Colours follow the theme of the reader. Programs that convert pictures ignore variables.
constexpr std::string_view kStyle = R"(
svg, body { color: #1b1f24; background: #ffffff; }
text { fill: currentColor; font: 13px system-ui, sans-serif; }
.ground { fill: #ffffff; } .soft { fill: #57606a; } .grid { stroke: #d0d7de; }
.curve { stroke: #57606a; fill: none; } .point { fill: #57606a; } .uniform { fill: #9a6700; }
.chosen { fill: #0969da; } th, td { border-color: #d0d7de; }
@media (prefers-color-scheme: dark) {
  svg, body { color: #e6edf3; background: #0d1117; }
  .ground { fill: #0d1117; } .soft { fill: #8b949e; } .grid { stroke: #30363d; }
  .curve { stroke: #8b949e; } .point { fill: #8b949e; } .uniform { fill: #d29922; }
  .chosen { fill: #58a6ff; } th, td { border-color: #30363d; }
}
)";

double LossOf(const CurvePoint& point) { return std::max(point.loss.cost(), 1e-12); }

// The numbers at the lines of an axis: powers of ten.
std::string PowerText(int exponent) {
  if (exponent < -3 || exponent > 3) return fmt::format("1e{}", exponent);
  return fmt::format("{:g}", std::pow(10, exponent));
}

// Loss against bits per element, on a logarithmic scale.
std::string Picture(const Compression& compression) {
  constexpr double kWidth = 720, kHeight = 420, kLeft = 70, kRight = 30, kTop = 40, kBottom = 60;
  double least_bits = 1e9, most_bits = 0, least = 1e300, most = 0;
  bool divergence = false;
  for (const CurvePoint& point : compression.curve) {
    least_bits = std::min(least_bits, point.bits);
    most_bits = std::max(most_bits, point.bits);
    least = std::min(least, LossOf(point));
    most = std::max(most, LossOf(point));
    divergence = divergence || point.loss.divergence;
  }
  least_bits = std::floor(least_bits);
  most_bits = std::max(std::ceil(most_bits), least_bits + 1);
  const int low = static_cast<int>(std::floor(std::log10(least))),
            high = std::max(static_cast<int>(std::ceil(std::log10(most))), low + 1);
  auto x = [&](double bits) {
    return kLeft + (bits - least_bits) / (most_bits - least_bits) * (kWidth - kLeft - kRight);
  };
  auto y = [&](double loss) {
    return kTop + (high - std::log10(loss)) / (high - low) * (kHeight - kTop - kBottom);
  };
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:g} {1:g}" role="img" aria-label="Loss by size"><style>{2}</style><rect class="ground" width="{0:g}" height="{1:g}"/>)",
      kWidth, kHeight, kStyle);
  for (double bits = least_bits; bits <= most_bits; ++bits)
    svg += fmt::format(
        R"(<line class="grid" x1="{0:.1f}" y1="{1:g}" x2="{0:.1f}" y2="{2:g}"/><text x="{0:.1f}" y="{3:g}" text-anchor="middle">{4:g}</text>)",
        x(bits), kTop, kHeight - kBottom, kHeight - kBottom + 20, bits);
  for (int exponent = low; exponent <= high; ++exponent)
    svg += fmt::format(
        R"(<line class="grid" x1="{1:g}" y1="{0:.1f}" x2="{2:g}" y2="{0:.1f}"/><text x="{3:g}" y="{4:.1f}" text-anchor="end">{5}</text>)",
        y(std::pow(10, exponent)), kLeft, kWidth - kRight, kLeft - 8, y(std::pow(10, exponent)) + 4,
        PowerText(exponent));
  svg += fmt::format(R"(<text x="{:g}" y="{:g}" text-anchor="middle">bits per element</text>)",
                     (kLeft + kWidth - kRight) / 2, kHeight - 16);
  svg += fmt::format(R"(<text x="{:g}" y="22">{}</text>)", kLeft - 50,
                     divergence ? "divergence of the next token, nats"
                                : "noise of the outputs or their scores, relative to the variance");
  std::string line;
  for (const CurvePoint& point : compression.curve)
    if (point.scheme.empty())
      line +=
          fmt::format("{}{:.1f},{:.1f}", line.empty() ? "" : " ", x(point.bits), y(LossOf(point)));
  svg += fmt::format(R"(<polyline class="curve" points="{}"/>)", line);
  struct Label {
    double x, y;
    std::string text;
  };
  constexpr double kLabelWidth = 130, kLabelHeight = 15;
  std::vector<Label> labels;
  for (const CurvePoint& point : compression.curve) {
    const std::string label = point.scheme.empty() ? "a scheme for each weight" : point.scheme;
    svg += fmt::format(
        R"(<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}: {:.2f} bits, {} bytes, {:.3g}</title></circle>)",
        point.chosen           ? "chosen"
        : point.scheme.empty() ? "point"
                               : "uniform",
        x(point.bits), y(LossOf(point)), point.chosen ? 6 : 4, Escaped(label), point.bits,
        point.bytes, point.loss.cost());
    if (!point.scheme.empty() || point.chosen)
      labels.push_back({x(point.bits) + 9, y(LossOf(point)) + 4,
                        point.chosen ? point.scheme.empty() ? "chosen" : point.scheme + ", chosen"
                                     : point.scheme});
  }
  // From top to bottom, each below those that it would overlap.
  std::ranges::stable_sort(labels, {}, &Label::y);
  for (size_t i = 0; i < labels.size(); ++i) {
    for (size_t k = 0; k < i; ++k)
      if (std::fabs(labels[k].x - labels[i].x) < kLabelWidth)
        labels[i].y = std::max(labels[i].y, labels[k].y + kLabelHeight);
    svg += fmt::format(R"(<text class="soft" x="{:.1f}" y="{:.1f}">{}</text>)", labels[i].x,
                       labels[i].y, Escaped(labels[i].text));
  }
  return svg + "</svg>\n";
}

std::string Decibels(double energy, double error) {
  if (!(energy > 0)) return "";
  return error > 0 ? fmt::format("{:.1f}", 10 * std::log10(energy / error)) : "exact";
}

std::string Page(const std::string& title, const Compression& compression) {
  const compress::Totals totals = compress::TotalsOf(compression.weights);
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>{0}</title><style>{1}"
      "body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: "
      "0 1rem; }} table {{ border-collapse: collapse; width: 100%; font-size: 13px; }} th, td {{ "
      "text-align: left; padding: 3px 8px; border-width: 0 0 1px; border-style: solid; }} .n {{ "
      "text-align: right; }}</style></head><body><h1>{0}</h1>\n<p>{2} of {3} weights were "
      "compressed, from {4:.2f} MB to {5:.2f} MB, by the rules <code>{6}</code>{7}.</p>\n",
      Escaped(title), kStyle, totals.compressed, totals.weights,
      static_cast<double>(totals.bytes_before) / 1e6, static_cast<double>(totals.bytes_after) / 1e6,
      Escaped(compress::Text(compression.rules)),
      compression.inputs.empty() ? "" : ", calibrated on " + Escaped(compression.inputs));
  if (compression.loss) {
    page += fmt::format("<p>Signal to noise of the outputs: {} dB ({})",
                        Decibels(1, compression.loss->noise), Escaped(compression.evaluated_on));
    if (compression.loss->divergence)
      page += fmt::format("; mean divergence of the next token: {:.3g} nats",
                          *compression.loss->divergence);
    page += ".</p>\n";
  }
  if (!compression.curve.empty()) page += Picture(compression);
  page +=
      "<table><tr><th>weight</th><th>operator</th><th>scheme</th><th class=\"n\">bytes before</th>"
      "<th class=\"n\">after</th><th class=\"n\">weight, dB</th><th class=\"n\">output, dB</th>"
      "<th>remark</th></tr>\n";
  for (const WeightReport& weight : compression.weights)
    page += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
        Escaped(weight.name), weight.op, weight.compressed ? weight.used : "unchanged",
        weight.bytes_before, weight.bytes_after,
        weight.compressed ? Decibels(weight.energy, weight.error) : "",
        Decibels(weight.output_energy, weight.output_error), Escaped(weight.reason));
  return page + "</table></body></html>\n";
}

}  // namespace

void CheckCompressionReport(const fs::path& file) {
  const fs::path ending = file.extension();
  if (ending == ".html" || ending == ".svg" || ending == ".json") return;
  throw Error("usage", "--report: \"{}\" ends neither in .html nor in .svg or .json",
              file.string());
}

void WriteCompressionReport(const fs::path& file, const std::string& title,
                            const Compression& compression) {
  CheckCompressionReport(file);
  if (file.extension() == ".json")
    return WriteFile(file, compress::CompressionJson(compression) + "\n");
  if (file.extension() == ".html") return WriteFile(file, Page(title, compression));
  if (compression.curve.empty())
    throw Error("usage", "--report: there is no curve to draw in \"{}\"", file.string())
        .Expected("a rule with auto, such as --compress auto:bits=4")
        .Help(".html and .json reports list the weights");
  WriteFile(file, Picture(compression));
}

}  // namespace mlc::driver
