#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "lib/verify/fp16_floor.h"
#include "tools/driver/errors.h"
#include "tools/driver/json_results.h"
#include "tools/driver/parity.h"
#include "tools/driver/reports.h"
#include "tools/mlc/command.h"
#include "tools/mlc/generated_inputs_report.h"
#include "tools/mlc/parity_report.h"
#include "tools/mlc/progress_line.h"
#include "tools/mlc/terminal.h"
#include "tools/mlc/text_modes.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

struct VerifyArguments {
  fs::path source, package;
  VerifyOptions options;
  int64_t worst = 10;
  fs::path result;
  fs::path text, tokenizer;
  std::vector<fs::path> reports;
};

// Formats the comparison on the prompt that both models continued.
std::string LanguageText(const LanguageResult& language) {
  std::string text = fmt::format("prompt of {} tokens{}:\n", language.tokens.size(),
                                 language.generated ? ", generated" : "");
  for (auto [name, figures] :
       {std::pair{"at once", &language.at_once}, {"step by step", &language.step_by_step}}) {
    text += fmt::format(
        "  {:<13} same top token for {} of {}; KL divergence mean {:.2e}, max {:.2e}\n", name,
        figures->equal, figures->tokens, figures->mean_divergence, figures->max_divergence);
    auto list = [&](const std::vector<verify::LanguageFigures::Other>& others,
                    const std::string& what) {
      for (const verify::LanguageFigures::Other& other : others)
        text += fmt::format("    position {}: {}, reference {}, {:.3g} apart, {}\n", other.position,
                            other.token, other.reference, other.gap, what);
    };
    list(figures->wrong, fmt::format("at least {} x the RMSE", verify::kErrors));
    list(figures->close, fmt::format("less than {} x the RMSE", verify::kErrors));
  }
  if (language.own)
    text += fmt::format(
        "own floor (rounded constants and fp16 arithmetic): RMSE {:.1e}; allowed {:.1e}\n",
        language.own->floor, language.own->limit);
  return text;
}

// Formats the followed router choices. `what`: samples or a prompt.
std::string RoutersText(std::string_view what, const verify::FollowedChoices& routers) {
  if (routers.followed == 0) return "";
  return fmt::format(
      "routers, {}: the source follows the package's choice of experts for {} of {} tokens; their "
      "scores differ by at most {:.1e} of the largest, which fp16 does not resolve\n",
      what, routers.followed, routers.tokens, routers.widest);
}

// "texts: 3, of 5 to 12 tokens"
std::string TextsText(const std::vector<EncodedText>& texts) {
  if (texts.empty()) return "";
  int64_t least = INT64_MAX, most = 0, removed = 0;
  for (const EncodedText& text : texts) {
    least = std::min(least, std::ssize(text.pieces));
    most = std::max(most, std::ssize(text.pieces));
    removed += text.removed;
  }
  std::string line = fmt::format("texts: {}, of {} to {} tokens", texts.size(), least, most);
  if (removed > 0)
    line += fmt::format("; {} left out: more than the model takes", Counted(removed, "token"));
  return line + "\n";
}

void Print(const VerifyResult& result, const VerifyOptions& options, size_t worst) {
  std::string generated, not_compared, layers, bundle, language;
  for (const VerifyResult::OfFunction& function : result.functions) {
    generated += TextsText(function.texts);
    generated += GeneratedInputsText(*function.source, function.generated, options.make_up,
                                     function.samples);
    for (const std::string& name : function.not_compared)
      not_compared +=
          fmt::format("-    {:<32} not compared: missing from {}\n", name, result.reference);
    language += RoutersText("samples", function.followed);
    if (function.language)
      language +=
          LanguageText(*function.language) + RoutersText("prompt", function.language->followed);
    if (!options.layers) continue;
    if (result.functions.size() > 1) layers += fmt::format("function {}, ", function.name);
    layers += verify::LayersText(function.layers, worst);
  }
  if (!options.bundle.empty())
    bundle = fmt::format("bundle: {0}; to check it on another machine: mlc-run --bundle {0}\n",
                         options.bundle.string());
  if (!result.tokenizer.empty())
    language += fmt::format("tokenizer: {} matches the source's\n", result.tokenizer);
  std::string floors;
  if (result.floors)
    floors = fmt::format("floor: {}; errors up to {} x the floor are allowed\n",
                         verify::kFloorDescription, verify::kFloors);
  PrintColored(
      stdout,
      fmt::format(
          "reference: {}{}\nbudget: {} ({})\nerror: {}\n{}{}{}{}{}{}{}{}\n", result.reference,
          result.exact ? fmt::format(" ({})", Describe(engine::EngineOptions::Arithmetic::kExact))
                       : "",
          result.budgets.name, Describe(result.budgets.all), verify::kErrorFigure, floors,
          generated, bundle, WithFlags(verify::ReportText(result.outputs)), not_compared, language,
          layers, VerdictText(result.outputs)));
}

int RunVerify(const VerifyArguments& given, Session& session) {
  if (!given.result.empty()) {
    RefuseAllBut({"SOURCE", "PACKAGE", "--result", "--bundle", "--report", "--json"},
                 "--result shows a comparison made before", session);
    // A single positional argument is parsed as SOURCE.
    return ShowParity(CheckResult(given.result, given.options.bundle,
                                  given.package.empty() ? given.source : given.package),
                      given.result.string(), session, given.reports);
  }
  for (auto [name, path] : {std::pair{"SOURCE", &given.source}, {"PACKAGE", &given.package}})
    if (path->empty()) throw Error("usage", "{} is required", name).Help("mlc verify --help");
  if (session.given.contains("--inputs"))
    Refuse({"--seed", "--input-range"}, "--inputs replaces generated inputs", session);
  if (!given.options.layers && session.given.contains("--worst"))
    throw Error("usage", "--worst requires --layers");
  if (given.options.atol || given.options.rtol)
    Refuse({"--per-axis"}, "--atol and --rtol judge each element", session);
  if (given.worst < 1) throw Error("usage", "--worst must be at least 1");
  const bool texts = !given.text.empty() && TakesTexts(given.package);
  if (!given.text.empty() && !texts)
    return VerifyText(given.source, given.package, given.options, given.text, given.tokenizer,
                      given.reports, session);
  if (texts)
    Refuse({"--inputs", "--input-range", "--seed", "--tokens"}, "--text replaces inputs", session);
  else if (!given.tokenizer.empty())
    throw Error("usage", "--tokenizer requires --text");
  VerifyResult result;
  {
    ProgressLine line(session);
    VerifyOptions options = given.options;
    options.text = given.text;
    options.tokenizer = given.tokenizer;
    options.progress = line.Showing();
    result = Verify(given.source, given.package, options, session.diagnostics);
  }
  session.json ? PrintDocument(VerifyJson(result, given.options))
               : Print(result, given.options, static_cast<size_t>(given.worst));
  if (!given.reports.empty())
    WriteReports(VerifyReport(given.source, given.package, result, given.options), given.reports);
  return Judge(result.outputs) == verify::Verdict::kPassed ? 0 : ExitCode("check-failed");
}

}  // namespace

Command VerifyCommand() {
  auto given = std::make_shared<VerifyArguments>();
  std::vector<Option> table = {
      {"SOURCE", "", "source model", Into(given->source)},
      {"PACKAGE", "", "package or compiled bundle made from it", Into(given->package)},
  };
  Append(VerifyTable(given->options), table);
  Append(
      Grouped(
          OptionGroup::kComparison,
          {Common(
               {"--text", "FILE",
                "text encoders: compare on the texts of this file, one on each line, or two that a "
                "tab separates. Language models: compare on the text of this file: perplexity, and "
                "divergence of the predictions, in chunks of --context tokens (default 512); the "
                "second half of each chunk is scored; limits below (default: none)",
                Into(given->text)}),
           Common({"--tokenizer", "PATH",
                   "GGUF file, Hugging Face folder or tokenizer.json to take the tokenizer for "
                   "--text from (default: SOURCE)",
                   Into(given->tokenizer)}),
           {"--worst", "N", "number of operations that --layers lists (default 10)",
            Whole("--worst", given->worst)},
           Common({"--bundle", "DIR",
                   "write package, inputs and reference outputs into a folder, to be checked on "
                   "another machine by `mlc-run --bundle DIR` (default: none)",
                   Into(given->options.bundle)}),
           {"--result", "FILE",
            "check and print a result.json written by mlc-run --bundle. The bundle is its folder, "
            "or "
            "the DIR of --bundle. Fails if the result belongs to another bundle, or to another "
            "package than PACKAGE (default: none)",
            Into(given->result)}}),
      table);
  Append(ImportTable(given->options.import), table);
  table.push_back(ReportOption(given->reports, true));
  table.push_back(JsonOption());
  // "fp32: ...; fp16: ...; int8: ..."
  auto of_each = [](auto limit) {
    std::vector<std::string> texts;
    for (const char* name : {"fp32", "fp16", "int8"})
      texts.push_back(fmt::format("{}: {}", name, Describe(limit(name))));
    return fmt::format("{}", fmt::join(texts, "; "));
  };
  return {
      "verify",
      "Compare a package with its source model, or with reference outputs",
      {"mlc verify model.onnx model.mlpackage",
       "mlc verify model.onnx model.mlpackage --inputs samples --reference outputs"},
      std::move(table),
      [given](Session& session) { return RunVerify(*given, session); },
      fmt::format(
          "Error of an output: {}. The RMSE has the same denominator. Integers and booleans must "
          "be equal. An output whose reference is constant is inconclusive; if all outputs are, "
          "verification fails.\n"
          "Budgets: {}. A budget FILE is JSON: base (a budget above), max_error, rmse, unequal "
          "(share of integers), per_axis, atol, rtol, and outputs (the same, by output name).\n"
          "Floor: {}. Without --budget, an fp16 package passes with errors up to {} x the floor, "
          "if that exceeds the budget; the same holds for the share of unequal integers.\n"
          "Language models are also compared on a prompt, with a floor that includes fp16 "
          "arithmetic: the RMSE of the logits may be up to {} x this floor, or {} if that is "
          "larger. Where two router scores of a mixture of experts differ by less than {:g} % of "
          "the "
          "largest score, the source model uses the expert that the package selected. "
          "The tokenizer beside a package must match the source's.\n"
          "Limits of --text: {}.\n\n",
          verify::kErrorFigure,
          of_each([](const char* name) { return verify::ParseBudgets(name).all; }),
          verify::kFloorDescription, verify::kFloors, kOwnFloors, kLeastLimit,
          100 * verify::kRouterResolution, of_each(verify::AgreementLimitOf)),
      {"compile", "run", "diff"}};
}

}  // namespace mlc::driver
