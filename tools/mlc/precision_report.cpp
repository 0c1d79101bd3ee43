#include "tools/mlc/precision_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mlc::driver {

using Json = nlohmann::ordered_json;

namespace {

Json FigureJson(const precision::Measurement::Figure& figure) {
  return {{"output", figure.output},
          {"figure", Name(figure.kind)},
          {"value", figure.value},
          {"allowed", figure.allowed},
          {"within", figure.fits}};
}

}  // namespace

std::string PrecisionText(const CompileResult& result) {
  if (result.precision == "fp32") return result.precision;
  std::vector<std::string> more;
  double percent = 100 * (1 - result.fp16_share);
  if (percent >= 0.5)
    more.push_back(fmt::format("{:.0f} % of the work in fp32", percent));
  else if (percent > 0)
    more.push_back("below 1 % of the work in fp32");
  if (!result.fp16_target.empty() && percent >= 0.5)
    more.push_back(fmt::format("less with --target {}", result.fp16_target));
  if (result.measurement && !result.measurement->beyond.empty()) {
    const precision::Measurement::Figure& worst =
        *std::ranges::max_element(result.measurement->beyond,
                                  [](const auto& a, const auto& b) { return a.Part() < b.Part(); });
    more.push_back(fmt::format("{}: {:.2g} % {}", worst.output, 100 * worst.value,
                               worst.kind == precision::Measurement::Figure::Kind::kError
                                   ? "error"
                                   : "of elements differ"));
  }
  if (!result.measurement || !result.measurement->not_measured.empty())
    more.push_back(result.measurement && result.measurement->ranges ? "only ranges measured"
                                                                    : "not measured");
  return result.precision + (more.empty() ? "" : fmt::format(" ({})", fmt::join(more, ", ")));
}

std::string MeasurementText(const CompileResult& result) {
  if (!result.measurement) return "";
  const precision::Measurement& measurement = *result.measurement;
  if (!measurement.not_measured.empty())
    return fmt::format(
        "  fp16 {} not measured: {}{}\n", measurement.ranges ? "errors" : "accuracy",
        measurement.not_measured,
        measurement.generated ? "; --calibrate DIR measures on your own inputs" : "");
  if (measurement.curve.size() < 2) return "";
  std::string text = "  work in fp16   worst      allowed    metric     output\n";
  for (const auto& [share, worst] : measurement.curve)
    text += fmt::format("  {:>10.1f} %   {:<8.2g}   {:<8.2g}   {:<8}   {}{}\n", 100 * share,
                        worst.value, worst.allowed, precision::Word(worst.kind), worst.output,
                        worst.fits ? "" : "  over budget");
  return text;
}

Json MeasurementJson(const CompileResult& result) {
  Json json{{"fp16_share", result.fp16_share},
            {"fp16_segments", result.fp16_segments},
            {"no_fp16_form_share", result.no_fp16_form_share}};
  if (!result.measurement) return json;
  const precision::Measurement& measurement = *result.measurement;
  if (!measurement.not_measured.empty()) {
    json["measurement"] = {{"not_measured", measurement.not_measured},
                           {"ranges", measurement.ranges}};
    return json;
  }
  Json found{{"inputs", measurement.generated ? "made up" : "given"},
             {"description", measurement.inputs},
             {"runs", measurement.runs},
             {"before", FigureJson(measurement.plain)},
             {"after", FigureJson(measurement.chosen)}};
  for (const precision::Measurement::Figure& figure : measurement.beyond)
    found["exceeded"].push_back(FigureJson(figure));
  if (measurement.mixed_share) found["mixed_fp32_share"] = *measurement.mixed_share;
  if (!measurement.other_range.empty()) found["other_range"] = measurement.other_range;
  for (const precision::Measurement::Point& point : measurement.curve) {
    Json entry = FigureJson(point.worst);
    entry["fp16_share"] = point.fp16_share;
    found["curve"].push_back(entry);
  }
  json["measurement"] = found;
  return json;
}

}  // namespace mlc::driver
