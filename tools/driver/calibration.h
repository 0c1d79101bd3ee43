// tools/driver/calibration.h - the inputs of --calibrate, for compression and for measuring fp16.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "lib/calibration/end_to_end_loss.h"
#include "lib/calibration/samples.h"
#include "lib/compress/compression.h"
#include "lib/precision/measure.h"

namespace mlc::driver {

// Reads the inputs of a program that was imported from `model`. `given` is
//   - a folder in the format of `mlc verify --inputs`; missing inputs are generated;
//   - a text file (.txt, UTF-8), for language models and encoders: chunks of the model's context,
//     tokenized by its tokenizer;
//   - "generated:N": N samples of generated inputs.
// Error "usage" if it is none of them or holds no inputs, and "bad-input" for tensors that do not fit.
calibration::Samples ReadCalibration(const std::string& given, const std::filesystem::path& model,
                                     const Program& program);

precision::MeasureInputs ForMeasuring(const calibration::Samples& samples, const Program& program);

// The inputs that a program is compressed for.
class Measuring {
 public:
  // As ReadCalibration.
  Measuring(const std::string& given, const std::filesystem::path& model, const Program& program);
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

  const calibration::Samples& samples() const { return samples_; }
  // Lets the pass compress run programs on the inputs, while this object exists; `program` is what
  // their outputs are compared with. Without `calibrate`, the inputs only tell what a program loses,
  // if running it takes little time. With `calibrate` only, throws the errors of
  // running, and Error "bad-input" for inputs with NaN.
  void Prepare(const Program& program, compress::Compression& compression, bool calibrate);

 private:
  calibration::Samples samples_;
  // Multiply-adds of a run on all samples, and on those for comparing programs.
  double work_ = 1, loss_work_ = 1;
  std::optional<calibration::EndToEndLoss> loss_;
};

// Reads the inputs `given` with --calibrate. If none are given, returns a few generated inputs for
// comparing the schemes of auto, or null if there are no rules with auto or none can be generated.
std::unique_ptr<Measuring> MeasuringFor(const std::optional<compress::Compression>& compression,
                                        const std::string& given,
                                        const std::filesystem::path& model, const Program& program);

}  // namespace mlc::driver
