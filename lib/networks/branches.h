// lib/networks/branches.h - convolutions that were trained as sums of several, each with a batch norm
// (RepVGG, Ding et al. 2021; MobileOne, Vasu et al. 2022), as one convolution.
#pragma once

#include <string>
#include <vector>

#include "lib/networks/layers.h"

namespace mlc::networks {

// A convolution with a bias, in double precision. Kernels are odd.
class Branches {
 public:
  // `in` counts the channels of a group.
  Branches(Layers& layers, int64_t out, int64_t in, int64_t kernel);

  // Adds a convolution name.conv of this kernel, at most that of the sum, with the batch norm
  // name.norm.
  void AddConvolution(const std::string& name, int64_t kernel, double epsilon);
  // Adds the convolution `name` of this kernel, which has a bias.
  void AddBiasedConvolution(const std::string& name, int64_t kernel);
  // Adds the batch norm `name` of the input itself, which has as many channels as the output.
  void AddNorm(const std::string& name, double epsilon);
  void AddIdentity();
  void Subtract(const Branches& other);
  void Scale(const std::vector<double>& channels);
  // Applies the batch norm `name` to the sum so far.
  void Normalise(const std::string& name, double epsilon);

  Value* Apply(Builder& b, Value* x, const PictureWindow& window) const;

 private:
  struct Norm {
    std::vector<double> scale, bias;
  };
  Norm NormOf(const std::string& name, double epsilon);
  void AddScaled(const std::string& name, int64_t kernel, const Norm& norm);
  double& Centre(int64_t channel);

  Layers& layers_;
  int64_t out_, in_, kernel_;
  std::vector<double> weight_, bias_;
};

// Returns the sum of the convolutions name.branch.N and name.scale (of 1 x 1), each with .conv and
// .norm, and of the norm name.identity of the input; folders may store the sum as a convolution
// name.fused.
Value* SumOfBranches(Builder& b, Layers& layers, const std::string& name, Value* x, int64_t out,
                     const PictureWindow& window, double epsilon);
// The branches of that sum, for x with `in` channels.
Branches BranchesOf(Layers& layers, const std::string& name, int64_t in, int64_t out,
                    const PictureWindow& window, double epsilon);

}  // namespace mlc::networks
