// tools/driver/conversation.h - a conversation with a language model: messages, and the state that
// the model keeps of them.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "lib/text/chat_template.h"
#include "tools/driver/generate.h"
#include "tools/driver/language_model.h"
#include "tools/driver/text_generator.h"

namespace mlc::driver {

class Conversation {
 public:
  // Loads the model, its tokenizer and, with `options.chat`, its chat template. Of `options`, the
  // prompt is not used. `diagnostics` must outlive this object. Errors "usage" for options that
  // contradict each other, and those of LanguageModel, LoadTokenizer and ChatTemplate.
  Conversation(const std::filesystem::path& model, const ModelOptions& load,
               const GenerateOptions& options, Diagnostics& diagnostics);
  // The same for a model that was read.
  Conversation(std::unique_ptr<Model> model, const GenerateOptions& options,
               Diagnostics& diagnostics);
  ~Conversation();

  // Continues a text, without a template. Error "usage" if it has no tokens or fills the context.
  GenerateResult Continue(const std::string& prompt);
  GenerateResult Continue(std::vector<int32_t> tokens);
  // Answers a message of the user. Both messages are remembered, an interrupted answer as far as it
  // went; after an error, neither. The template renders the whole conversation anew, and the model
  // processes only what follows the longest beginning that it has already read; a model whose state
  // cannot go back (recurrent layers) reads all again where they differ. Errors of Continue and of
  // the template.
  GenerateResult Say(const std::string& message);

  // Forgets all messages except the system message.
  void Reset();
  // Forgets all messages and sets the system message; nothing removes it.
  void SetSystem(std::optional<std::string> system);
  const GenerateOptions& options() const { return options_; }

 private:
  GenerateResult Answer(std::vector<int32_t> tokens, std::string prompt);
  // The tokens of a prompt, in which a picture has its place; `prompt` becomes the text they stand for.
  std::vector<int32_t> Tokens(std::string& prompt) const;
  std::vector<int32_t> TokensAround(std::string& prompt) const;
  void ChooseContent();
  nlohmann::ordered_json Content(const std::string& text, bool picture) const;

  GenerateOptions options_;
  Diagnostics& diagnostics_;
  double load_ms_ = 0;
  std::optional<LanguageModel> model_;
  std::optional<text::Tokenizer> tokenizer_;
  std::optional<text::ChatTemplate> template_;
  std::optional<PictureText> picture_text_;
  std::string picture_token_;
  bool in_parts_ = false;       // contents are lists of parts, as templates of such models expect
  bool places_picture_ = true;  // the template writes the placeholder of a picture
  std::optional<TextGenerator> generator_;
  std::unique_ptr<nlohmann::ordered_json> variables_;  // of the template, messages included
};

}  // namespace mlc::driver
