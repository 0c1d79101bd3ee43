// Data movement of channels-last images.
#include <algorithm>

#include "lib/engine/kernels.h"
#include "lib/engine/layout.h"
#include "lib/ir/concat_slice.h"

namespace mlc::engine {

namespace {

// If all values are channels-last, the result is too; otherwise eval is used.
void Concat(EvalContext& context) {
  std::vector<Tensor> values;
  for (int k = 0; k < context.count("values"); ++k) values.push_back(context.in("values", k));
  ImageLayout layout(true);
  if (context.Bool("interleave") || !std::ranges::all_of(values, [](const Tensor& value) {
        return ImageLayout::Of(value).channels_last();
      }))
    return context.def().eval(context);
  for (Tensor& value : values) value = layout.Laid(value);
  int rank = values[0].rank(), axis = OpContext::Axis(context.Int("axis"), rank);
  int laid_axis = axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
  context.Set(layout.Shown(Join(values, laid_axis).InMemory()));
}

Kernel PrepareConcat(const KernelSite&) { return Concat; }

constexpr KernelRow kRows[] = {
    {.op = "concat", .prepare = PrepareConcat, .any_layout = true},
};

}  // namespace

std::span<const KernelRow> ImageKernels() { return kRows; }

}  // namespace mlc::engine
