#include "lib/text/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "lib/support/error.h"
#include "lib/support/utf8.h"
#include "lib/text/added_tokens.h"
#include "lib/text/end_of_generation_tokens.h"
#include "lib/text/piece_models.h"
#include "lib/text/text_steps.h"
#include "lib/text/unicode.h"
#include "lib/text/vocabulary.h"

namespace mlc::text {
namespace {

// The maximum length of a token, because some models walk through a token at every position of a
// text.
constexpr size_t kLongestToken = 1024;
constexpr size_t kMostTokens = size_t{1} << 23;

[[noreturn]] void Bad(std::string text) {
  throw Error("bad-file", "inconsistent tokenizer: " + std::move(text));
}

// Rejects a specification whose lists have different lengths or that refers to tokens which do not
// exist. Everything after this check indexes the lists without looking.
void CheckConsistency(const TokenizerSpec& spec) {
  size_t count = spec.tokens.size();
  if (count == 0) Bad("it has no tokens");
  if (count > INT32_MAX) Bad(fmt::format("it has {} tokens", count));
  if (!spec.scores.empty() && spec.scores.size() != count)
    Bad(fmt::format("it has {} tokens and {} scores", count, spec.scores.size()));
  if (!spec.types.empty() && spec.types.size() != count)
    Bad(fmt::format("it has {} tokens and {} types", count, spec.types.size()));
  if (!spec.in_model.empty() && spec.in_model.size() != count)
    Bad(fmt::format("it has {} tokens and {} membership flags", count, spec.in_model.size()));
  const std::pair<const char*, int32_t> ids[] = {
      {"bos", spec.bos}, {"eos", spec.eos}, {"eot", spec.eot}, {"unk", spec.unk},
      {"sep", spec.sep}, {"cls", spec.cls}, {"pad", spec.pad}, {"mask", spec.mask}};
  auto check = [&](const char* name, int32_t id) {
    if (id < -1 || id >= static_cast<int64_t>(count))
      Bad(fmt::format("its {} is token {}, but it has {} tokens", name, id, count));
  };
  for (const auto& [name, id] : ids) check(name, id);
  for (int32_t id : spec.before) check("template", id);
  for (int32_t id : spec.after) check("template", id);
  for (const auto* parts : {&spec.single, &spec.pair})
    for (const TemplatePart& part : *parts) check("template", part.id);
  for (int32_t id : spec.ends) check("end of an answer", id);
  for (const AddedToken& token : spec.added) {
    if (token.id < 0) Bad("an added token has no id");
    check("added token", token.id);
  }
}

TokenizerSpec Checked(TokenizerSpec spec) {
  CheckConsistency(spec);
  if (spec.tokens.size() > kMostTokens)
    throw Error("resource-limit", "the tokenizer has {} tokens", spec.tokens.size())
        .Expected("at most {} tokens", kMostTokens);
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (spec.tokens[id].empty()) spec.tokens[id] = fmt::format("[EMPTY_{}]", id);
    if ((spec.kind == TokenizerKind::kUnigram || spec.kind == TokenizerKind::kWordPiece) &&
        spec.tokens[id].size() > kLongestToken)
      throw Error("resource-limit", "token {} of the tokenizer has {} bytes", id,
                  spec.tokens[id].size())
          .Expected("at most {} bytes", kLongestToken);
  }
  if (std::ranges::any_of(spec.scores, [](float s) { return std::isnan(s); }))
    throw Error("bad-file", "a score of the tokenizer is NaN");
  MarkSpecialTokens(spec);
  return spec;
}

std::unique_ptr<PieceModel> MakeModel(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  switch (spec.kind) {
    case TokenizerKind::kSpmBpe:
      return MakeSpmBpe(spec, vocabulary);
    case TokenizerKind::kUnigram:
      return MakeUnigram(spec, vocabulary);
    case TokenizerKind::kByteBpe:
      return MakeByteBpe(spec, vocabulary);
    case TokenizerKind::kWordPiece:
      return MakeWordPiece(spec, vocabulary);
  }
  return nullptr;
}

// Caches the tokens of words while encoding one text.
class Words {
 public:
  explicit Words(const PieceModel& model) : model_(model) {}
  void Encode(std::string_view piece, std::vector<int32_t>& ids) {
    if (piece.size() > 64 || !model_.repeats() || known_.size() > 1 << 18)
      return model_.Encode(piece, ids);
    auto [found, is_new] = known_.try_emplace(std::string(piece), store_.size(), 0);
    if (is_new) {
      model_.Encode(piece, store_);
      found->second.second = store_.size();
    }
    for (size_t i = found->second.first; i < found->second.second; ++i) ids.push_back(store_[i]);
  }

 private:
  const PieceModel& model_;
  std::unordered_map<std::string, std::pair<size_t, size_t>> known_;
  std::vector<int32_t> store_;
};

// Removes spaces before punctuation, as clean_up_tokenization of transformers does: "Hello , world
// ."
std::string CleanedSpaces(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kChanges[] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kChanges) {
    std::string result;
    size_t at = 0;
    for (size_t found; (found = text.find(from, at)) != std::string::npos; at = found + from.size())
      result.append(text, at, found - at).append(to);
    text = result.append(text, at);
  }
  return text;
}

}  // namespace

// Byte-level models differ (RoBERTa, ModernBERT).
std::vector<TemplatePart> PairTemplate(const TokenizerSpec& spec) {
  const int32_t end = spec.sep >= 0 ? spec.sep : spec.eos;
  if (spec.has_template || !spec.add_bos || !spec.add_eos || spec.bos < 0 || end < 0)
    return spec.pair;
  const TemplatePart begin{.id = spec.bos}, close{.id = end};
  if (spec.kind == TokenizerKind::kWordPiece)
    return {begin, {}, close, {.text = 1, .type = 1}, {.id = end, .type = 1}};
  if (spec.kind == TokenizerKind::kUnigram) return {begin, {}, close, close, {.text = 1}, close};
  return {};
}

struct Tokenizer::State {
  explicit State(TokenizerSpec given)
      : spec(Checked(std::move(given))),
        vocabulary(spec),
        added(spec, vocabulary),
        normalizers(spec.normalizers),
        normalized_added(spec, vocabulary, normalizers),
        steps(spec.steps),
        model(MakeModel(spec, vocabulary)) {}

  TokenizerSpec spec;
  Vocabulary vocabulary;
  AddedTokens added;
  TextSteps normalizers;
  AddedTokens normalized_added;
  TextSteps steps;
  std::unique_ptr<PieceModel> model;
};

Tokenizer::Tokenizer(TokenizerSpec spec) : state_(std::make_unique<const State>(std::move(spec))) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<int32_t> Tokenizer::Encode(std::string_view text, bool add_special,
                                       bool parse_special) const {
  const TokenizerSpec& spec = state_->spec;
  // Positions are 32 bits wide, and normalization may lengthen the text.
  if (text.size() > size_t{1} << 28)
    throw Error("resource-limit", "the text has {} bytes", text.size())
        .Expected("at most 256 MiB")
        .Help("tokenize it in parts");
  std::vector<int32_t> ids;
  auto push = [&](int32_t id) {
    if (id >= 0) ids.push_back(id);
  };
  if (add_special) {
    if (spec.before.empty()) push(BeginOfText());
    for (int32_t id : spec.before) push(id);
  }
  Words words(*state_->model);
  auto encode = [&](std::string_view part, bool begins_text) {
    TextPieces pieces{std::string(part), {}, begins_text};
    pieces.ranges.push_back({0, pieces.text.size()});
    state_->steps.Apply(pieces);
    for (TextRange range : pieces.ranges)
      if (range.begin < range.end)
        words.Encode(std::string_view(pieces.text).substr(range.begin, range.end - range.begin),
                     ids);
  };
  // Models without byte tokens need valid characters; Hugging Face tokenizers only accepts valid
  // text.
  bool valid = spec.kind == TokenizerKind::kByteBpe || spec.kind == TokenizerKind::kWordPiece;
  std::string repaired;
  if (spec.hugging_face && FirstBadUtf8(text) != std::string_view::npos)
    text = repaired = ValidUtf8(text);
  bool first = true;
  for (const TextFragment& fragment : state_->added.Split(text, parse_special)) {
    std::string_view part =
        text.substr(fragment.range.begin, fragment.range.end - fragment.range.begin);
    if (fragment.id >= 0) {
      ids.push_back(fragment.id);
    } else if (state_->normalizers.empty() && state_->normalized_added.empty()) {
      encode(valid ? ValidUtf8(part) : part, first);
    } else {
      TextPieces whole{std::string(part), {}, first};
      whole.ranges.push_back({0, whole.text.size()});
      state_->normalizers.Apply(whole);
      for (const TextFragment& inner : state_->normalized_added.Split(whole.text, parse_special)) {
        TextRange range = inner.range;
        if (inner.id >= 0) {
          ids.push_back(inner.id);
        } else {
          encode(std::string_view(whole.text).substr(range.begin, range.end - range.begin),
                 whole.begins_text && range.begin == 0);
        }
      }
    }
    first = false;
  }
  if (add_special) {
    for (int32_t id : spec.after) push(id);
    if (!spec.has_template && spec.add_eos)
      push(spec.kind == TokenizerKind::kWordPiece && spec.sep >= 0 ? spec.sep : spec.eos);
  }
  return ids;
}

EncodedTexts Tokenizer::EncodeTexts(std::string_view first, const std::string* second,
                                    int64_t most) const {
  const TokenizerSpec& spec = state_->spec;
  std::vector<TemplatePart> parts = second ? PairTemplate(spec) : spec.single;
  std::vector<int32_t> texts[2] = {Encode(first, false, true)};
  if (second) texts[1] = Encode(*second, false, true);
  if (parts.empty() && second)
    throw Error("unsupported-tokenizer", "the tokenizer has no template for a pair of texts")
        .Help("join the texts as the model expects them, and pass them as one");
  if (parts.empty()) {
    // The tokens that Encode adds around an empty text are those around any text.
    for (int32_t id : Encode("", true, true)) parts.push_back({.id = id});
    const size_t before = spec.before.empty() ? BeginOfText() >= 0 : spec.before.size();
    parts.insert(parts.begin() + static_cast<ptrdiff_t>(before), TemplatePart());
  }
  int64_t added = 0;
  for (const TemplatePart& part : parts) added += part.id >= 0;
  const int64_t room = most - added;
  if (room < 0)
    throw Error("bad-input", "the template of the tokenizer has {} tokens, but only {} fit", added,
                most);
  EncodedTexts encoded;
  // The lengths of LongestFirst in tokenizers/src/utils/truncation.rs.
  int64_t shorter = std::ssize(texts[0]), longer = std::ssize(texts[1]);
  const int64_t all = shorter + longer;
  if (all > room) {
    const bool swapped = shorter > longer;
    if (swapped) std::swap(shorter, longer);
    longer = shorter > room ? shorter : std::max(shorter, room - shorter);
    if (shorter + longer > room) {
      shorter = room / 2;
      longer = shorter + room % 2;
    }
    if (swapped) std::swap(shorter, longer);
    const int64_t lengths[] = {shorter, longer};
    for (size_t i = 0; i < 2; ++i) {
      const ptrdiff_t cut = std::ssize(texts[i]) - lengths[i];
      const auto begin = spec.truncate_left ? texts[i].begin() : texts[i].end() - cut;
      texts[i].erase(begin, begin + cut);
    }
    encoded.removed = all - room;
  }
  for (const TemplatePart& part : parts) {
    const auto text = static_cast<size_t>(part.text);
    if (part.id >= 0)
      encoded.ids.push_back(part.id);
    else
      encoded.ids.insert(encoded.ids.end(), texts[text].begin(), texts[text].end());
    encoded.types.resize(encoded.ids.size(), part.type);
  }
  return encoded;
}

int32_t Tokenizer::BeginOfText() const {
  const TokenizerSpec& spec = state_->spec;
  if (!spec.before.empty()) return spec.before[0];
  return !spec.has_template && spec.add_bos ? spec.bos : -1;
}

std::string Tokenizer::Piece(int32_t id, bool special) const {
  if (id < 0 || id >= vocabulary())
    throw Error("bad-input", "token {} is not in the vocabulary", id)
        .Expected("a number from 0 to {}", vocabulary() - 1);
  return state_->vocabulary.Piece(id, special);
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool special) const {
  std::string text;
  bool first = true;
  for (int32_t id : ids) text += PieceBehind(id, special, first);
  return state_->spec.clean_spaces ? CleanedSpaces(std::move(text)) : text;
}

std::string Tokenizer::PieceBehind(int32_t id, bool special, bool& first) const {
  std::string piece = Piece(id, special);
  TokenType type = state_->vocabulary.type(id);
  bool added = type == TokenType::kControl || type == TokenType::kUserDefined;
  // Encode adds the space prefix again after each of these tokens.
  if (first && !added && state_->spec.add_space_prefix && piece.starts_with(' ')) piece.erase(0, 1);
  first = added || (first && piece.empty() && type != TokenType::kNormal);
  return piece;
}

int32_t Tokenizer::vocabulary() const { return state_->vocabulary.size(); }

bool Tokenizer::EndsGeneration(int32_t id) const {
  const TokenizerSpec& spec = state_->spec;
  return id >= 0 &&
         (id == spec.eos || id == spec.eot || std::ranges::find(spec.ends, id) != spec.ends.end());
}

int32_t Tokenizer::Find(std::string_view token) const { return state_->vocabulary.Find(token); }

const TokenizerSpec& Tokenizer::spec() const { return state_->spec; }

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool special)
    : tokenizer_(&tokenizer), special_(special) {}

std::string StreamDecoder::Add(int32_t id) {
  held_ += tokenizer_->PieceBehind(id, special_, first_);
  // Returns everything except a possible incomplete character at the end.
  size_t keep = 0;
  for (size_t back = 1; back <= std::min<size_t>(3, held_.size()); ++back) {
    char c = held_[held_.size() - back];
    if ((c & 0xc0) == 0x80) continue;
    if (CharacterBytes(c) > back && static_cast<unsigned char>(c) < 0xf8) keep = back;
    break;
  }
  std::string text = ValidUtf8(std::string_view(held_).substr(0, held_.size() - keep));
  held_.erase(0, held_.size() - keep);
  return text;
}

std::string StreamDecoder::End() {
  std::string text = ValidUtf8(held_);
  held_.clear();
  return text;
}

}  // namespace mlc::text
