// lib/text/tokenizer.h - text to the token ids that a language model was trained with, and back.
//
// A frontend reads a TokenizerSpec from its file; a Tokenizer is made of it and does not change:
// any number of threads may use it. Ids are those of llama.cpp for the same file and text (of Hugging
// Face's tokenizers for a tokenizer.json).
//
//   Tokenizer tokenizer = LoadTokenizer("model.gguf");               // tools/driver/tokenizer.h
//   std::vector<int32_t> ids = tokenizer.Encode("Hello", true, false);
//   std::string text = tokenizer.Decode(ids, false);
//
// Text is bytes: what is no UTF-8 is taken as the kind of tokenizer takes it (as bytes, or as
// U+FFFD), and never an error.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/text_steps.h"

namespace mlc {

enum class TokenizerKind {
  kSpmBpe,     // SentencePiece's BPE: the pair whose piece has the highest score is merged first
  kUnigram,    // SentencePiece's unigram model: the segmentation with the highest sum of scores
  kByteBpe,    // BPE by a list of merges, over bytes as GPT-2 writes them or over characters
  kWordPiece,  // the longest piece first, word by word
};

// The values are those of GGUF's tokenizer.ggml.token_type.
enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // special: found in text, and shown, only on request
  kUserDefined = 4,  // found in text before anything else is done
  kUnused = 5,
  kByte = 6,  // "<0x0A>"
};

// What a token that is found in text before anything else takes with it.
struct AddedToken {
  int32_t id = 0;
  bool left_strip = false, right_strip = false;  // the white space beside it
  bool single_word = false;                      // only where no letter or digit is beside it
  bool normalized = false;  // found in what the normalizers made of the text, as they write it
};

// What a file says of its tokenizer. Ids that it has not are -1.
struct TokenizerSpec {
  TokenizerKind kind = TokenizerKind::kSpmBpe;
  std::vector<std::string> tokens;  // by id, as the file writes them
  std::vector<float> scores;        // by id, or none
  std::vector<TokenType> types;     // by id, or none: all are normal
  // Of BPE: pairs of pieces, the first to be merged first.
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<AddedToken> added;  // beside those that are control, unknown or user-defined

  // Where the two libraries differ, the rules are Hugging Face's, not llama.cpp's: `added` are all
  // tokens that are looked for, the leftmost of them first, and scores are added as doubles.
  bool hugging_face = false;
  // By id, or none: all are. Other tokens are found as added ones, or never (holes between ids).
  std::vector<bool> in_model;

  std::string pre_tokenizer;          // its name in the file, or "": what people are told
  std::vector<TextStep> normalizers;  // what becomes of text before `normalized` tokens are found
  std::vector<TextStep> steps;        // and then before the model gets its pieces
  bool byte_encoded = true;     // kByteBpe: tokens are bytes as GPT-2 writes them ("\u0120the")
  bool ignore_merges = false;   // kByteBpe: a piece that is a token needs no merging
  bool byte_fallback = true;    // a character that is no token becomes <0x..>, where there are such
  bool fuse_unknown = true;     // one unk for several characters in a row; kUnigram
  int max_word_characters = 0;  // kWordPiece: a longer word is unk; 0: any length
  std::string continuing;       // kWordPiece: before pieces inside a word ("##"); "": none, and
                                // U+2581 before those that begin one, as GGUF has it

  bool add_space_prefix = false;          // a space before the text, which Decode takes away
  bool add_bos = false, add_eos = false;  // kWordPiece: sep is its eos
  bool clean_spaces =
      false;  // Decode takes away spaces before punctuation, as older models want it
  int32_t bos = -1, eos = -1, eot = -1, unk = -1, sep = -1, cls = -1, pad = -1, mask = -1;
  std::vector<int32_t> before, after;  // what Encode adds instead, where the file has a template
  bool has_template = false;

  std::vector<int32_t> ends;  // further tokens that end an answer, beside eos and eot
  std::string chat_template;  // Jinja, "": none
};

class Tokenizer {
 public:
  // Error "bad-file" where the parts contradict one another (an id outside the vocabulary, fewer
  // scores than tokens), "resource-limit" where a token is longer than any model has one.
  explicit Tokenizer(TokenizerSpec spec);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // `add_special`: with what the model wants around a text (bos, eos; cls, sep). `parse_special`:
  // control tokens written in the text ("<|im_end|>") are those tokens, otherwise plain text.
  // Error "resource-limit" where a pattern of the file takes too long on this text.
  std::vector<int32_t> Encode(std::string_view text, bool add_special, bool parse_special) const;

  // The bytes of one token, which may be part of a character. `special`: control tokens as the file
  // writes them, otherwise "". Error "bad-input" outside the vocabulary.
  std::string Piece(int32_t id, bool special) const;
  // The text: pieces joined, without the space that Encode put first.
  std::string Decode(std::span<const int32_t> ids, bool special) const;

  int32_t vocabulary() const;  // ids are 0 .. vocabulary() - 1
  bool EndsGeneration(int32_t id) const;
  // The token that Encode puts first with `add_special`, -1: none.
  int32_t BeginOfText() const;
  // The token that is written so, -1: none.
  int32_t Find(std::string_view token) const;
  const TokenizerSpec& spec() const;

  // One piece of Decode: `first`, true at the beginning, says where the next one must lose its space.
  std::string PieceBehind(int32_t id, bool special, bool& first) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

// Text of tokens that come one by one. The results joined are what Decode says (but for
// clean_spaces, which needs to know what follows); each of them is whole characters, and what is
// none is U+FFFD.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool special = false);
  std::string Add(int32_t id);
  // What is left: the beginning of a character is U+FFFD.
  std::string End();

 private:
  const Tokenizer* tokenizer_;
  bool special_;
  bool first_ = true;
  std::string held_;
};

}  // namespace mlc
