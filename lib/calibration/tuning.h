// lib/calibration/tuning.h - trains compressed weights so that the outputs become those of the
// program before compression.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/calibration/samples.h"
#include "lib/compress/compression.h"
#include "lib/gradients/gradients.h"

namespace mlc::calibration {

class Tuner {
 public:
  // `samples` must outlive this object. The outputs `logits` are scores of the next token; if there
  // are any, other outputs do not count. `most_work` limits the multiply-adds, of which running all
  // samples takes `work_of_samples`.
  Tuner(const Samples& samples, std::set<std::string> logits, double work_of_samples,
        double most_work);

  // Remembers the program whose outputs are aimed at. Returns false if there are too few samples, or
  // too little work is allowed, for any gain.
  bool Aim(const Program& program);

  // Replaces the weights by trained ones, if that lowers the loss on samples that are not trained
  // on: every eighth. Weights that cannot be trained (lib/compress/latent_weight.h) stay as they
  // are. The program itself is not changed.
  compress::Tuned operator()(const Program& program, std::vector<compress::Tunable>& weights,
                             const Progress& progress) const;

 private:
  static constexpr int64_t kLeastSteps = 50, kMostSteps = 200, kLeastSamples = 8, kBatch = 8,
                           kMostUses = 64;                    // of each sample
  static constexpr int64_t kMostElements = int64_t{1} << 24;  // of all weights
  // The inputs of the program that computes gradients but for the weights, with the outputs that are
  // aimed at, for as many samples as fit into memory.
  std::vector<std::map<std::string, Tensor>> Inputs(const gradients::Differentiated& made) const;

  std::set<std::string> logits_;
  int64_t steps_ = 0;
  std::string function_;
  std::vector<const verify::StepInputs*> samples_;
  std::optional<Program> aim_;
};

}  // namespace mlc::calibration
