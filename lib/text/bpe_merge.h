// lib/text/bpe_merge.h - the merge loop of BPE: repeatedly merges the best pair of adjacent
// symbols.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace mlc::text {

// A range of the piece, linked with its neighbours.
struct MergeNode {
  uint32_t begin = 0, end = 0;  // bytes of the piece; end is 0 if it was merged into another node
  int32_t symbol = -1;          // defined by the caller
  int32_t previous = -1, next = -1;
};

// A possible merge. Pairs with the smallest rank are merged first; among equal ranks, the leftmost.
template <class Rank>
struct MergeChoice {
  Rank rank;
  int32_t symbol = -1;  // the merged pair's symbol
};

// Merges adjacent `nodes`, which are linked in order. choose(left, right, choice) returns whether
// two nodes can be merged, and sets the rank and the resulting symbol. The remaining nodes are
// linked from node 0.
template <class Rank, class Choose>
void Merge(std::vector<MergeNode>& nodes, const Choose& choose) {
  struct Candidate {
    Rank rank;
    int32_t left;
    uint32_t begin, end;  // range of the pair, to detect outdated candidates
    int32_t symbol;
    int32_t right;
    bool operator<(const Candidate& other) const {  // true if it is merged later
      return rank > other.rank || (!(other.rank > rank) && left > other.left);
    }
  };
  std::vector<Candidate> storage;
  storage.reserve(nodes.size());
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(storage));
  auto add = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return;
    const MergeNode& a = nodes[static_cast<size_t>(left)];
    const MergeNode& b = nodes[static_cast<size_t>(right)];
    MergeChoice<Rank> choice;
    if (choose(a, b, choice)) queue.push({choice.rank, left, a.begin, b.end, choice.symbol, right});
  };
  for (size_t i = 1; i < nodes.size(); ++i)
    add(static_cast<int32_t>(i - 1), static_cast<int32_t>(i));
  while (!queue.empty()) {
    Candidate best = queue.top();
    queue.pop();
    MergeNode& left = nodes[static_cast<size_t>(best.left)];
    MergeNode& right = nodes[static_cast<size_t>(best.right)];
    // Nodes only grow to the right, so a pair is unchanged if both of its ends are.
    if (left.end == 0 || right.end != best.end || left.next != best.right) continue;
    left.end = right.end;
    left.symbol = best.symbol;
    left.next = right.next;
    right.end = 0;
    if (left.next >= 0) nodes[static_cast<size_t>(left.next)].previous = best.left;
    add(left.previous, best.left);
    add(best.left, left.next);
  }
}

// Appends a node at the end of the list.
inline void AddNode(std::vector<MergeNode>& nodes, size_t begin, size_t end, int32_t symbol) {
  int32_t index = static_cast<int32_t>(nodes.size());
  if (index > 0) nodes.back().next = index;
  nodes.push_back(
      {static_cast<uint32_t>(begin), static_cast<uint32_t>(end), symbol, index - 1, -1});
}

}  // namespace mlc::text
