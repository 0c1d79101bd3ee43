// tools/mlc/language.h - what `mlc run` and `mlc verify` do with texts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/driver/generate.h"
#include "tools/driver/perplexity.h"
#include "tools/mlc/command.h"

namespace mlc {

// Of `mlc run`, in place of running on inputs.
struct TextArguments {
  std::optional<std::string> prompt;
  std::filesystem::path prompt_file;
  GenerateOptions generate;
  std::filesystem::path perplexity;  // a text

  bool given() const { return prompt || !prompt_file.empty() || !perplexity.empty(); }
};
// Options of the table above that say nothing without a prompt are refused by CheckText.
std::vector<Option> TextTable(TextArguments& into);
void CheckText(const TextArguments& text, const Session& session);
std::string TextNotes();  // for help
// Says what it does of either; `text.given()`. `run` is as given for a run on inputs: what of it has no
// meaning for a text is an Error "usage".
int RunText(const std::filesystem::path& model, const RunOptions& run, const TextArguments& text,
            Session& session);

// `mlc verify SOURCE PACKAGE --text FILE`.
int VerifyText(const std::filesystem::path& source, const std::filesystem::path& package,
               const VerifyOptions& options, const std::filesystem::path& text,
               const std::filesystem::path& tokenizer, Session& session);
std::string TextLimits();  // of the budgets, for help

}  // namespace mlc
