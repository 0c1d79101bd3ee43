// Tokenizers and generators.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "lib/text/chat_template.h"
#include "tools/driver/options_json.h"
#include "tools/driver/text_generator.h"
#include "tools/driver/tokenizer.h"
#include "tools/runtime/function_options.h"

using namespace mlc;
using namespace mlc::abi;

struct mlc_tokenizer {
  std::shared_ptr<const text::Tokenizer> tokenizer;
};
struct mlc_generator {
  std::shared_ptr<LoadedFunction> function;
  std::shared_ptr<const text::Tokenizer> tokenizer;  // may be null
  std::unique_ptr<driver::LanguageModel> model;
  std::unique_ptr<driver::TextGenerator> generator;
  std::string piece, why;
};

namespace {

std::string_view TextFrom(const char* text, size_t size) {
  if (size > 0) Require(text, "text");
  return size > 0 ? std::string_view(text, size) : std::string_view();
}
std::span<const int32_t> IdsFrom(const int32_t* ids, size_t count) {
  if (count > 0) Require(ids, "ids");
  return {ids, count};
}

}  // namespace

int32_t mlc_tokenizer_load(mlc_context* context, const char* path, mlc_tokenizer** tokenizer,
                           mlc_error** error) {
  return Call(error, [&] {
    Require(path, "path");
    Require(tokenizer, "tokenizer");
    auto made = std::make_unique<mlc_tokenizer>();
    RunJob(context, [&](Job&) {
      made->tokenizer = std::make_shared<const text::Tokenizer>(driver::LoadTokenizer(path));
    });
    *tokenizer = made.release();
  });
}

int32_t mlc_tokenizer_encode(const mlc_tokenizer* tokenizer, const char* text, size_t size,
                             int32_t add_special, int32_t parse_special, int32_t* ids,
                             size_t capacity, size_t* count, mlc_error** error) {
  return Call(error, [&] {
    Require(tokenizer, "tokenizer");
    Require(count, "count");
    if (capacity > 0) Require(ids, "ids");
    const std::vector<int32_t> found =
        tokenizer->tokenizer->Encode(TextFrom(text, size), add_special != 0, parse_special != 0);
    std::copy_n(found.begin(), std::min(capacity, found.size()), ids);
    *count = found.size();
  });
}

int32_t mlc_tokenizer_decode(const mlc_tokenizer* tokenizer, const int32_t* ids, size_t count,
                             int32_t special, char** text, size_t* size, mlc_error** error) {
  return Call(error, [&] {
    Require(tokenizer, "tokenizer");
    Require(text, "text");
    const std::string decoded = tokenizer->tokenizer->Decode(IdsFrom(ids, count), special != 0);
    *text = CopyText(decoded);
    if (size) *size = decoded.size();
  });
}

int32_t mlc_tokenizer_chat(const mlc_tokenizer* tokenizer, const char* variables, char** text,
                           size_t* size, mlc_error** error) {
  return Call(error, [&] {
    Require(tokenizer, "tokenizer");
    Require(variables, "variables");
    Require(text, "text");
    RequireJson(variables, "usage", "variables");
    const nlohmann::ordered_json json = ParseJson(variables);
    if (!json.is_object()) throw Error("usage", "the variables are not a JSON object");
    const std::string rendered =
        text::ChatTemplate(*tokenizer->tokenizer).Render(json, std::time(nullptr));
    *text = CopyText(rendered);
    if (size) *size = rendered.size();
  });
}

int32_t mlc_tokenizer_vocabulary(const mlc_tokenizer* tokenizer) {
  return tokenizer ? tokenizer->tokenizer->vocabulary() : 0;
}

int32_t mlc_tokenizer_find(const mlc_tokenizer* tokenizer, const char* token) {
  return Answer(-1, [&] {
    if (!tokenizer || !token) return -1;
    if (const int32_t id = tokenizer->tokenizer->Find(token); id >= 0) return id;
    const text::TokenizerSpec& spec = tokenizer->tokenizer->spec();
    for (auto [name, id] : {std::pair{"bos", spec.bos},
                            {"eos", spec.eos},
                            {"eot", spec.eot},
                            {"unk", spec.unk},
                            {"sep", spec.sep},
                            {"cls", spec.cls},
                            {"pad", spec.pad},
                            {"mask", spec.mask}})
      if (std::string_view(name) == token) return id;
    return -1;
  });
}

int32_t mlc_tokenizer_ends(const mlc_tokenizer* tokenizer, int32_t id) {
  return Answer(0, [&] { return tokenizer && tokenizer->tokenizer->EndsGeneration(id) ? 1 : 0; });
}

void mlc_tokenizer_free(mlc_tokenizer* tokenizer) { delete tokenizer; }

int32_t mlc_generator_new(mlc_model* model, mlc_tokenizer* tokenizer, const char* options,
                          mlc_generator** generator, mlc_error** error) {
  return Call(error, [&] {
    Require(model, "model");
    Require(generator, "generator");
    driver::GenerateOptions given;
    driver::FillFromJson(GeneratorTable(given), OrEmpty(options));
    auto made = std::make_unique<mlc_generator>();
    made->function = model->function;
    if (tokenizer) made->tokenizer = tokenizer->tokenizer;
    if (!tokenizer && !given.stops.empty()) throw Error("usage", "--stop requires a tokenizer");
    const LoadedFunction& function = *model->function;
    made->model = std::make_unique<driver::LanguageModel>(
        function.model->model->program(), function.function, function.instance, "the generator");
    made->generator = std::make_unique<driver::TextGenerator>(*made->model, made->tokenizer.get(),
                                                              given.sampling, given.stops, true);
    *generator = made.release();
  });
}

int32_t mlc_generator_feed(mlc_generator* generator, const char* text, size_t size,
                           mlc_error** error) {
  return Call(error, [&] {
    Require(generator, "generator");
    if (!generator->tokenizer)
      throw Error("usage", "the generator has no tokenizer").Help("feed it token ids");
    const bool begins = generator->generator->tokens().empty();
    generator->generator->Feed(
        driver::PromptTokens(*generator->tokenizer, TextFrom(text, size), begins));
  });
}

int32_t mlc_generator_feed_ids(mlc_generator* generator, const int32_t* ids, size_t count,
                               mlc_error** error) {
  return Call(error, [&] {
    Require(generator, "generator");
    generator->generator->Feed(IdsFrom(ids, count));
  });
}

int32_t mlc_generator_next(mlc_generator* generator, int32_t* id, const char** piece, int32_t* done,
                           mlc_error** error) {
  return Call(error, [&] {
    Require(generator, "generator");
    const driver::TextGenerator::Step step = generator->generator->Next();
    generator->piece = step.text;
    generator->why = step.why;
    if (id) *id = step.token;
    if (piece) *piece = generator->piece.c_str();
    if (done) *done = step.done ? 1 : 0;
  });
}

int32_t mlc_generator_stats(mlc_generator* generator, char** result, mlc_error** error) {
  return Call(error, [&] {
    Require(generator, "generator");
    const driver::TextGenerator& inner = *generator->generator;
    const int64_t chosen = std::ssize(inner.tokens()) - inner.prompt_tokens();
    nlohmann::ordered_json json{{"prompt_tokens", inner.prompt_tokens()},
                                {"tokens", chosen},
                                {"context", generator->model->size().context},
                                {"finish", generator->why.empty()        ? "none"
                                           : generator->why == "context" ? "length"
                                                                         : "stop"},
                                {"why", generator->why}};
    StoreResult(json, result);
  });
}

int32_t mlc_generator_state(mlc_generator* generator, mlc_state** state, size_t* count,
                            mlc_error** error) {
  return Call(error, [&] {
    Require(generator, "generator");
    Require(state, "state");
    auto made = std::make_unique<mlc_state>();
    made->function = generator->function;
    made->slot =
        std::make_shared<std::unique_ptr<runtime::ModelState>>(generator->model->CopyOfState());
    *state = made.release();
    if (count) *count = static_cast<size_t>(generator->model->seen());
  });
}

int32_t mlc_generator_start(mlc_generator* generator, mlc_state* state, const int32_t* ids,
                            size_t count, mlc_error** error) {
  return Call(error, [&] {
    Require(generator, "generator");
    Require(state, "state");
    if (state->function != generator->function)
      throw Error("bad-input", "the state belongs to another model");
    generator->generator->Start(**state->slot, IdsFrom(ids, count));
    generator->why.clear();
  });
}

int32_t mlc_generator_reset(mlc_generator* generator, mlc_error** error) {
  return Call(error, [&] {
    Require(generator, "generator");
    generator->generator->Forget();
    generator->why.clear();
  });
}

void mlc_generator_free(mlc_generator* generator) { delete generator; }
