// lib/engine/kernels.h - fast ways to compute operations whose `eval` is slow. Each agrees with
// `eval` up to fp32 rounding, those that say so bit for bit; a test compares them on generated
// cases.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/engine/weights.h"
#include "lib/ir/op_def.h"

namespace mlc {

// Sets the context's results, as eval does. Made for the operand types and the constants that it
// was prepared with; several threads may call it at once.
using Kernel = std::function<void(EvalContext&)>;

// The first call of an operation.
struct KernelSite {
  const EvalContext& context;
  const std::vector<bool>& constant;  // by canonical parameter: given, and the same in every call
  PreparedWeights& prepared;
  int threads = 1;            // at most
  bool reproducible = false;  // whether its bits must be those of eval
  bool wide = false;          // a result of fp16 may be left as fp32 that holds the same values
  // Of oneDNN's (team.h), which nothing reproducible starts.
  int team() const { return reproducible ? 1 : threads; }
  bool is_constant(std::string_view param) const { return constant[context.def().Find(param)]; }
};

// Empty when the kernel does not do these types.
using PrepareKernel = Kernel (*)(const KernelSite&);

struct KernelRow {
  std::string_view op;
  PrepareKernel prepare;
  // The bits of eval, whatever the number of threads and the processor, or, where the kernel asks
  // the site, if that wants them.
  bool reproducible = false;
  // Takes images however they lie (layout.h), and may leave such results.
  bool any_layout = false;
  // Takes operands of fp16 also as fp32 that holds the same values.
  bool takes_wide = false;
  // For chains (elementwise.h): the kernel's context is a ChainContext.
  Kernel (*chain)(const KernelSite&) = nullptr;
  // Parameters whose constants the kernel holds itself, in the form that it wants; of several the
  // first that is one.
  std::array<std::string_view, 2> weights = {};
};

// An operator's kernels, the fastest first; all of them, or those that give the bits of eval.
std::vector<PrepareKernel> FindKernels(std::string_view op, bool reproducible = false);
// Likewise, for chains that begin with the operator.
std::vector<PrepareKernel> FindChainKernels(std::string_view op);
// Whether one of them takes operands in any layout.
bool TakesAnyLayout(std::string_view op);
// Whether all of them take operands of fp16 as fp32 too; false where there are none.
bool TakesWide(std::string_view op);
// Whether a kernel of the operator holds constants of the parameter itself.
bool HoldsWeights(std::string_view op, std::string_view param);
// Of the first of `kernels` that does the site's types; empty when none does.
Kernel MakeKernel(std::span<const PrepareKernel> kernels, const KernelSite& site);

// The tables by file.
std::span<const KernelRow> OneDnnKernels();       // convolutions, matrix products
std::span<const KernelRow> ProductKernels();      // the same, without a library
std::span<const KernelRow> ElementwiseKernels();  // unary and binary operators
std::span<const KernelRow> ReductionKernels();    // softmax, normalisations, reductions, attention
std::span<const KernelRow> PoolKernels();
std::span<const KernelRow> ImageKernels();      // what only moves images that lie channels last
std::span<const KernelRow> RecurrentKernels();  // gru, lstm, rnn

}  // namespace mlc
