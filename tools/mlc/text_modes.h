// tools/mlc/text_modes.h - text modes of `mlc run` and `mlc verify`: prompts, perplexity and
// agreement.
#pragma once

#include <filesystem>
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
  std::filesystem::path perplexity;  // a text file

  bool given() const { return prompt || !prompt_file.empty() || !perplexity.empty(); }
};
// CheckText rejects options of this table that require a prompt if there is none.
std::vector<Option> TextTable(TextArguments& into);
void CheckText(const TextArguments& text, const Session& session);
std::string TextNotes();  // for help
// Generates or measures perplexity and prints the result; requires `text.given()`. Error "usage"
// for options in `run` that do not apply to text.
int RunText(const std::filesystem::path& model, const BenchmarkOptions& run,
            const TextArguments& text, const std::vector<std::filesystem::path>& reports,
            Session& session);

// `mlc verify SOURCE PACKAGE --text FILE`.
int VerifyText(const std::filesystem::path& source, const std::filesystem::path& package,
               const VerifyOptions& options, const std::filesystem::path& text,
               const std::filesystem::path& tokenizer,
               const std::vector<std::filesystem::path>& reports, Session& session);

}  // namespace mlc::driver
