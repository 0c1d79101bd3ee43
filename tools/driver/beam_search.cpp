#include "tools/driver/beam_search.h"

#include <algorithm>
#include <cmath>

#include "lib/support/error.h"

namespace mlc::driver {

namespace {

struct BeamCandidate {
  float score;
  size_t beam;
  int32_t token;
};

}  // namespace

BeamSearch::BeamSearch(const GenerationSettings& settings, std::vector<int32_t> begin,
                       int64_t max_length)
    : settings_(settings),
      begin_(std::ssize(begin)),
      max_length_(max_length),
      count_(static_cast<size_t>(settings.beams)) {
  done_ = begin_ >= max_length_;
  beams_.push_back({.tokens = std::move(begin)});
}

void BeamSearch::Step(std::span<const std::vector<float>> scores) {
  MLC_CHECK(scores.size() == beams_.size(), "{} scores for {} beams", scores.size(), beams_.size());
  std::vector<BeamCandidate> candidates;
  for (size_t beam = 0; beam < beams_.size(); ++beam)
    for (size_t token = 0; token < scores[beam].size(); ++token)
      if (const float sum = beams_[beam].score + scores[beam][token]; std::isfinite(sum))
        candidates.push_back({sum, beam, static_cast<int32_t>(token)});
  // So many that the tokens which end a beam leave enough others.
  const size_t kept =
      std::min(candidates.size(), count_ * std::max<size_t>(2, 1 + settings_.ends.size()));
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<ptrdiff_t>(kept),
                    candidates.end(), [](const BeamCandidate& a, const BeamCandidate& b) {
                      if (a.score != b.score) return a.score > b.score;
                      return std::pair(a.beam, a.token) < std::pair(b.beam, b.token);
                    });
  const int64_t length = std::ssize(beams_[0].tokens) + 1;  // with the new token
  std::vector<Beam> next;
  for (size_t rank = 0; rank < kept && next.size() < count_; ++rank) {
    const BeamCandidate& one = candidates[rank];
    if (std::ranges::find(settings_.ends, one.token) != settings_.ends.end()) {
      if (rank < count_)
        Keep({beams_[one.beam].tokens, one.token, Scored(one.score, length)}, count_, ended_);
      continue;
    }
    next.push_back({beams_[one.beam].tokens, one.score, one.beam});
    next.back().tokens.push_back(one.token);
  }
  closed_ = kept > 0 && CannotImprove(candidates[0].score, length);
  done_ = next.empty() || closed_ || length >= max_length_;
  beams_ = std::move(next);
}

double BeamSearch::Scored(float sum, int64_t length) const {
  return sum / std::pow(static_cast<double>(length - begin_), settings_.length_penalty);
}

void BeamSearch::Keep(Hypothesis hypothesis, size_t most, std::vector<Hypothesis>& kept) {
  // A later hypothesis ranks behind an earlier one of the same score.
  const auto at =
      std::ranges::upper_bound(kept, hypothesis.score, std::greater<>(), &Hypothesis::score);
  kept.insert(at, std::move(hypothesis));
  if (kept.size() > most) kept.pop_back();
}

// Returns whether no running beam can become better than the worst of the results.
bool BeamSearch::CannotImprove(float best_sum, int64_t length) const {
  using Early = GenerationSettings::EarlyStopping;
  if (ended_.size() < count_) return false;
  if (settings_.early_stopping == Early::kYes) return true;
  // With a positive penalty, the longest result is the best one that a sum may give.
  const bool longest = settings_.early_stopping == Early::kNever && settings_.length_penalty > 0;
  return ended_.back().score >= Scored(best_sum, longest ? max_length_ : length);
}

size_t BeamSearch::Settled() const {
  if (beams_.empty() && ended_.empty()) return static_cast<size_t>(begin_);
  const std::vector<int32_t>& first = beams_.empty() ? ended_[0].tokens : beams_[0].tokens;
  size_t common = first.size();
  auto limit = [&](const std::vector<int32_t>& tokens) {
    const auto end = first.begin() + static_cast<ptrdiff_t>(common);
    common = static_cast<size_t>(
        std::mismatch(first.begin(), end, tokens.begin(), tokens.end()).first - first.begin());
  };
  for (const Beam& beam : beams_) limit(beam.tokens);
  if (!ended_.empty()) limit(ended_[0].tokens);
  return common;
}

BeamSearch::Hypothesis BeamSearch::Best() const {
  std::vector<Hypothesis> all = ended_;
  if (!closed_)
    for (const Beam& beam : beams_)
      Keep({beam.tokens, std::nullopt, Scored(beam.score, std::ssize(beam.tokens))}, count_, all);
  if (all.empty())
    throw Error("runtime-failed", "all logits are NaN or -infinity: no token can be chosen");
  return all[0];
}

}  // namespace mlc::driver
