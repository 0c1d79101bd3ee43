// lib/ir/names.h - the names that a function's values have, and how many have each.
//
// Names are asked for far more often than there are operations: none moves or goes, so that finding one is a
// look at a table of small numbers and one at the name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace mlc {

class Names {
 public:
  struct Name {
    std::string text;
    size_t hash = 0;
    int values = 0;  // that have it
    int next = 2;    // suffix to try where another one wants it
  };
  // What is known of a name, from now on; stays where it is.
  Name& operator[](std::string_view text);
  const Name* Find(std::string_view text) const;  // null: nothing

 private:
  size_t PlaceOf(std::string_view text, size_t hash) const;
  std::deque<Name> names_;
  // By hash, as many as a power of two, at most half of them taken: which name, from 1 on; 0: none.
  std::vector<uint32_t> places_;
};

}  // namespace mlc
