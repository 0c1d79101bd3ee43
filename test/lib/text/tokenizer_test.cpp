#include "lib/text/tokenizer.h"

#include <algorithm>
#include <cmath>

#include "lib/text/trie.h"
#include "lib/text/unicode.h"
#include "test/expected_error.h"

namespace mlc::text {
namespace {

using test::RefusalId;

using Ids = std::vector<int32_t>;

TokenizerSpec Words(std::vector<std::string> tokens, TokenizerKind kind) {
  TokenizerSpec spec;
  spec.kind = kind;
  spec.tokens = std::move(tokens);
  spec.types.assign(spec.tokens.size(), TokenType::kNormal);
  return spec;
}

TEST_CASE("trie: prefixes are found shortest first", "[text]") {
  Trie trie;
  trie.Add("a", 1);
  trie.Add("abc", 2);
  trie.Add("abc", 3);
  for (int i = 0; i < 3000; ++i) trie.Add("x" + std::to_string(i), i);
  std::vector<std::pair<size_t, int32_t>> found;
  auto all = [&](size_t bytes, int32_t value) {
    found.emplace_back(bytes, value);
    return true;
  };
  trie.Prefixes("abcd", all);
  CHECK(found == std::vector<std::pair<size_t, int32_t>>{{1, 1}, {3, 3}});
  found.clear();
  trie.Prefixes("x2999", all);
  CHECK(found.size() == 4);
  CHECK(found.back().second == 2999);
  found.clear();
  trie.Prefixes("b", all);
  CHECK(found.empty());
}

// Merges derived by hand: lowest rank first, then leftmost.
TEST_CASE("BPE applies merges in order of rank", "[text]") {
  TokenizerSpec spec = Words({"a", "b", "aa", "aaa", "ab", "aab"}, TokenizerKind::kByteBpe);
  spec.merges = {{"a", "b"}, {"a", "a"}, {"aa", "ab"}, {"aa", "a"}, {"a", "ab"}};
  Tokenizer tokenizer(spec);
  const std::pair<const char*, Ids> rows[] = {
      {"aab", {5}},       // ab first, then a + ab
      {"aaa", {3}},       // aa a, then aaa
      {"aaaa", {2, 2}},   // aa aa
      {"aaaab", {3, 4}},  // aaa ab: "aa" of the first two, "ab", then "aa" + "a"
      {"c", {}},          // not in the byte vocabulary: dropped
  };
  for (const auto& [text, ids] : rows) {
    INFO(text);
    CHECK(tokenizer.Encode(text, false, false) == ids);
  }
  spec.ignore_merges = true;
  spec.merges.clear();
  CHECK(Tokenizer(spec).Encode("aab", false, false) == Ids{5});
  CHECK(Tokenizer(spec).Encode("abb", false, false) == Ids{0, 1, 1});
}

TEST_CASE("BPE over characters encodes unknown characters as bytes or unk", "[text]") {
  std::vector<std::string> tokens = {"<unk>", "é", "éé"};
  TokenizerSpec spec = Words(tokens, TokenizerKind::kByteBpe);
  spec.byte_encoded = false;
  spec.merges = {{"é", "é"}};
  spec.unk = 0;
  CHECK(Tokenizer(spec).Encode("ééxyé", false, false) == Ids{2, 0, 1});
  spec.fuse_unknown = false;
  CHECK(Tokenizer(spec).Encode("xyé", false, false) == Ids{0, 0, 1});
  for (int byte = 0; byte < 256; ++byte) spec.tokens.push_back(fmt::format("<0x{:02X}>", byte));
  spec.types.resize(spec.tokens.size(), TokenType::kByte);
  Tokenizer tokenizer(spec);
  CHECK(tokenizer.Encode("xé", false, false) == Ids{3 + 'x', 1});
  CHECK(tokenizer.Decode(Ids{3 + 'x', 1, 3 + 0xff}, false) == "xé\xff");
}

TEST_CASE("added tokens: longest match first, stripped white space", "[text]") {
  TokenizerSpec spec = Words({"a", "<x>", "<x><x>", "b", " ", "<c>"}, TokenizerKind::kSpmBpe);
  spec.types = {TokenType::kNormal,      TokenType::kUserDefined, TokenType::kUserDefined,
                TokenType::kUserDefined, TokenType::kNormal,      TokenType::kControl};
  spec.added = {{1, true, false}, {2, false, true}, {3, true, false}};
  Tokenizer tokenizer(spec);
  const std::pair<const char*, Ids> rows[] = {
      {"a <x> a", {0, 1, 4, 0}},  // strips white space on the left
      {"a<x><x>  a", {0, 2, 0}},  // strips white space on the right
      {"<x><x><x>", {2, 1}},     {"a b a", {0, 3, 4, 0}}, {"<x>", {1}},
  };
  for (const auto& [text, ids] : rows) {
    INFO(text);
    CHECK(tokenizer.Encode(text, false, false) == ids);
  }
  CHECK(tokenizer.Encode("a<c>", false, true) == Ids{0, 5});
  CHECK(tokenizer.Encode("a<c>", false, false) == Ids{0});  // neither bytes nor unk for "<c>"
}

// Expected values: find_matches and extract_and_normalize in added_vocabulary.rs of Hugging Face
// tokenizers.
TEST_CASE("added tokens: matching rules of Hugging Face tokenizers", "[text]") {
  TokenizerSpec spec =
      Words({"a", "b", "c", "d", " ", "ab", "bcd", "Day", "é", "x", "½"}, TokenizerKind::kByteBpe);
  spec.hugging_face = true;
  spec.byte_encoded = false;
  spec.byte_fallback = false;
  spec.added = {{5}, {6}};
  CHECK(Tokenizer(spec).Encode("abcd", false, true) == Ids{5, 2, 3});  // leftmost first
  spec.hugging_face = false;
  CHECK(Tokenizer(spec).Encode("abcd", false, true) == Ids{0, 6});  // llama.cpp: longest first
  spec.hugging_face = true;
  // Matches in the normalized text, with the normalized token.
  spec.normalizers = {{.kind = TextStep::Kind::kLowercase}};
  spec.added = {{.id = 7, .normalized = true}};
  CHECK(Tokenizer(spec).Encode("aDAYaday", false, true) == Ids{0, 7, 0, 7});
  // Of two tokens with the same normalized text, the special one wins.
  spec.tokens[9] = "DAY";
  spec.types[9] = TokenType::kControl;
  spec.added = {{.id = 7, .normalized = true}, {.id = 9, .normalized = true}};
  CHECK(Tokenizer(spec).Encode("aday", false, true) == Ids{0, 9});
  spec.types[9] = TokenType::kNormal;
  CHECK(Tokenizer(spec).Encode("aday", false, true) == Ids{0, 7});
  spec.added = {{.id = 7}};
  CHECK(Tokenizer(spec).Encode("aDayaday", false, true) == Ids{0, 7, 0, 3, 0});
  // A rejected match is skipped as a whole; "½" is not a letter, U+24B6 is one.
  spec.added = {{.id = 5, .single_word = true}, {.id = 1}};
  CHECK(Tokenizer(spec).Encode("aab", false, true) == Ids{0, 0, 1});
  CHECK(Tokenizer(spec).Encode("½ab", false, true) == Ids{10, 5});
  CHECK(Tokenizer(spec).Encode("\u24b6ab", false, true) == Ids{0, 1});
  // White space as defined by Unicode; it is absorbed by only one token.
  spec.added = {{.id = 8, .left_strip = true, .right_strip = true}};
  CHECK(Tokenizer(spec).Encode("a\u3000é\u00a0 éa", false, true) == Ids{0, 8, 8, 0});
  // Tokens that are not listed are not matched, regardless of their type.
  spec.added.clear();
  spec.types[5] = TokenType::kControl;
  CHECK(Tokenizer(spec).Encode("ab", false, true) == Ids{0, 1});
  spec.normalizers = {{.kind = TextStep::Kind::kStrip}};
  spec.added = {{.id = 4, .normalized = true}};
  CHECK(RefusalId([&] { Tokenizer{spec}; }) == "bad-file");
}

// Expected values: models/bpe/model.rs (merge_word) and models/wordpiece of Hugging Face
// tokenizers.
TEST_CASE("tokens that are not in the model are only matched as added tokens", "[text]") {
  TokenizerSpec spec = Words({"[UNK]", "a", "##b", "cab"}, TokenizerKind::kWordPiece);
  spec.hugging_face = true;
  spec.continuing = "##";
  spec.unk = 0;
  spec.in_model = {true, true, true, false};
  spec.added = {{.id = 3, .single_word = true}};
  CHECK(Tokenizer(spec).Encode("cab", false, true) == Ids{3});
  CHECK(Tokenizer(spec).Encode("cabb", false, true) == Ids{0});
  // Without an unknown token, the symbols around an unknown character are merged.
  TokenizerSpec bpe = Words({"a", "b", "ab"}, TokenizerKind::kByteBpe);
  bpe.hugging_face = true;
  bpe.byte_encoded = false;
  bpe.merges = {{"a", "b"}};
  CHECK(Tokenizer(bpe).Encode("axb", false, true) == Ids{2});
}

TEST_CASE("unigram: highest sum of scores, byte fallback", "[text]") {
  TokenizerSpec spec = Words({"<unk>", "a", "b", "ab", "abc"}, TokenizerKind::kUnigram);
  spec.types[0] = TokenType::kUnknown;
  spec.unk = 0;
  spec.scores = {0, -1, -1, -3, -20};
  CHECK(Tokenizer(spec).Encode("abab", false, false) == Ids{1, 2, 1, 2});
  CHECK(Tokenizer(spec).Encode("abc", false, false) == Ids{4});  // an unknown "c" costs -30
  CHECK(Tokenizer(spec).Encode("axyzb", false, false) == Ids{1, 0, 2});
  spec.fuse_unknown = false;
  spec.byte_fallback = false;
  CHECK(Tokenizer(spec).Encode("axyb", false, false) == Ids{1, 0, 0, 2});
}

TEST_CASE("WordPiece maps a word without matching pieces to a single unk", "[text]") {
  TokenizerSpec spec = Words({"[UNK]", "un", "##able", "##a", "able"}, TokenizerKind::kWordPiece);
  spec.continuing = "##";
  spec.unk = 0;
  spec.max_word_characters = 6;
  Tokenizer tokenizer(spec);
  CHECK(tokenizer.Encode("unable", false, false) == Ids{1, 2});
  CHECK(tokenizer.Encode("able", false, false) == Ids{4});
  CHECK(tokenizer.Encode("unax", false, false) == Ids{0});
  CHECK(tokenizer.Encode("unablea", false, false) == Ids{0});  // too long
  CHECK(tokenizer.Decode(Ids{4, 1, 2}, false) == " able unable");
}

TEST_CASE("tokenizer: tokens that end an answer", "[text]") {
  TokenizerSpec spec =
      Words({"a", "</s>", "<|im_end|>", "<|eot_id|>", "b"}, TokenizerKind::kByteBpe);
  spec.eos = 4;
  Tokenizer tokenizer(spec);
  for (int32_t id = 0; id < 5; ++id) CHECK(tokenizer.EndsGeneration(id) == (id > 0));
  CHECK(!tokenizer.EndsGeneration(-1));
  CHECK(tokenizer.spec().eot == 3);
  CHECK(tokenizer.spec().types[2] == TokenType::kControl);
  CHECK(tokenizer.Piece(2, false).empty());
  CHECK(tokenizer.Piece(2, true) == "<|im_end|>");
  // Ends a part of an answer if other tokens end the whole.
  TokenizerSpec parts = Words({"<|end|>", "<|return|>", "<|call|>"}, TokenizerKind::kByteBpe);
  CHECK(!Tokenizer(parts).EndsGeneration(0));
  CHECK(Tokenizer(parts).EndsGeneration(1));
}

TEST_CASE("tokenizer: inconsistent specifications and invalid ids are rejected", "[text]") {
  auto refused = [](auto change) {
    TokenizerSpec spec = Words({"a", "b"}, TokenizerKind::kUnigram);
    spec.scores = {0, 0};
    change(spec);
    return RefusalId([&] { Tokenizer{spec}; });
  };
  CHECK(refused([](TokenizerSpec&) {}).empty());
  CHECK(refused([](TokenizerSpec& s) { s.tokens.clear(); }) == "bad-file");
  CHECK(refused([](TokenizerSpec& s) { s.scores.pop_back(); }) == "bad-file");
  // The type of "</s>", which is the end of an answer, would be written behind a short list.
  CHECK(refused([](TokenizerSpec& s) {
          s.tokens[1] = "</s>";
          s.types = {TokenType::kNormal};
        }) == "bad-file");
  CHECK(refused([](TokenizerSpec& s) { s.in_model = {true}; }) == "bad-file");
  CHECK(refused([](TokenizerSpec& s) { s.scores[0] = NAN; }) == "bad-file");
  CHECK(refused([](TokenizerSpec& s) { s.bos = 2; }) == "bad-file");
  CHECK(refused([](TokenizerSpec& s) { s.ends = {-1, 9}; }) == "bad-file");
  CHECK(refused([](TokenizerSpec& s) { s.added = {{7}}; }) == "bad-file");
  CHECK(refused([](TokenizerSpec& s) { s.tokens[0] = std::string(5000, 'x'); }) ==
        "resource-limit");
  Tokenizer tokenizer(Words({"a"}, TokenizerKind::kByteBpe));
  CHECK(RefusalId([&] { tokenizer.Piece(1, false); }) == "bad-input");
  CHECK(RefusalId([&] { tokenizer.Decode(Ids{-1}, false); }) == "bad-input");
}

// Bytes in GPT-2's spelling: "ð" is 0xF0, "Ł" 0x9F ...
TEST_CASE("stream decoder: results contain only complete characters", "[text]") {
  TokenizerSpec spec = Words({"ðŁ", "ĻĤ", "a", "Ã", "©", "Ġ"}, TokenizerKind::kByteBpe);
  Tokenizer tokenizer(spec);
  auto streamed = [&](const Ids& ids) {
    StreamDecoder stream(tokenizer);
    std::string parts;
    for (int32_t id : ids) parts += stream.Add(id) + "|";
    return parts + stream.End();
  };
  CHECK(streamed({0, 1, 2}) == "|🙂|a|");
  CHECK(streamed({2, 3, 4}) == "a||é|");
  CHECK(streamed({3, 2}) == "|\ufffda|");   // the character stays incomplete
  CHECK(streamed({0}) == "|\ufffd\ufffd");  // also here
  CHECK(streamed({4, 5}) == "\ufffd| |");
}

TEST_CASE("stream decoder: removes the leading space like Decode", "[text]") {
  TokenizerSpec spec = Words({"\u2581a", "\u2581b", "<s>", "c"}, TokenizerKind::kSpmBpe);
  spec.types[2] = TokenType::kControl;
  spec.add_space_prefix = true;
  Tokenizer tokenizer(spec);
  for (const auto& [ids, text] : std::vector<std::pair<Ids, std::string>>{
           {{0, 1}, "a b"}, {{2, 0, 1}, "a b"}, {{0, 2, 1}, "ab"}, {{3, 0}, "c a"}, {{}, ""}}) {
    CHECK(tokenizer.Decode(ids, false) == text);
    StreamDecoder stream(tokenizer);
    std::string joined;
    for (int32_t id : ids) joined += stream.Add(id);
    CHECK(joined + stream.End() == text);
  }
}

TEST_CASE("unicode: invalid bytes", "[text]") {
  CHECK(ValidUtf8("a\xff"
                  "b\xe4\xbd") ==
        "a\ufffd"
        "b\ufffd\ufffd");
  CHECK(ValidUtf8("\xed\xa0\x80") == "\ufffd\ufffd\ufffd");
  CHECK(ValidUtf8("é中🙂") == "é中🙂");
}

}  // namespace
}  // namespace mlc::text
