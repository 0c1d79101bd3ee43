// lib/text/trie.h - a prefix tree that maps byte strings to numbers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace mlc::text {

class Trie {
 public:
  Trie();
  // Adds a non-empty string, or replaces the value of an existing one.
  void Add(std::string_view text, int32_t value);

  // Returns the value of the string; -1 if there is none.
  int32_t Find(std::string_view text) const {
    int32_t number = -1;
    Prefixes(text, [&](size_t bytes, int32_t value) {
      if (bytes == text.size()) number = value;
      return true;
    });
    return number;
  }

  // Calls found(bytes, value) for each prefix of `text` in the trie, shortest first, until it
  // returns false.
  template <class Found>
  void Prefixes(std::string_view text, Found found) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = Next(node, static_cast<unsigned char>(text[i]));
      if (node == 0) return;
      if (values_[node] >= 0 && !found(i + 1, values_[node])) return;
    }
  }

 private:
  struct Edge {
    uint64_t key = UINT64_MAX;  // node and byte
    uint32_t node = 0;
  };
  static uint64_t Key(uint32_t node, unsigned char byte) { return uint64_t{node} << 8 | byte; }
  size_t Slot(uint64_t key) const { return (key * 0x9e3779b97f4a7c15u) >> shift_; }
  // Returns the child; 0 if there is none.
  uint32_t Next(uint32_t node, unsigned char byte) const {
    if (node == 0) return roots_[byte];
    uint64_t key = Key(node, byte);
    for (size_t i = Slot(key);; i = (i + 1) & (edges_.size() - 1)) {
      if (edges_[i].key == key) return edges_[i].node;
      if (edges_[i].key == UINT64_MAX) return 0;
    }
  }
  void Grow();

  std::vector<uint32_t> roots_;  // nodes by first byte
  std::vector<Edge> edges_;      // open addressing
  std::vector<int32_t> values_;  // by node; -1 if no string ends there
  size_t used_ = 0;
  int shift_ = 54;
};

}  // namespace mlc::text
