#include "lib/networks/check_weights.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "lib/support/edit_distance.h"
#include "lib/support/error.h"

namespace mlc::networks {

namespace {

Dims WithoutFirstOnes(const Dims& dims) {
  return {std::ranges::find_if(dims, [](int64_t dim) { return dim != 1; }), dims.end()};
}

// Returns the sizes of a matrix that is stored as a convolution with a kernel of 1.
Dims WithoutKernel(Dims dims) {
  while (dims.size() > 2 && dims.back() == 1) dims.pop_back();
  return dims;
}

bool SameSizes(const Dims& found, const Dims& expected) {
  if (WithoutFirstOnes(found) == WithoutFirstOnes(expected)) return true;
  return expected.size() >= 2 &&
         WithoutFirstOnes(WithoutKernel(found)) == WithoutFirstOnes(WithoutKernel(expected));
}

}  // namespace

Tensor CheckedWeight(const Tensor& tensor, const std::string& name, const Dims& dims) {
  if (!tensor)
    throw Error("missing-tensor", name.empty()
                                      ? "the source format has no name for a required tensor"
                                      : fmt::format("tensor \"{}\" is missing", name))
        .Expected("a float tensor of shape [{}]", fmt::join(dims, ", "));
  if (!SameSizes(tensor.dims(), dims) || !IsFloat(tensor.dtype()))
    throw Error("bad-tensor", "tensor \"{}\" is {} [{}]", name, Name(tensor.dtype()),
                fmt::join(tensor.dims(), ", "))
        .Expected("a float tensor of shape [{}], according to the model's metadata",
                  fmt::join(dims, ", "));
  return tensor.Reshaped(dims).Cast(DType::kFp32);
}

void CheckAllUsed(const std::string& model, const std::vector<std::string>& names,
                  const std::set<std::string>& used) {
  std::vector<std::string> unused;
  for (const std::string& name : names)
    if (!used.contains(name)) unused.push_back(name);
  if (unused.empty()) return;
  throw Error("unused-tensor", "{} does not use {} of {} tensors: {}", model, unused.size(),
              names.size(), Quoted(unused))
      .Help("the model has parts that mlc does not support");
}

}  // namespace mlc::networks
