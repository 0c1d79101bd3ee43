#include "lib/text/tokenizer_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

namespace mlc::text {

namespace {

auto FieldsOf(const AddedToken& token) {
  return std::tie(token.id, token.left_strip, token.right_strip, token.single_word,
                  token.normalized);
}

auto FieldsOf(const TemplatePart& part) { return std::tie(part.id, part.text, part.type); }

auto FieldsOf(const TextStep& step) {
  return std::tie(step.kind, step.pattern, step.syntax, step.content, step.cut, step.invert,
                  step.left, step.right, step.first_only, step.unless_there, step.merge);
}

template <class T>
bool Same(const T& a, const T& b) {
  if constexpr (requires { FieldsOf(a); })
    return FieldsOf(a) == FieldsOf(b);
  else
    return a == b;
}

std::string Shown(bool value) { return value ? "on" : "off"; }
std::string Shown(float value) { return fmt::format("{}", value); }
std::string Shown(int32_t value) { return fmt::format("{}", value); }
std::string Shown(TokenType type) { return fmt::format("{}", static_cast<int>(type)); }
std::string Shown(const AddedToken& token) { return fmt::format("for token {}", token.id); }
std::string Shown(TokenizerKind kind) {
  constexpr std::string_view kNames[] = {"SentencePiece BPE", "unigram", "BPE", "WordPiece"};
  return std::string(kNames[static_cast<size_t>(kind)]);
}
std::string Shown(int64_t value) { return fmt::format("{}", value); }
std::string Shown(const TemplatePart& part) {
  return part.id >= 0 ? fmt::format("token {} of type {}", part.id, part.type)
                      : fmt::format("text {} of type {}", part.text, part.type);
}
// Truncates long texts.
std::string Shown(const std::string& text) {
  constexpr size_t kShown = 40;
  return nlohmann::json(text.substr(0, kShown))
             .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         (text.size() > kShown ? "..." : "");
}
std::string Shown(const std::pair<std::string, std::string>& merge) {
  return fmt::format("{} {}", Shown(merge.first), Shown(merge.second));
}
std::string Shown(const TextStep& step) {
  return fmt::format("of kind {}, {}", static_cast<int>(step.kind),
                     Shown(step.pattern.empty() ? step.content : step.pattern));
}

class Differences {
 public:
  const std::string& first() const { return first_; }

  template <class T>
  void One(std::string_view name, const T& found, const T& expected) {
    if (first_.empty() && !Same(found, expected)) Say(name, Shown(found), Shown(expected));
  }

  template <class T>
  void Each(std::string_view name, std::string_view several, const std::vector<T>& found,
            const std::vector<T>& expected) {
    if (!first_.empty()) return;
    const size_t both = std::min(found.size(), expected.size());
    for (size_t i = 0; i < both; ++i)
      if (!Same(found[i], expected[i]))
        return Say(fmt::format("{} {}", name, i), Shown(found[i]), Shown(expected[i]));
    if (found.size() != expected.size())
      Say(fmt::format("the number of {}", several), std::to_string(found.size()),
          std::to_string(expected.size()));
  }

 private:
  void Say(std::string_view name, const std::string& found, const std::string& expected) {
    first_ = fmt::format("{} is {} where the source has {}", name, found, expected);
  }
  std::string first_;
};

}  // namespace

std::string Difference(const TokenizerSpec& found, const TokenizerSpec& expected) {
  Differences differences;
  const auto one = [&](std::string_view name, auto field) {
    differences.One(name, found.*field, expected.*field);
  };
  const auto each = [&](std::string_view name, std::string_view several, auto field) {
    differences.Each(name, several, found.*field, expected.*field);
  };
  using Spec = TokenizerSpec;
  one("the kind of tokenizer", &Spec::kind);
  each("token", "tokens", &Spec::tokens);
  each("score", "scores", &Spec::scores);
  each("type", "types", &Spec::types);
  each("merge", "merges", &Spec::merges);
  each("added token", "added tokens", &Spec::added);
  one("the library whose rules apply", &Spec::hugging_face);
  each("whether the model has token", "tokens with a membership flag", &Spec::in_model);
  one("the pre-tokenizer", &Spec::pre_tokenizer);
  each("normalizer", "normalizers", &Spec::normalizers);
  each("text step", "text steps", &Spec::steps);
  one("byte encoding", &Spec::byte_encoded);
  one("ignore_merges", &Spec::ignore_merges);
  one("byte_fallback", &Spec::byte_fallback);
  one("fuse_unk", &Spec::fuse_unknown);
  one("the longest word", &Spec::max_word_characters);
  one("the prefix inside words", &Spec::continuing);
  one("add_space_prefix", &Spec::add_space_prefix);
  one("add_bos", &Spec::add_bos);
  one("add_eos", &Spec::add_eos);
  one("clean_spaces", &Spec::clean_spaces);
  one("bos", &Spec::bos);
  one("eos", &Spec::eos);
  one("eot", &Spec::eot);
  one("unk", &Spec::unk);
  one("sep", &Spec::sep);
  one("cls", &Spec::cls);
  one("pad", &Spec::pad);
  one("mask", &Spec::mask);
  one("the template for special tokens", &Spec::has_template);
  each("token before a text", "tokens before a text", &Spec::before);
  each("token after a text", "tokens after a text", &Spec::after);
  each("part of a text", "parts of a text", &Spec::single);
  each("part of a pair of texts", "parts of a pair of texts", &Spec::pair);
  one("the longest text", &Spec::max_length);
  one("the side on which texts are cut", &Spec::truncate_left);
  each("token that ends an answer", "tokens that end an answer", &Spec::ends);
  one("the chat template", &Spec::chat_template);
  return differences.first();
}

}  // namespace mlc::text
