#include "lib/verify/expert_selection.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

namespace mlc::verify {

namespace {

// Operators by name: the topk operations that select experts (lib/networks/feed_forward.cpp).
bool IsRouter(const Operation& op) {
  return op.is("topk") && op.results.size() == 2 && op.value("x") && op.value("x")->def;
}

// Returns whether the scores of one token are close enough to replace its experts by `wanted`.
bool Follow(std::span<const double> scores, const std::vector<int64_t>& own,
            const std::vector<int64_t>& wanted, double& widest) {
  double lowest = INFINITY, highest = -INFINITY, size = 0;
  for (const double score : scores) size = std::max(size, std::fabs(score));
  for (const int64_t expert : wanted) {
    if (expert < 0 || expert >= std::ssize(scores)) return false;
    if (std::ranges::count(wanted, expert) != 1) return false;
    if (!std::ranges::count(own, expert)) lowest = std::min(lowest, scores[expert]);
  }
  for (const int64_t expert : own)
    if (!std::ranges::count(wanted, expert)) highest = std::max(highest, scores[expert]);
  if (lowest == INFINITY || !(highest - lowest <= kRouterResolution * size)) return false;
  widest = std::max(widest, size > 0 ? (highest - lowest) / size : 0);
  return true;
}

}  // namespace

bool HasRouters(const Function& function) {
  for (Operation* op : function.body.operations())
    if (IsRouter(*op)) return true;
  return false;
}

Observer RecordChoices(RouterChoices& into) {
  return [&into](const Operation& op, std::span<Tensor> results) {
    if (IsRouter(op)) into.push_back(results[1].InMemory());
  };
}

Observer FollowChoices(const Function& function, const RouterChoices& chosen,
                       FollowedChoices& followed) {
  // Keyed by the operation that computes the scores; it runs before the router.
  auto scores = std::make_shared<std::map<const Operation*, Tensor>>();
  for (Operation* op : function.body.operations())
    if (IsRouter(*op)) scores->emplace(op->value("x")->def, Tensor());
  return [scores, &chosen, &followed, next = size_t{0}](const Operation& op,
                                                        std::span<Tensor> results) mutable {
    if (const auto it = scores->find(&op); it != scores->end()) it->second = results[0];
    if (!IsRouter(op)) return;
    const size_t place = next++;
    const auto it = scores->find(op.value("x")->def);
    followed.made.push_back(results[1]);
    const int64_t k = results[1].rank() > 0 ? results[1].dims().back() : 0;
    if (it == scores->end() || k == 0) return;
    const int64_t experts = it->second.dims().back(), tokens = results[1].size() / k;
    followed.tokens += tokens;
    if (place >= chosen.size() || chosen[place].size() != results[1].size() ||
        it->second.size() != tokens * experts)
      return;
    const std::vector<double> all = it->second.Doubles();
    std::vector<double> values = results[0].Doubles();
    std::vector<int64_t> own = results[1].Ints();
    const std::vector<int64_t> other = chosen[place].Ints();
    bool any = false;
    for (int64_t token = 0; token < tokens; ++token) {
      const auto row = [&](const std::vector<int64_t>& list) {
        return std::vector<int64_t>(list.begin() + token * k, list.begin() + (token + 1) * k);
      };
      const std::vector<int64_t> wanted = row(other);
      const std::span scored = std::span(all).subspan(token * experts, experts);
      if (!Follow(scored, row(own), wanted, followed.widest)) continue;
      ++followed.followed;
      any = true;
      for (int64_t i = 0; i < k; ++i) {
        own[token * k + i] = wanted[i];
        values[token * k + i] = scored[wanted[i]];
      }
    }
    if (!any) return;
    results[0] = Tensor::Of<double>(results[0].dims(), values).Cast(results[0].dtype());
    results[1] = Tensor::Of<int64_t>(results[1].dims(), own).Cast(results[1].dtype());
    followed.made.back() = results[1];
  };
}

RouterChoices AtOnce(const RouterChoices& chosen, int64_t tokens) {
  RouterChoices joined;
  const int64_t routers = std::ssize(chosen) / std::max<int64_t>(tokens, 1);
  if (routers * tokens != std::ssize(chosen)) return joined;
  for (int64_t router = 0; router < routers; ++router) {
    std::vector<int64_t> all;
    for (int64_t token = 0; token < tokens; ++token) {
      const std::vector<int64_t> one = chosen[token * routers + router].Ints();
      all.insert(all.end(), one.begin(), one.end());
    }
    joined.push_back(Tensor::Of<int64_t>({std::ssize(all)}, all));
  }
  return joined;
}

}  // namespace mlc::verify
