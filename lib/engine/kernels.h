// lib/engine/kernels.h - fast kernels for operations whose `eval` is slow. Each kernel agrees with
// `eval` up to fp32 rounding, and reproducible kernels bit for bit; a test compares them on
// generated cases.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/engine/fp32_view.h"
#include "lib/engine/product_weights.h"
#include "lib/ir/op_def.h"

namespace mlc::engine {

// Sets the context's results, as `eval` does. A kernel is prepared for fixed operand types and
// constants; several threads may call it at the same time.
using Kernel = std::function<void(EvalContext&)>;

// The operation that a kernel is prepared for, at its first execution.
struct KernelSite {
  const EvalContext& context;
  const std::vector<bool>& constant;  // per canonical parameter: given, and the same in every call
  PreparedWeights& prepared;
  int threads = 1;            // maximum number of threads
  bool reproducible = false;  // whether results must be bit-identical to eval
  bool wide = false;          // an fp16 result may be returned as fp32 with the same values
  // The number of threads for oneDNN's thread team (omp_parallel.h), which reproducible kernels do
  // not use.
  int team() const { return reproducible ? 1 : threads; }
  bool is_constant(std::string_view param) const { return constant[context.def().Find(param)]; }
};

// Prepares a kernel; empty if it does not support these types or attributes.
using PrepareKernel = Kernel (*)(const KernelSite&);

struct KernelRow {
  std::string_view op;
  PrepareKernel prepare;
  // The kernel is bit-identical to `eval` for any number of threads and any processor; a kernel
  // that depends on KernelSite::reproducible is so if that is set.
  bool reproducible = false;
  // Accepts images in any memory layout (layout.h), and may return such results.
  bool any_layout = false;
  // Also accepts, for an fp16 operand, an fp32 tensor with the same values.
  bool takes_wide = false;
  // Prepares a kernel for chains (elementwise.h), which is called with a ChainContext.
  Kernel (*chain)(const KernelSite&) = nullptr;
  // Parameters whose constants the kernel stores in its own form; the first that is constant
  // applies.
  std::array<std::string_view, 2> weights = {};
};

// KernelRow::prepare of a kernel that supports any x of type fp32 or fp16.
template <void (*kRun)(EvalContext&)>
Kernel OfFloatX(const KernelSite& site) {
  return IsKernelFloat(site.context.dtype("x")) ? Kernel(kRun) : Kernel();
}

// Returns an operator's kernels, fastest first: all, or only the reproducible ones.
std::vector<PrepareKernel> FindKernels(std::string_view op, bool reproducible = false);
// The same for chains that begin with the operator.
std::vector<PrepareKernel> FindChainKernels(std::string_view op);
// Returns whether one of the operator's kernels accepts any memory layout.
bool TakesAnyLayout(std::string_view op);
// Returns whether the operator has kernels and all of them accept fp16 operands as fp32.
bool TakesWide(std::string_view op);
// Returns whether a kernel of the operator stores constants of this parameter itself.
bool HoldsWeights(std::string_view op, std::string_view param);
// Returns the first of `kernels` that supports the site, or an empty kernel.
Kernel MakeKernel(std::span<const PrepareKernel> kernels, const KernelSite& site);

// The kernel tables, one per file.
std::span<const KernelRow> OneDnnKernels();       // convolutions, matrix products
std::span<const KernelRow> ProductKernels();      // the same operators, without oneDNN
std::span<const KernelRow> ElementwiseKernels();  // unary and binary operators
std::span<const KernelRow> ReductionKernels();    // softmax, normalisations, reductions, attention
std::span<const KernelRow> PoolKernels();
std::span<const KernelRow> ImageKernels();      // data movement of channels-last images
std::span<const KernelRow> RecurrentKernels();  // gru, lstm, rnn

}  // namespace mlc::engine
