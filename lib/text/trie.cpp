#include "lib/text/trie.h"

namespace mlc::text {

Trie::Trie() : roots_(256), edges_(1024), values_(1, -1) {}

void Trie::Grow() {
  std::vector<Edge> old(edges_.size() * 2);
  old.swap(edges_);
  --shift_;
  for (const Edge& edge : old) {
    if (edge.key == UINT64_MAX) continue;
    size_t i = Slot(edge.key);
    while (edges_[i].key != UINT64_MAX) i = (i + 1) & (edges_.size() - 1);
    edges_[i] = edge;
  }
}

void Trie::Add(std::string_view text, int32_t value) {
  if (text.empty()) return;
  uint32_t node = 0;
  for (char c : text) {
    unsigned char byte = static_cast<unsigned char>(c);
    uint32_t next = Next(node, byte);
    if (next == 0) {
      next = static_cast<uint32_t>(values_.size());
      values_.push_back(-1);
      if (node == 0) {
        roots_[byte] = next;
      } else {
        if (used_ * 2 >= edges_.size()) Grow();
        uint64_t key = Key(node, byte);
        size_t i = Slot(key);
        while (edges_[i].key != UINT64_MAX) i = (i + 1) & (edges_.size() - 1);
        edges_[i] = {key, next};
        ++used_;
      }
    }
    node = next;
  }
  values_[node] = value;
}

}  // namespace mlc::text
