// lib/verify/expert_selection.h - the experts that the routers of a language model select (topk),
// and a source that adopts the selection of its package where both selections are valid.
//
// If a router's scores for the k-th and the next expert differ by less than the error that the fp16
// budget allows, rounding decides which expert a token gets, and all later values differ. Therefore the package runs first,
// its selections are recorded, and the source uses the experts of the package where its own scores
// are that close:
//
//   RouterChoices chosen;
//   options.observe = RecordChoices(chosen);
//   ... run the package ...
//   FollowedChoices followed;
//   source_options.observe = FollowChoices(source, chosen, followed);
//   ... run the source on the same inputs ...
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::verify {

// Two scores are close if they differ by less than this share of the token's largest score. It
// equals the maximum error that the fp16 budget allows (0.01).
inline constexpr double kRouterResolution = 1e-2;

using RouterChoices = std::vector<Tensor>;  // the indices of each topk that ran, in order

struct FollowedChoices {
  int64_t tokens = 0;    // tokens times layers with a router
  int64_t followed = 0;  // how many of them took the experts of the package
  double widest = 0;     // largest accepted distance of two scores, as a share of the largest score
  RouterChoices made;    // the selections of this run
};

bool HasRouters(const Function& function);
// For EngineOptions::observe. The arguments must outlive the run.
using Observer = std::function<void(const Operation&, std::span<Tensor>)>;
Observer RecordChoices(RouterChoices& into);
// Follows nothing if `chosen` has a different number of routers or tokens.
Observer FollowChoices(const Function& function, const RouterChoices& chosen,
                       FollowedChoices& followed);

// Merges the selections of tokens that ran one at a time into those of a single run.
RouterChoices AtOnce(const RouterChoices& chosen, int64_t tokens);

}  // namespace mlc::verify
