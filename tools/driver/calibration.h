// tools/driver/calibration.h - the inputs of --calibrate, for compression and for measuring fp16.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "lib/calibration/end_to_end_loss.h"
#include "lib/calibration/samples.h"
#include "lib/calibration/statistics.h"
#include "lib/calibration/tuning.h"
#include "lib/compress/compression.h"
#include "lib/precision/measure.h"
#include "tools/driver/compile.h"

namespace mlc::driver {

// Reads the inputs of a program that was imported from `model`. `given` is
//   - a folder in the format of `mlc verify --inputs`; missing inputs are generated;
//   - a text file (.txt, UTF-8), for language models and encoders: chunks of the model's context,
//     tokenized by its tokenizer;
//   - "generated:N": N samples of generated inputs.
// Error "usage" if it is none of them or holds no inputs, and "bad-input" for tensors that do not fit.
// `fit` applies to pictures and sounds.
calibration::Samples ReadCalibration(const std::string& given, const std::filesystem::path& model,
                                     const Program& program, media::Fit fit);

// Returns true for a file of statistics or an importance matrix of llama.cpp. Both tell what weights
// are multiplied by without running the program.
bool HoldsStatistics(const std::string& given);

precision::MeasureInputs ForMeasuring(const calibration::Samples& samples, const Program& program);

// The inputs that a program is compressed for.
class Measuring {
 public:
  // As ReadCalibration; `given` may also hold statistics.
  Measuring(const std::string& given, const std::filesystem::path& model, const Program& program,
            media::Fit fit);
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

  // Null for statistics.
  const calibration::Samples* samples() const { return statistics_ ? nullptr : &samples_; }
  // Lets the pass compress run programs on the inputs, while this object exists; `program` is what
  // their outputs are compared with. Without `calibrate`, the inputs only tell what a program loses,
  // if running it takes little time, and the ranges of activations. With `calibrate` only, throws
  // the errors of running, and Error "bad-input" for inputs with NaN.
  // `train` also lets it train what it has compressed for the inputs.
  void Prepare(const Program& program, compress::Compression& compression, bool calibrate,
               bool train);
  // Updates the losses of a program whose activations are quantised, when it has its final types:
  // a number between two steps may be rounded to the other one in fp16.
  void MeasureAgain(const Program& program, compress::Compression& compression);
  // Throws Error "bad-input" if the pass has found no weight in the statistics: they are those of
  // another model.
  void RequireUsed() const;

 private:
  std::optional<calibration::Statistics> statistics_;
  calibration::Samples samples_;   // with statistics: generated ones that compare programs, if any
  calibration::Samples compared_;  // other generated ones that compare programs, if those run fast
  std::string compared_on_;
  // Multiply-adds of a run on all samples, and on those for comparing programs.
  double work_ = 1, loss_work_ = 1;
  std::optional<calibration::EndToEndLoss> loss_;
  calibration::Samples generated_;
  std::optional<calibration::EndToEndLoss> generated_loss_;
  std::optional<calibration::Tuner> tuner_;
  // Weights that were looked up in the statistics, and one with other elements.
  int64_t asked_ = 0, found_ = 0;
  std::string different_;
};

// Reads the inputs `given` with --calibrate. If none are given, returns a few generated inputs for
// comparing the schemes of auto and for the ranges of w8a8, or null if there are no such rules, or if
// none can be generated for auto. Error "usage" if none can be generated for w8a8.
std::unique_ptr<Measuring> MeasuringFor(const std::optional<compress::Compression>& compression,
                                        const std::string& given,
                                        const std::filesystem::path& model, const Program& program,
                                        media::Fit fit);

struct CalibrateOptions {
  CompileOptions compile;           // what determines the program
  std::vector<std::string> inputs;  // as ReadCalibration takes them, or files of statistics
  // Uses the samples of one of `count` blocks of nearly equal size; `index` is from 1 to `count`.
  struct Shard {
    int64_t index = 1, count = 1;
  };
  std::optional<Shard> shard;
  std::filesystem::path output;
  Progress progress = {};  // of the samples that are run
};
struct CalibrateResult {
  std::string inputs;  // "statistics of 16 samples"
  int64_t samples = 0, weights = 0, values = 0;
  std::vector<std::string> without;  // weights whose inputs are unknown
  uint64_t bytes = 0;                // of the file
};
// Writes what the weights of a model are multiplied by, and which values its activations have, to a
// file of statistics. Several inputs are added up. Error "usage" without inputs.
CalibrateResult Calibrate(const std::filesystem::path& model, const CalibrateOptions& options,
                          Diagnostics& diagnostics);
// Adds up files of statistics. The result of all shards is that of all samples, to the bit. Error
// "bad-input" if they are those of different models.
CalibrateResult MergeStatistics(const std::vector<std::string>& parts,
                                const std::filesystem::path& output);

}  // namespace mlc::driver
