// lib/text/text_steps.h - the steps before the tokenization model: normalizers and pre-tokenizers,
// in the order of the file.
//
// The text is a list of pieces, initially one. Each step either rewrites every piece or splits
// pieces.
#pragma once

#include <string>
#include <vector>

#include "lib/text/regex_pattern.h"

namespace mlc::text {

struct TextStep {
  enum class Kind {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStripAccents,     // BERT: removes nonspacing marks (Mn); follows kNfd
    kBaseCharacters,   // llama.cpp's removal of accents: BaseCharacters of unicode.h
    kClean,            // llama.cpp for BERT: maps white space to spaces, removes control characters
    kSpaceIdeographs,  // BERT: puts spaces around each Chinese character
    kReplace,          // replaces matches of `pattern` by `content`
    kPrepend,          // puts `content` before the piece unless the piece is empty
    kStrip,            // strips white space at the start (`left`) and the end (`right`)
    kCharsmap,         // applies SentencePiece's precompiled table `content`
    kSpaces,  // SentencePiece: replaces a space by `content`, or a run of spaces by one (`merge`)
    kSplit,   // splits at matches of `pattern`
  };
  // How kSplit treats a match.
  enum class Cut {
    kIsolated,      // a piece of its own
    kRemoved,       // removed
    kWithPrevious,  // joined to the preceding piece
    kWithNext,      // joined to the following piece
    kContiguous,    // like kIsolated, but consecutive matches form one piece
  };

  Kind kind;
  std::string pattern = {};
  Syntax syntax = Syntax::kPcre;  // syntax of `pattern`
  std::string content = {};       // for kReplace, kPrepend, kSpaces, kCharsmap
  Cut cut = Cut::kIsolated;       // for kSplit
  bool invert = false;            // kSplit: the text between matches is treated as the match
  bool left = true,
       right = true;          // kStrip; kSpaces: add `content` (a space) before and after the text
  bool first_only = false;    // kPrepend: only at the start of the text
  bool unless_there = false;  // kPrepend: skip pieces that already begin with it
  bool merge = false;         // kSpaces: merge runs of spaces
};

// A text and the ranges of its pieces, from left to right.
struct TextPieces {
  std::string text;
  std::vector<TextRange> ranges;
  bool begins_text =
      true;  // the first range is the start of the text; nothing was removed before it
};

class TextSteps {
 public:
  // Throws the errors of Pattern, and "bad-file" for an invalid charsmap.
  explicit TextSteps(const std::vector<TextStep>& steps);
  // Throws the errors of Pattern::FindAll.
  void Apply(TextPieces& pieces) const;
  bool empty() const { return steps_.empty(); }

 private:
  struct Step {
    TextStep step;
    Pattern pattern;
  };
  std::vector<Step> steps_;
  bool needs_utf8_ = false;
};

}  // namespace mlc::text
