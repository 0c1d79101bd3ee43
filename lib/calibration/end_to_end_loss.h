// lib/calibration/end_to_end_loss.h - what a program loses by compression, measured on samples.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/calibration/samples.h"
#include "lib/compress/compression.h"
#include "lib/engine/engine.h"

namespace mlc::calibration {

class EndToEndLoss {
 public:
  // `samples` must outlive this object; at most `most_samples` of each function are run, evenly
  // spaced. The outputs `logits` are scores of the next token; if there
  // are any, other outputs do not count.
  EndToEndLoss(const Samples& samples, int64_t most_samples, std::set<std::string> logits)
      : samples_(samples), most_samples_(most_samples), logits_(std::move(logits)) {}

  // The first program is what the others are compared with. `arithmetic` matters to operations with
  // types in fp16.
  compress::Loss operator()(const Program& program, engine::EngineOptions::Arithmetic arithmetic =
                                                        engine::EngineOptions::Arithmetic::kExact);

 private:
  const Samples& samples_;
  int64_t most_samples_;
  std::set<std::string> logits_;
  // The outputs of the first program, by function, for each sample and step.
  std::map<std::string, std::vector<std::map<std::string, Tensor>>> references_;
};

}  // namespace mlc::calibration
