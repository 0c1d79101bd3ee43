#include "tools/driver/conversation.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/milliseconds.h"
#include "lib/support/regular_file.h"
#include "tools/driver/tokenizer.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

const GenerateOptions& Checked(const GenerateOptions& options) {
  CheckSampling(options.sampling);
  if (options.most && *options.most < 1)
    throw Error("usage", "--generate: expected at least one token");
  if (options.chat && !options.has_prompt && !options.tokens.empty())
    throw Error("usage", "--chat cannot be combined with --tokens");
  if (!options.stops.empty() && !options.has_prompt && !options.tokens.empty())
    throw Error("usage", "--stop cannot be combined with --tokens, which have no text");
  if (!options.chat)
    for (const auto& [option, given] : {std::pair{"--system", options.system.has_value()},
                                        {"--chat-template", !options.chat_template.empty()},
                                        {"--chat-variables", !options.chat_variables.empty()}})
      if (given) throw Error("usage", "{} requires --chat", option);
  return options;
}

Json VariablesOf(const GenerateOptions& options) {
  Json variables = Json::object();
  if (!options.chat_variables.empty()) {
    RequireJson(options.chat_variables, "usage", "--chat-variables");
    variables = ParseJson(options.chat_variables);
    if (!variables.is_object())
      throw Error("usage", "--chat-variables: not a JSON object")
          .Expected(R"(e.g. {"enable_thinking": false})");
  }
  if (variables.contains("messages"))
    throw Error("usage", "--chat-variables cannot contain messages, which are those of the prompt");
  return variables;
}

Json Message(std::string_view role, Json content) {
  return {{"role", role}, {"content", std::move(content)}};
}

Json PartsOf(const std::string& text, bool picture) {
  Json parts = Json::array();
  if (picture) parts.push_back({{"type", "image"}});
  parts.push_back({{"type", "text"}, {"text", text}});
  return parts;
}

text::ChatTemplate TemplateOf(const text::Tokenizer& tokenizer, const fs::path& file) {
  if (file.empty()) return text::ChatTemplate(tokenizer);
  const auto source = MappedFile::Open(file);
  try {
    return text::ChatTemplate(tokenizer, AsText(source->bytes()));
  } catch (const Error& error) {
    Error located(error.id(), error.text());
    located.At({file.string(), error.location().where});
    for (const std::string& note : error.notes()) located.Note(note);
    throw located;
  }
}

}  // namespace

Conversation::Conversation(const fs::path& model, const ModelOptions& load,
                           const GenerateOptions& options, Diagnostics& diagnostics)
    : Conversation(std::make_unique<Model>(model, ForPicture(load, options.picture), diagnostics),
                   options, diagnostics) {}

Conversation::Conversation(std::unique_ptr<Model> model, const GenerateOptions& options,
                           Diagnostics& diagnostics)
    : options_(Checked(options)),
      diagnostics_(diagnostics),
      variables_(std::make_unique<Json>(VariablesOf(options))) {
  const Clock::time_point begin = Clock::now();
  const fs::path path = model->path();
  const double read_ms = model->read_ms();
  model_.emplace(std::move(model), options.chat ? "--chat" : "--prompt");
  load_ms_ = read_ms + MillisecondsSince(begin);
  if (!options.picture.empty()) model_->Show(options.picture, options.fit);
  if (options.has_prompt || options.tokens.empty())
    tokenizer_.emplace(LoadTokenizer(options.tokenizer.empty() ? path : options.tokenizer));
  if (tokenizer_ && model_->picture()) {
    if (model_->picture()->token < tokenizer_->vocabulary())
      picture_token_ = tokenizer_->Piece(model_->picture()->token, true);
    picture_text_ = PictureTextOf(*model_->model()->program(), picture_token_);
  }
  if (options.chat) {
    template_.emplace(TemplateOf(*tokenizer_, options.chat_template));
    ChooseContent();
  }
  generator_.emplace(*model_, tokenizer_ ? &*tokenizer_ : nullptr, options.sampling, options.stops);
  SetSystem(options.system);
}
Conversation::~Conversation() = default;

// Templates of models that read pictures take the parts of a message, others its text, and some both. As
// llama.cpp does, a message is rendered to see which.
void Conversation::ChooseContent() {
  constexpr char kText[] = "mlc-text";
  auto rendered = [&](Json content) -> std::string {
    Json variables = *variables_;
    variables["messages"] = Json::array({Message("user", std::move(content))});
    try {
      std::string text = template_->Render(variables, 0);
      // A list that is written as a whole shows its keys.
      const bool right = text.find(kText) != text.npos && text.find("'type'") == text.npos &&
                         text.find("\"type\"") == text.npos;
      return right ? text : "";
    } catch (const Error& error) {
      if (error.id() != "chat-template") throw;
      return "";
    }
  };
  in_parts_ =
      !rendered(PartsOf(kText, false)).empty() && (picture_text_ || rendered(kText).empty());
  places_picture_ =
      picture_text_ && in_parts_ &&
      rendered(PartsOf(kText, true)).find(picture_text_->placeholder) != std::string::npos;
}

Json Conversation::Content(const std::string& text, bool picture) const {
  const bool in_text = picture && !places_picture_;
  // The placeholder stands in the message of the user even if the template does not write it.
  const std::string whole = in_text && !picture_text_->in_front &&
                                    text.find(picture_text_->placeholder) == std::string::npos
                                ? picture_text_->inserted + text
                                : text;
  return in_parts_ ? PartsOf(whole, picture && places_picture_) : Json(whole);
}

std::vector<int32_t> Conversation::Tokens(std::string& prompt) const {
  if (!picture_text_) return PromptTokens(*tokenizer_, prompt, true);
  if (picture_token_.empty()) return TokensAround(prompt);
  if (!picture_text_->in_front) {
    prompt = WithTextOf(*model_->picture(), *picture_text_, picture_token_, std::move(prompt));
    return PromptTokens(*tokenizer_, prompt, true);
  }
  prompt += picture_text_->behind;
  std::vector<int32_t> tokens(static_cast<size_t>(model_->picture()->rows.dims()[0]),
                              model_->picture()->token);
  const std::vector<int32_t> text = PromptTokens(*tokenizer_, prompt, true);
  tokens.insert(tokens.end(), text.begin(), text.end());
  return tokens;
}

// For a token of pictures that the tokenizer does not have, its rows stand between two texts.
std::vector<int32_t> Conversation::TokensAround(std::string& prompt) const {
  const std::string& placeholder = picture_text_->placeholder;
  if (prompt.find(placeholder) == std::string::npos) prompt.insert(0, picture_text_->inserted);
  const size_t place = prompt.find(placeholder);
  std::vector<int32_t> tokens = PromptTokens(*tokenizer_, prompt.substr(0, place), true);
  tokens.insert(tokens.end(), static_cast<size_t>(model_->picture()->rows.dims()[0]),
                model_->picture()->token);
  const std::vector<int32_t> behind =
      PromptTokens(*tokenizer_, prompt.substr(place + placeholder.size()), false);
  tokens.insert(tokens.end(), behind.begin(), behind.end());
  return tokens;
}

void Conversation::SetSystem(std::optional<std::string> system) {
  options_.system = std::move(system);
  Reset();
}

void Conversation::Reset() {
  // The state remains: what the next conversation begins with may be the same.
  Json messages = Json::array();
  if (options_.system) messages.push_back(Message("system", Content(*options_.system, false)));
  (*variables_)["messages"] = std::move(messages);
}

GenerateResult Conversation::Continue(const std::string& prompt) {
  std::string text = prompt;
  std::vector<int32_t> tokens = Tokens(text);
  return Answer(std::move(tokens), std::move(text));
}

GenerateResult Conversation::Continue(std::vector<int32_t> tokens) {
  return Answer(std::move(tokens), "");
}

GenerateResult Conversation::Say(const std::string& message) {
  Json& messages = (*variables_)["messages"];
  const size_t before = messages.size();
  try {
    // The picture belongs to the first message.
    const bool picture = picture_text_ && before == (options_.system ? 1u : 0u);
    messages.push_back(Message("user", Content(message, picture)));
    std::string prompt = template_->Render(*variables_, std::time(nullptr));
    std::vector<int32_t> tokens = Tokens(prompt);
    GenerateResult result = Answer(std::move(tokens), std::move(prompt));
    messages.push_back(Message("assistant", Content(result.text, false)));
    return result;
  } catch (...) {
    messages.erase(messages.begin() + static_cast<ptrdiff_t>(before), messages.end());
    throw;
  }
}

GenerateResult Conversation::Answer(std::vector<int32_t> tokens, std::string prompt) {
  GenerateResult result;
  result.executor = model_->model()->executor();
  result.load_ms = load_ms_;
  result.prompt = std::move(prompt);
  result.prompt_tokens =
      model_->picture() ? WithRowsOf(*model_->picture(), std::move(tokens)) : std::move(tokens);
  const auto count = std::ssize(result.prompt_tokens);
  if (count == 0) throw Error("usage", "--prompt has no tokens");
  const int64_t context = model_->size().context;
  if (count > context)
    throw Error("usage", "{} has {} tokens, but the model accepts at most {}",
                options_.chat ? "the conversation" : "--prompt", count, context)
        .Help(
            "shorten it, or run or compile the source model with a larger --context N, up to the "
            "model's limit");
  model_->ReportTo(options_.progress);
  result.kept = generator_->Restart(result.prompt_tokens);
  const auto show = [&](const std::string& text) {
    result.text += text;
    if (options_.show && !text.empty()) options_.show(text);
  };
  const Clock::time_point begin = Clock::now();
  while (true) {
    const TextGenerator::Step step = generator_->Next();
    show(step.text);
    if (step.done) {
      result.why = step.why;
      if (step.why != "context") {
        result.finish = GenerateResult::Finish::kStop;
        break;
      }
      diagnostics_.Note("the context of {} tokens is full: generation stops here", context);
      break;
    }
    result.tokens.push_back(step.token);
    if (generator_->at_stop()) continue;
    if (options_.most && std::ssize(result.tokens) >= *options_.most) {
      result.why = "--generate";
    } else if (model_->seen() < context && options_.interrupted && options_.interrupted()) {
      result.finish = GenerateResult::Finish::kInterrupted;
      result.why = "interrupted";
    } else {
      continue;
    }
    show(generator_->End(result.why).text);
    break;
  }
  result.prefill_ms = generator_->prompt_ms();
  result.decode_ms = MillisecondsSince(begin) - result.prefill_ms;
  result.decoded = model_->seen() - count;
  return result;
}

}  // namespace mlc::driver
