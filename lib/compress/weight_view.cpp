#include "lib/compress/weight_view.h"

#include <algorithm>
#include <numeric>

#include "lib/support/threads.h"

namespace mlc::compress {

WeightView::WeightView(const Tensor& weight, const WeightOperand& axes, bool inputs_first)
    : batch_(axes.batch) {
  std::vector<int> order;
  for (int d = 0; d < axes.batch; ++d) order.push_back(d);
  order.push_back(inputs_first ? axes.input : axes.output);
  order.push_back(inputs_first ? axes.output : axes.input);
  for (int d = axes.batch; d < weight.rank(); ++d)
    if (d != axes.output && d != axes.input) order.push_back(d);
  back_.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) back_[order[i]] = static_cast<int>(i);
  tensor_ = std::ranges::is_sorted(order) ? weight : weight.Transposed(order);
  for (int d = 0; d <= batch_; ++d) rows_ *= tensor_.dims()[d];
}

Tensor WeightView::Stored(const Tensor& in_view) const {
  if (std::ranges::is_sorted(back_)) return in_view;
  std::vector<int> order = back_;
  for (int d = static_cast<int>(back_.size()); d < in_view.rank(); ++d) order.push_back(d);
  return in_view.Transposed(order);
}

std::vector<float> ReadFloats(const Tensor& tensor, int64_t first, int64_t count) {
  std::vector<float> numbers(static_cast<size_t>(count));
  auto* out = reinterpret_cast<std::byte*>(numbers.data());
  if (tensor.dtype() == DType::kFp32)
    tensor.Read(first, count, out);
  else
    tensor.Cast(DType::kFp32).Read(first, count, out);
  return numbers;
}

Sums ForCells(const Tensor& tensor, int64_t cell, int threads,
              const std::function<Sums(int64_t, std::span<const float>)>& f) {
  // Parts are small enough for caches, but contain enough cells for all lanes (lanes.h).
  constexpr int64_t kBlockBytes = int64_t{1} << 19, kLeastCells = 16,
                    kCachedElements = int64_t{1} << 15;
  const int64_t cells = tensor.size() / cell,
                step = std::max<int64_t>(tensor.BlockElements(kBlockBytes) / cell, 1),
                blocks = (cells + step - 1) / step;
  std::vector<Sums> sums(static_cast<size_t>(blocks));
  ParallelFor(blocks, threads, [&](int64_t block) {
    const int64_t first = block * step, end = std::min(first + step, cells),
                  part = std::max(kCachedElements / cell, kLeastCells);
    for (int64_t at = first; at < end; at += part) {
      const std::vector<float> numbers =
          ReadFloats(tensor, at * cell, std::min(part, end - at) * cell);
      sums[block] += f(at, numbers);
    }
    tensor.Release(first * cell, (end - first) * cell);
  });
  Sums all;
  for (const Sums& one : sums) all += one;
  return all;
}

}  // namespace mlc::compress
