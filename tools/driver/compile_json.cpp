#include <nlohmann/json.hpp>

#include "tools/driver/json_results.h"

namespace mlc::driver {

namespace {

using Json = nlohmann::ordered_json;

Json FigureJson(const precision::Measurement::Figure& figure) {
  return {{"output", figure.output},
          {"figure", Name(figure.kind)},
          {"value", figure.value},
          {"allowed", figure.allowed},
          {"within", figure.fits}};
}

// Contains "fp16_share", and "measurement" if there was one.
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

}  // namespace

Json StatsJson(const CompileResult& result) {
  Json phases = Json::object(), passes = Json::array();
  for (const auto& [name, seconds] : result.phases) phases[name] = seconds;
  for (const passes::PassRun& run : result.passes)
    passes.push_back({{"name", run.name}, {"changed", run.changed}, {"seconds", run.seconds}});
  return {{"phases", phases}, {"passes", passes}, {"peak_memory_bytes", result.peak_memory_bytes}};
}

Json CompileJson(const CompileResult& result, const Diagnostics& diagnostics) {
  Json json{{"package", std::filesystem::absolute(result.package).string()},
            {"target", TargetName(result.target)},
            {"precision", result.precision},
            {"operations", result.operations},
            {"operators", result.operators},
            {"weight_bytes", result.weight_bytes},
            {"content_hash", result.content_hash}};
  json.update(InterfaceJson(*result.program->main()));
  if (!result.manifest.empty())
    json["manifest"] = std::filesystem::absolute(result.manifest).string();
  if (!result.tokenizer.empty())
    json["tokenizer"] = std::filesystem::absolute(result.tokenizer).string();
  Json warnings = Json::array(), decisions = warnings;
  for (const Error& warning : diagnostics.warnings()) warnings.push_back(warning.Render("warning"));
  for (const std::string& note : diagnostics.notes()) warnings.push_back(note);
  for (const Decision& decision : diagnostics.decisions()) {
    Json& entry = decisions.emplace_back(Json::object());
    entry = {{"kind", decision.kind}, {"subject", decision.subject}, {"reason", decision.reason}};
    if (!decision.id.empty()) entry["id"] = decision.id;
  }
  json["notes"] = warnings;
  json["decisions"] = decisions;
  if (result.compression)
    json["compression"] = Json::parse(compress::CompressionJson(*result.compression));
  json.update(MeasurementJson(result));
  json.update(StatsJson(result));
  return json;
}

}  // namespace mlc::driver
