#include "lib/networks/weights.h"

#include <fmt/ranges.h>

#include "lib/support/error.h"
#include "lib/support/near_names.h"

namespace mlc {

Tensor CheckedWeight(const Tensor& tensor, const std::string& name, const Dims& dims) {
  if (!tensor)
    throw Error("missing-tensor", fmt::format("there is no tensor \"{}\"", name))
        .Expected(fmt::format("one of [{}]", fmt::join(dims, ", ")));
  if (tensor.dims() != dims || !IsFloat(tensor.dtype()))
    throw Error("bad-tensor", fmt::format("tensor \"{}\" is {} [{}]", name, Name(tensor.dtype()),
                                          fmt::join(tensor.dims(), ", ")))
        .Expected(fmt::format("floats [{}], as the sizes in the model's metadata say",
                              fmt::join(dims, ", ")));
  return tensor.Cast(DType::kFp32);
}

void CheckAllUsed(const std::string& model, const std::vector<std::string>& names,
                  const std::set<std::string>& used) {
  std::vector<std::string> unused;
  for (const std::string& name : names)
    if (!used.contains(name)) unused.push_back(name);
  if (unused.empty()) return;
  throw Error("unused-tensor", fmt::format("{} has no use for {} of {} tensors: {}", model,
                                           unused.size(), names.size(), Quoted(unused)))
      .Help("the model has parts that mlc does not know; what it computes would be another model");
}

}  // namespace mlc
