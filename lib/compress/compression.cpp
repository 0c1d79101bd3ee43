#include "lib/compress/compression.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lib/compress/quantise.h"
#include "lib/support/error.h"
#include "lib/support/json_text.h"

namespace mlc::compress {

namespace {

using Json = nlohmann::ordered_json;

// A signal-to-noise ratio with two decimals; null without an error.
Json Decibels(double snr) {
  return std::isfinite(snr) ? Json(std::round(100 * snr) / 100) : Json(nullptr);
}

// Rounded to four digits, which do not depend on the order of sums.
double Rounded(double x) {
  if (!(std::fabs(x) > 0) || !std::isfinite(x)) return x;
  const double unit = std::pow(10, std::floor(std::log10(std::fabs(x))) - 3);
  return std::round(x / unit) * unit;
}

Json LossJson(const Loss& loss) {
  Json json{{"snr_db", Decibels(SnrOf(1, loss.noise))}};
  if (loss.divergence) json["divergence"] = Rounded(*loss.divergence);
  return json;
}

Json OutputsJson(const Loss& loss) {
  Json outputs = Json::array();
  for (const auto& [name, peak] : loss.peaks)
    outputs.push_back({{"output", name}, {"max_error", Rounded(peak)}});
  return outputs;
}

}  // namespace

double WeightReport::snr() const { return SnrOf(energy, error); }
double WeightReport::output_snr() const { return SnrOf(output_energy, output_error); }

Totals TotalsOf(const std::vector<WeightReport>& weights) {
  Totals totals;
  for (const WeightReport& weight : weights) {
    if (!weight.weight && !weight.compressed) continue;
    ++totals.weights;
    totals.compressed += weight.compressed ? 1 : 0;
    totals.bytes_before += weight.bytes_before;
    totals.bytes_after += weight.bytes_after;
    if (!weight.compressed) continue;
    totals.error += weight.error;
    totals.energy += weight.energy;
  }
  return totals;
}

std::string CompressionJson(const Compression& compression) {
  const Totals totals = TotalsOf(compression.weights);
  Json json{
      {"rules", Text(compression.rules)},  {"weights", totals.weights},
      {"compressed", totals.compressed},   {"bytes_before", totals.bytes_before},
      {"bytes_after", totals.bytes_after}, {"snr_db", Decibels(SnrOf(totals.energy, totals.error))},
      {"tensors", Json::array()}};
  if (!compression.inputs.empty()) json["inputs"] = compression.inputs;
  if (compression.loss) {
    json["loss"] = LossJson(*compression.loss);
    json["loss"]["inputs"] = compression.evaluated_on;
    json["loss"]["outputs"] = OutputsJson(*compression.loss);
  }
  if (compression.generated_loss) {
    json["generated_loss"] = LossJson(*compression.generated_loss);
    json["generated_loss"]["outputs"] = OutputsJson(*compression.generated_loss);
  }
  if (compression.tuned) {
    const Tuned& tuned = *compression.tuned;
    json["trained"] = {
        {"weights", tuned.weights}, {"steps", tuned.steps}, {"samples", tuned.samples}};
    if (tuned.weights > 0) json["trained"]["codes"] = tuned.codes;
    if (!tuned.why.empty()) json["trained"]["reason"] = tuned.why;
  }
  for (const UnitFinding& finding : compression.units)
    json["units"].push_back({{"rule", finding.rule},
                             {"unit", finding.unit},
                             {"severity", finding.severity},
                             {"meaning", finding.meaning},
                             {"operations", finding.operations},
                             {"fix", finding.fix}});
  if (!compression.ranges.empty()) json["ranges"] = compression.ranges;
  for (const ActivationReport& activation : compression.activations) {
    Json& entry = json["activations"].emplace_back(Json::object());
    entry["name"] = activation.name;
    entry["dtype"] = Name(activation.dtype);
    entry["scale"] = Rounded(activation.scale);
    if (activation.zero_point != 0) entry["zero_point"] = activation.zero_point;
    entry["low"] = Rounded(activation.low);
    entry["high"] = Rounded(activation.high);
  }
  if (!compression.activations_left.empty())
    json["activations_left"] = {{"names", compression.activations_left},
                                {"error_otherwise", Rounded(compression.loss_in_8_bits)}};
  for (const CurvePoint& point : compression.curve) {
    Json& entry = json["curve"].emplace_back(Json::object());
    if (!point.scheme.empty()) entry["scheme"] = point.scheme;
    entry["bytes"] = point.bytes;
    entry["bits"] = Rounded(point.bits);
    entry["loss"] = LossJson(point.loss);
    if (point.chosen) entry["chosen"] = true;
  }
  for (const WeightReport& weight : compression.weights) {
    Json& entry = json["tensors"].emplace_back(Json::object());
    entry["name"] = weight.name;
    entry["consumer"] = weight.consumer;
    entry["operator"] = weight.op;
    entry["shape"] = weight.dims;
    if (!weight.asked.empty()) entry["asked"] = weight.asked;
    entry["scheme"] = weight.compressed ? weight.used : "none";
    entry["bytes_before"] = weight.bytes_before;
    entry["bytes_after"] = weight.bytes_after;
    if (weight.compressed) entry["snr_db"] = Decibels(weight.snr());
    if (weight.output_energy > 0) entry["output_snr_db"] = Decibels(weight.output_snr());
    if (weight.bias_corrected) entry["bias_corrected"] = true;
    if (weight.equalised) entry["equalised"] = true;
    if (weight.trained) entry["trained"] = true;
    if (!weight.reason.empty()) entry["reason"] = weight.reason;
  }
  return JsonText(json, 2, BadUtf8::kReplace);
}

Opset Since(const std::vector<Rule>& rules) {
  Opset since = Opset::kIos15;
  for (const Rule& rule : rules) since = std::max(since, Since(rule.scheme));
  return since;
}

void CheckTarget(const std::vector<Rule>& rules, Opset target) {
  for (const Rule& rule : rules) {
    const Opset since = LowestTarget(rule.scheme);
    if (since <= target) continue;
    throw Error("target-too-old", "option 'compress' {}: not supported on {}", Text(rule.scheme),
                TargetName(target))
        .Expected("{} or later", TargetName(since))
        .Help(target < Opset::kIos16
                  ? fmt::format("{} supports plain weights only", TargetName(target))
                  : fmt::format("{} supports int8 by row or tensor, pal1, pal2, pal4, pal6 and "
                                "pal8 with one table, and sparse without another scheme",
                                TargetName(target)));
  }
}

}  // namespace mlc::compress
