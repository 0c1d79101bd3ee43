// lib/ir/value_names.h - the names of a function's values, with the number of values that share
// each name.
//
// Lookups far outnumber operations. Entries never move and are never removed, so that a lookup
// reads one table of 32-bit indices and then the entry.
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
    int values = 0;  // number of values with this name
    int next = 2;    // next suffix to try when making the name unique
  };
  // The entry for a name, created on first use. Its address stays valid.
  Name& operator[](std::string_view text);
  const Name* Find(std::string_view text) const;  // null if unknown

 private:
  size_t PlaceOf(std::string_view text, size_t hash) const;
  std::deque<Name> names_;
  // Hash table: index + 1 of an entry, or 0 if the slot is empty. The size is a power of two, and
  // at most half of the slots are used.
  std::vector<uint32_t> places_;
};

}  // namespace mlc
