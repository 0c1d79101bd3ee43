// lib/compress/points.h - the distinct values of a set of numbers, with weights.
//
// Numbers are distinguished in the resolution of fp16, so a set has at most 63487 values, whatever
// its size: the values of an fp16 weight are exact, those of an fp32 weight are means of numbers
// that differ in the last bits. Counting takes constant memory, so that large weights are streamed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc::compress {

struct Points {
  std::vector<double> values, weights;  // ascending; positive
  // The weighted squared distance of the numbers from the values that stand for them.
  double inside = 0;
  bool finite = true;   // false: a number was not finite, and the points are unusable
  double greatest = 0;  // the largest magnitude
};

class PointCounter {
 public:
  // Numbers are distinguished after multiplication by 2^exponent, which must bring them into the
  // range of fp16. `with_zeros` is false for sparse weights, whose zeros are not stored.
  explicit PointCounter(int exponent = 0, bool with_zeros = true)
      : exponent_(exponent), with_zeros_(with_zeros) {}
  // Weights of importance; an empty span stands for ones.
  void Add(std::span<const float> numbers, std::span<const float> importance = {});
  // The same for fp16 numbers by their bits, with an exponent of 0. A counter takes numbers in one
  // of the two forms.
  void AddHalves(std::span<const uint16_t> numbers);
  // Adds the numbers of another counter. Sums depend on the order of additions.
  void Add(PointCounter other);
  // The numbers counted so far, in ascending order. Counting starts again.
  Points Take();

 private:
  void Sort();
  Points TakeHalves();
  void Count(uint16_t key, double number, double weight);

  struct Sum {
    double weight = 0, sum = 0, squares = 0;
  };
  int exponent_;
  bool with_zeros_, finite_ = true;
  double greatest_ = 0;
  std::vector<Sum> sums_;  // by order of the fp16 number; empty until there are many numbers
  struct Few {
    uint16_t key;
    float number, weight;
  };
  std::vector<Few> few_;
  std::vector<uint32_t> halves_;  // counts by bits
  uint16_t greatest_half_ = 0;    // without the sign
};

// The exponent for PointCounter with which numbers up to this magnitude are well resolved.
int ExponentFor(double greatest);

}  // namespace mlc::compress
