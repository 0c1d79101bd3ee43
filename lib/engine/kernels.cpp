#include "lib/engine/kernels.h"

namespace mlc {

std::vector<PrepareKernel> FindKernels(std::string_view op, bool reproducible) {
  std::vector<PrepareKernel> kernels;
  for (std::span<const KernelRow> rows : {OneDnnKernels(), ProductKernels(), ElementwiseKernels(),
                                          ReductionKernels(), PoolKernels(), RecurrentKernels()})
    for (const KernelRow& row : rows)
      if (row.op == op && (row.reproducible || !reproducible)) kernels.push_back(row.prepare);
  return kernels;
}

Kernel MakeKernel(std::span<const PrepareKernel> kernels, const KernelSite& site) {
  for (PrepareKernel prepare : kernels)
    if (Kernel kernel = prepare(site)) return kernel;
  return {};
}

}  // namespace mlc
