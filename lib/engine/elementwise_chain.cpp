#include "lib/engine/elementwise.h"
#include "lib/engine/omp_parallel.h"

namespace mlc::engine {

namespace {

constexpr int64_t kBlock =
    1024;  // elements; all intermediate results of a block fit into the L1 cache

// An operand of a link that is not a result of the chain.
class Own {
 public:
  Own() = default;
  Own(const Tensor& tensor, const ImageLayout& layout, size_t rank) {
    single_ = tensor.size() == 1;
    tensor_ = single_ ? tensor : layout.Laid(tensor, rank);
    if (single_)
      value_ = static_cast<float>(tensor.Double(0));
    else if (tensor_.dtype() == DType::kFp32)
      floats_ = tensor_.data<float>();
    else
      halves_ = tensor_.data<Half>();
  }
  int64_t step() const { return single_ ? 0 : 1; }
  const float* At(int64_t first, int64_t count, float* scratch) const {
    if (single_) return &value_;
    if (!floats_.empty()) return floats_.data() + first;
    HalfToFloat(halves_.data() + first, scratch, count);
    return scratch;
  }

 private:
  Tensor tensor_;
  Pin<float> floats_;
  Pin<Half> halves_;
  float value_ = 0;
  bool single_ = true;
};

}  // namespace

Tensor ChainContext::Follow(Fp32Result first, const ImageLayout& layout, int threads) const {
  struct Step {
    Loop loop;
    Own x, y;
    bool half;
  };
  std::vector<Step> steps;
  size_t rank = out_dims().size();
  for (size_t i = 0; i < links.size(); ++i) {
    auto own = [&](int from, std::string_view name) {
      bool has = from == Chain::kOwn && links[i].def().Find(name) >= 0;
      return has ? Own(links[i].in(name), layout, rank) : Own();
    };
    const Chain::Link& link = chain->links[i];
    steps.push_back({MakeLoop(links[i]), own(link.x, "x"), own(link.y, "y"),
                     links[i].out_dtype() == DType::kFp16});
  }
  const bool last_half = last_dtype() == DType::kFp16;
  bool round_first = out_dtype() == DType::kFp16;
  auto block = [&](int64_t at, int64_t count) {
    alignas(64) float results[Chain::kMostLinks + 1][kBlock], own[2][kBlock];
    const float* start = first.data() + at;
    if (round_first) {
      RoundToHalf(start, results[0], count);
      start = results[0];
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      const bool last = i + 1 == steps.size();
      float* to = last && !last_half ? first.data() + at : results[i + 1];
      auto [x, y] = chain->links[i];
      auto operand = [&](int from, const Own& of_own, float* scratch) {
        return from == Chain::kOwn ? of_own.At(at, count, scratch)
               : from == 0         ? start
                                   : results[from];
      };
      step.loop(operand(x, step.x, own[0]), x == Chain::kOwn ? step.x.step() : 1,
                operand(y, step.y, own[1]), y == Chain::kOwn ? step.y.step() : 1, to, count);
      if (step.half && !last) RoundToHalf(to, count);
    }
    if (last_half) first.Put(at, results[steps.size()], count);
  };
  // Rounding takes as long as a link.
  const int64_t passes = std::ssize(steps) + 1 +
                         std::ranges::count_if(steps, [](const Step& step) { return step.half; });
  OmpParallelForRanges(
      first.size(), threads,
      [&](int64_t at, int64_t end) {
        for (; at < end; at += kBlock) block(at, std::min(kBlock, end - at));
      },
      passes);
  return layout.Shown(first.Take(true));
}

}  // namespace mlc::engine
