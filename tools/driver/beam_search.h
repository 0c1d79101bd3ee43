// tools/driver/beam_search.h - beam search for encoder-decoders, with the choices of transformers'
// generation/beam_search.py (BeamSearchScorer, one sequence).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tools/driver/generation_settings.h"

namespace mlc::driver {

// Keeps the likeliest continuations of some tokens:
//
//   BeamSearch search(settings, begin, max_length);
//   while (!search.done()) search.Step(LOG PROBABILITIES of the token after each of search.beams());
//   search.best()
class BeamSearch {
 public:
  struct Beam {
    std::vector<int32_t> tokens;
    float score = 0;    // sum of the log probabilities after `begin`
    size_t parent = 0;  // the beam before the last step that this one continues
  };
  struct Hypothesis {
    std::vector<int32_t> tokens;  // without the token that ended it
    std::optional<int32_t> end;   // absent if it is as long as it may be
    double score = 0;             // the sum, divided by a power of the number of tokens
  };

  // `settings` must outlive the object. The search has no more than `max_length` tokens.
  BeamSearch(const GenerationSettings& settings, std::vector<int32_t> begin, int64_t max_length);

  // The running beams, the likeliest first. There is one before the first step.
  const std::vector<Beam>& beams() const { return beams_; }
  bool done() const { return done_; }
  // Continues each beam by the scores of all tokens, of which -infinity forbids a token.
  void Step(std::span<const std::vector<float>> scores);
  // Returns the number of tokens that all results which are still possible have in common.
  size_t Settled() const;
  // Returns the best result, of the beams that still run if none has ended. Error "runtime-failed" if
  // no token could be chosen.
  Hypothesis Best() const;

 private:
  double Scored(float sum, int64_t length) const;
  static void Keep(Hypothesis hypothesis, size_t most, std::vector<Hypothesis>& kept);
  bool CannotImprove(float best_sum, int64_t length) const;

  const GenerationSettings& settings_;
  const int64_t begin_, max_length_;
  const size_t count_;  // of beams
  std::vector<Beam> beams_;
  std::vector<Hypothesis> ended_;  // the best ones
  // `closed_`: the running beams cannot become better than the results.
  bool closed_ = false, done_ = false;
};

}  // namespace mlc::driver
