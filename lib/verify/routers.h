// lib/verify/routers.h - the experts that the routers of a language model choose (topk), and a source that
// chooses as its package does where neither is wrong.
//
// Where a router's scores of the k-th and the next expert are closer than fp16 resolves, rounding decides
// which of them a token gets, and all that follows is another number. So the package runs first, what it
// chose is put down, and the source takes the package's experts where its own scores are that close:
//
//   RouterChoices chosen;
//   options.observe = RecordChoices(package, chosen);
//   ... run the package ...
//   FollowedChoices followed;
//   source_options.observe = FollowChoices(source, chosen, followed);
//   ... run the source on the same inputs ...
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

// Two scores are close when they are less than this share of the largest score of the token apart: by so much
// the budget of fp16 lets any number differ (max error 0.01).
inline constexpr double kRouterResolution = 1e-2;

using RouterChoices = std::vector<Tensor>;  // indices of each topk that ran, in order

struct FollowedChoices {
  int64_t tokens = 0;    // a token in each layer with a router
  int64_t followed = 0;  // of them, those that took the other's experts
  double widest =
      0;  // the largest distance of two scores among these, as a share of the largest score
  RouterChoices made;  // by the run
};

bool HasRouters(const Function& function);
// What EngineOptions::observe takes; both outlive the run.
using Observer = std::function<void(const Operation&, std::span<Tensor>)>;
Observer RecordChoices(RouterChoices& into);
// Where `chosen` are not the choices of as many routers for as many tokens, nothing is followed.
Observer FollowChoices(const Function& function, const RouterChoices& chosen,
                       FollowedChoices& followed);

// Choices of tokens that ran one after the other, as if they had run at once.
RouterChoices AtOnce(const RouterChoices& chosen, int64_t tokens);

}  // namespace mlc
