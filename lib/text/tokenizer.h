// lib/text/tokenizer.h - converts text to the token ids of a language model, and back.
//
// A frontend reads a TokenizerSpec from its file. The Tokenizer constructed from it is immutable,
// so any number of threads may use it. The ids are those of llama.cpp for the same file and text
// (for a tokenizer.json, those of Hugging Face tokenizers).
//
//   Tokenizer tokenizer = LoadTokenizer("model.gguf");               // tools/driver/tokenizer.h
//   std::vector<int32_t> ids = tokenizer.Encode("Hello", true, false);
//   std::string text = tokenizer.Decode(ids, false);
//
// Text is a sequence of bytes. Invalid UTF-8 is never an error: depending on the kind of tokenizer,
// it is encoded as bytes or replaced by U+FFFD.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/text_steps.h"

namespace mlc::text {

enum class TokenizerKind {
  kSpmBpe,     // SentencePiece BPE: merges the pair with the highest score first
  kUnigram,    // SentencePiece unigram: the segmentation with the highest sum of scores
  kByteBpe,    // BPE with a list of merges, over GPT-2's bytes or over characters
  kWordPiece,  // greedy longest match, word by word
};

// The values of tokenizer.ggml.token_type in GGUF.
enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // special: matched in text, and included in output, only on request
  kUserDefined = 4,  // matched before any other step
  kUnused = 5,
  kByte = 6,  // "<0x0A>"
};

// How a token that is matched before tokenization treats its surroundings.
struct AddedToken {
  int32_t id = 0;
  bool left_strip = false, right_strip = false;  // absorbs white space on that side
  bool single_word = false;                      // matches only without an adjacent letter or digit
  bool normalized = false;                       // matches the normalized text
};

// A part of the template around one or two texts: a token, or a text, and the type of its tokens.
struct TemplatePart {
  int32_t id = -1;  // a token; -1 for a text
  int text = 0;     // 0 or 1, the first or the second text
  int32_t type = 0;
};

// The tokenizer as described by its file. Missing ids are -1.
struct TokenizerSpec {
  TokenizerKind kind = TokenizerKind::kSpmBpe;
  std::vector<std::string> tokens;  // by id, as spelled in the file
  std::vector<float> scores;        // by id; may be empty
  std::vector<TokenType> types;     // by id; if empty, all tokens are normal
  // For BPE: pairs of symbols in order of priority.
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<AddedToken> added;  // in addition to control, unknown and user-defined tokens

  // Follow Hugging Face tokenizers where it differs from llama.cpp: `added` lists all tokens to
  // match, the leftmost match wins, and scores are summed as doubles.
  bool hugging_face = false;
  // By id; if empty, all tokens are produced by the model. Other tokens are matched as added
  // tokens, or unused (gaps between ids).
  std::vector<bool> in_model;

  std::string pre_tokenizer;          // its name in the file, or "", for messages
  std::vector<TextStep> normalizers;  // applied before `normalized` tokens are matched
  std::vector<TextStep> steps;        // applied afterwards, before the model
  bool byte_encoded = true;     // kByteBpe: tokens use GPT-2's spelling of bytes ("\u0120the")
  bool ignore_merges = false;   // kByteBpe: pieces in the vocabulary are not merged
  bool byte_fallback = true;    // encode unknown characters as <0x..> tokens, if there are any
  bool fuse_unknown = true;     // kUnigram: one unk for consecutive unknown characters
  int max_word_characters = 0;  // kWordPiece: longer words become unk; 0 for no limit
  // kWordPiece: the prefix of pieces inside a word ("##"). If empty, U+2581 marks the pieces that
  // begin a word, as in GGUF.
  std::string continuing;

  bool add_space_prefix = false;          // put a space before the text; Decode removes it
  bool add_bos = false, add_eos = false;  // kWordPiece uses sep as eos
  bool clean_spaces = false;  // Decode removes spaces before punctuation, for older models
  int32_t bos = -1, eos = -1, eot = -1, unk = -1, sep = -1, cls = -1, pad = -1, mask = -1;
  std::vector<int32_t> before, after;  // added by Encode instead, if the file has a template
  bool has_template = false;
  // For EncodeTexts. Empty: a text has the tokens of Encode, a pair no template.
  std::vector<TemplatePart> single, pair;
  int64_t max_length = 0;      // longest result of EncodeTexts for which the model is meant; 0: any
  bool truncate_left = false;  // EncodeTexts removes the beginning of texts that are too long

  std::vector<int32_t> ends;  // further tokens that end an answer, besides eos and eot
  std::string chat_template;  // Jinja; "" if there is none
};

// Returns the template for a pair of texts: that of the file, or of BERT and XLM-RoBERTa, which GGUF
// files hold as WordPiece and unigram models without templates. Empty if it is not known.
std::vector<TemplatePart> PairTemplate(const TokenizerSpec& spec);

// One or two texts as a model takes them.
struct EncodedTexts {
  std::vector<int32_t> ids, types;  // of the same size
  int64_t removed = 0;              // tokens of the texts that were left out
};

class Tokenizer {
 public:
  // Error "bad-file" for inconsistent fields (an id outside the vocabulary, fewer scores than
  // tokens), "resource-limit" for a token that is longer than in any real model.
  explicit Tokenizer(TokenizerSpec spec);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // With `add_special`, adds the tokens that the model expects around a text (bos, eos; cls, sep).
  // With `parse_special`, control tokens spelled out in the text ("<|im_end|>") are recognized;
  // otherwise they are plain text. Error "resource-limit" if a pattern of the file takes too long
  // on this text.
  std::vector<int32_t> Encode(std::string_view text, bool add_special, bool parse_special) const;

  // Encodes a text, or a pair of texts, with the tokens and types of the template. Special tokens in
  // the texts are recognised. If there are more than `most` tokens, the longer text is cut until both
  // are of one length, then both are ("longest_first" of Hugging Face tokenizers). Error
  // "unsupported-tokenizer" for a pair without a template, "bad-input" if `most` is less than the
  // template has.
  EncodedTexts EncodeTexts(std::string_view first, const std::string* second, int64_t most) const;

  // Returns the bytes of one token, possibly a partial character. Control tokens are spelled out if
  // `special`, else "". Error "bad-input" for an id outside the vocabulary.
  std::string Piece(int32_t id, bool special) const;
  // Joins the pieces and removes the space that Encode added at the start.
  std::string Decode(std::span<const int32_t> ids, bool special) const;

  int32_t vocabulary() const;  // ids are 0 to vocabulary() - 1
  bool EndsGeneration(int32_t id) const;
  // Returns the token that Encode puts first with `add_special`; -1 if there is none.
  int32_t BeginOfText() const;
  // Returns the token with this spelling; -1 if there is none.
  int32_t Find(std::string_view token) const;
  const TokenizerSpec& spec() const;

  // Returns one piece of Decode. `first` must initially be true; it tracks whether the next piece
  // loses its leading space.
  std::string PieceBehind(int32_t id, bool special, bool& first) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

// Decodes tokens one at a time. The concatenated results equal those of Decode, except for
// clean_spaces, which would need look-ahead. Each result consists of complete characters; invalid
// bytes become U+FFFD.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool special = false);
  std::string Add(int32_t id);
  // Returns the rest; an incomplete character becomes U+FFFD.
  std::string End();

 private:
  const Tokenizer* tokenizer_;
  bool special_;
  bool first_ = true;
  std::string held_;
};

}  // namespace mlc::text
