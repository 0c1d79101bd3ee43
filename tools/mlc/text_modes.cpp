#include "tools/mlc/text_modes.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "lib/support/interrupt.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "tools/driver/reports.h"
#include "tools/driver/text_outputs.h"
#include "tools/mlc/chat.h"
#include "tools/mlc/progress_line.h"
#include "tools/mlc/terminal.h"

namespace fs = std::filesystem;

namespace mlc::driver {

using Json = nlohmann::ordered_json;

namespace {

std::string ModeText(const Executor& by) {
  return by.units == runtime::Units::kReference
             ? fmt::format("{} ({})", by.runtime, Describe(by.arithmetic))
             : fmt::format("{}, --units {}", by.runtime, Name(by.units));
}
void AddMode(const Executor& by, Json& json) {
  json["runtime"] = by.runtime;
  json["units"] = Name(by.units);
  if (by.units == runtime::Units::kReference) json["mode"] = Name(by.arithmetic);
}

std::string PromptOf(const TextArguments& text) {
  if (!text.prompt && text.prompt_file.empty()) return "";
  if (text.prompt) return *text.prompt;
  const auto file = MappedFile::Open(text.prompt_file);
  std::string_view prompt = AsText(file->bytes());
  // Editors end files with a newline, which is not part of the prompt.
  if (prompt.ends_with('\n')) prompt.remove_suffix(1);
  return std::string(prompt);
}

Json GeneratedJson(const GenerateResult& result) {
  Json json{{"prompt", result.prompt}};
  json["prompt_tokens"] = result.prompt_tokens;
  json["text"] = result.text;
  json["tokens"] = result.tokens;
  if (!result.sequence.empty()) json["generated_ids"] = result.sequence;
  json["finish"] = Name(result.finish);
  json["why"] = result.why;
  AddMode(result.executor, json);
  json["load_ms"] = result.load_ms;
  json["prefill_ms"] = result.prefill_ms;
  json["decode_ms"] = result.decode_ms;
  json["prefill_tokens_per_second"] = PrefillRate(result);
  if (result.decoded > 0) json["decode_tokens_per_second"] = DecodeRate(result);
  return json;
}

int RunPrompt(const fs::path& model, const BenchmarkOptions& run, const TextArguments& text,
              const std::vector<fs::path>& reports, Session& session) {
  GenerateOptions options = text.generate;
  options.prompt = PromptOf(text);
  options.has_prompt = text.prompt || !text.prompt_file.empty();
  options.tokens = run.tokens;
  options.picture = run.picture;
  options.fit = run.fit;
  options.sampling.seed = run.make_up.seed;
  // Interrupts are caught only once text is generated; until then they end the process.
  std::optional<FirstInterrupt> interrupt;
  options.interrupted = [&] {
    if (!interrupt) interrupt.emplace();
    return interrupt->came();
  };
  ProgressLine line(session);
  options.progress = line.Showing();
  bool shown = false;
  if (!session.json)
    options.show = [&](std::string_view piece) {
      line.Erase();
      shown = true;
      ShowPiece(piece);
    };
  GenerateResult result;
  try {
    result = Generate(model, run, options, session.diagnostics);
  } catch (...) {
    line.Erase();
    if (shown) ShowPiece("\n");
    throw;
  }
  line.Erase();
  if (session.json) {
    PrintDocument(GeneratedJson(result));
  } else {
    // Without a tokenizer there is no text.
    if (!run.tokens.empty() && result.text.empty())
      ShowPiece(fmt::format("{}", fmt::join(result.tokens, ",")));
    ShowPiece("\n");
    if (result.sequence.empty())
      fmt::print(stderr, "prompt: {}, {:.1f} tokens/s\n",
                 Counted(std::ssize(result.prompt_tokens), "token"), PrefillRate(result));
    else
      fmt::print(stderr, "encoder: {:.1f} ms\n", result.prefill_ms);
    fmt::print(stderr, "answer: {}{}, ended by {}; {}\n",
               Counted(std::ssize(result.tokens), "token"),
               result.decoded > 0 ? fmt::format(", {:.1f} tokens/s", DecodeRate(result)) : "",
               result.why, ModeText(result.executor));
  }
  if (!reports.empty()) WriteReports(PromptReport(model, result), reports);
  if (result.finish == GenerateResult::Finish::kInterrupted) {
    std::fflush(stdout);
    DieOfInterrupt();
  }
  return 0;
}

Json TextJson(const TextChunks& text) {
  return {{"context", text.context}, {"chunks", text.chunks}, {"tokens", text.tokens}};
}
Json FiguresJson(const verify::PerplexityFigures& figures) {
  return {{"perplexity", figures.perplexity}, {"error", figures.error}};
}

// "1.2e-03 +/- 1e-04": a statistical figure with its standard error.
std::string WithError(std::string_view value, double error) {
  return fmt::format("{} +/- {:.2g}", value, error);
}

PerplexityOptions Chunked(const fs::path& text, const fs::path& tokenizer,
                          const ImportOptions& import, ProgressLine& line) {
  PerplexityOptions options;
  options.text = text;
  options.tokenizer = tokenizer;
  options.context = import.context;
  if (line.shown())
    options.progress = [&line](int64_t done, int64_t of, double perplexity) {
      line.Show(
          [&] { return fmt::format("{} of {} tokens, perplexity {:.4f}", done, of, perplexity); });
    };
  return options;
}

std::string ChunksText(const TextChunks& text, int64_t scored) {
  return fmt::format("{} tokens in {} chunks of {}, {} scored", text.tokens, text.chunks,
                     text.context, scored);
}

int RunPerplexity(const fs::path& model, const BenchmarkOptions& run, const TextArguments& text,
                  const std::vector<fs::path>& reports, Session& session) {
  PerplexityResult result;
  {
    ProgressLine line(session);
    const PerplexityOptions options =
        Chunked(text.perplexity, text.generate.tokenizer, run.import, line);
    result = MeasurePerplexity(model, run, options, session.diagnostics);
  }
  const double rate =
      result.ms > 0
          ? 1e3 * static_cast<double>(result.text.chunks * result.text.context) / result.ms
          : 0;
  if (session.json) {
    Json json = FiguresJson(result.figures);
    json["scored"] = result.figures.scored;
    json.update(TextJson(result.text));
    AddMode(result.executor, json);
    json["tokens_per_second"] = rate;
    PrintDocument(json);
  } else {
    fmt::print("perplexity {}\n{}; {}, {:.1f} tokens/s\n",
               WithError(fmt::format("{:.4f}", result.figures.perplexity), result.figures.error),
               ChunksText(result.text, result.figures.scored), ModeText(result.executor), rate);
  }
  if (!reports.empty()) WriteReports(PerplexityReport(model, text.perplexity, result), reports);
  return 0;
}

int RunSimilarity(const fs::path& model, const BenchmarkOptions& run, const TextArguments& text,
                  Session& session) {
  const SimilarityResult result = Similarity(model, run, {text.similarity[0], text.similarity[1]},
                                             text.generate.tokenizer, session.diagnostics);
  if (session.json) {
    Json json{{"cosine", result.cosine}, {"pooling", result.pooling}};
    AddMode(result.executor, json);
    for (size_t i = 0; i < 2; ++i) {
      Json one = EncodedTextJson(result.texts[i]);
      one["embedding"] = result.embeddings[i].Doubles();
      json["texts"].push_back(std::move(one));
    }
    PrintDocument(json);
    return 0;
  }
  fmt::print("cosine similarity {:.6f}\n", result.cosine);
  for (const EncodedText& one : result.texts) fmt::print("{}", EncodedTextText(one));
  fmt::print("embeddings [{}]: {}; {}\n", result.embeddings[0].size(), result.pooling,
             ModeText(result.executor));
  return 0;
}

}  // namespace

std::string EncodedTextText(const EncodedText& text) {
  constexpr size_t kMostPieces = 24;
  const size_t shown = std::min(text.pieces.size(), kMostPieces);
  std::string line = fmt::format("text: {}:", Counted(std::ssize(text.pieces), "token"));
  for (size_t i = 0; i < shown; ++i) line += " " + text.pieces[i];
  if (shown < text.pieces.size()) line += " ...";
  line += "\n";
  if (text.removed > 0)
    line +=
        fmt::format("  {} left out: more than the model takes\n", Counted(text.removed, "token"));
  if (text.padded > std::ssize(text.pieces))
    line += fmt::format("  padded to {} tokens{}\n", text.padded,
                        text.masked ? "" : ", which the model sees: it has no attention_mask");
  return line;
}

Json EncodedTextJson(const EncodedText& text) {
  return {{"tokens", text.tokens.ids},
          {"types", text.tokens.types},
          {"pieces", text.pieces},
          {"left_out", text.removed},
          {"padded_to", text.padded}};
}

// Flushes each piece, because answers may be long and users read along.
void ShowPiece(std::string_view piece) {
  if (std::fwrite(piece.data(), 1, piece.size(), stdout) != piece.size() ||
      std::fflush(stdout) != 0)
    throw Error("file-io", "cannot write to standard output");
}

std::vector<Option> TextTable(TextArguments& into) {
  std::vector<Option> table = Grouped(
      OptionGroup::kLanguage,
      {Common({"--prompt", "TEXT",
               "text that the language model continues; special tokens in it are "
               "recognised (default: none)",
               [&into](const std::string& text) { into.prompt = text; }}),
       {"--prompt-file", "FILE",
        "read the prompt from a file, without the newline at its end (default: none)",
        Into(into.prompt_file)},
       Common({"--audio", "FILE",
               "sound to transcribe (Whisper, Moonshine, wav2vec 2.0 and relatives): a WAV file of "
               "16 kHz "
               "(default: none)",
               Into(into.generate.audio)}),
       {"--language", "CODE", "language of the sound for Whisper, such as en (default: detected)",
        [&into](const std::string& text) { into.generate.language = text; }},
       {"--task", "transcribe|translate",
        "task of Whisper, which translates to English (default: transcribe)",
        [&into](const std::string& text) { into.generate.task = text; }},
       {"--timestamps", "", "let Whisper generate the times of what is said",
        Switch(into.generate.timestamps)}});
  Append(GenerateTable(into.generate), table);
  Append(
      Grouped(OptionGroup::kLanguage,
              {Common({"--perplexity", "FILE",
                       "measure the perplexity of a language model on this text, in chunks of "
                       "--context tokens (default 512); the second half of each chunk is scored",
                       Into(into.perplexity)}),
               Common({"--similarity", "TEXT TEXT",
                       "print the cosine similarity of two texts: of their sentence embeddings or, "
                       "without these, of the embeddings of their tokens, pooled as "
                       "sentence-transformers' modules.json says, or averaged (default: none)",
                       Into(into.similarity)})}),
      table);
  return table;
}

std::string TextNotes() {
  return "Sampling order, as in llama.cpp: repetition penalty, top-k, top-p, min-p, temperature.\n"
         "--chat without a prompt reads messages from the terminal, or one per line from a "
         "pipe.\n\n";
}

void CheckText(const TextArguments& text, const Session& session) {
  if (int64_t{text.prompt.has_value()} + !text.prompt_file.empty() + !text.generate.audio.empty() +
          !text.perplexity.empty() + !text.similarity.empty() + session.given.contains("--text") >
      1)
    throw Error("usage",
                "--prompt, --prompt-file, --audio, --perplexity, --text and --similarity cannot be "
                "combined");
  if (text.generate.audio.empty())
    for (const char* option : {"--language", "--task", "--timestamps"})
      if (session.given.contains(option)) throw Error("usage", "{} requires --audio", option);
  if (!text.prompted() && !text.conversation() && !session.given.contains("--tokens") &&
      !session.given.contains("--picture"))
    for (const char* option :
         {"--generate", "--beams", "--chat", "--system", "--chat-template", "--chat-variables",
          "--stop", "--temperature", "--top-k", "--top-p", "--min-p", "--repetition-penalty"})
      if (session.given.contains(option))
        throw Error("usage", "{} requires --prompt or --prompt-file{}", option,
                    std::string_view(option) == "--chat" ? "" : ", or --chat");
  if (text.conversation() && session.json)
    throw Error("usage",
                "--json requires --prompt or --prompt-file: a conversation is no document");
  if (!text.generate.tokenizer.empty() && !text.given() && !session.given.contains("--text") &&
      !session.given.contains("--tokens"))
    throw Error("usage", "--tokenizer requires a text: --prompt, --chat, --text or --similarity");
}

int RunText(const fs::path& model, const BenchmarkOptions& run, const TextArguments& text,
            const std::vector<fs::path>& reports, Session& session) {
  const bool perplexity = !text.perplexity.empty(), similarity = !text.similarity.empty();
  for (const char* option : {"--trace", "--baseline", "--history"})
    if (session.given.contains(option))
      throw Error("usage", "{} requires inputs or --tokens", option);
  if (!text.prompted() && !text.conversation())
    Refuse({"--picture", "--fit"}, "a picture needs a prompt", session);
  Refuse(
      {"--input", "--input-range", "--tokens", "--text-pair", "--step", "--output-dir", "--output",
       "--require-units", "--iterations", "--warmup", "--jobs", "--soak", "--warm-load",
       "--p99-budget", "--memory-mark", "--compare", "--operations", "--budget", "--profile"},
      fmt::format("{} replaces inputs", perplexity                     ? "--perplexity"
                                        : similarity                   ? "--similarity"
                                        : !text.generate.audio.empty() ? "--audio"
                                        : text.prompted()              ? "--prompt"
                                                                       : "--chat"),
      session);
  if (run.sweep) throw Error("usage", "--units sweep requires inputs or --tokens");
  if (similarity) {
    Refuse({"--seed", "--report"}, "--similarity prints one figure", session);
    return RunSimilarity(model, run, text, session);
  }
  if (perplexity) Refuse({"--seed"}, "--perplexity does not sample", session);
  if (text.conversation()) {
    Refuse({"--report"}, "a conversation is no report", session);
    return RunChat(model, run, text, session);
  }
  return perplexity ? RunPerplexity(model, run, text, reports, session)
                    : RunPrompt(model, run, text, reports, session);
}

int RunSequence(const fs::path& model, const BenchmarkOptions& run, const TextArguments& text,
                const std::vector<fs::path>& reports, Session& session) {
  Refuse({"--input",      "--input-range",   "--text-pair",  "--step",        "--output-dir",
          "--output",     "--require-units", "--iterations", "--warmup",      "--jobs",
          "--soak",       "--warm-load",     "--p99-budget", "--memory-mark", "--compare",
          "--operations", "--budget",        "--profile",    "--trace",       "--baseline",
          "--history"},
         "text is generated from --tokens or --picture", session);
  return RunPrompt(model, run, text, reports, session);
}

int VerifyText(const fs::path& source, const fs::path& package, const VerifyOptions& options,
               const fs::path& text, const fs::path& tokenizer,
               const std::vector<fs::path>& reports, Session& session) {
  Refuse({"--inputs", "--input-range", "--seed", "--function", "--tokens", "--samples",
          "--reference", "--per-axis", "--atol", "--rtol", "--layers", "--bundle"},
         "--text replaces inputs", session);
  AgreementResult result;
  {
    ProgressLine line(session);
    const PerplexityOptions chunked = Chunked(text, tokenizer, options.import, line);
    result = CompareOnText(source, package, options.import, options.budget, chunked,
                           session.diagnostics);
  }
  const verify::AgreementFigures& figures = result.figures;
  if (session.json) {
    Json json{{"reference", "mlc import"}, {"ok", result.ok}};
    json["budget"] = {{"name", result.limit.name},
                      {"divergence", result.limit.divergence},
                      {"perplexity", result.limit.ratio}};
    json["text"] = TextJson(result.text);
    json["text"]["scored"] = figures.value.scored;
    json["source"] = FiguresJson(figures.reference);
    json["package"] = FiguresJson(figures.value);
    json["ratio"] = {{"mean", figures.ratio}, {"error", figures.ratio_error}};
    json["divergence"] = {{"mean", figures.divergence},
                          {"error", figures.divergence_error},
                          {"most", figures.most_divergence}};
    json["top1"] = {{"share", figures.top1}, {"error", figures.top1_error}};
    json["top5"] = {{"share", figures.top5}, {"error", figures.top5_error}};
    if (result.tokenizer)
      json["tokenizer"] = {{"ok", result.tokenizer->empty()}, {"difference", *result.tokenizer}};
    PrintDocument(json);
  } else {
    const auto percent = [](double share, double error) {
      return fmt::format("{:.2f} % +/- {:.2g}", 100 * share, 100 * error);
    };
    fmt::print("reference: mlc import\nbudget: {} ({})\ntext: {}\n", result.limit.name,
               Describe(result.limit), ChunksText(result.text, figures.value.scored));
    for (const auto& [name, value] :
         {std::pair<std::string_view, std::string>{
              "perplexity, source", WithError(fmt::format("{:.4f}", figures.reference.perplexity),
                                              figures.reference.error)},
          {"perplexity, package",
           WithError(fmt::format("{:.4f}", figures.value.perplexity), figures.value.error)},
          {"package / source",
           WithError(fmt::format("{:.5f}", figures.ratio), figures.ratio_error)},
          {"KL divergence, mean", fmt::format("{}, max {:.2e}",
                                              WithError(fmt::format("{:.2e}", figures.divergence),
                                                        figures.divergence_error),
                                              figures.most_divergence)},
          {"same top token", percent(figures.top1, figures.top1_error)},
          {"same top five tokens", percent(figures.top5, figures.top5_error)}})
      fmt::print("  {:<22} {}\n", name, value);
    if (!result.tokenizer.value_or("").empty())
      PrintColored(stdout, fmt::format("FAIL tokenizer: {}\n", *result.tokenizer));
    PrintColored(stdout, result.ok ? "PASSED\n" : "FAILED\n");
  }
  if (!reports.empty()) WriteReports(AgreementReport(source, package, text, result), reports);
  return result.ok ? 0 : ExitCode("check-failed");
}

}  // namespace mlc::driver
