#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "tools/driver/compression_sweep.h"
#include "tools/driver/json_results.h"

namespace mlc::driver {

nlohmann::ordered_json CompressionSweepJson(const std::filesystem::path& model,
                                            const CompressionSweepResult& result) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const CompressionSweepRow& row : result.rows) {
    Json json{{"scheme", row.scheme}};
    if (!row.package.empty()) json["package"] = std::filesystem::absolute(row.package).string();
    if (row.bytes > 0) {
      json["target"] = row.target;
      json["bytes"] = row.bytes;
      json["weight_bytes"] = row.weight_bytes;
    }
    if (row.max_error) {
      json["error"] = {{"max_error", NumberJson(*row.max_error)},
                       {"rmse", NumberJson(row.rmse.value_or(0))},
                       {"output", row.worst}};
    }
    if (row.text) {
      const verify::AgreementFigures& figures = row.text->figures;
      json["text"] = {{"perplexity", NumberJson(figures.value.perplexity)},
                      {"source_perplexity", NumberJson(figures.reference.perplexity)},
                      {"divergence", NumberJson(figures.divergence)},
                      {"top1", NumberJson(figures.top1)},
                      {"tokens_scored", figures.value.scored}};
    }
    json["within_budget"] = row.within;
    if (row.times) {
      Json times{{"units", row.runtime}};
      for (const StatisticsField& field : kStatisticsFields)
        times[field.name] = NumberJson((*row.times).*field.value);
      json["predict_ms"] = std::move(times);
    }
    if (!row.errors.empty()) {
      json["errors"] = Json::array();
      for (const Error& error : row.errors) json["errors"].push_back(ErrorJson(error));
    }
    rows.push_back(std::move(json));
  }
  return {{"model", model.string()}, {"schemes", std::move(rows)}};
}

}  // namespace mlc::driver
