#include "frontends/safetensors/tokenizer_writer.h"

#include <nlohmann/json.hpp>

#include "test/expected_error.h"

namespace mlc::safetensors {
namespace {

using text::TokenizerKind;
using text::TokenType;
using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

text::TokenizerSpec Spec(TokenizerKind kind, std::vector<std::string> tokens) {
  text::TokenizerSpec spec;
  spec.kind = kind;
  spec.types.assign(tokens.size(), TokenType::kNormal);
  spec.tokens = std::move(tokens);
  return spec;
}

text::TokenizerSpec Reread(const text::TokenizerSpec& spec) {
  const HuggingFaceTexts texts = WriteHuggingFaceTokenizer(spec);
  return ParseHuggingFaceTokenizer(texts.tokenizer, texts.config, "tokenizer.json");
}

TEST_CASE("a written tokenizer merges by scores, the highest first") {
  text::TokenizerSpec spec = Spec(TokenizerKind::kSpmBpe, {"a", "b", "c", "ab", "bc", "abc"});
  spec.scores = {0, 0, 0, -2, -1, -3};
  CHECK(text::Tokenizer(spec).Encode("abc", false, false) == Ids{5});
  CHECK(text::Tokenizer(Reread(spec)).Encode("abc", false, false) == Ids{5});
  CHECK(text::Tokenizer(Reread(spec)).Encode("bcab", false, false) == Ids{4, 3});
  CHECK(Json::parse(WriteHuggingFaceTokenizer(spec).tokenizer)["model"]["merges"] ==
        Json::parse(R"([["b", "c"], ["a", "b"], ["ab", "c"], ["a", "bc"]])"));
}

TEST_CASE("a written tokenizer has the special tokens, their surroundings and the template") {
  text::TokenizerSpec spec = Spec(TokenizerKind::kSpmBpe, {"<s>", "</s>", "<mask>", "x"});
  spec.types = {TokenType::kControl, TokenType::kControl, TokenType::kUserDefined,
                TokenType::kNormal};
  spec.added = {{2, true, false}};
  spec.bos = 0, spec.eos = 1;
  spec.add_bos = spec.add_eos = true;
  spec.ends = {3};
  spec.chat_template = "{{ x }}";
  const text::TokenizerSpec read = Reread(spec);
  CHECK(read.before == Ids{0});
  CHECK(read.after == Ids{1});
  CHECK(read.ends == Ids{1, 3});
  CHECK(read.chat_template == "{{ x }}");
  REQUIRE(read.added.size() == 3);
  CHECK(read.added[2].left_strip);
  CHECK(read.types[0] == TokenType::kControl);
  CHECK(read.types[2] == TokenType::kUserDefined);
}

TEST_CASE(
    "the ids that llama.cpp assumes are no special tokens, unless they are of special tokens") {
  text::TokenizerSpec spec = Spec(TokenizerKind::kByteBpe, {"a", "b"});
  spec.bos = spec.eos = 1;
  CHECK(!Json::parse(WriteHuggingFaceTokenizer(spec).config).contains("bos_token"));
  spec.types[1] = TokenType::kControl;
  CHECK(Json::parse(WriteHuggingFaceTokenizer(spec).config)["bos_token"] == "b");
}

TEST_CASE("words of BERT are spelled as in its own vocabulary") {
  text::TokenizerSpec spec =
      Spec(TokenizerKind::kWordPiece, {"[CLS]", "[SEP]", "\u2581un", "able", "[unused1]", "[UNK]"});
  spec.types[0] = spec.types[1] = TokenType::kControl;
  spec.bos = 0, spec.sep = 1, spec.unk = 5;
  spec.add_bos = spec.add_eos = true;
  const Json json = Json::parse(WriteHuggingFaceTokenizer(spec).tokenizer);
  CHECK(
      json["model"]["vocab"] ==
      Json::parse(R"({"[CLS]": 0, "[SEP]": 1, "un": 2, "##able": 3, "[unused1]": 4, "[UNK]": 5})"));
  CHECK(text::Tokenizer(Reread(spec)).Encode("unable", true, false) == Ids{0, 2, 3, 1});
  CHECK(json["post_processor"]["pair"].size() == 5);
}

TEST_CASE("a pair of texts has the same tokens in the GGUF file and in the written tokenizer") {
  text::TokenizerSpec words =
      Spec(TokenizerKind::kWordPiece, {"[CLS]", "[SEP]", "\u2581a", "\u2581b", "[UNK]"});
  words.bos = 0, words.sep = 1, words.unk = 4;
  text::TokenizerSpec pieces = Spec(TokenizerKind::kUnigram, {"<s>", "</s>", "a", "b", "<unk>"});
  pieces.scores = {0, 0, -1, -1, 0};
  pieces.bos = 0, pieces.eos = 1, pieces.unk = 4;
  for (text::TokenizerSpec* spec : {&words, &pieces}) {
    spec->types[0] = spec->types[1] = TokenType::kControl;
    spec->add_bos = spec->add_eos = true;
    const std::string second = "b";
    const text::EncodedTexts own = text::Tokenizer(*spec).EncodeTexts("a", &second, 16),
                             written = text::Tokenizer(Reread(*spec)).EncodeTexts("a", &second, 16);
    CHECK(written.ids == own.ids);
    CHECK(written.types == own.types);
  }
  // XLM-RoBERTa: two tokens between the texts, and a single type.
  const std::string second = "b";
  const text::EncodedTexts pair = text::Tokenizer(pieces).EncodeTexts("a", &second, 16);
  CHECK(pair.ids == Ids{0, 2, 1, 1, 3, 1});
  CHECK(pair.types == Ids{0, 0, 0, 0, 0, 0});
}

TEST_CASE("a text that two tokens have, or that is not UTF-8, is that of one token or of none") {
  text::TokenizerSpec spec = Spec(TokenizerKind::kUnigram, {"<unk>", "a", "a", "\xff"});
  spec.unk = 0;
  spec.scores = {0, -1, -2, -3};
  const Json vocabulary = Json::parse(WriteHuggingFaceTokenizer(spec).tokenizer)["model"]["vocab"];
  REQUIRE(vocabulary.size() == 4);
  CHECK(vocabulary[1][0] == "[UNUSED_1]");
  CHECK(vocabulary[2] == Json::parse(R"(["a", -2.0])"));
  CHECK(vocabulary[3][0] == "[UNUSED_3]");
  spec.kind = TokenizerKind::kSpmBpe;
  CHECK(Json::parse(WriteHuggingFaceTokenizer(spec).tokenizer)["model"]["vocab"] ==
        Json::parse(R"({"<unk>": 0, "a": 2})"));
}

TEST_CASE("a step that tokenizer.json lacks is refused") {
  text::TokenizerSpec spec = Spec(TokenizerKind::kSpmBpe, {"a"});
  spec.steps = {{.kind = text::TextStep::Kind::kBaseCharacters}};
  CHECK(test::RefusalId([&] { WriteHuggingFaceTokenizer(spec); }) == "unsupported-tokenizer");
}

}  // namespace
}  // namespace mlc::safetensors
