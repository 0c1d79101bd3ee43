// Reports of language models on text.
#include <cmath>

#include "tools/driver/errors.h"
#include "tools/driver/reports.h"

namespace mlc::driver {

using report::Cell;
using report::Mark;
using report::Quantity;

namespace {

std::string RateText(double tokens_per_second) {
  return fmt::format("{:.1f} tokens/s", tokens_per_second);
}

void AddExecutor(const Executor& by, report::Facts& facts) {
  facts.push_back({"runtime", by.runtime});
  facts.push_back({"units", Name(by.units)});
  if (by.units == runtime::Units::kReference)
    facts.push_back({"arithmetic", Describe(by.arithmetic)});
}

void AddChunks(const TextChunks& text, int64_t scored, report::Facts& facts) {
  facts.push_back({"tokens", text.tokens, Quantity::kCount});
  facts.push_back({"chunks", fmt::format("{} of {} tokens", text.chunks, text.context)});
  facts.push_back({"tokens scored", scored, Quantity::kCount});
}

std::string ErrorText(double error) { return fmt::format("{:.2g}", error); }
std::string WithError(double value, double error) {
  return fmt::format("{:.5g} +/- {:.2g}", value, error);
}

}  // namespace

report::Document PromptReport(const std::filesystem::path& model, const GenerateResult& result) {
  const std::string name = model.filename().string();
  report::Document document{"Answer of " + name, "run"};
  document.facts = {{"ended by", result.why}};
  AddExecutor(result.executor, document.facts);
  document.sections.push_back({"Prompt", {result.prompt}});
  document.sections.push_back({"Answer", {result.text}});
  report::Table phases{
      "",
      {{"phase"}, {"time", Quantity::kMilliseconds}, {"tokens", Quantity::kCount}, {"rate"}},
      {}};
  phases.rows = {
      {"reading and loading", result.load_ms, Cell(), Cell()},
      {"prompt", result.prefill_ms, result.prompt_tokens.size(), RateText(PrefillRate(result))}};
  if (result.decoded > 0)
    phases.rows.push_back(
        {"answer", result.decode_ms, result.decoded, RateText(DecodeRate(result))});
  document.sections.push_back({"Speed", {std::move(phases)}});
  document.checks = {
      {result.finish == GenerateResult::Finish::kInterrupted ? report::Check::Outcome::kSkipped
                                                             : report::Check::Outcome::kPassed,
       name, "answer", fmt::format("{} tokens, ended by {}", result.tokens.size(), result.why),
       result.prefill_ms + result.decode_ms}};
  return document;
}

report::Document PerplexityReport(const std::filesystem::path& model,
                                  const std::filesystem::path& text,
                                  const PerplexityResult& result) {
  const std::string name = model.filename().string();
  report::Document document{fmt::format("Perplexity of {} on {}", name, text.filename().string()),
                            "run"};
  const std::string perplexity = WithError(result.figures.perplexity, result.figures.error);
  document.facts = {{"perplexity", perplexity}};
  AddChunks(result.text, result.figures.scored, document.facts);
  AddExecutor(result.executor, document.facts);
  if (result.ms > 0)
    document.facts.push_back(
        {"rate", RateText(1e3 * static_cast<double>(result.text.chunks * result.text.context) /
                          result.ms)});
  document.checks = {{report::Check::Outcome::kPassed, name, "perplexity", perplexity, result.ms}};
  return document;
}

report::Document AgreementReport(const std::filesystem::path& source,
                                 const std::filesystem::path& package,
                                 const std::filesystem::path& text, const AgreementResult& result) {
  const verify::AgreementFigures& figures = result.figures;
  const verify::AgreementLimit& limit = result.limit;
  const std::string name = package.filename().string();
  report::Document document{
      fmt::format("{} compared with {} on {}", name, source.filename().string(),
                  text.filename().string()),
      "verify", Cell(result.ok ? "PASSED" : "FAILED", result.ok ? Mark::kGood : Mark::kBad)};
  document.facts = {{"reference", "mlc import"}, {"budget", limit.name}};
  AddChunks(result.text, figures.value.scored, document.facts);

  report::Table table{
      "", {{"figure"}, {"value"}, {"standard error"}, {"allowed"}, {"verdict"}}, {}};
  const auto add = [&](std::string_view what, std::string value, std::string error,
                       std::optional<double> distance = {}, double most = 0) {
    table.rows.push_back({what, std::move(value), std::move(error)});
    std::vector<Cell>& row = table.rows.back();
    if (!distance) return row.resize(table.columns.size());
    const bool ok = *distance <= most;  // false for NaN
    row.push_back(fmt::format("{:.3g}", most));
    row.push_back(ok ? Cell("within the budget", Mark::kGood)
                     : Cell("outside the budget", Mark::kBad));
    document.checks.push_back(
        {ok ? report::Check::Outcome::kPassed : report::Check::Outcome::kFailed, name,
         std::string(what), fmt::format("{}, allowed {:.3g}", row[1].text, most)});
  };
  add("perplexity of the source", fmt::format("{:.4f}", figures.reference.perplexity),
      ErrorText(figures.reference.error));
  add("perplexity of the package", fmt::format("{:.4f}", figures.value.perplexity),
      ErrorText(figures.value.error));
  add("package / source - 1", fmt::format("{:+.2e}", figures.ratio - 1),
      ErrorText(figures.ratio_error), std::abs(figures.ratio - 1), limit.ratio);
  add("mean KL divergence", fmt::format("{:.2e}", figures.divergence),
      ErrorText(figures.divergence_error), figures.divergence, limit.divergence);
  add("largest KL divergence", fmt::format("{:.2e}", figures.most_divergence), "");
  add("same top token", fmt::format("{:.2f} %", 100 * figures.top1),
      ErrorText(100 * figures.top1_error) + " %");
  add("same top five tokens", fmt::format("{:.2f} %", 100 * figures.top5),
      ErrorText(100 * figures.top5_error) + " %");
  document.sections.push_back({"Agreement", {std::move(table)}});
  if (result.tokenizer) {
    const bool ok = result.tokenizer->empty();
    document.checks.push_back(
        {ok ? report::Check::Outcome::kPassed : report::Check::Outcome::kFailed, name, "tokenizer",
         ok ? "as the source's" : WithFlags(*result.tokenizer)});
    document.facts.push_back({"tokenizer", ok ? Cell("as the source's", Mark::kGood)
                                              : Cell(WithFlags(*result.tokenizer), Mark::kBad)});
  }
  return document;
}

}  // namespace mlc::driver
