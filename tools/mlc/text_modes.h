// tools/mlc/text_modes.h - text modes of `mlc run` and `mlc verify`: prompts, perplexity and
// agreement.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/driver/generate.h"
#include "tools/driver/measure_perplexity.h"
#include "tools/mlc/command.h"

namespace mlc::driver {

// Arguments of `mlc run` that replace inputs by text.
struct TextArguments {
  std::optional<std::string> prompt;
  std::filesystem::path prompt_file;
  GenerateOptions generate;
  std::filesystem::path perplexity;     // a text file
  std::vector<std::string> similarity;  // two texts

  bool prompted() const { return prompt || !prompt_file.empty() || !generate.audio.empty(); }
  // --chat without a prompt.
  bool conversation() const { return generate.chat && !prompted() && perplexity.empty(); }
  bool given() const {
    return prompted() || !perplexity.empty() || conversation() || !similarity.empty();
  }
};
// CheckText rejects options of this table that require a prompt if there is none.
std::vector<Option> TextTable(TextArguments& into);
void CheckText(const TextArguments& text, const Session& session);
std::string TextNotes();  // for help
// How a text was encoded, as lines of text and as JSON.
std::string EncodedTextText(const EncodedText& text);
nlohmann::ordered_json EncodedTextJson(const EncodedText& text);
// Prints a piece of an answer to standard output.
void ShowPiece(std::string_view piece);
// Generates, holds a conversation or measures perplexity and prints the result; requires `text.given()`. Error "usage"
// for options in `run` that do not apply to text.
int RunText(const std::filesystem::path& model, const BenchmarkOptions& run,
            const TextArguments& text, const std::vector<std::filesystem::path>& reports,
            Session& session);

// Generates with an encoder-decoder from run.tokens, which replace the prompt. Errors of RunText.
int RunSequence(const std::filesystem::path& model, const BenchmarkOptions& run,
                const TextArguments& text, const std::vector<std::filesystem::path>& reports,
                Session& session);

// `mlc verify SOURCE PACKAGE --text FILE`.
int VerifyText(const std::filesystem::path& source, const std::filesystem::path& package,
               const VerifyOptions& options, const std::filesystem::path& text,
               const std::filesystem::path& tokenizer,
               const std::vector<std::filesystem::path>& reports, Session& session);

}  // namespace mlc::driver
