// lib/text/merging.h - the loop of BPE: the best pair of neighbours becomes one, until none is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace mlc {

// A stretch of the piece, and its neighbours.
struct MergeNode {
  uint32_t begin = 0, end = 0;  // bytes of the piece; end is 0 when it was merged into another
  int32_t symbol = -1;          // what the caller calls it
  int32_t previous = -1, next = -1;
};

// Rank is what pairs are compared by, the smallest first, and of equal ones the leftmost.
template <class Rank>
struct MergeChoice {
  Rank rank;
  int32_t symbol = -1;  // of the two together
};

// Merges neighbours of `nodes`, which are linked in their order. choose(left, right, choice) says
// whether two nodes may become one, as what, and how soon. The nodes that remain are linked from 0.
template <class Rank, class Choose>
void Merge(std::vector<MergeNode>& nodes, const Choose& choose) {
  struct Candidate {
    Rank rank;
    int32_t left;
    uint32_t begin, end;  // of the two, to know whether they are still what they were
    int32_t symbol;
    int32_t right;
    bool operator<(const Candidate& other) const {  // later than
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
    // A node only grows to its right, so that a pair is as it was when both ends are.
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

// Appends a node behind those that are there.
inline void AddNode(std::vector<MergeNode>& nodes, size_t begin, size_t end, int32_t symbol) {
  int32_t index = static_cast<int32_t>(nodes.size());
  if (index > 0) nodes.back().next = index;
  nodes.push_back(
      {static_cast<uint32_t>(begin), static_cast<uint32_t>(end), symbol, index - 1, -1});
}

}  // namespace mlc
