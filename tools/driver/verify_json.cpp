#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "tools/driver/json_results.h"
#include "tools/driver/model.h"
#include "tools/driver/verify.h"

namespace mlc::driver {

namespace {

using Json = nlohmann::ordered_json;

Json RoutersJson(const verify::FollowedChoices& routers) {
  return {{"tokens", routers.tokens}, {"followed", routers.followed}, {"widest", routers.widest}};
}

Json LanguageJson(const LanguageResult& language) {
  auto others = [](const std::vector<verify::LanguageFigures::Other>& list) {
    Json json = Json::array();
    for (const verify::LanguageFigures::Other& other : list)
      json.push_back({{"position", other.position},
                      {"token", other.token},
                      {"reference", other.reference},
                      {"gap", other.gap}});
    return json;
  };
  auto figures = [&](const verify::LanguageFigures& of) {
    return Json{{"equal", of.equal},
                {"wrong", others(of.wrong)},
                {"close", others(of.close)},
                {"rmse", of.error},
                {"mean_divergence", of.mean_divergence},
                {"max_divergence", of.max_divergence}};
  };
  Json json{{"tokens", language.tokens},
            {"made_up", language.generated},
            {"at_once", figures(language.at_once)},
            {"step_by_step", figures(language.step_by_step)}};
  if (language.own)
    json["own_floor"] = {{"rmse", language.own->floor}, {"allowed", language.own->limit}};
  if (language.followed.tokens > 0) json["routers"] = RoutersJson(language.followed);
  return json;
}

}  // namespace

Json VerifyJson(const VerifyResult& result, const VerifyOptions& options) {
  Json budget = ParseJson(ToJson(result.budgets));
  budget["name"] = result.budgets.name;
  Json json{{"reference", result.reference},
            {"figure", verify::kErrorFigure},
            {"budget", budget},
            {"floors", result.floors},
            {"ok", Judge(result.outputs) == verify::Verdict::kPassed},
            {"verdict", VerdictText(result.outputs)},
            {"outputs", ParseJson(verify::ReportJson(result.outputs))}};
  Json layers = Json::array(), not_compared = layers;
  for (const VerifyResult::OfFunction& function : result.functions) {
    for (const EncodedText& text : function.texts)
      json["texts"].push_back({{"tokens", text.tokens.ids},
                               {"types", text.tokens.types},
                               {"left_out", text.removed},
                               {"padded_to", text.padded}});
    if (!function.generated.empty())
      json["made_up"].push_back(ParseJson(GeneratedInputsJson(*function.source, function.generated,
                                                              options.make_up, function.samples)));
    for (const std::string& name : function.not_compared) not_compared.push_back(name);
    if (function.followed.tokens > 0) json["routers"].push_back(RoutersJson(function.followed));
    if (function.language) json["language"].push_back(LanguageJson(*function.language));
    for (Json& layer : ParseJson(verify::LayersJson(function.layers)))
      layers.push_back(std::move(layer));
  }
  if (result.exact) json["computes"] = Describe(engine::EngineOptions::Arithmetic::kExact);
  if (!not_compared.empty()) json["not_compared"] = not_compared;
  if (!result.tokenizer.empty()) json["tokenizer"] = result.tokenizer;
  if (options.layers) json["layers"] = layers;
  return json;
}

}  // namespace mlc::driver
