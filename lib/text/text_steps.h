// lib/text/text_steps.h - what becomes of text before a model gets its pieces: normalisation and
// splitting, in the order of the file.
//
// Text is a list of pieces, at first one. A step changes each of them, or cuts each into several.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mlc {

struct TextStep {
  enum class Kind {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStripAccents,   // what is a mark (Mn) goes; behind kNfd
    kClean,          // BERT's: control characters go, white space becomes a space
    kSpaceIdeographs,  // BERT's: a space on both sides of each Chinese character
    kReplace,        // matches of `pattern` become `content`
    kPrepend,        // `content` before the piece, unless it is empty
    kStrip,          // white space at the beginning (`left`) and the end (`right`) goes
    kCharsmap,       // SentencePiece's precompiled table: TokenizerSpec::charsmap
    kSplit,          // cut at matches of `pattern`
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
  std::string pattern = {};      // a regular expression (PCRE, Unicode)
  bool literal = false;          // `pattern` is text
  std::string content = {};      // of kReplace, kPrepend
  Cut cut = Cut::kIsolated;      // of kSplit
  bool invert = false;           // kSplit: what does not match is the match
  bool left = true, right = true;  // kStrip
  bool first_only = false;       // kPrepend: only to what the text begins with
  bool unless_there = false;     // kPrepend: not to what begins with it
};

}  // namespace mlc
