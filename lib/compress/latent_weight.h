// lib/compress/latent_weight.h - a compressed weight whose codes, tables and scales can be trained.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/ir/encoding.h"

namespace mlc::compress {

// Behind each element stands a latent number, to which the nearest value that the encoding can
// express is assigned. A gradient with respect to the values moves the latent numbers as if they
// were the values (the straight-through estimator, Bengio et al. 2013), and the entries of tables,
// or scales, by the sum over the elements that use them.
class LatentWeight {
 public:
  // Returns false for a weight that is not encoded, for sparse weights, and for tables that are
  // encoded themselves. Reads no element.
  static bool Knows(const Tensor& encoded);
  // `encoded` approximates `source`, at which the latent numbers start, whatever its codes are.
  // Takes about 40 bytes for each element. nullopt for an unknown form, and if a scale is 0.
  static std::optional<LatentWeight> Of(const Tensor& encoded, const Tensor& source);

  // Leaves the codes as they were given: only tables and scales are trained.
  void KeepCodes() { keeps_codes_ = true; }

  // Assigns codes, unless they are kept, and returns the values.
  std::vector<float> Values();
  // Moves everything by one step of Adam (Kingma and Ba 2014), whose size is `rate` times the root
  // mean square of the source. `gradient` has an element for each value.
  void Step(std::span<const float> gradient, double rate);
  // The weight with the codes of the last values.
  Tensor Encoded() const;

 private:
  // Numbers that are trained, and the moments of their gradients.
  struct Trained {
    std::vector<float> numbers, mean, square;
    void Resize(size_t size);
    void Step(size_t i, double gradient, double rate, double correct_mean, double correct_square);
  };

  bool is_palette() const { return form_ == Encoding::Form::kPalette; }
  void SetPalette(const Encoding& palette);
  float Rounded(float number) const;
  void AssignEntries();
  void AssignIntegers();

  Encoding::Form form_ = Encoding::Form::kPalette;
  Tensor encoded_;                // as it was given
  DType stored_ = DType::kFp32;   // of tables and scales
  bool digits_ = false;           // they have the precision of fp16 in fp32
  double size_ = 1;               // the root mean square of the source
  Trained latent_;                // by element
  Trained entries_;               // tables: [cell, entry, vector]; or scales, by cell
  std::vector<int32_t> codes_;    // by index: an entry; or by element: an integer
  std::vector<int32_t> cells_;    // by index, or by element
  std::vector<float> factors_;    // by element; empty: a palette without scales of its own
  std::vector<int32_t> offsets_;  // by cell; empty: none
  int64_t vector_ = 1;            // elements of an index
  int64_t stride_ = 1;            // between them
  std::vector<int64_t> firsts_;   // by index: its first element
  int64_t entry_count_ = 0;       // of a table
  int32_t low_ = 0, high_ = 0;    // of integers
  int64_t steps_ = 0;
  bool keeps_codes_ = false;
};

}  // namespace mlc::compress
