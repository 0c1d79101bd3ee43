#include "lib/engine/kernels.h"

namespace mlc::engine {

namespace {

// Calls f(row) for each of the operator's rows, fastest first.
template <class F>
void ForEachRow(std::string_view op, F&& f) {
  for (std::span<const KernelRow> rows :
       {OneDnnKernels(), ProductKernels(), ElementwiseKernels(), ReductionKernels(), PoolKernels(),
        ImageKernels(), RecurrentKernels()})
    for (const KernelRow& row : rows)
      if (row.op == op) f(row);
}

}  // namespace

std::vector<PrepareKernel> FindKernels(std::string_view op, bool reproducible) {
  std::vector<PrepareKernel> kernels;
  ForEachRow(op, [&](const KernelRow& row) {
    if (row.reproducible || !reproducible) kernels.push_back(row.prepare);
  });
  return kernels;
}

std::vector<PrepareKernel> FindChainKernels(std::string_view op) {
  std::vector<PrepareKernel> kernels;
  ForEachRow(op, [&](const KernelRow& row) {
    if (row.chain) kernels.push_back(row.chain);
  });
  return kernels;
}

bool TakesAnyLayout(std::string_view op) {
  bool any = false;
  ForEachRow(op, [&](const KernelRow& row) { any = any || row.any_layout; });
  return any;
}

bool TakesWide(std::string_view op) {
  bool some = false, all = true;
  ForEachRow(op, [&](const KernelRow& row) {
    some = true;
    all = all && row.takes_wide;
  });
  return some && all;
}

bool HoldsWeights(std::string_view op, std::string_view param) {
  bool holds = false;
  ForEachRow(op, [&](const KernelRow& row) {
    holds = holds || row.weights[0] == param || row.weights[1] == param;
  });
  return holds;
}

Kernel MakeKernel(std::span<const PrepareKernel> kernels, const KernelSite& site) {
  for (PrepareKernel prepare : kernels)
    if (Kernel kernel = prepare(site)) return kernel;
  return {};
}

}  // namespace mlc::engine
