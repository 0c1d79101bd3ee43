// lib/calibration/statistics.h - what a program computes on samples, in a file that is read instead of
// running the program again.
//
// Statistics of parts of the samples add up to those of all samples, to the bit.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/calibration/collect_inputs.h"
#include "lib/calibration/samples.h"
#include "lib/support/progress.h"

namespace mlc::calibration {

// The sums for a weight, as they are stored.
class PackedSums {
 public:
  explicit PackedSums(compress::InputSums& sums);
  // `bytes` are kept alive by `owner`. Unpack throws Error "bad-input" if they are not valid.
  PackedSums(int64_t sets, int64_t columns, bool products, std::vector<int64_t> counts,
             std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
      : sets_(sets),
        columns_(columns),
        products_(products),
        counts_(std::move(counts)),
        bytes_(bytes),
        owner_(std::move(owner)) {}

  int64_t sets() const { return sets_; }
  int64_t columns() const { return columns_; }
  bool has_products() const { return products_; }
  const std::vector<int64_t>& counts() const { return counts_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  compress::InputSums Unpack() const;
  bool HasShapeOf(const PackedSums& other) const;
  void Add(const PackedSums& other);  // of the same shape

 private:
  int64_t sets_ = 0, columns_ = 0;
  bool products_ = false;
  std::vector<int64_t> counts_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
};

class Statistics {
 public:
  struct Weight {
    std::string hash;  // of the weight's elements; empty: unknown
    PackedSums sums;
  };

  // Observes the weights and values of a program. Sums that take much memory are made in several
  // runs.
  static Statistics Collect(const Program& program, const Samples& samples,
                            const std::set<const Value*>& weights,
                            const std::set<const Value*>& values, const Progress& progress = {});
  // Error "file-io", and "bad-input" if the file does not hold statistics, is damaged, or is of
  // another version.
  static Statistics Read(const std::filesystem::path& path);
  // Statistics of mean squares alone, for a weight of any elements: [sets, columns].
  void AddSquares(const std::string& weight, int64_t sets, int64_t columns,
                  const std::vector<float>& squares, const std::vector<int64_t>& counts);
  void SetDescription(std::string text) { description_ = std::move(text); }
  static bool IsFile(const std::filesystem::path& path);
  void Write(const std::filesystem::path& path) const;

  // Error "bad-input" if the others are those of other weights.
  void Add(const Statistics& other);

  int64_t samples() const { return samples_; }
  bool generated() const { return generated_; }  // whether any sample was generated
  std::string Description() const;
  const std::map<std::string, Weight>& weights() const { return weights_; }
  const std::map<std::string, compress::Histogram>& values() const { return values_; }

 private:
  std::string description_;
  int64_t samples_ = 0;
  bool generated_ = false;
  // The sum of the hashes of all samples, so that their order does not matter.
  std::array<uint64_t, 2> inputs_ = {};
  std::map<std::string, Weight> weights_;  // by name
  std::map<std::string, compress::Histogram> values_;
};

// The hash that Statistics keeps of a weight.
std::string HashOf(const Value& weight);

}  // namespace mlc::calibration
