// lib/text/text_steps.h - what becomes of text before a model gets its pieces: normalisation and
// splitting, in the order of the file.
//
// Text is a list of pieces, at first one. A step changes each of them, or cuts each into several.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/text/pattern.h"

namespace mlc {

struct TextStep {
  enum class Kind {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStripAccents,     // BERT's: marks that take no space (Mn) go; behind kNfd
    kBaseCharacters,   // llama.cpp's way to take accents away: BaseCharacters of unicode.h
    kClean,            // llama.cpp's for BERT: white space becomes a space, control characters go
    kSpaceIdeographs,  // BERT's: a space on both sides of each Chinese character
    kReplace,          // matches of `pattern` become `content`
    kPrepend,          // `content` before the piece, unless that is empty
    kStrip,            // white space at the beginning (`left`) and the end (`right`) goes
    kCharsmap,         // SentencePiece's precompiled table, which is `content`
    kSpaces,           // SentencePiece's white space: a space becomes `content`, many one (`merge`)
    kSplit,            // cut at matches of `pattern`
  };
  // What becomes of a match of kSplit.
  enum class Cut {
    kIsolated,      // a piece of its own
    kRemoved,       // gone
    kWithPrevious,  // the end of the piece before it
    kWithNext,      // the beginning of the piece behind it
    kContiguous,    // as kIsolated, but matches in a row are one piece
  };

  Kind kind;
  std::string pattern = {};
  Syntax syntax = Syntax::kPcre;   // of `pattern`
  std::string content = {};        // of kReplace, kPrepend, kSpaces, kCharsmap
  Cut cut = Cut::kIsolated;        // of kSplit
  bool invert = false;             // kSplit: what does not match is the match
  bool left = true, right = true;  // kStrip; kSpaces: `content` (a space) before, behind the text
  bool first_only = false;         // kPrepend: only to what the text begins with
  bool unless_there = false;       // kPrepend: not to what begins with it
  bool merge = false;              // kSpaces: several spaces are one
};

// A text, and what of it are pieces, from left to right.
struct TextPieces {
  std::string text;
  std::vector<TextRange> ranges;
  bool begins_text =
      true;  // nothing of the text is before the first range, nor was taken away there
};

class TextSteps {
 public:
  // Errors of Pattern; "bad-file" for a damaged charsmap.
  explicit TextSteps(const std::vector<TextStep>& steps);
  // Errors of Pattern::FindAll.
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

}  // namespace mlc
