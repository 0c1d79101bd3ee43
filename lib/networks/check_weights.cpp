#include "lib/networks/check_weights.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "lib/support/edit_distance.h"
#include "lib/support/error.h"

namespace mlc::networks {

namespace {

Dims WithoutOuterOnes(const Dims& dims) {
  auto is_size = [](int64_t dim) { return dim != 1; };
  const auto first = std::ranges::find_if(dims, is_size);
  return {first, std::find_if(dims.rbegin(), std::make_reverse_iterator(first), is_size).base()};
}

}  // namespace

Tensor CheckedWeight(const Tensor& tensor, const std::string& name, const Dims& dims) {
  if (!tensor)
    throw Error("missing-tensor", name.empty()
                                      ? "the source format has no name for a required tensor"
                                      : fmt::format("tensor \"{}\" is missing", name))
        .Expected("a float tensor of shape [{}]", fmt::join(dims, ", "));
  if (WithoutOuterOnes(tensor.dims()) != WithoutOuterOnes(dims) || !IsFloat(tensor.dtype()))
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
