#include "lib/engine/kernels.h"

namespace mlc {

PrepareKernel FindKernel(std::string_view op) {
  for (std::span<const KernelRow> rows : {OneDnnKernels(), ElementwiseKernels(), ReductionKernels(),
                                          PoolKernels(), RecurrentKernels()})
    for (const KernelRow& row : rows)
      if (row.op == op) return row.prepare;
  return nullptr;
}

}  // namespace mlc
